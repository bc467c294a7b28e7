"""The result of progressive validation: scores per window and of the stream so far."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify import plots
from ramify.common.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


@dataclass(frozen=True)
class Score:
    """Precision on some rows, and the accuracy of the constant predictor: the most frequent label so far."""

    n_rows: int
    precision: Mapping[int, float]
    constant_accuracy: float

    @property
    def accuracy(self) -> float:
        """P@1, which is the accuracy for multi-class data."""
        return self.precision[1]

    @property
    def entropy_reduction(self) -> float:
        """log2(accuracy) - log2(accuracy of the constant predictor); not finite while one of them is 0.

        Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", section 5.2.
        """
        if self.accuracy == 0 and self.constant_accuracy == 0:
            return math.nan
        return _log2(self.accuracy) - _log2(self.constant_accuracy)

    def to_dict(self) -> dict[str, Any]:
        """Return the scores by name; None if not finite."""
        named = {f"P@{k}": value for k, value in self.precision.items()}
        reduction = self.entropy_reduction
        return {
            "rows": self.n_rows,
            **named,
            "constant_accuracy": self.constant_accuracy,
            "entropy_reduction": reduction if math.isfinite(reduction) else None,
        }


def _log2(share: float) -> float:
    return math.log2(share) if share > 0 else -math.inf


@dataclass(frozen=True)
class Window:
    """A window of the stream: its score, the score of the stream so far, and the model's size at its end."""

    examples: int
    score: Score
    so_far: Score
    n_labels: int
    seconds: float
    memory: int | None

    @property
    def examples_per_second(self) -> float:
        return self.score.n_rows / self.seconds if self.seconds > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        return {
            "examples": self.examples,
            "window": self.score.to_dict(),
            "so_far": self.so_far.to_dict(),
            "labels": self.n_labels,
            "seconds": self.seconds,
            "memory": self.memory,
        }


@dataclass
class ProgressiveResult:
    """The windows of a progressive validation."""

    name: str
    k: tuple[int, ...]
    block: int
    is_multiclass: bool = False
    windows: list[Window] = field(default_factory=list)

    @property
    def n_examples(self) -> int:
        return self.windows[-1].examples if self.windows else 0

    @property
    def so_far(self) -> Score:
        """The score of the whole stream."""
        return self.windows[-1].so_far

    @property
    def seconds(self) -> float:
        """The time spent testing and learning, without waiting for rows."""
        return sum(window.seconds for window in self.windows)

    def metrics(self) -> list[str]:
        """Return the metrics that `curve` and `plot` accept."""
        return ["entropy_reduction", "accuracy", *(f"P@{k}" for k in self.k)]

    def curve(self, metric: str = "entropy_reduction", cumulative: bool = True) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the numbers of examples, and the metric at each: of all examples so far, or of each window."""
        check_choice("metric", metric, self.metrics())
        scores = [window.so_far if cumulative else window.score for window in self.windows]
        if metric.startswith("P@"):
            values = [score.precision[int(metric[2:])] for score in scores]
        else:
            values = [float(getattr(score, metric)) for score in scores]
        return np.array([window.examples for window in self.windows]), np.array(values)

    def plot(
        self, path: str | os.PathLike[str] | None = None, metric: str = "entropy_reduction", cumulative: bool = True
    ) -> Figure:
        """Plot the metric over the number of examples; to compare several runs use `plots.progressive`."""
        return plots.progressive(self, path, metric=metric, cumulative=cumulative)

    def table(self, last: int | None = None) -> Table:
        """Return all windows, or the last ones, as a rich table."""
        from ramify.progressive.table import table

        return table(self, last)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values for JSON."""
        return {
            "name": self.name,
            "k": list(self.k),
            "block": self.block,
            "multiclass": self.is_multiclass,
            "examples": self.n_examples,
            "seconds": self.seconds,
            "windows": [window.to_dict() for window in self.windows],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return `to_dict` as JSON text, and write it to a file if a path is given."""
        text = json.dumps(self.to_dict(), allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n")
        return text

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ProgressiveResult:
        """Restore a result from `to_dict`."""
        try:
            k = tuple(int(at) for at in content["k"])
            result = cls(str(content["name"]), k, int(content["block"]), bool(content["multiclass"]))
            for window in content["windows"]:
                result.windows.append(
                    Window(
                        examples=int(window["examples"]),
                        score=_score_from(window["window"]),
                        so_far=_score_from(window["so_far"]),
                        n_labels=int(window["labels"]),
                        seconds=float(window["seconds"]),
                        memory=None if window["memory"] is None else int(window["memory"]),
                    )
                )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"this is not the output of ProgressiveResult.to_dict(): {error!r}") from None
        return result


def _score_from(content: Mapping[str, Any]) -> Score:
    precision = {int(name[2:]): float(value) for name, value in content.items() if name.startswith("P@")}
    return Score(int(content["rows"]), precision, float(content["constant_accuracy"]))
