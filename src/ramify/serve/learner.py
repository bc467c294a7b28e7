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
from typing import Any

from ramify.base.save_load import load_fitted
from ramify.files.directory import MANIFEST
from ramify.serve import teaching
from ramify.serve.journal import Journal, Piece
from ramify.serve.progress import KS, Progress
from ramify.serve.saver import Saver
from ramify.serve.settings import Settings
from ramify.serve.snapshots import Publication, freeze, read_notes

log = logging.getLogger("ramify.serve")

# Publications may take at most this share of the time; learner and publications have a lower priority than answers.
PUBLICATION_SHARE = 0.5
_NICE = 10
# Of the time that an example takes, until some were learned; then a mean over about the last hundred.
_FIRST_GUESS = 1e-4
_MEMORY = 100


class Learner:
    """Learns the journal of `settings.model` on top of a classifier; `learned` is the last example it knows."""

    def __init__(
        self,
        classifier: Any,
        journal: Journal,
        settings: Settings,
        on_learned: Callable[[], None],
        *,
        forks: bool = False,
    ) -> None:
        """`forks`: models are written by a forked process, so that learning goes on."""
        self.classifier = classifier
        self.settings = settings
        self.journal = journal  # its own connection
        self.is_multiclass = bool(journal.facts["is_multiclass"])
        self.learned, self.published, self.saved = _position(settings, journal), -1, -1
        notes = read_notes(settings.model) if (settings.model / MANIFEST).exists() else {}
        self.progress = Progress.from_state(notes["progress"]) if "progress" in notes else Progress()
        self.n_rejected = int(notes.get("rejected", 0))
        self.seconds_per_example = _FIRST_GUESS
        self.saved = self.learned if notes else -1
        if _is_published(settings, journal, self.learned):
            self.published = self.learned
        self.is_recovered = False
        self.failure: str | None = None
        self._on_learned = on_learned
        self._news = threading.Event()
        self._stops = threading.Event()
        self._saver = Saver(forks=forks, on_done=self._written)
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
        self._saver.close()

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
            answers = teaching.answers_of(self.classifier, piece.examples, KS[-1])
            teaching.learn(self.classifier, piece.examples, is_multiclass=self.is_multiclass)
        except ValueError as error:  # a rejected piece leaves the model as it was, at every replay
            self.n_rejected += len(piece.examples)
            log.error("examples were not learned", extra={"first": piece.first, "last": piece.last, "why": str(error)})
        else:
            truth = [example["labels"] for example in piece.examples]
            self.progress.add(answers, truth, time.perf_counter() - began, self.n_labels)
        self._note_speed(len(piece.examples), time.perf_counter() - began)
        self.learned = piece.last
        self._on_learned()

    def _note_speed(self, n_examples: int, seconds: float) -> None:
        share = n_examples / (n_examples + _MEMORY)
        self.seconds_per_example += share * (seconds / n_examples - self.seconds_per_example)

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
        if self._saver.is_busy:
            return None  # it calls when it is done
        waits = []
        if self.learned > max(self.published, 0):
            waits.append(self._next_publication + self.settings.publish_seconds - now)
        if self.learned > max(self.saved, 0):
            waits.append(self._next_checkpoint - now)
        return max(min(waits), 0.001) if waits else None

    def _publish(self, waits: bool) -> None:
        """Take a snapshot now; it is written meanwhile."""
        is_busy = self._saver.is_busy and not waits
        if not hasattr(self.classifier, "fitted_") or self.learned == self.published or is_busy:
            return
        sequence, notes = self.learned, self._notes(is_checkpoint=False)

        def published() -> None:
            self.published = sequence

        self._saver.save(
            lambda: Publication(freeze(self.classifier), notes), self.settings.snapshot_path, published, waits=waits
        )

    def _checkpoint(self, waits: bool) -> None:
        is_busy = self._saver.is_busy and not waits
        if not hasattr(self.classifier, "fitted_") or self.learned == self.saved or is_busy:
            return
        sequence, notes = self.learned, self._notes(is_checkpoint=True)

        def saved() -> None:
            self.saved = sequence
            if self.settings.keep_examples:
                journal = Journal(self.settings.journal_path)
                try:
                    journal.prune(self.settings.keep_examples, sequence)
                finally:
                    journal.close()

        self._next_checkpoint = time.monotonic() + self.settings.checkpoint_seconds
        self._saver.save(lambda: Publication(self.classifier, notes), self.settings.model, saved, waits=waits)

    def _written(self) -> None:
        """Called by the saver's thread after each file, written or not."""
        self._next_publication = time.monotonic() + self._saver.seconds * (1 / PUBLICATION_SHARE - 1)
        self._news.set()

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
