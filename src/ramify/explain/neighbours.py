"""Why a label, in a memory tree: the stored examples that were found, what made them similar, and the way there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.base.naming import label_name
from ramify.explain.row_path import RouteStep, add_steps, step_lines
from ramify.explain.score import Contribution, ExplainedLabel, coloured, made_of, plain, words

if TYPE_CHECKING:
    from rich.tree import Tree

# How many of the retrieved examples are told; the others are there, too, in `retrieved`.
TOLD = 3


@dataclass(frozen=True)
class Memory:
    """A retrieved example: the number of its row in the order of learning, its labels, and how much it counts.

    `score` is its similarity, the sum of the `contributions` of features that it shares with the row and of `rest`;
    `share` its part of the vote.
    """

    row: int
    labels: list[Any]
    has_label: bool
    weight: float
    share: float
    score: float
    bias: float
    contributions: list[Contribution]
    rest: float


@dataclass(frozen=True)
class MemoryExplanation(ExplainedLabel):
    """A label's probability for one row: the examples retrieved for it, and the way to the best that has the label.

    Without any that has it, the way leads to the best of all.
    """

    retrieved: list[Memory]
    path: list[RouteStep]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head() | {
            "retrieved": [plain(memory) for memory in self.retrieved],
            "path": [plain(step) for step in self.path],
        }

    def __str__(self) -> str:
        lines = [self._headline()]
        for memory in self._told():
            lines.append(f"  {_memory_line(memory)}")
            lines.append(f"        {words(memory)}")
        lines += self._untold()
        return "\n".join(lines + step_lines(self.path, _step_line))

    def _told(self) -> list[Memory]:
        """Those that speak for the label first."""
        return sorted(self.retrieved, key=lambda memory: not memory.has_label)[:TOLD]

    def _untold(self) -> list[str]:
        rest = len(self.retrieved) - TOLD
        return [f"  and {rest} more example{'s' if rest > 1 else ''}"] if rest > 0 else []

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        for memory in self._told():
            root.add(Text(_memory_line(memory))).add(coloured(memory))
        for untold in self._untold():
            root.add(Text(untold.strip(), "dim"))
        branch = root.add(Text("the way there", "dim"))
        add_steps(branch, self.path, lambda step: Text(_step_line(step)))
        return root


def explain_memories(
    model: Any, label: Any, column: int, raw: tuple[float, list[Any], list[Any]], top: int, terms: Mapping[int, str]
) -> MemoryExplanation:
    """Put what a query found into words: the label's probability, neighbours and route as the core gives them."""
    probability, neighbours, route = raw
    retrieved = [
        Memory(
            row=int(arrival),
            labels=list(model.label_encoding_.names(labels)),
            has_label=bool((labels == column).any()),
            weight=float(weight),
            share=float(share),
            **made_of(model, features, added, top, terms),
        )
        for _, arrival, weight, share, _, labels, features, added in neighbours
    ]
    path = [
        RouteStep(
            node=node,
            goes="stays" if place == len(route) - 1 else "right" if right else "left",
            n_rows=float(n_rows),
            probability=float(share),
            **made_of(model, np.where(features < 0, model.n_features_in_, features), added, top, terms),
        )
        for place, (node, n_rows, share, _, right, features, added) in enumerate(route)
    ]
    return MemoryExplanation(label, label_name(model, column), probability, retrieved, path)


def _memory_line(memory: Memory) -> str:
    labels = ", ".join(map(str, memory.labels)) or "no label"
    return f"row {memory.row:,} ({labels}): {memory.share:.1%} of the vote, similarity {memory.score:.3f}"


def _step_line(step: RouteStep) -> str:
    rows = f"{step.n_rows:,.6g} stored example{'' if step.n_rows == 1 else 's'}"
    return f"{step.probability:.4f} of {rows}"
