"""Why a label, in trees over rows: a row's way through each tree, and how the label's share of the rows grew on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ramify.base.naming import label_name
from ramify.explain.score import Contribution, ExplainedLabel, coloured, made_of, plain, words

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

# Node, weight of its training rows, the label's share of them, score, features, and what each added to the score.
RawStep: TypeAlias = tuple[int, float, float, float, NDArray[np.int32], NDArray[np.float32]]

# How many trees of an ensemble are told in full; the others are there, too, in `paths`.
TOLD = 3


@dataclass(frozen=True)
class RouteStep:
    """A node on the row's way: the training rows that came here, the label's share of them, what decided where next.

    `score` is the sum of `bias`, of the `contributions` and of `rest`; above zero the row goes right. In the leaf,
    where nothing is decided any more, it is zero and `goes` is "stays".
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
        """The way through the first tree."""
        return self.paths[0]

    @property
    def told(self) -> list[int]:
        """The trees that speak loudest for the label."""
        return sorted(range(len(self.paths)), key=lambda tree: -self.paths[tree][-1].probability)[:TOLD]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head() | {"paths": [[plain(step) for step in path] for path in self.paths]}

    def __str__(self) -> str:
        lines = [self._headline()]
        for tree in self.told:
            lines.append(f"tree {tree + 1} of {len(self.paths)}: probability {self.paths[tree][-1].probability:.4f}")
            lines += step_lines(self.paths[tree], share_of_rows)
        lines += self._untold()
        return "\n".join(lines)

    def _untold(self) -> list[str]:
        rest = len(self.paths) - len(self.told)
        return [f"and {rest} more tree{'s' if rest > 1 else ''}"] if rest else []

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        for tree in self.told:
            path = self.paths[tree]
            branch = root.add(Text(f"tree {tree + 1} of {len(self.paths)}  {path[-1].probability:.1%}", "dim"))
            add_steps(branch, path, coloured_share)
        for untold in self._untold():
            root.add(Text(untold, "dim"))
        return root


def explain_routes(
    model: Any, label: Any, column: int, routes: list[list[RawStep]], top: int, terms: Mapping[int, str]
) -> RouteExplanation:
    """Put a row's ways through the trees into words."""
    paths = [route_steps(model, route, top, terms) for route in routes]
    # As prediction does it: a sum in float32 in order of the trees.
    total = np.float32(0)
    for path in paths:
        total += np.float32(path[-1].probability)
    return RouteExplanation(label, label_name(model, column), float(total / np.float32(len(paths))), paths)


def route_steps(model: Any, route: list[RawStep], top: int, terms: Mapping[int, str]) -> list[RouteStep]:
    """A row's way through one tree; its last node is the leaf."""
    return [
        RouteStep(
            node=node,
            goes="stays" if place == len(route) - 1 else "right" if score > 0 else "left",
            n_rows=mass,
            probability=share,
            **made_of(model, features, added, top, terms),
        )
        for place, (node, mass, share, score, features, added) in enumerate(route)
    ]


def step_lines(path: list[RouteStep], line: Callable[[RouteStep], str]) -> list[str]:
    """A way in lines, each step indented below the one before: what `line` tells of it, and what decided."""
    lines = []
    for depth, step in enumerate(path):
        indent = "  " * (depth + 1)
        lines.append(f"{indent}{line(step)}")
        if step.goes != "stays":
            lines.append(f"{indent}        {step.goes}: {words(step)}")
    return lines


def add_steps(branch: Tree, path: list[RouteStep], line: Callable[[RouteStep], Text]) -> None:
    """The same for a terminal."""
    from rich.text import Text

    for step in path:
        told = line(step)
        branch.add(told if step.goes == "stays" else Text.assemble(told, f", {step.goes}:  ", coloured(step)))


def share_of_rows(step: RouteStep) -> str:
    """The label's share of the training rows that came to a node."""
    return f"{step.probability:.4f}  {_rows(step)}"


def coloured_share(step: RouteStep) -> Text:
    """The same for a terminal."""
    from rich.text import Text

    return Text.assemble((f"{step.probability:6.1%}", "bold cyan"), f"  {_rows(step)}")


def _rows(step: RouteStep) -> str:
    return f"of {step.n_rows:,.6g} training row{'' if step.n_rows == 1 else 's'}"
