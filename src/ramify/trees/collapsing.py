"""Levels of a tree taken out, so that nodes have more children and what is frequent comes up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.trees.label_tree import LabelTree


def collapse_levels(tree: LabelTree, arity: int, mass_per_label: ArrayLike) -> LabelTree:
    """Take inner nodes of a binary tree out, their children one level up, for the least expected depth of all ways.

    No node gets more than `arity` children, but one that has more from the start keeps them. What remains lies below
    the same nodes as before: similar labels stay together, and where much is asked for there are fewer levels.

    >>> collapse_levels(LabelTree.from_nested([[[0, 1], 2], [3, [4, 5]]]), 3, [1, 1, 1, 5, 5, 5]).to_nested()
    [[2, 0, 1], 3, [4, 5]]
    """
    mass = _mass_below(tree, np.asarray(mass_per_label, dtype=np.float64))
    stays = _core.collapse_levels(
        tree.parent, tree.first_child, tree.n_children, tree.label, tree.n_labels, mass, arity
    ).astype(bool)
    # The nearest node above that stays; parents come before their children.
    nearest = tree.parent.copy()
    stops = np.concatenate(([0], np.cumsum(tree.nodes_per_depth))).tolist()
    for start, stop in list(pairwise(stops))[1:]:
        above = tree.parent[start:stop]
        nearest[start:stop] = np.where(stays[above], above, nearest[above])
    number = np.cumsum(stays) - 1
    kept = nearest[stays]
    return LabelTree(np.where(kept < 0, -1, number[kept]), tree.label[stays], tree.n_labels)


def _mass_below(tree: LabelTree, mass_per_label: NDArray[np.float64]) -> NDArray[np.float64]:
    mass = np.where(tree.label >= 0, mass_per_label[np.maximum(tree.label, 0)], 0.0)
    stops = np.concatenate(([0], np.cumsum(tree.nodes_per_depth))).tolist()
    for start, stop in reversed(list(pairwise(stops))[1:]):
        np.add.at(mass, tree.parent[start:stop], mass[start:stop])
    return mass
