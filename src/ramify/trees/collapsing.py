"""Collapse levels of a tree: nodes get more children, and frequent labels move up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.trees.label_tree import LabelTree


def collapse_levels(tree: LabelTree, arity: int, mass_per_label: ArrayLike) -> LabelTree:
    """Remove the inner nodes of a binary tree whose removal minimises the expected depth.

    The children of a removed node move to its parent. No node gets more than `arity` children; a node that already
    has more keeps them. Remaining nodes keep their labels, so similar labels stay together, and frequent labels
    need fewer levels.

    >>> collapse_levels(LabelTree.from_nested([[[0, 1], 2], [3, [4, 5]]]), 3, [1, 1, 1, 5, 5, 5]).to_nested()
    [[2, 0, 1], 3, [4, 5]]
    """
    mass = _mass_below(tree, np.asarray(mass_per_label, dtype=np.float64))
    stays = _core.collapse_levels(tree, mass, arity).astype(bool)
    # The nearest kept ancestor. Parents come before their children.
    nearest = tree.parent.copy()
    for level in tree.levels()[1:]:
        above = tree.parent[level]
        nearest[level] = np.where(stays[above], above, nearest[above])
    number = np.cumsum(stays) - 1
    kept = nearest[stays]
    return LabelTree(np.where(kept < 0, -1, number[kept]), tree.label[stays], tree.n_labels)


def _mass_below(tree: LabelTree, mass_per_label: NDArray[np.float64]) -> NDArray[np.float64]:
    mass = np.where(tree.label >= 0, mass_per_label[np.maximum(tree.label, 0)], 0.0)
    for level in reversed(tree.levels()[1:]):
        np.add.at(mass, tree.parent[level], mass[level])
    return mass
