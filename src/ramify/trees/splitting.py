"""The level-wise recursion that all divisive builders share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.common.validation import check_integer
from ramify.trees.label_tree import LabelTree

Positions = NDArray[np.int64]
#: Called once per level as ``split(order, starts, stops)`` with the parts ``order[start:stop]`` that are too large.
#: It may reorder ``order`` within a part. Returns the cuts: strictly increasing, at least one inside every part.
Split = Callable[[NDArray[np.int32], Positions, Positions], Positions]


def from_splits(order: ArrayLike, split: Split, *, max_leaf: int) -> LabelTree:
    """Recursively split the labels until every part has at most `max_leaf` of them.

    A part with one label becomes a leaf; a larger part that needs no split becomes a pre-leaf node. Each call of
    `split` gets all parts of a level, so there is no Python recursion.

    >>> halves = lambda order, starts, stops: (starts + stops) // 2
    >>> from_splits([0, 1, 2, 3, 4], halves, max_leaf=2).to_nested()
    [[0, 1], [2, [3, 4]]]
    """
    check_integer("max_leaf", max_leaf, at_least=1)
    order = np.array(order, dtype=np.int32)
    starts, stops = np.array([0]), np.array([len(order)])
    parent, label, n_nodes = [np.array([-1])], [_label_of_parts(order, starts, stops)], 1
    while len(starts):
        sizes = stops - starts
        node = n_nodes - len(starts) + np.arange(len(starts))

        pre_leaf = (sizes > 1) & (sizes <= max_leaf)
        leaves = concatenated_ranges(starts[pre_leaf], sizes[pre_leaf])
        parent.append(np.repeat(node[pre_leaf], sizes[pre_leaf]))
        label.append(order[leaves])

        large = sizes > max_leaf
        starts, stops, node = starts[large], stops[large], node[large]
        if len(starts):
            cuts = _checked_cuts(split(order, starts, stops), starts, stops)
            owner = np.sort(np.concatenate((np.arange(len(starts)), np.searchsorted(starts, cuts, side="right") - 1)))
            stops = np.sort(np.concatenate((stops, cuts)))
            starts = np.sort(np.concatenate((starts, cuts)))
            parent.append(node[owner])
            label.append(_label_of_parts(order, starts, stops))
        n_nodes += len(leaves) + len(starts)
    return LabelTree(np.concatenate(parent), np.concatenate(label), n_labels=len(order))


def even_cuts(starts: Positions, stops: Positions, arity: int) -> Positions:
    """Divide every part into `arity` parts whose sizes differ by at most one, or into single labels if it is smaller.

    >>> even_cuts(np.array([0, 10]), np.array([7, 12]), arity=3)
    array([ 2,  4, 11])
    """
    sizes = stops - starts
    n_parts = np.minimum(arity, sizes)
    place = concatenated_ranges(np.ones_like(starts), n_parts - 1)  # 1, 2, … below n_parts, for every part
    cuts: Positions = place * np.repeat(sizes, n_parts - 1) // np.repeat(n_parts, n_parts - 1)
    return cuts + np.repeat(starts, n_parts - 1)


def _label_of_parts(order: NDArray[np.int32], starts: Positions, stops: Positions) -> NDArray[np.int32]:
    return np.where(stops - starts == 1, order[starts], np.int32(-1))


def _checked_cuts(cuts: Positions, starts: Positions, stops: Positions) -> Positions:
    # A part without a cut would be split again forever.
    inside = np.searchsorted(cuts, stops) - np.searchsorted(cuts, starts, side="right")
    if (np.diff(cuts) <= 0).any() or (inside < 1).any() or inside.sum() != len(cuts):
        raise ValueError("split must return strictly increasing positions, at least one strictly inside every part")
    return cuts


def concatenated_ranges(starts: Positions, sizes: Positions) -> Positions:
    """Concatenate the ranges start, start + 1, …, start + size - 1."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + sizes, sizes)
