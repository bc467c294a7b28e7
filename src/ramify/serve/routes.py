"""The routes of the API: predict, explain, learn, labels, tree, progress, health and metrics."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from ramify.serve import api_models as models
from ramify.serve.problems import MEDIA_TYPE, Problem
from ramify.serve.service import Service

MAX_KEY = 200
_ROWS_AT_ONCE = 50  # of an answer that is written
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemResponse"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"content": _PROBLEM, "description": "What is wrong, where, and what to do."},
    "5XX": {"content": _PROBLEM, "description": "Busy (503, with Retry-After), or the disk is full (507)."},
}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The documentation of a body that a route parses itself: one pass from bytes to checked values."""
    reference = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": reference}}}}


def answer(content: Any) -> Response:
    """JSON in which no text can end a script or a tag."""
    return Response(json.dumps(content), media_type="application/json")


async def json_body(request: Request) -> bytes:
    """The body, if it is said to be JSON."""
    check_is_json(request.headers.get("content-type"))
    return await request.body()


def check_is_json(content_type: str | None) -> None:
    """Reject a body that is said to be something else."""
    if content_type is None or content_type == "application/json":
        return
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, f"the body must be application/json, got {kind[:60]!r}", where="Content-Type")


async def predict_body(service: Service, body: bytes) -> tuple[bytes, dict[str, Any]]:
    """The answer to the body of a prediction, and what the log says about it."""
    asked = models.parse(models.PredictRequest, body)
    n_rows = len(asked.texts if asked.texts is not None else asked.features or [])
    models.check_rows(asked.texts, n_rows, service.settings, "texts" if asked.texts is not None else "features")
    models.check_answers(n_rows, len(asked.labels) if asked.labels is not None else asked.top_k or 0)
    found = await service.predict(asked.__dict__)
    logged: dict[str, Any] = {"rows": n_rows, "version": found["version"]}
    if service.settings.log_texts:
        logged["content"] = asked.texts
    return await encoded(found), logged


async def encoded(found: dict[str, Any]) -> bytes:
    """The answer to a prediction as JSON; others are answered while a long one is written."""
    results = found["results"]
    if len(results) <= _ROWS_AT_ONCE:
        return json.dumps(found).encode()
    parts = []
    for start in range(0, len(results), _ROWS_AT_ONCE):
        parts.append(json.dumps(results[start : start + _ROWS_AT_ONCE])[1:-1])
        await asyncio.sleep(0)
    return f'{{"results": [{", ".join(parts)}], "version": {found["version"]}}}'.encode()


def idempotency_key(request: Request) -> str | None:
    """The client's name of a request, by which a retry is recognised."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= MAX_KEY:
        raise Problem(422, f"the key must have 1 to {MAX_KEY} characters, got {len(key)}", where="Idempotency-Key")
    return key


def api_routes(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(responses=PROBLEMS)
    settings = service.settings

    def logged(request: Request, values: dict[str, Any], content: Any) -> None:
        request.state.logged = values | ({"content": content} if settings.log_texts else {})

    @router.post(
        "/v1/predict", response_model=models.PredictResponse, openapi_extra=body_of(models.PredictRequest), tags=["ask"]
    )
    async def predict(request: Request) -> Response:
        """Predict labels with probabilities, best first."""
        found, request.state.logged = await predict_body(service, await json_body(request))
        return Response(found, media_type="application/json")

    @router.post(
        "/v1/explain", response_model=models.ExplainResponse, openapi_extra=body_of(models.ExplainRequest), tags=["ask"]
    )
    async def explain(request: Request) -> Response:
        """Explain why a label has its probability for a row."""
        asked = models.parse(models.ExplainRequest, await json_body(request))
        models.check_rows(None if asked.text is None else [asked.text], 1, settings, "text")
        found = await service.explain(asked.__dict__)
        logged(request, {"version": found["version"]}, asked.text)
        return answer(found)

    @router.post(
        "/v1/learn",
        response_model=models.LearnResponse,
        openapi_extra=body_of(models.LearnRequest)
        | {
            "parameters": [
                {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": MAX_KEY}}
            ]
        },
        tags=["teach"],
    )
    async def learn(request: Request) -> Response:
        """Learn examples. The answer means that they are on the disk; a retry with the same key counts once."""
        key = idempotency_key(request)
        body = await json_body(request)
        receipt = await service.learn_body("examples", body, key)
        values = {"rows": receipt["n_examples"], "version": receipt["version"]}
        logged(request, values, json.loads(body)["examples"] if settings.log_texts else None)
        return answer(receipt)

    @router.get("/v1/labels", response_model=models.LabelsResponse, tags=["ask"])
    async def labels(
        search: Annotated[str, Query(max_length=200, description="Words that a label or its name contains.")] = "",
        sort: Annotated[Literal["column", "frequency"], Query()] = "column",
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> Response:
        """Search or browse the labels, with the number of examples taught."""
        return answer(await service.labels(search, sort, limit, offset))

    @router.get("/v1/tree", response_model=models.TreeResponse, tags=["ask"])
    async def tree(
        node: Annotated[int, Query(ge=0, le=2**31)] = 0,
        tree: Annotated[int, Query(ge=1, le=10_000, description="Number of the tree in an ensemble.")] = 1,
        limit: Annotated[int, Query(ge=1, le=1000, description="Most children to list.")] = 100,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> Response:
        """Browse the label tree: a node and its children."""
        return answer(await service.tree(node, tree, limit, offset))

    @router.get("/v1/progress", response_model=models.ProgressResponse, tags=["ask"])
    async def progress() -> Response:
        """How much was learned, and how well the model answered before it learned it."""
        return answer(await service.progress())

    @router.get("/healthz", tags=["operate"])
    async def healthz() -> dict[str, str]:
        """Whether the process runs."""
        return {"status": "ok"}

    @router.get("/readyz", tags=["operate"])
    async def readyz() -> dict[str, str]:
        """Whether everything acknowledged before the start is known again, and questions are answered."""
        is_ready, why = await service.is_ready()
        if not is_ready:
            raise Problem(503, why, retry_after=1)
        return {"status": why}

    @router.get("/metrics", tags=["operate"], response_class=Response)
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        text = service.metrics.text(await service.progress())
        return Response(text, media_type="text/plain; version=0.0.4")

    return router
