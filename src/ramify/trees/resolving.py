"""Turn the `tree` parameter of a classifier into a LabelTree."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ramify.trees.coding import fano_tree, huffman_tree
from ramify.trees.frequency import label_frequency
from ramify.trees.interpolated import interpolated_tree
from ramify.trees.kmeans import kmeans_tree
from ramify.trees.label_tree import LabelTree
from ramify.trees.simple import complete_tree, one_level_tree, random_tree

BUILDERS: dict[str, Callable[..., LabelTree]] = {
    "kmeans": kmeans_tree,
    "interpolated": interpolated_tree,
    "random": random_tree,
    "complete": complete_tree,
    "huffman": huffman_tree,
    "fano": fano_tree,
    "one_level": one_level_tree,
}


def resolve(
    tree: str | LabelTree | Callable[..., LabelTree],
    X: Any,
    Y: Any,
    *,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> LabelTree:
    """Return the tree for X and Y from a builder's name, a custom builder, or a LabelTree.

    A builder gets the settings that it has parameters for, and all `options`; an option it does not have is an error.
    The returned tree has as many labels as Y has columns, and a leaf for every label with an example.

    >>> resolve("complete", None, [0, 1, 2], arity=2, max_leaf=1).to_nested()
    [0, [1, 2]]
    >>> resolve(lambda X, Y: LabelTree.from_nested([2, 1, 0]), None, [0, 1, 2]).to_nested()
    [2, 1, 0]
    >>> resolve("interpolated", None, [0, 1, 1, 1, 1, 2, 3], options={"lam": 2}, max_leaf=1).depth_of(1)
    1
    """
    options = dict(options or {})
    if isinstance(tree, LabelTree):
        if options:
            raise ValueError(f"tree is a LabelTree, which takes no options, got the option {next(iter(options))!r}")
        return _fitted_to(tree, Y, "the given tree")
    if isinstance(tree, str):
        if tree not in BUILDERS:
            raise ValueError(f"tree must be one of {', '.join(map(repr, BUILDERS))}, got {tree!r}")
        return BUILDERS[tree](X, Y, **_accepted(BUILDERS[tree], settings, options, repr(tree)))
    if callable(tree):
        name = getattr(tree, "__name__", repr(tree))
        built = tree(X, Y, **_accepted(tree, settings, options, name))
        if not isinstance(built, LabelTree):
            raise TypeError(f"the tree builder {name} must return a LabelTree, got {type(built).__name__}")
        return _fitted_to(built, Y, f"the tree from {name}")
    raise TypeError(
        f"tree must be a LabelTree, a builder called as builder(X, Y, ...), or one of "
        f"{', '.join(map(repr, BUILDERS))}; got {type(tree).__name__}"
    )


def _accepted(
    builder: Callable[..., LabelTree], settings: dict[str, Any], options: dict[str, Any], name: str
) -> dict[str, Any]:
    parameters = inspect.signature(builder).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return settings | options
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = {parameter.name for parameter in parameters if parameter.kind in by_name}
    unknown = next((option for option in options if option not in names), None)
    if unknown is not None:
        known = ", ".join(sorted(names - {"X", "Y"}))
        raise ValueError(f"the tree builder {name} has no option {unknown!r}; its options are {known}")
    return {key: value for key, value in settings.items() if key in names} | options


def _fitted_to(tree: LabelTree, Y: Any, name: str) -> LabelTree:
    frequency = label_frequency(Y)
    largest = int(tree.label.max())
    if largest >= len(frequency):
        raise ValueError(f"{name} has a leaf for label {largest}, but Y has only {len(frequency)} columns")
    tree = LabelTree(tree.parent, tree.label, n_labels=len(frequency)) if tree.n_labels != len(frequency) else tree
    missing = np.flatnonzero((tree.leaf_of < 0) & (frequency > 0))
    if len(missing):
        raise ValueError(
            f"{name} has no leaf for label {missing[0]}, which has {frequency[missing[0]]} examples"
            + (f"; {len(missing)} labels with examples have no leaf" if len(missing) > 1 else "")
        )
    return tree


__all__ = ["BUILDERS", "resolve"]
