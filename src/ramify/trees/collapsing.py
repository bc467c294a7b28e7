"""Levels of a tree taken out, so that nodes have more children; the heaviest subtrees are opened first."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.trees.label_tree import LabelTree


def collapse_levels(tree: LabelTree, arity: int, mass_per_label: ArrayLike) -> LabelTree:
    """Replace children by their own children, the child with the most mass first, as long as `arity` are not passed.

    What is frequent comes up, what is rare stays deep; with equal masses whole levels vanish. A node that has more
    children from the start keeps them.

    >>> collapse_levels(LabelTree.from_nested([[[0, 1], 2], [3, [4, 5]]]), 3, [1, 1, 1, 5, 5, 5]).to_nested()
    [[2, 0, 1], 3, [4, 5]]
    """
    mass = _mass_below(tree, np.asarray(mass_per_label, dtype=np.float64))
    parent = tree.parent.astype(np.int64)
    first, n_children = tree.first_child.tolist(), tree.n_children.tolist()
    weight = mass.tolist()
    is_kept = np.ones(tree.n_nodes, dtype=bool)
    to_do = [0] if n_children[0] else []
    inner_children = _inner_children(tree)
    while to_do:
        node = to_do.pop()
        room = arity - n_children[node]
        queue = [(-weight[child], child) for child in inner_children.get(node, ())]
        heapq.heapify(queue)
        while queue:
            _, child = heapq.heappop(queue)
            if n_children[child] - 1 > room:
                to_do.append(child)
                continue
            room -= n_children[child] - 1
            is_kept[child] = False
            parent[first[child] : first[child] + n_children[child]] = node
            for below in inner_children.get(child, ()):
                heapq.heappush(queue, (-weight[below], below))
    number = np.cumsum(is_kept) - 1
    kept = parent[is_kept]
    return LabelTree(np.where(kept < 0, -1, number[kept]), tree.label[is_kept], tree.n_labels)


def _inner_children(tree: LabelTree) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    inner = np.flatnonzero(tree.n_children > 0)[1:]
    for node, above in zip(inner.tolist(), tree.parent[inner].tolist(), strict=True):
        found.setdefault(above, []).append(node)
    return found


def _mass_below(tree: LabelTree, mass_per_label: NDArray[np.float64]) -> NDArray[np.float64]:
    mass = np.where(tree.label >= 0, mass_per_label[np.maximum(tree.label, 0)], 0.0)
    stops = np.concatenate(([0], np.cumsum(tree.nodes_per_depth))).tolist()
    for start, stop in reversed(list(pairwise(stops))[1:]):
        np.add.at(mass, tree.parent[start:stop], mass[start:stop])
    return mass
