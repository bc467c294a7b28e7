"""A process that only answers, from the snapshots that a writer elsewhere publishes to a shared directory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ramify.files.directory import MANIFEST
from ramify.serve.journal import Content
from ramify.serve.problems import Problem
from ramify.serve.settings import Settings
from ramify.serve.snapshots import read_notes

_ELSEWHERE = "this replica only answers from snapshots: send this to the one that learns"


class Follower:
    """Stands for a writer that cannot be called."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def describe(self) -> dict[str, Any]:
        """As of the last snapshot; any journal will do."""
        return {"learns": True, "journal": None, "ready": True, "failure": None}

    async def learn(self, examples: Sequence[Content], key: str | None) -> dict[str, Any]:
        raise Problem(409, _ELSEWHERE)

    async def learn_body(self, kind: str, key: str | None, body: bytes) -> dict[str, Any]:
        raise Problem(409, _ELSEWHERE)

    async def predict(self, request: dict[str, Any]) -> dict[str, Any]:
        raise Problem(409, _ELSEWHERE, where="fresh")

    async def explain(self, request: dict[str, Any]) -> dict[str, Any]:
        raise Problem(409, _ELSEWHERE, where="fresh")

    async def progress(self) -> dict[str, Any]:
        """The examples of the snapshot."""
        notes = await asyncio.to_thread(self._notes)
        version = int(notes.get("sequence", 0))
        return {"n_examples": version, "n_labels": 0, "n_learned": version, "version": version, "learns": False}

    def _notes(self) -> dict[str, Any]:
        path = self.settings.snapshot_path
        return read_notes(path) if (path / MANIFEST).exists() else {}

    async def counts(self, labels: list[Any]) -> list[int]:
        raise Problem(409, _ELSEWHERE)

    async def most_frequent(self, limit: int, offset: int) -> list[Any]:
        raise Problem(409, _ELSEWHERE)
