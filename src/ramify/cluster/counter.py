"""Progress that the driver counts itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counter:
    """A counter for `ramify.common.progress.phase`."""

    total: int = 0
    done: int = 0
