"""What the routes share: the settings, the current snapshot, the way to the writer, and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

from ramify.serve.answering import Answering
from ramify.serve.journal import Content
from ramify.serve.label_search import LabelIndex, known_columns
from ramify.serve.metrics import Metrics
from ramify.serve.problems import Problem
from ramify.serve.settings import Settings
from ramify.serve.snapshots import Snapshots, complete_snapshot
from ramify.serve.waits import LearningWaits

log = logging.getLogger("ramify.serve")

# How often a worker looks for a new snapshot.
REFRESH_SECONDS = 0.05
# Up to this many characters a request is answered at once; a longer one goes to a thread, so that others need not wait.
INLINE_CHARACTERS = 4000


class WriterCalls(Protocol):
    """The writer, in this process or another one."""

    async def describe(self) -> dict[str, Any]: ...
    async def learn(self, examples: Sequence[Content], key: str | None) -> dict[str, Any]: ...
    async def learn_body(self, kind: str, key: str | None, body: bytes) -> dict[str, Any]: ...
    async def predict(self, request: dict[str, Any]) -> dict[str, Any]: ...
    async def explain(self, request: dict[str, Any]) -> dict[str, Any]: ...
    async def progress(self) -> dict[str, Any]: ...
    async def counts(self, labels: list[Any]) -> list[int]: ...
    async def most_frequent(self, limit: int, offset: int) -> list[Any]: ...


class Service:
    """Answers from the newest snapshot; everything else is asked of the writer."""

    def __init__(
        self, settings: Settings, writer: WriterCalls, on_answering: Callable[[], None] = lambda: None
    ) -> None:
        """`on_answering` is called if the service can answer before the writer can."""
        self.settings = settings
        self.writer = writer
        self._on_answering = on_answering
        self.metrics = Metrics()
        self.waits = LearningWaits(self.metrics.learning_wait)
        self._learns = False
        self.snapshots = Snapshots(settings.model)
        self._index: tuple[Any, LabelIndex] | None = None
        self._following: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Map the model, and follow its snapshots if it learns.

        If all that was acknowledged is in the stored model, it answers at once, while the writer still loads.
        """
        complete = await asyncio.to_thread(complete_snapshot, self.settings)
        self._following = asyncio.create_task(self._follow(complete))
        if complete is None:
            await self._following
        else:
            self.snapshots = complete
            self._on_answering()

    async def _follow(self, complete: Snapshots | None) -> None:
        described = await self.writer.describe()
        if described["learns"]:
            first = complete or self.snapshots
            self.snapshots = first.followed_by(self.settings.snapshot_path, described["journal"])
        await asyncio.to_thread(self.snapshots.refresh)
        self._learns = described["learns"]
        if self._learns:
            await asyncio.to_thread(import_module, "ramify.data.text")  # so that the first snapshot loads at once
            self._refreshing = asyncio.create_task(self._refresh())

    async def learns(self) -> bool:
        """Whether the model learns, which the writer knows as soon as it has loaded it."""
        assert self._following is not None
        await asyncio.shield(self._following)
        return self._learns

    async def stop(self) -> None:
        for task in (self._following, self._refreshing):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Problem):
                    await task

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                if self.snapshots.is_outdated():
                    await self.waits.during(self.snapshots.refresh)
            except Exception as error:  # keep the old one, and look again
                log.error("a snapshot could not be loaded", extra={"why": str(error)})
                await asyncio.sleep(1)

    async def is_ready(self) -> tuple[bool, str]:
        """Whether the model is recovered and mapped, and if not, why."""
        if self.snapshots.is_loaded and self._following is not None and not self._following.done():
            return True, "ready"  # it answers with all that was acknowledged; who teaches waits for the writer
        described = await self.writer.describe()
        if described["failure"]:
            return False, f"the learner has stopped: {described['failure']}"
        if not described["ready"]:
            return False, "the journal is being replayed"
        await asyncio.to_thread(self.snapshots.refresh)
        if not self.snapshots.is_loaded and not self._learns:
            return False, "the model is being loaded"
        return True, "ready"

    # --- queries --------------------------------------------------------------------------------------------------

    @property
    def answering(self) -> Answering:
        snapshot = self.snapshots.current
        return Answering(snapshot.fitted, snapshot.version)

    async def _first_snapshot(self) -> None:
        """Load the first snapshot as soon as there is one: without it every answer would be empty."""
        if not self.snapshots.is_loaded and self.snapshots.is_outdated():
            await asyncio.to_thread(self.snapshots.refresh)

    async def predict(self, request: dict[str, Any]) -> dict[str, Any]:
        await self._first_snapshot()
        if request.get("fresh") and await self.learns():
            answer = await self.writer.predict(request)
        elif _size(request) <= INLINE_CHARACTERS:
            answer = self.answering.predict(request)
        else:
            answer = await asyncio.to_thread(self.answering.predict, request)
        self.metrics.rows("predicted", len(answer["results"]))
        return answer

    async def explain(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("fresh") and await self.learns():
            return await self.writer.explain(request)
        await self._first_snapshot()
        return await asyncio.to_thread(self.answering.explain, request)

    async def learn(self, examples: Sequence[Content], key: str | None) -> dict[str, Any]:
        return self._counted(await self.writer.learn(examples, key))

    async def learn_body(self, kind: str, body: bytes, key: str | None) -> dict[str, Any]:
        """Learn the examples of a body, which the writer reads: see `read_examples`."""
        return self._counted(await self.writer.learn_body(kind, key, body))

    def _counted(self, receipt: dict[str, Any]) -> dict[str, Any]:
        if not receipt["duplicate"]:
            self.metrics.rows("learned", receipt["n_examples"])
        return receipt

    async def progress(self) -> dict[str, Any]:
        progress = await self.writer.progress()
        if not await self.learns():
            fitted = self.snapshots.current.fitted
            progress["n_labels"] = 0 if fitted is None else fitted.schema.n_labels
        return progress | {"model": self.settings.model.name, "learning_wait": self.waits.describe()}

    async def tree(self, node: int, number: int, limit: int, offset: int) -> dict[str, Any]:
        await self._first_snapshot()
        return await asyncio.to_thread(self.answering.tree, node, number, limit, offset)

    # --- labels ---------------------------------------------------------------------------------------------------

    async def labels(self, search: str, order: str, limit: int, offset: int) -> dict[str, Any]:
        """Labels that contain the words of `search`, or all of them; by column or by frequency."""
        await self._first_snapshot()
        learns = await self.learns()
        snapshot = self.snapshots.current
        fitted = snapshot.fitted
        if fitted is None:
            return {"labels": [], "n_labels": 0, "version": snapshot.version}
        schema = fitted.schema
        if search.strip():
            index = await asyncio.to_thread(self._label_index)
            columns = (await asyncio.to_thread(index.find, search, offset + limit))[offset:]
        elif order == "frequency":
            if not learns:
                raise Problem(409, "a batch model does not know how frequent its labels are", where="sort")
            found = await self.writer.most_frequent(limit, offset)
            columns = await asyncio.to_thread(known_columns, schema, [label for label, _ in found])
        else:
            columns = list(range(offset, min(offset + limit, schema.n_labels)))
        labels = schema.labels_of(columns)
        counts: list[Any] = await self.writer.counts(labels) if learns else [None] * len(labels)
        entries = [
            {"label": label, "name": schema.label_name(column), "n_examples": n}
            for label, column, n in zip(labels, columns, counts, strict=True)
        ]
        return {"labels": entries, "n_labels": schema.n_labels, "version": snapshot.version}

    def _label_index(self) -> LabelIndex:
        fitted = self.snapshots.current.fitted
        assert fitted is not None
        if self._index is None or self._index[0] is not fitted:
            index = self._index[1] if self._index and self._index[1].n_labels == fitted.schema.n_labels else None
            self._index = (fitted, index or LabelIndex(fitted.schema))
        return self._index[1]


def _size(request: dict[str, Any]) -> int:
    rows = request.get("texts")
    if rows is not None:
        return sum(map(len, rows)) + 100 * len(rows)
    return sum(20 * len(row) + 100 for row in request.get("features") or [])
