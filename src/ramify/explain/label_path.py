"""Why a label: the path to its leaf, the probability of each step, and the features that moved it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify.base.inputs import as_one_row, row_from_dict
from ramify.base.naming import hashed_terms, label_name
from ramify.common.validation import check_integer
from ramify.explain.candidates import CandidateExplanation, explain_candidates
from ramify.explain.neighbours import MemoryExplanation, explain_memories
from ramify.explain.row_path import RouteExplanation, explain_routes
from ramify.explain.score import Contribution, ExplainedLabel, coloured, made_of, plain, title, words
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from rich.tree import Tree

# How many labels are named to say what an inner node stands for.
EXAMPLES = 3
# How many of the row's best labels are looked at for that.
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
                lines.append(f"{indent}        {words(step)}")
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


def explain(
    model: Any, x: Any, label: Any = None, *, top: int = 5
) -> Explanation | RouteExplanation | CandidateExplanation | MemoryExplanation:
    """Explain a label's probability for one row: a text, a dict feature -> value, an array, or a one-row sparse array.

    Without a label, the most probable one is explained. `top` is how many features each step shows.

    >>> from ramify import PLTClassifier
    >>> texts, fruits = ["red round", "yellow long", "green round"] * 5, ["cherry", "banana", "apple"] * 5
    >>> explanation = explain(PLTClassifier(random_state=0).fit(texts, fruits), "long and yellow")
    >>> explanation.label, [c.feature for c in explanation.path[-1].contributions]
    ('banana', ['long', 'yellow'])
    """
    check_integer("top", top, at_least=1)
    model._check_fitted()
    ways = (model._explain_row, model._explain_routes, model._explain_candidates, model._explain_memories)
    if all(way is None for way in ways):
        raise ValueError(f"a {type(model).__name__} has no paths to explain")
    indices, values = _one_row(model, x)
    if label is None:
        best = model._label_row(indices, values, 1, None)
        if not best:
            raise ValueError("no label is possible for this row, so there is none to explain; name one")
        label = best[0][0]
    column = int(model.label_encoding_.columns([label])[0])
    terms = hashed_terms(model, x)
    if model._explain_candidates is not None:
        found = model._explain_candidates(indices, values, column)
        return explain_candidates(model, label, column, found, top, terms)
    if model._explain_memories is not None:
        memories = model._explain_memories(indices, values, column)
        return explain_memories(model, label, column, memories, top, terms)
    if model._explain_routes is not None:
        routes = model._explain_routes(indices, values, column)
        return explain_routes(model, label, column, routes, top, terms)
    # An inner node is described by those of its labels that the row makes most probable: they are why it was opened.
    ranked, _ = model._predict_row(indices, values, RANKED, 0.0)
    paths = [_steps(model, tree, raw, ranked, top, terms) for tree, raw in model._explain_row(indices, values, column)]
    probability = float(np.mean([path[-1].cumulative for path in paths]))
    return Explanation(label, label_name(model, column), probability, paths)


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
    model: Any, tree: LabelTree, node: int, ranked: NDArray[np.integer] | None = None, count: int = EXAMPLES
) -> list[str]:
    """A few of a node's labels in words: the first of `ranked` that lie below it, then those of the lowest columns."""
    below = labels_below(tree, node)
    columns = below[:count]
    if ranked is not None:
        best = ranked[np.isin(ranked, below)][:count]
        columns = np.concatenate((best, columns[~np.isin(columns, best)]))[:count]
    labels = model.label_encoding_.names(columns)
    return [title(label, label_name(model, int(column))) for label, column in zip(labels, columns, strict=True)]


def _steps(
    model: Any, tree: LabelTree, raw: list[Any], ranked: NDArray[np.integer], top: int, terms: Mapping[int, str]
) -> list[Step]:
    if not raw:  # a tree of a single leaf without a gate: the label is always true
        raw = [(0, 1.0, np.zeros(0, np.int32), np.zeros(0, np.float32))]
    steps, cumulative = [], 1.0
    for node, probability, features, added in raw:
        # The product is taken in float32, as the search does: the last step agrees with predict_proba to the bit.
        cumulative = float(np.float32(cumulative) * np.float32(probability))
        parts = made_of(model, features, added, top, terms)
        steps.append(
            Step(
                node=int(node),
                labels=node_examples(model, tree, int(node), ranked),
                n_labels=int(tree.n_labels_below[node]),
                probability=float(probability),
                cumulative=cumulative,
                **parts,
            )
        )
    return steps


def _one_row(model: Any, x: Any) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    if isinstance(x, Mapping):
        return row_from_dict(x, model._feature_index(), model.n_features_in_)
    rows = model._check_rows(as_one_row(x))
    if rows.shape[0] != 1:
        raise ValueError(f"explain takes one row, got {rows.shape[0]}")
    return rows.indices, rows.data
