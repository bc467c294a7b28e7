"""The bodies of requests that teach, read by the process that learns: reading a large one holds up no prediction."""

from __future__ import annotations

from typing import Any

from ramify.serve import api_models as models
from ramify.serve.journal import Content
from ramify.serve.settings import Settings


def read_examples(kind: str, body: bytes, settings: Settings) -> list[Content]:
    """The examples of a body of `/v1/learn` ("examples") or of Annif's `learn` ("documents")."""
    return _documents(body, settings) if kind == "documents" else _examples(body, settings)


def _examples(body: bytes, settings: Settings) -> list[Content]:
    examples = models.parse(models.LearnRequest, body).examples
    models.check_rows([example.text or "" for example in examples], len(examples), settings, "examples")
    return [example.content() for example in examples]


def _documents(body: bytes, settings: Settings) -> list[Content]:
    documents = models.parse(models.AnnifExamples, body).root
    models.check_rows([document.text for document in documents], len(documents), settings, "documents")
    contents: list[dict[str, Any]] = [
        {"text": document.text, "labels": list(dict.fromkeys(subject.uri for subject in document.subjects))}
        for document in documents
    ]
    return list(contents)
