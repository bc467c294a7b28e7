"""The application: routes, errors and documentation, behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from ramify import __version__
from ramify.serve import api_models as models
from ramify.serve.annif import ANNIF_MODELS, annif_routes
from ramify.serve.bulk import bulk_routes
from ramify.serve.guard import Guard
from ramify.serve.problems import MEDIA_TYPE, Problem
from ramify.serve.routes import api_routes, check_is_json, predict_body
from ramify.serve.service import Service
from ramify.serve.web import page_routes

DESCRIPTION = (
    "Predict, explain and teach. Answers come from a snapshot; `version` is the last example that it has learned. "
    "`fresh` asks the live model. Errors are problem details (RFC 9457)."
)
# Bodies that routes parse themselves, and problems, which have a media type of their own.
_BODIES = (models.ProblemResponse, models.PredictRequest, models.ExplainRequest, models.LearnRequest, *ANNIF_MODELS)


def create_app(service: Service) -> FastAPI:
    """The application of a service, which starts and stops with it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="ramify",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )
    for routes in (api_routes(service), bulk_routes(service), annif_routes(service), page_routes()):
        app.include_router(routes)

    async def predict(content_type: str | None, body: bytes) -> tuple[bytes, dict[str, Any]]:
        check_is_json(content_type)
        return await predict_body(service, body)

    app.add_middleware(Guard, settings=service.settings, metrics=service.metrics, predict=predict)
    app.exception_handler(Problem)(_answer_problem)
    app.exception_handler(HTTPException)(_answer_http)
    app.exception_handler(RequestValidationError)(_answer_invalid)
    _document_bodies(app)
    return app


def _document_bodies(app: FastAPI) -> None:
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = generated()
            bodies: list[Any] = [(model, "validation") for model in _BODIES]
            _, defined = models_json_schema(bodies, ref_template="#/components/schemas/{model}")
            schema["components"]["schemas"].update(defined["$defs"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


async def _answer_problem(_: Request, problem: Any) -> Response:
    return Response(problem.body(), problem.status, problem.headers(), MEDIA_TYPE)


async def _answer_http(request: Request, error: Any) -> Response:
    detail = {
        404: f"there is nothing at {request.url.path[:200]}: see /v1/openapi.json",
        405: f"{request.method} is not possible here: see /v1/openapi.json",
    }.get(error.status_code, str(error.detail))
    response = await _answer_problem(request, Problem(error.status_code, detail))
    response.headers.update(error.headers or {})
    return response


async def _answer_invalid(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return await _answer_problem(request, Problem(422, first["msg"], where=where or "body"))
