"""Annif's REST calls, so that its clients and its `http` backend can use this service; the model is the one project."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from ramify import __version__
from ramify.serve import api_models as models
from ramify.serve.problems import Problem
from ramify.serve.routes import PROBLEMS, answer, body_of, idempotency_key, json_body
from ramify.serve.service import Service

MAX_DOCUMENTS = 32  # as in Annif
ProjectId = Annotated[str, Path(max_length=200)]


class AnnifText(BaseModel):
    """A text to suggest subjects for, sent as a form."""

    text: str
    limit: Annotated[int, Field(ge=1, le=models.MAX_TOP_K)] = 10
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.0
    language: str | None = None


class AnnifDocument(BaseModel):
    text: str
    document_id: str | None = None


class AnnifBatch(BaseModel):
    """Documents to suggest subjects for."""

    documents: Annotated[list[AnnifDocument], Field(max_length=MAX_DOCUMENTS)]


ANNIF_MODELS = (AnnifText, AnnifBatch, models.AnnifExamples)
FORM = "application/x-www-form-urlencoded"
_FORM = {
    "requestBody": {"required": True, "content": {FORM: {"schema": {"$ref": "#/components/schemas/AnnifText"}}}},
}


def annif_routes(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(responses=PROBLEMS, tags=["annif"])
    settings = service.settings
    project_id = re.sub(r"[^A-Za-z0-9_-]+", "-", settings.model.resolve().name) or "ramify"

    def project() -> dict[str, Any]:
        return {
            "project_id": project_id,
            "name": project_id,
            "language": "",
            "backend": {"backend_id": "ramify"},
            "vocab": {"vocab_id": project_id, "languages": []},
            "vocab_language": "",
            "is_trained": service.snapshots.current.fitted is not None,
            "modification_time": None,
        }

    def check_project(given: str) -> None:
        if given != project_id:
            raise Problem(404, f"Project '{given}' not found; this service has '{project_id}'", where="project_id")

    async def suggest(texts: list[str], limit: int, threshold: float) -> list[dict[str, Any]]:
        models.check_rows(texts, len(texts), settings, "text")
        found = await service.predict({"texts": texts, "top_k": limit, "threshold": threshold})
        return [{"results": [_subject(label) for label in result["labels"]]} for result in found["results"]]

    @router.get("/v1/")
    async def info() -> dict[str, str]:
        """Name and version."""
        return {"title": "ramify, with Annif's REST API", "version": __version__}

    @router.get("/v1/projects")
    async def projects() -> dict[str, Any]:
        """The model as a list of one project."""
        return {"projects": [project()]}

    @router.get("/v1/projects/{project_id}")
    async def one_project(project_id: ProjectId) -> dict[str, Any]:
        """The model as a project."""
        check_project(project_id)
        return project()

    @router.post("/v1/projects/{project_id}/suggest", openapi_extra=_FORM)
    async def suggest_one(request: Request, project_id: ProjectId) -> Response:
        """Suggest subjects for a text."""
        check_project(project_id)
        asked = _parse_form(request, await request.body())
        return answer((await suggest([asked.text], asked.limit, asked.threshold))[0])

    @router.post("/v1/projects/{project_id}/suggest-batch", openapi_extra=body_of(AnnifBatch))
    async def suggest_batch(
        request: Request,
        project_id: ProjectId,
        limit: Annotated[int, Query(ge=1, le=models.MAX_TOP_K)] = 10,
        threshold: Annotated[float, Query(ge=0, le=1)] = 0.0,
    ) -> Response:
        """Suggest subjects for several documents."""
        check_project(project_id)
        documents = models.parse(AnnifBatch, await json_body(request)).documents
        if not documents:
            return answer([])
        found = await suggest([document.text for document in documents], limit, threshold)
        identities = [{"document_id": document.document_id} for document in documents]
        return answer([result | identity for result, identity in zip(found, identities, strict=True)])

    @router.post("/v1/projects/{project_id}/learn", openapi_extra=body_of(models.AnnifExamples), status_code=204)
    async def learn(request: Request, project_id: ProjectId) -> Response:
        """Learn indexed documents; a subject's URI is the label."""
        check_project(project_id)
        await service.learn_body("documents", await json_body(request), idempotency_key(request))
        return Response(status_code=204)

    return router


def _parse_form(request: Request, body: bytes) -> AnnifText:
    kind = request.headers.get("content-type", FORM).partition(";")[0].strip().lower()
    if kind != FORM:
        raise Problem(415, f"the body must be {FORM}, got {kind[:60]!r}", where="Content-Type")
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=200))
    except ValueError as error:
        raise Problem(400, f"the body is not a form: {error}", where="body") from None
    fields.setdefault("text", "")
    return models.parse(AnnifText, json.dumps(fields).encode())


def _subject(label: dict[str, Any]) -> dict[str, Any]:
    uri = label["label"] if isinstance(label["label"], str) else json.dumps(label["label"])
    return {"uri": uri, "label": label.get("name") or uri, "notation": None, "score": label["probability"]}
