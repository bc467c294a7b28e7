"""Progressive validation of a served model: each request is tested just before it is learned.

Windows are merged in pairs when there are many, so the whole history stays small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

KS = (1, 3, 5)
FIRST_WINDOW = 100
MAX_WINDOWS = 200

Answer = Sequence[tuple[Any, float]]


@dataclass
class Window:
    """Consecutive examples: how many true labels were among the k best before they were learned."""

    n_rows: int = 0
    hits: list[int] = field(default_factory=lambda: [0] * len(KS))
    seconds: float = 0.0
    n_labels: int = 0
    last: int = 0

    def joined(self, later: Window) -> Window:
        hits = [one + other for one, other in zip(self.hits, later.hits, strict=True)]
        return Window(self.n_rows + later.n_rows, hits, self.seconds + later.seconds, later.n_labels, later.last)

    def precision(self) -> dict[str, float]:
        """Precision at each k."""
        return {str(k): hits / (k * self.n_rows) if self.n_rows else 0.0 for k, hits in zip(KS, self.hits, strict=True)}


class Progress:
    """The history of a stream of examples."""

    def __init__(self) -> None:
        self.total = Window()
        self.windows: list[Window] = []
        self.open = Window()
        self.window_size = FIRST_WINDOW

    def add(self, answers: Sequence[Answer], truth: Sequence[Sequence[Any]], seconds: float, n_labels: int) -> None:
        """Examples that were answered (a model that knew nothing has no answers), then learned in this time."""
        hits = [0] * len(KS)
        for answer, labels in zip(answers, truth, strict=False):
            ranks = [rank for rank, (label, _) in enumerate(answer) if label in labels]
            hits = [n + sum(rank < k for rank in ranks) for n, k in zip(hits, KS, strict=True)]
        some = Window(len(truth), hits, seconds, n_labels, self.total.last + len(truth))
        self.total, self.open = self.total.joined(some), self.open.joined(some)
        if self.open.n_rows >= self.window_size:
            self.windows.append(self.open)
            self.open = Window()
        if len(self.windows) >= MAX_WINDOWS:
            pairs = zip(self.windows[::2], self.windows[1::2], strict=True)
            self.windows = [one.joined(other) for one, other in pairs]
            self.window_size *= 2

    def describe(self) -> dict[str, Any]:
        """What `/v1/progress` says."""
        shown = [*self.windows]
        if shown and 0 < self.open.n_rows < self.window_size / 2:  # a few examples alone say little
            shown[-1] = shown[-1].joined(self.open)
        elif self.open.n_rows:
            shown.append(self.open)
        recent = shown[-1] if shown else Window()
        return {
            "precision": self.total.precision(),
            "recent_precision": recent.precision(),
            "examples_per_second": recent.n_rows / recent.seconds if recent.seconds > 0 else 0.0,
            "windows": [
                {
                    "n_examples": window.last,
                    "n_labels": window.n_labels,
                    "precision": window.precision(),
                    "examples_per_second": window.n_rows / window.seconds if window.seconds > 0 else 0.0,
                }
                for window in shown
            ],
        }

    def state(self) -> dict[str, Any]:
        """JSON values for a checkpoint."""
        return {
            "total": asdict(self.total),
            "open": asdict(self.open),
            "windows": [asdict(window) for window in self.windows],
            "window_size": self.window_size,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Progress:
        progress = cls()
        progress.total, progress.open = Window(**state["total"]), Window(**state["open"])
        progress.windows = [Window(**window) for window in state["windows"]]
        progress.window_size = state["window_size"]
        return progress
