"""The learner: a thread that folds the journal into the model, publishes snapshots and saves checkpoints.

It reads committed batches from the journal, so recovery and normal operation are the same code: continue after the last
example that the checkpoint has learned.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ramify.base.save_load import load_fitted
from ramify.files.directory import MANIFEST
from ramify.serve import teaching
from ramify.serve.journal import Journal, Piece
from ramify.serve.progress import KS, Progress
from ramify.serve.settings import Settings
from ramify.serve.snapshots import Publication, freeze, read_notes

log = logging.getLogger("ramify.serve")

# A publication may take at most this share of the learner's time; the learner has a lower priority than the answers.
PUBLICATION_SHARE = 0.25
_NICE = 5


class Learner:
    """Learns the journal of `settings.model` on top of a classifier; `learned` is the last example it knows."""

    def __init__(self, classifier: Any, journal: Journal, settings: Settings, on_learned: Callable[[], None]) -> None:
        self.classifier = classifier
        self.settings = settings
        self.journal = journal  # its own connection
        self.is_multiclass = bool(journal.facts["is_multiclass"])
        self.learned, self.published, self.saved = _position(settings, journal), -1, -1
        notes = read_notes(settings.model) if (settings.model / MANIFEST).exists() else {}
        self.progress = Progress.from_state(notes["progress"]) if "progress" in notes else Progress()
        self.n_rejected = int(notes.get("rejected", 0))
        self.saved = self.learned if notes else -1
        if _is_published(settings, journal, self.learned):
            self.published = self.learned
        self.is_recovered = False
        self.failure: str | None = None
        self._on_learned = on_learned
        self._news = threading.Event()
        self._stops = threading.Event()
        self._files = ThreadPoolExecutor(1, thread_name_prefix="files")
        self._writing: Future[None] | None = None
        self._next_publication = self._next_checkpoint = 0.0
        self._thread = threading.Thread(target=self._run, name="learner", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Say that the journal has more."""
        self._news.set()

    def stop(self) -> None:
        """Learn what is committed, save a last checkpoint, and end."""
        self._stops.set()
        self._news.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._files.shutdown()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)  # of this thread, on Linux
            self._next_checkpoint = time.monotonic() + self.settings.checkpoint_seconds
            self._learn_all(publishes=False)
            self._publish(waits=True)
            self.is_recovered = True
            self._on_learned()
            while not self._stops.is_set():
                self._news.wait(self._seconds_until_due())
                self._news.clear()
                self._learn_all(publishes=True)
                self._save_if_due()
            self._learn_all(publishes=False)
            self._publish(waits=True)
            self._checkpoint(waits=True)
        except BaseException as error:  # whatever it is, the service must know
            self.failure = f"{type(error).__name__}: {error}"
            log.exception("the learner stopped")
            self._on_learned()

    def _learn_all(self, publishes: bool) -> None:
        for piece in self.journal.after(self.learned):
            self._learn(piece)
            if publishes:
                self._save_if_due()
        if publishes:
            self._publish_if_due()

    def _learn(self, piece: Piece) -> None:
        began = time.perf_counter()
        answers: list[Any] = []
        try:
            answers = teaching.answers_before(self.classifier, piece.examples, KS[-1])
            teaching.learn(self.classifier, piece.examples, is_multiclass=self.is_multiclass)
        except ValueError as error:  # a rejected piece leaves the model as it was, at every replay
            self.n_rejected += len(piece.examples)
            log.error("examples were not learned", extra={"first": piece.first, "last": piece.last, "why": str(error)})
        else:
            truth = [example["labels"] for example in piece.examples]
            self.progress.add(answers, truth, time.perf_counter() - began, self.n_labels)
        self.learned = piece.last
        self._on_learned()

    @property
    def n_labels(self) -> int:
        return int(self.classifier.n_labels_) if hasattr(self.classifier, "fitted_") else 0

    # --- snapshots and checkpoints --------------------------------------------------------------------------------

    def _save_if_due(self) -> None:
        self._publish_if_due()
        if self.learned > self.saved and time.monotonic() >= self._next_checkpoint:
            self._checkpoint(waits=False)

    def _publish_if_due(self) -> None:
        behind = self.learned - max(self.published, 0)
        if behind > 0 and time.monotonic() >= self._next_publication:
            is_due = behind >= self.settings.publish_examples or self._publication_is_late()
            if is_due:
                self._publish(waits=False)

    def _publication_is_late(self) -> bool:
        return time.monotonic() >= self._next_publication + self.settings.publish_seconds

    def _seconds_until_due(self) -> float | None:
        now = time.monotonic()
        waits = []
        if self.learned > max(self.published, 0):
            waits.append(self._next_publication + self.settings.publish_seconds - now)
        if self.learned > max(self.saved, 0):
            waits.append(self._next_checkpoint - now)
        return max(min(waits), 0.001) if waits else None

    def _publish(self, waits: bool) -> None:
        """Take a snapshot now; a thread writes it."""
        if not hasattr(self.classifier, "fitted_") or self.learned == self.published:
            return
        if not waits and self._is_writing():
            return
        began = time.monotonic()
        publication = Publication(freeze(self.classifier), self._notes(is_checkpoint=False))
        before, self.published = self.published, self.learned
        self._write(lambda: self._write_snapshot(publication, before), "snapshot", waits)
        took = time.monotonic() - began
        self._next_publication = time.monotonic() + took * (1 / PUBLICATION_SHARE - 1)

    def _write_snapshot(self, publication: Publication, before: int) -> None:
        try:
            publication.write(self.settings.snapshot_path)
        except BaseException:
            self.published = before  # so that it is tried again
            raise

    def _checkpoint(self, waits: bool) -> None:
        if not hasattr(self.classifier, "fitted_") or self.learned == self.saved or (not waits and self._is_writing()):
            return
        publication = Publication(self.classifier, self._notes(is_checkpoint=True))
        sequence = self.learned
        self._write(lambda: self._write_checkpoint(publication, sequence), "checkpoint", waits)
        self._next_checkpoint = time.monotonic() + self.settings.checkpoint_seconds

    def _write_checkpoint(self, publication: Publication, sequence: int) -> None:
        publication.write(self.settings.model)
        self.saved = sequence
        if self.settings.keep_examples:
            journal = Journal(self.settings.journal_path)
            try:
                journal.prune(self.settings.keep_examples, sequence)
            finally:
                journal.close()

    def _write(self, write: Callable[[], None], what: str, waits: bool) -> None:
        def logged() -> None:
            try:
                write()
            except (OSError, ValueError) as error:
                # The journal has everything: try again later.
                log.error("a file could not be written", extra={"what": what, "why": str(error)})

        self._writing = self._files.submit(logged)
        if waits:
            self._writing.result()

    def _is_writing(self) -> bool:
        return self._writing is not None and not self._writing.done()

    def _notes(self, *, is_checkpoint: bool) -> dict[str, Any]:
        notes: dict[str, Any] = {"journal": self.journal.id, "sequence": self.learned}
        if is_checkpoint:
            notes |= {"progress": self.progress.state(), "rejected": self.n_rejected}
        return notes


def _is_published(settings: Settings, journal: Journal, learned: int) -> bool:
    """Whether the snapshot of an earlier process is that of this position, and can be loaded."""
    path = settings.snapshot_path
    try:
        notes = read_notes(path) if (path / MANIFEST).exists() else {}
        if (notes.get("journal"), notes.get("sequence")) != (journal.id, learned):
            return False
        load_fitted(path)
    except (OSError, ValueError):
        return False
    return True


def _position(settings: Settings, journal: Journal) -> int:
    """The last example that the saved model has learned."""
    if not (settings.model / MANIFEST).exists():
        return 0
    return int(read_notes(settings.model).get("sequence", 0))
