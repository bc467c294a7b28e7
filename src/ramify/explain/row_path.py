"""Trees over rows: the row's path through each tree, and the label's share of the training rows at each node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ramify.explain.score import Contribution, ExplainedLabel, Wording, coloured, format_parts, plain

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

# Node, weight of its training rows, the label's share of them, score, features, and what each added to the score.
RawStep: TypeAlias = tuple[int, float, float, float, NDArray[np.int32], NDArray[np.float32]]

# Trees of an ensemble that are printed in full; `paths` holds them all.
MAX_SHOWN = 3


@dataclass(frozen=True)
class RouteStep:
    """A node on the row's path: the training rows that reached it, the label's share of them, and the routing score.

    `score` is the sum of `bias`, of the `contributions` and of `rest`; above zero the row goes right. In the leaf it is
    zero and `goes` is "stays".
    """

    node: int
    goes: str
    n_rows: float
    probability: float
    score: float
    bias: float
    contributions: list[Contribution]
    rest: float


@dataclass(frozen=True)
class RouteExplanation(ExplainedLabel):
    """A label's probability for one row: the mean, over the trees, of its share in the leaf that the row reached."""

    paths: list[list[RouteStep]]

    @property
    def path(self) -> list[RouteStep]:
        """The path through the first tree."""
        return self.paths[0]

    @property
    def shown(self) -> list[int]:
        """The trees that give the label the highest probability."""
        return sorted(range(len(self.paths)), key=lambda tree: -self.paths[tree][-1].probability)[:MAX_SHOWN]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head() | {"paths": [[plain(step) for step in path] for path in self.paths]}

    def __str__(self) -> str:
        lines = [self._headline()]
        for tree in self.shown:
            lines.append(f"tree {tree + 1} of {len(self.paths)}: probability {self.paths[tree][-1].probability:.4f}")
            lines += step_lines(self.paths[tree], share_of_rows)
        lines += self._not_shown()
        return "\n".join(lines)

    def _not_shown(self) -> list[str]:
        rest = len(self.paths) - len(self.shown)
        return [f"and {rest} more tree{'s' if rest > 1 else ''}"] if rest else []

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        for tree in self.shown:
            path = self.paths[tree]
            branch = root.add(Text(f"tree {tree + 1} of {len(self.paths)}  {path[-1].probability:.1%}", "dim"))
            add_steps(branch, path, coloured_share)
        for line in self._not_shown():
            root.add(Text(line, "dim"))
        return root


@dataclass(frozen=True)
class RawRowPaths:
    """The row's path through each tree, in columns and numbers."""

    routes: list[list[RawStep]]

    def describe(self, wording: Wording, column: int) -> RouteExplanation:
        paths = [route_steps(wording, route) for route in self.routes]
        # As prediction does it: a sum in float32 in order of the trees.
        total = np.float32(0)
        for path in paths:
            total += np.float32(path[-1].probability)
        return RouteExplanation(**wording.head(column, float(total / np.float32(len(paths)))), paths=paths)


def route_steps(wording: Wording, route: list[RawStep]) -> list[RouteStep]:
    """A row's path through one tree; its last node is the leaf."""
    return [
        RouteStep(
            node=node,
            goes="stays" if place == len(route) - 1 else "right" if score > 0 else "left",
            n_rows=mass,
            probability=share,
            **wording.score_parts(features, added),
        )
        for place, (node, mass, share, score, features, added) in enumerate(route)
    ]


def step_lines(path: list[RouteStep], line: Callable[[RouteStep], str]) -> list[str]:
    """A path in lines, each step indented below the one before: `line(step)`, and the score's parts."""
    lines = []
    for depth, step in enumerate(path):
        indent = "  " * (depth + 1)
        lines.append(f"{indent}{line(step)}")
        if step.goes != "stays":
            lines.append(f"{indent}        {step.goes}: {format_parts(step)}")
    return lines


def add_steps(branch: Tree, path: list[RouteStep], line: Callable[[RouteStep], Text]) -> None:
    """The same for a terminal."""
    from rich.text import Text

    for step in path:
        text = line(step)
        branch.add(text if step.goes == "stays" else Text.assemble(text, f", {step.goes}:  ", coloured(step)))


def share_of_rows(step: RouteStep) -> str:
    """The label's share of the training rows that reached a node."""
    return f"{step.probability:.4f}  {_rows(step)}"


def coloured_share(step: RouteStep) -> Text:
    """The same for a terminal."""
    from rich.text import Text

    return Text.assemble((f"{step.probability:6.1%}", "bold cyan"), f"  {_rows(step)}")


def _rows(step: RouteStep) -> str:
    return f"of {step.n_rows:,.6g} training row{'' if step.n_rows == 1 else 's'}"
