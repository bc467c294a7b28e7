"""Published snapshots: the writer puts them into a directory, any number of processes map the newest into memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

from ramify.base.fitted import FittedModel
from ramify.base.save_load import load_fitted, packed
from ramify.files.directory import MANIFEST, read_model, write_model
from ramify.serve.journal import Journal
from ramify.serve.settings import Settings

NOTES = "service"  # the key of a manifest under which the service stores what it needs


class Snapshot(NamedTuple):
    """A model as of one moment: `version` is the sequence number of the last example it has learned.

    `fitted` is None as long as the model knows nothing.
    """

    fitted: FittedModel | None
    version: int


EMPTY = Snapshot(None, 0)


def freeze(classifier: Any) -> Any:
    """The form that is published: small and quick to map where the method has one, otherwise the model as it is."""
    return classifier.freeze(prune=0.0) if hasattr(classifier, "freeze") else classifier


class Publication:
    """A snapshot that was taken, to be written later by any thread."""

    def __init__(self, classifier: Any, notes: dict[str, Any]) -> None:
        self.content, self.arrays = packed(classifier)
        self.content[NOTES] = notes

    def write(self, path: Path) -> None:
        write_model(path, self.content, self.arrays)


def read_notes(path: Path) -> dict[str, Any]:
    """What `Publication` noted in a model directory; empty for a model that no service has saved."""
    notes: dict[str, Any] = read_model(path, verify=False)[0].get(NOTES, {})
    return notes


def complete_snapshot(settings: Settings) -> Snapshots | None:
    """A stored model that has learned every example of its journal, mapped; None if only the writer can tell."""
    try:
        journal_id, last, is_of_model = _journal_state(settings)
        if not is_of_model:
            return None  # a snapshot may be of the model that was here before
        for path in (settings.snapshot_path, settings.model):
            if not (path / MANIFEST).exists() or (journal_id is None and path != settings.model):
                continue
            notes = read_notes(path)
            is_of_journal = notes.get("journal") == journal_id and int(notes.get("sequence", 0)) >= last
            if is_of_journal or (last == 0 and path == settings.model):
                snapshots = Snapshots(path)
                snapshots.refresh()
                return snapshots
    except (OSError, ValueError):  # the writer says what is wrong
        pass
    return None


def _journal_state(settings: Settings) -> tuple[str | None, int, bool]:
    """The journal's id and its last example (None and 0 without a journal), and whether it continues the model."""
    if not settings.journal_path.exists():
        return None, 0, True
    manifest = read_model(settings.model, verify=False)[0] if (settings.model / MANIFEST).exists() else None
    journal = Journal(settings.journal_path)
    try:
        is_of_model = manifest is None or journal.continues(manifest, manifest.get(NOTES, {}))
        return journal.id, journal.last, is_of_model
    finally:
        journal.close()


class Snapshots:
    """The newest snapshot of a directory; `refresh` looks whether there is a newer one."""

    def __init__(self, path: Path, journal_id: str | None = None) -> None:
        self.path = path
        self.journal_id = journal_id
        self.current = EMPTY
        self.is_loaded = False
        self._seen: tuple[int, int, int] | None = None
        self._lock = threading.Lock()

    def is_outdated(self) -> bool:
        """Whether there is another snapshot than the current one; cheap."""
        seen = self._identity()
        return seen is not None and seen != self._seen

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self.path / MANIFEST)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def refresh(self) -> bool:
        """Map the newest snapshot, if it is another one; True if the current one changed."""
        with self._lock:
            seen = self._identity()
            if seen is None or seen == self._seen:
                return False
            notes = read_notes(self.path)
            if self.journal_id is not None and notes.get("journal") != self.journal_id:
                return False  # of a model that was here before
            self.current = Snapshot(load_fitted(self.path), int(notes.get("sequence", 0)))
            self._seen = seen
            self.is_loaded = True
            return True

    def followed_by(self, path: Path, journal_id: str | None) -> Snapshots:
        """The snapshots of another directory, beginning with the current one of this."""
        if path == self.path:
            self.journal_id = journal_id
            return self
        later = Snapshots(path, journal_id)
        later.current, later.is_loaded = self.current, self.is_loaded
        return later
