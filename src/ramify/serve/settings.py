"""The options of the service, as the command line gives them and as worker processes receive them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
JOURNAL = "journal.sqlite"
SNAPSHOT = "snapshot"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Settings:
    """All options; times in seconds, sizes in bytes."""

    model: Path
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    keys: Path | None = None
    # A new model.
    is_new: bool = False
    is_multiclass: bool = False
    ngrams: int = 1
    seed: int = 0
    # Learning.
    threads: int = 1
    publish_examples: int = 1000
    publish_seconds: float = 1.0
    checkpoint_seconds: float = 60.0
    max_behind: int = 20_000
    keep_examples: int = 0
    # Limits of a request and of a client.
    max_body: int = 10_000_000
    max_rows: int = 1000
    max_text: int = 100_000
    max_requests: int = 200
    max_connections: int = 1000
    rate: float = 0.0
    timeout: float = 30.0
    log_texts: bool = False

    @property
    def journal_path(self) -> Path:
        return self.model / JOURNAL

    @property
    def snapshot_path(self) -> Path:
        return self.model / SNAPSHOT

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK

    def to_json(self) -> str:
        values: dict[str, Any] = asdict(self)
        return json.dumps({name: str(value) if isinstance(value, Path) else value for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Settings:
        values = json.loads(text)
        values["model"] = Path(values["model"])
        values["keys"] = None if values["keys"] is None else Path(values["keys"])
        return cls(**values)


class DirectoryError(ValueError):
    """A directory cannot be served; says why and what to do."""


def check_target(settings: Settings) -> None:
    """Refuse a directory without a model, before anything is started or written."""
    model = settings.model
    if (model / MANIFEST).exists() or settings.journal_path.exists():
        return
    if not settings.is_new:
        raise DirectoryError(
            f"there is no model in {model}\nhint: train one with `ramify train`, or start an empty one with --new"
        )
    # A service that was killed early may have left parts of a journal.
    if model.exists() and (not model.is_dir() or any(not one.name.startswith(JOURNAL) for one in model.iterdir())):
        raise DirectoryError(f"{model} is not empty and holds no model\nhint: choose another directory")
