"""Stored examples that answer for a row: what made them similar, and in a memory tree the path to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ramify.explain.row_path import RouteStep, add_steps, step_lines
from ramify.explain.score import Contribution, ExplainedLabel, Wording, coloured, format_parts, plain

if TYPE_CHECKING:
    from rich.tree import Tree

# Retrieved examples that are printed; `retrieved` holds them all.
MAX_SHOWN = 3


@dataclass(frozen=True)
class Memory:
    """A retrieved example: the number of its row in the order of learning, its labels, and how much it counts.

    `score` is its similarity, the sum of the `contributions` of features that it shares with the row and of `rest`;
    `share` its part of the vote. A centroid is the mean of the rows of its label, `row` the label's column.
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
    is_centroid: bool = False


@dataclass(frozen=True)
class NeighbourExplanation(ExplainedLabel):
    """A label's probability for one row: the examples that vote."""

    retrieved: list[Memory]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head() | {"retrieved": [plain(memory) for memory in self.retrieved]}

    def __str__(self) -> str:
        lines = [self._headline()]
        for memory in self._shown():
            lines.append(f"  {_memory_line(memory)}")
            lines.append(f"        {format_parts(memory)}")
        return "\n".join(lines + self._not_shown())

    def _shown(self) -> list[Memory]:
        """Those with the label first."""
        return sorted(self.retrieved, key=lambda memory: not memory.has_label)[:MAX_SHOWN]

    def _not_shown(self) -> list[str]:
        if not self.retrieved:
            return ["  no stored example is similar: the label's share of all"]
        rest = len(self.retrieved) - MAX_SHOWN
        return [f"  and {rest} more example{'s' if rest > 1 else ''}"] if rest > 0 else []

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        for memory in self._shown():
            root.add(Text(_memory_line(memory))).add(coloured(memory))
        for line in self._not_shown():
            root.add(Text(line.strip(), "dim"))
        return root


@dataclass(frozen=True)
class MemoryExplanation(NeighbourExplanation):
    """The examples that a memory tree retrieved, and the path to the best that has the label.

    If none has it, the path leads to the best of all.
    """

    path: list[RouteStep]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return super().to_dict() | {"path": [plain(step) for step in self.path]}

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *step_lines(self.path, _step_line)])

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = super().__rich__()
        branch = root.add(Text("the path there", "dim"))
        add_steps(branch, self.path, lambda step: Text(_step_line(step)))
        return root


@dataclass(frozen=True)
class RawNeighbours:
    """The label's probability, retrieved examples and route as the core gives them."""

    probability: float
    neighbours: list[Any]
    route: list[Any]

    def describe(self, wording: Wording, column: int) -> MemoryExplanation:
        retrieved = [
            _memory(wording, column, arrival, weight, share, labels, features, added)
            for _, arrival, weight, share, _, labels, features, added in self.neighbours
        ]
        path = [
            RouteStep(
                node=node,
                goes="stays" if place == len(self.route) - 1 else "right" if right else "left",
                n_rows=float(n_rows),
                probability=float(share),
                **wording.score_parts(features, added),
            )
            for place, (node, n_rows, share, _, right, features, added) in enumerate(self.route)
        ]
        return MemoryExplanation(**wording.head(column, self.probability), retrieved=retrieved, path=path)


@dataclass(frozen=True)
class RawVote:
    """The label's probability, and the nearest rows as the core gives them."""

    probability: float
    neighbours: list[Any]
    is_of_centroids: bool = False

    def describe(self, wording: Wording, column: int) -> NeighbourExplanation:
        retrieved = [
            _memory(wording, column, *neighbour, is_centroid=self.is_of_centroids) for neighbour in self.neighbours
        ]
        return NeighbourExplanation(**wording.head(column, self.probability), retrieved=retrieved)


def _memory(
    wording: Wording,
    column: int,
    row: int,
    weight: float,
    share: float,
    labels: Any,
    features: Any,
    added: Any,
    *,
    is_centroid: bool = False,
) -> Memory:
    return Memory(
        row=int(row),
        labels=list(wording.schema.labels_of(labels)),
        has_label=bool((labels == column).any()),
        weight=float(weight),
        share=float(share),
        **wording.score_parts(features, added),
        is_centroid=is_centroid,
    )


def _memory_line(memory: Memory) -> str:
    labels = ", ".join(map(str, memory.labels)) or "no label"
    source = f"mean of the rows with {labels}" if memory.is_centroid else f"row {memory.row:,} ({labels})"
    return f"{source}: {memory.share:.1%} of the vote, similarity {memory.score:.3f}"


def _step_line(step: RouteStep) -> str:
    rows = f"{step.n_rows:,.6g} stored example{'' if step.n_rows == 1 else 's'}"
    return f"{step.probability:.4f} of {rows}"
