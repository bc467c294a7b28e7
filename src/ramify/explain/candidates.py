"""Why a label, where a tree finds candidates and a classifier decides among them: the way, the leaf, the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.base.naming import label_name
from ramify.explain.row_path import RouteStep, add_steps, coloured_share, route_steps, share_of_rows, step_lines
from ramify.explain.score import Contribution, ExplainedLabel, coloured, made_of, plain, words

if TYPE_CHECKING:
    from rich.tree import Tree

# How many of a leaf's candidates are told; the others are there, too, in `candidates`.
TOLD = 5


@dataclass(frozen=True)
class Score:
    """What a label's score is made of: the sum of `bias`, of the `contributions` and of `rest`."""

    score: float
    bias: float
    contributions: list[Contribution]
    rest: float


@dataclass(frozen=True)
class CandidateExplanation(ExplainedLabel):
    """A label's probability for one row: the row's way to a leaf, that leaf's candidates, and the label's score there.

    `candidates` are (label, probability) pairs, best first; if rows go several `ways`, those of several leaves,
    and the path is the one that follows the signs. A label that is none of them has probability zero, whatever the
    classifier would think of it; `score` is then None, as it is where another classifier stands behind the tree.
    """

    path: list[RouteStep]
    candidates: list[tuple[Any, float]]
    score: Score | None
    ways: int = 1

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
            "ways": self.ways,
            "is_candidate": self.is_candidate,
            "path": [plain(step) for step in self.path],
            "candidates": [{"label": label, "probability": probability} for label, probability in self.candidates],
            "score": None if self.score is None else plain(self.score),
        }

    def _leaf_words(self) -> str:
        told = ", ".join(f"{label} {probability:.4f}" for label, probability in self.candidates[:TOLD])
        more = ", …" if len(self.candidates) > TOLD else ""
        where = f"up to {self.ways} likeliest leaves" if self.ways > 1 else f"leaf {self.leaf}"
        return f"{where}, {len(self.candidates):,} candidates: {told}{more}"

    def _verdict(self) -> str:
        if not self.is_candidate:
            where = "these leaves" if self.ways > 1 else "this leaf"
            return f"not among the candidates: too few of the training rows in {where} have it"
        if self.score is None:
            return "scored by the classifier behind the tree"
        return f"score {self.score.score:+.2f}: {words(self.score)}"

    def __str__(self) -> str:
        steps = step_lines(self.path, share_of_rows)
        return "\n".join([self._headline(), *steps, self._leaf_words(), self._verdict()])

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        add_steps(root, self.path, coloured_share)
        root.add(Text(self._leaf_words()))
        if self.score is None:
            root.add(Text(self._verdict(), "dim"))
        else:
            root.add(Text.assemble(f"score {self.score.score:+.2f}:  ", coloured(self.score)))
        return root


def explain_candidates(
    model: Any, label: Any, column: int, found: Any, top: int, terms: Mapping[int, str]
) -> CandidateExplanation:
    """Put a row's way, its leaf's candidates and the parts of the label's score into words."""
    route, labels, probabilities, parts, ways = found
    order = np.lexsort((labels, -probabilities))
    names = model.label_encoding_.names(labels[order])
    candidates = list(zip(names, probabilities[order].tolist(), strict=True))
    own = probabilities[labels == column]
    return CandidateExplanation(
        label=label,
        name=label_name(model, column),
        probability=float(own[0]) if len(own) else 0.0,
        path=route_steps(model, route, top, terms),
        candidates=candidates,
        score=None if parts is None else Score(**made_of(model, parts[0], parts[1], top, terms)),
        ways=ways,
    )
