"""Label trees: the path to the label's leaf, the probability of each step, and the features that moved it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify.explain.score import (
    Contribution,
    ExplainedLabel,
    Naming,
    Wording,
    coloured,
    format_parts,
    plain,
    title,
)
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from rich.tree import Tree

# Labels that describe an inner node.
EXAMPLES = 3
# The row's best labels among which they are chosen.
RANKED = 200


@dataclass(frozen=True)
class Step:
    """A node on the path: its probability given its parent, and what its score is made of.

    `score` is the sum of `bias`, of the `contributions` (the largest first) and of `rest`, what the features that are
    not shown added. `probability` is the score after calibration; `cumulative` the product along the path so far.
    """

    node: int
    labels: list[str]
    n_labels: int
    probability: float
    cumulative: float
    score: float
    bias: float
    contributions: list[Contribution]
    rest: float

    @property
    def stands_for(self) -> str:
        """The node in words: its label, or some of the labels below it."""
        if self.node == 0 and self.n_labels > 1:
            return f"any of the {self.n_labels:,} labels"
        if self.n_labels == 1:
            return self.labels[0]
        named = ", ".join(self.labels)
        return f"{self.n_labels:,} labels: {named}{', …' if len(self.labels) < self.n_labels else ''}"


@dataclass(frozen=True)
class Explanation(ExplainedLabel):
    """A label's probability for one row, and the path that led there; of an ensemble, one path for each tree."""

    paths: list[list[Step]]

    @property
    def path(self) -> list[Step]:
        """The path in the (first) tree: the product of its steps' probabilities is the label's."""
        return self.paths[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head() | {"paths": [[plain(step) for step in path] for path in self.paths]}

    def __str__(self) -> str:
        lines = [self._headline()]
        for number, path in enumerate(self.paths):
            if len(self.paths) > 1:
                lines.append(f"tree {number + 1} of {len(self.paths)}: probability {path[-1].cumulative:.4f}")
            for depth, step in enumerate(path):
                indent = "  " * (depth + 1)
                lines.append(f"{indent}{step.probability:.4f}  {step.stands_for}")
                lines.append(f"{indent}        {format_parts(step)}")
        return "\n".join(lines)

    def __rich__(self) -> Tree:
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        root = self._rich_root()
        for number, path in enumerate(self.paths):
            branch = root
            if len(self.paths) > 1:
                branch = root.add(Text(f"tree {number + 1} of {len(self.paths)}  {path[-1].cumulative:.1%}", "dim"))
            for step in path:
                line = Text.assemble((f"{step.probability:6.1%}", "bold cyan"), "  ", step.stands_for)
                line.no_wrap, line.overflow = True, "ellipsis"
                branch = branch.add(Group(line, Padding(coloured(step), (0, 0, 0, 8))))
        return root


def labels_below(tree: LabelTree, node: int) -> NDArray[np.int32]:
    """The label columns at or below a node, rising.

    >>> labels_below(LabelTree.from_nested([[3, 1], [2, 0]]), 1)
    array([1, 3], dtype=int32)
    """
    level, found = np.array([node], dtype=np.int64), []
    while len(level):
        label = tree.label[level]
        found.append(label[label >= 0])
        inner = level[label < 0]
        # Breadth first, the children of the nodes of a level that lie side by side lie side by side too.
        level = (
            np.arange(tree.first_child[inner[0]], tree.first_child[inner[-1]] + tree.n_children[inner[-1]])
            if len(inner)
            else inner
        )
    return np.sort(np.concatenate(found))


def node_examples(
    schema: Naming, tree: LabelTree, node: int, ranked: NDArray[np.integer] | None = None, count: int = EXAMPLES
) -> list[str]:
    """A few of a node's labels in words: the first of `ranked` that lie below it, then those of the lowest columns."""
    below = labels_below(tree, node)
    columns = below[:count]
    if ranked is not None:
        best = ranked[np.isin(ranked, below)][:count]
        columns = np.concatenate((best, columns[~np.isin(columns, best)]))[:count]
    labels = schema.labels_of(columns)
    return [title(label, schema.label_name(int(column))) for label, column in zip(labels, columns, strict=True)]


@dataclass(frozen=True)
class RawLabelPaths:
    """For each tree the steps to the label's leaf, as the core gives them, and the row's best labels.

    A step is (node, probability, features, contributions). An inner node is described by those of its labels that the
    row makes most probable: they are why it was opened. `exact` is the label's probability in each tree, where the
    product of the steps may differ from it by rounding.
    """

    paths: list[tuple[LabelTree, list[Any]]]
    ranked: NDArray[np.integer]
    exact: list[float] | None = None

    def describe(self, wording: Wording, column: int) -> Explanation:
        paths = [self._steps(wording, tree, raw) for tree, raw in self.paths]
        if self.exact is not None:
            for path, probability in zip(paths, self.exact, strict=True):
                path[-1] = replace(path[-1], cumulative=probability)
        probability = float(np.mean([path[-1].cumulative for path in paths]))
        return Explanation(**wording.head(column, probability), paths=paths)

    def _steps(self, wording: Wording, tree: LabelTree, raw: list[Any]) -> list[Step]:
        if not raw:  # a tree of a single leaf without a gate: the label is always true
            raw = [(0, 1.0, np.zeros(0, np.int32), np.zeros(0, np.float32))]
        steps, cumulative = [], 1.0
        for node, probability, features, added in raw:
            # The product is taken in float32, as the search does: the last step agrees with predict_proba to the bit.
            cumulative = float(np.float32(cumulative) * np.float32(probability))
            steps.append(
                Step(
                    node=int(node),
                    labels=node_examples(wording.schema, tree, int(node), self.ranked),
                    n_labels=int(tree.n_labels_below[node]),
                    probability=float(probability),
                    cumulative=cumulative,
                    **wording.score_parts(features, added),
                )
            )
        return steps
