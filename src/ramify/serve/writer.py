"""The one writer of a served model: commits examples in groups, and answers what only the live model knows."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from ramify.serve.answering import Answering
from ramify.serve.journal import Batch, Content, Journal, Receipt
from ramify.serve.learner import Learner
from ramify.serve.problems import Problem
from ramify.serve.settings import Settings
from ramify.serve.store import Store
from ramify.serve.teaching import Lesson
from ramify.serve.turns import Turns

# `progress` waits this long for the learner, so that a small request is seen in it at once.
CATCH_UP_SECONDS = 0.2
# Examples of one commit.
_GROUP = 10_000

CANNOT_LEARN = (
    "this model was trained in batch and cannot learn; serve an online model, "
    "such as one of `ramify train --online` or `ramify serve --new`"
)


class Writer:
    """Journal, learner and live model of a store; all calls come from one event loop."""

    def __init__(self, store: Store, settings: Settings, *, forks: bool = False) -> None:
        """`forks`: see `Saver`; only for a process that has nothing else to do."""
        self.settings = settings
        self._forks = forks
        self.classifier = store.classifier
        self.journal = store.journal
        self.learner: Learner | None = None
        self._waiting: deque[tuple[Batch, asyncio.Future[Receipt]]] = deque()
        self._n_waiting = 0  # examples accepted, to be committed
        self._n_held = 0  # examples whose turn it is not yet
        self._has_work = asyncio.Event()
        self._changed = asyncio.Event()
        self._turns = Turns(self._backlog_seconds, lambda: self._changed)
        self._commits: deque[tuple[float, int]] = deque(maxlen=200)
        self._closes = False
        self.has_workers = False

    async def start(self) -> None:
        """Begin to recover; `is_ready` when done."""
        if self.journal is None:
            return
        self._loop = asyncio.get_running_loop()
        self._lesson = self._new_lesson()
        for piece in self.journal.after(0) if self._lesson.input is None else ():
            self._lesson.check(piece.examples)  # what the first examples settled
            if self._lesson.has_labels:
                break
        # The committer, the learner and readers each have a connection.
        self._reader, self._reading = Journal(self.settings.journal_path), threading.Lock()
        journal = Journal(self.settings.journal_path)
        self.learner = Learner(self.classifier, journal, self.settings, self._learned, forks=self._forks)
        self.learner.start()
        self._committer = asyncio.create_task(self._commit_groups())
        self._warming = asyncio.create_task(asyncio.to_thread(import_module, "ramify.serve.lessons"))

    async def stop(self) -> None:
        """Commit and learn what was accepted, save, and close the journal."""
        if self.journal is None or self.learner is None:
            return
        self._closes = True
        self._has_work.set()
        await self._committer
        await asyncio.to_thread(self.learner.stop)
        for journal in (self.learner.journal, self._reader, self.journal):
            journal.close()

    @property
    def is_ready(self) -> bool:
        return self.learner is None or (self.learner.is_recovered and self.learner.failure is None)

    async def describe(self) -> dict[str, Any]:
        """What workers need to know; a worker's first call."""
        self.has_workers = True
        return {
            "learns": self.journal is not None,
            "journal": None if self.journal is None else self.journal.id,
            "ready": self.is_ready,
            "failure": None if self.learner is None else self.learner.failure,
        }

    async def counts(self, labels: list[Any]) -> list[int]:
        """In how many examples each label was taught."""
        return await asyncio.to_thread(self._read, lambda journal: journal.counts(labels))

    async def most_frequent(self, limit: int, offset: int) -> list[Any]:
        """Labels with the number of their examples, the most frequent first."""
        return await asyncio.to_thread(self._read, lambda journal: journal.most_frequent(limit, offset))

    def _read(self, query: Callable[[Journal], Any]) -> Any:
        with self._reading:
            return query(self._reader)

    # --- learning -------------------------------------------------------------------------------------------------

    async def learn_body(self, kind: str, key: str | None, body: bytes) -> dict[str, Any]:
        """`learn` for the examples of a request's body."""
        if self.journal is None:
            raise Problem(409, CANNOT_LEARN)
        from ramify.serve.lessons import read_examples  # not at the start: its libraries take their time to load

        examples = read_examples(kind, body, self.settings)
        if not examples:
            return {"n_examples": 0, "version": self.journal.last, "duplicate": False}
        return await self.learn(examples, key)

    async def learn(self, examples: Sequence[Content], key: str | None) -> dict[str, Any]:
        """Commit examples to the journal; on return they are on the disk, and will be learned."""
        if self.journal is None or self.learner is None:
            raise Problem(409, CANNOT_LEARN)
        self._check_learns()
        behind = self._n_behind + self._n_held
        if behind + len(examples) > self.settings.max_behind and behind > 0:
            raise self._too_many(behind)
        self._lesson.check(examples)
        try:
            receipt = await self._committed(Batch(examples, key))
        except BaseException:
            if self.journal.last + self._n_waiting + self._n_held == 0:
                self._lesson = self._new_lesson()  # a first example that was not kept settles nothing
            raise
        if receipt.is_conflict:
            raise Problem(
                409, "this Idempotency-Key was used with other examples: use a new key", where="Idempotency-Key"
            )
        return {"n_examples": receipt.size, "version": receipt.last, "duplicate": receipt.is_duplicate}

    def _new_lesson(self) -> Lesson:
        assert self.journal is not None
        return Lesson(self.classifier, is_multiclass=self.journal.facts["is_multiclass"])

    def _check_learns(self) -> None:
        assert self.learner is not None
        if self.learner.failure is not None or self._closes:
            raise Problem(503, "the learner has stopped: see the log, and start the service again", retry_after=5)

    @property
    def _n_behind(self) -> int:
        """Examples that are or will be committed, and that the learner does not know yet."""
        assert self.journal is not None
        assert self.learner is not None
        return self.journal.last + self._n_waiting - self.learner.learned

    def _backlog_seconds(self) -> float:
        """How long the learner needs for these; 0 if it has stopped, as nobody should wait for it."""
        assert self.learner is not None
        return 0.0 if self.learner.failure is not None else self._n_behind * self.learner.seconds_per_example

    def _too_many(self, behind: int) -> Problem:
        assert self.learner is not None
        seconds = min(max(math.ceil(behind / 2 * self.learner.seconds_per_example), 1), 60)
        return Problem(503, f"{behind} examples wait to be learned: send these again later", retry_after=seconds)

    async def _committed(self, batch: Batch) -> Receipt:
        future: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        size = len(batch.examples)

        def accept() -> None:
            self._check_learns()
            self._waiting.append((batch, future))
            self._n_waiting += size
            self._has_work.set()

        self._n_held += size
        try:
            await self._turns.enter(size, accept, self.settings.timeout / 2)
        except asyncio.TimeoutError:
            raise self._too_many(self._n_behind + self._n_held) from None
        finally:
            self._n_held -= size
        return await future

    async def _commit_groups(self) -> None:
        """Requests that arrive during a commit share the next one."""
        assert self.journal is not None
        assert self.learner is not None
        while not (self._closes and not self._waiting):
            await self._has_work.wait()
            self._has_work.clear()
            while self._waiting:
                group, size = [], 0
                while self._waiting and size < _GROUP:
                    group.append(self._waiting.popleft())
                    size += len(group[-1][0].examples)
                try:
                    receipts = await asyncio.to_thread(self.journal.append, [batch for batch, _ in group])
                except Exception as error:  # whatever it is, the next commit must come
                    _fail(group, error)
                else:
                    for (_, future), receipt in zip(group, receipts, strict=True):
                        if not future.done():
                            future.set_result(receipt)
                    self._commits.append((time.monotonic(), size))
                self._n_waiting -= size
                self.learner.wake()
                self._wake_waiting()  # a commit that failed makes room, too

    # --- queries of the live model --------------------------------------------------------------------------------

    async def predict(self, request: dict[str, Any]) -> dict[str, Any]:
        """`fresh` predictions: from the live model, after it has learned everything acknowledged so far."""
        answering = await self._fresh()
        return await asyncio.to_thread(answering.predict, request)

    async def explain(self, request: dict[str, Any]) -> dict[str, Any]:
        answering = await self._fresh()
        return await asyncio.to_thread(answering.explain, request)

    async def _fresh(self) -> Answering:
        assert self.learner is not None
        assert self.journal is not None
        try:
            await self._until_learned(self.journal.last, self.settings.timeout)
        except asyncio.TimeoutError:
            behind = self.journal.last - self.learner.learned
            raise Problem(
                503, f"{behind} examples wait to be learned: ask without `fresh`, or later", retry_after=1
            ) from None
        fitted = self.classifier.fitted_ if hasattr(self.classifier, "fitted_") else None
        return Answering(fitted, self.learner.learned)

    async def _until_learned(self, sequence: int, seconds: float) -> None:
        learner = self.learner
        assert learner is not None

        async def wait() -> None:
            while learner.learned < sequence and learner.failure is None:
                await self._changed.wait()

        # The learner may be done between the question and the wait: then the loop gets its call right afterwards.
        await asyncio.wait_for(wait(), seconds)

    def _learned(self) -> None:
        """Called by the learner's thread."""
        with suppress(RuntimeError):  # the loop may have ended
            self._loop.call_soon_threadsafe(self._wake_waiting)

    def _wake_waiting(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def progress(self) -> dict[str, Any]:
        """What was acknowledged and learned, and how well the model did on it before."""
        if self.journal is None or self.learner is None:
            return {"n_examples": 0, "n_learned": 0, "version": 0, "learns": False}
        with suppress(asyncio.TimeoutError):
            await self._until_learned(self.journal.last, CATCH_UP_SECONDS)
        learner, base = self.learner, int(self.journal.facts["n_base"])
        return {
            "n_examples": base + self.journal.last,
            "n_labels": learner.n_labels,
            "n_learned": base + learner.learned,
            "n_rejected": learner.n_rejected,
            "version": learner.learned,
            "published_version": max(learner.published, 0),
            "saved_version": max(learner.saved, 0),
            "learns": True,
            **learner.progress.describe(),
        }


def _fail(group: list[tuple[Batch, asyncio.Future[Receipt]]], error: Exception) -> None:
    is_full = "full" in str(error) or getattr(error, "errno", None) == 28
    problem = (
        Problem(507, "the disk is full, so nothing of this request was kept: free some space, then send it again")
        if is_full
        else Problem(503, f"the journal cannot be written ({error}): nothing of this request was kept", retry_after=5)
    )
    for _, future in group:
        if not future.done():
            future.set_exception(problem)
