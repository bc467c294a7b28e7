"""A tree that finds candidates and a classifier that decides among them: the path, the candidates, the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify.explain.row_path import (
    RawStep,
    RouteStep,
    add_steps,
    coloured_share,
    route_steps,
    share_of_rows,
    step_lines,
)
from ramify.explain.score import Contribution, ExplainedLabel, Wording, coloured, format_parts, plain

if TYPE_CHECKING:
    from rich.tree import Tree

# Candidates that are printed; `candidates` holds them all.
MAX_SHOWN = 5


@dataclass(frozen=True)
class Score:
    """The parts of a label's score: the sum of `bias`, of the `contributions` and of `rest`."""

    score: float
    bias: float
    contributions: list[Contribution]
    rest: float


@dataclass(frozen=True)
class CandidateExplanation(ExplainedLabel):
    """A label's probability for one row: the row's path to a leaf, its candidates, and the label's score.

    `candidates` are (label, probability) pairs, best first, of all `n_leaves` leaves that are looked at; the path is
    the one that follows the signs. A label that is no candidate has probability zero; `score` is then None, as it is
    with another classifier behind the tree.
    """

    path: list[RouteStep]
    candidates: list[tuple[Any, float]]
    score: Score | None
    n_leaves: int = 1

    @property
    def leaf(self) -> int:
        return self.path[-1].node

    @property
    def is_candidate(self) -> bool:
        return any(label == self.label for label, _ in self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head() | {
            "leaf": self.leaf,
            "n_leaves": self.n_leaves,
            "is_candidate": self.is_candidate,
            "path": [plain(step) for step in self.path],
            "candidates": [{"label": label, "probability": probability} for label, probability in self.candidates],
            "score": None if self.score is None else plain(self.score),
        }

    def _leaf_line(self) -> str:
        shown = ", ".join(f"{label} {probability:.4f}" for label, probability in self.candidates[:MAX_SHOWN])
        more = ", …" if len(self.candidates) > MAX_SHOWN else ""
        where = f"up to {self.n_leaves} likeliest leaves" if self.n_leaves > 1 else f"leaf {self.leaf}"
        return f"{where}, {len(self.candidates):,} candidates: {shown}{more}"

    def _verdict(self) -> str:
        if not self.is_candidate:
            where = "these leaves" if self.n_leaves > 1 else "this leaf"
            return f"not among the candidates: too few of the training rows in {where} have it"
        if self.score is None:
            return "scored by the classifier behind the tree"
        return f"score {self.score.score:+.2f}: {format_parts(self.score)}"

    def __str__(self) -> str:
        steps = step_lines(self.path, share_of_rows)
        return "\n".join([self._headline(), *steps, self._leaf_line(), self._verdict()])

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        add_steps(root, self.path, coloured_share)
        root.add(Text(self._leaf_line()))
        if self.score is None:
            root.add(Text(self._verdict(), "dim"))
        else:
            root.add(Text.assemble(f"score {self.score.score:+.2f}:  ", coloured(self.score)))
        return root


@dataclass(frozen=True)
class RawCandidates:
    """The row's path with the label's share on it, its candidates with probabilities, the parts of its score."""

    route: list[RawStep]
    labels: NDArray[np.integer]
    probabilities: NDArray[np.float32]
    parts: tuple[NDArray[np.int32], NDArray[np.float32]] | None
    n_leaves: int

    def describe(self, wording: Wording, column: int) -> CandidateExplanation:
        order = np.lexsort((self.labels, -self.probabilities))
        names = wording.schema.labels_of(self.labels[order])
        own = self.probabilities[self.labels == column]
        return CandidateExplanation(
            **wording.head(column, float(own[0]) if len(own) else 0.0),
            path=route_steps(wording, self.route),
            candidates=list(zip(names, self.probabilities[order].tolist(), strict=True)),
            score=None if self.parts is None else Score(**wording.score_parts(*self.parts)),
            n_leaves=self.n_leaves,
        )
