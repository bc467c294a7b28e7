"""Copy a served directory while the service runs: the checkpoint first, then the journal that continues it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from ramify.files.directory import MANIFEST, ModelFileError, read_model
from ramify.serve.journal import Journal
from ramify.serve.settings import JOURNAL
from ramify.serve.snapshots import read_notes
from ramify.serve.store import journal_at

_ATTEMPTS = 20


def back_up(model: Path, target: Path) -> int:
    """Copy model and journal to a new directory; return the number of examples in the journal's copy."""
    if target.exists() and any(target.iterdir()):
        raise ModelFileError(f"{target} is not empty\nhint: choose a new directory for the copy")
    source = journal_at(model)
    target.mkdir(parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        position = _copy_model(model, target)
        copy = target / JOURNAL
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
        running = Journal(source)
        try:
            running.backup(copy)
        finally:
            running.close()
        journal = Journal(copy)
        try:
            # The service may have saved and pruned in between: then the copy of the model is too old for the journal's.
            if journal.first() <= position + 1:
                return sum(len(piece.examples) for piece in journal.after(0))
        finally:
            journal.close()
    raise ModelFileError(f"{model} changes too fast to be copied\nhint: keep more examples in the journal")


def _copy_model(model: Path, target: Path) -> int:
    """Copy the model's files as of one moment; return the last example that it has learned."""
    if not (model / MANIFEST).exists():
        return 0  # nothing was saved yet: the journal has everything
    for _ in range(_ATTEMPTS):
        text = (model / MANIFEST).read_bytes()
        try:
            for entry in json.loads(text)["files"]:
                shutil.copyfile(model / entry["name"], target / entry["name"])
        except FileNotFoundError:  # replaced in between
            continue
        temporary = target / f".{MANIFEST}"
        temporary.write_bytes(text)
        os.replace(temporary, target / MANIFEST)
        read_model(target, verify=True)
        return int(read_notes(target).get("sequence", 0))
    raise ModelFileError(f"{model} changes too fast to be copied: try again")
