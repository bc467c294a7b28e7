"""A tree in parts that are trained apart: whole subtrees, and the large nodes above them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.trees.label_tree import LabelTree

Nodes = NDArray[np.int32]


def node_parts(tree: LabelTree, work: NDArray[np.int64], n_parts: int) -> list[Nodes]:
    """Divide the nodes that have work into about `n_parts` parts of equal work; each lists its nodes in rising order.

    A subtree of no more than its share stays whole, so that its rows travel once. `work` has an entry for each node and
    one for the root's gate, which goes with the root. The parts that need most come first.

    >>> tree = LabelTree.from_nested([[0, 1], [2, 3]])
    >>> [part.tolist() for part in node_parts(tree, np.array([9, 4, 3, 0, 0, 0, 0, 0]), 3)]
    [[0], [1], [2]]
    """
    of_nodes = np.ascontiguousarray(work[:-1], dtype=np.int64)
    below = _core.subtree_sum(tree.parent, of_nodes)
    share = -(-int(work.sum()) // n_parts)
    part_of = np.full(len(tree.parent), -1, dtype=np.int64)
    filled, current = 0, 0
    for node, is_whole in _units(tree, below, share):
        amount = int(below[node] if is_whole else of_nodes[node]) + (int(work[-1]) if node == 0 else 0)
        if filled and filled + amount > share:
            filled, current = 0, current + 1
        filled += amount
        part_of[node] = current if is_whole else -2 - current  # its children have their own
    for level in tree.levels()[1:]:  # a child of a whole subtree belongs to it
        part_of[level] = np.where(part_of[level] == -1, part_of[tree.parent[level]], part_of[level])
    part_of = np.where(part_of < -1, -2 - part_of, part_of)
    parts = []
    for number in range(current + 1):
        nodes = np.flatnonzero((part_of == number) & (of_nodes > 0))
        if number == part_of[0] and work[-1] > 0:
            nodes = np.append(nodes, len(of_nodes))
        if len(nodes):
            parts.append(nodes.astype(np.int32))
    if not parts:  # a single label: only the root's gate has work
        return [np.array([len(of_nodes)], np.int32)]
    return sorted(parts, key=lambda nodes: -int(work[nodes].sum()))


def _units(tree: LabelTree, below: NDArray[np.int64], share: int) -> Iterable[tuple[int, bool]]:
    """Nodes in depth-first order, each with whether its whole subtree is meant; those without work are left out."""
    stack = [0]
    while stack:
        node = stack.pop()
        if below[node] == 0:
            continue
        children = range(tree.first_child[node], tree.first_child[node] + tree.n_children[node])
        if below[node] <= share:
            yield node, True
        else:
            yield node, False
            stack.extend(reversed(children))


def inner_and_whole(
    tree: LabelTree, size: NDArray[np.int64], share: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Nodes above subtrees of at most a share, the root at least; the roots of these subtrees, and their sizes."""
    below = _core.subtree_sum(tree.parent, np.ascontiguousarray(size, dtype=np.int64))
    units = list(_units(tree, below, min(share, int(below[0]) - 1)))
    top = np.array([node for node, is_whole in units if not is_whole], dtype=np.int64)
    whole = np.array([node for node, is_whole in units if is_whole], dtype=np.int64)
    return top, whole, below[whole]


def panel_bytes(blocks: dict[str, NDArray[np.generic]], n_nodes: int) -> NDArray[np.int64]:
    """The bytes of each node's blocks, and of the root's gate."""
    panels = blocks["panels"].astype(np.int64)
    index = np.append(panels[1:, 5], len(blocks["index"])) - panels[:, 5] if len(panels) else np.zeros(0, np.int64)
    size = np.zeros(n_nodes + 1, dtype=np.int64)
    np.add.at(size, panels[:, 0], 8 * panels.shape[1] + 12 * panels[:, 2] + 4 * index + panels[:, 7])
    return size


def select_blocks(blocks: dict[str, NDArray[np.generic]], nodes: NDArray[np.integer]) -> dict[str, NDArray[Any]]:
    """The blocks of some nodes, as if only these had been trained."""
    panels = blocks["panels"]
    chosen = np.flatnonzero(np.isin(panels[:, 0], nodes))
    selected: dict[str, NDArray[Any]] = {"panels": panels[chosen].astype(np.int64)}
    for name, field in {"column_child": 1, "column_scale": 1, "column_rate": 1, "index": 5, "rows": 6}.items():
        end = np.append(panels[1:, field], len(blocks[name])).astype(np.int64)[chosen]
        begin = panels[chosen, field].astype(np.int64)
        pieces = [blocks[name][b:e] for b, e in zip(begin, end, strict=True)]
        selected[name] = np.concatenate([np.zeros(0, blocks[name].dtype), *pieces])
        selected["panels"][:, field] = np.cumsum(end - begin) - (end - begin)
    return {name: selected.get(name, array) for name, array in blocks.items()}


def top_nodes(tree: LabelTree, nodes: Nodes) -> Nodes:
    """Of a part's nodes, those whose parent is in no part of it: their rows are the part's rows."""
    inside = np.zeros(len(tree.parent) + 1, dtype=bool)
    inside[nodes] = True
    inner = nodes[nodes < len(tree.parent)]
    top = inner[(inner == 0) | ~inside[tree.parent[inner]]]
    return np.append(top, nodes[nodes == len(tree.parent)]).astype(np.int32)


def join_blocks(parts: list[dict[str, NDArray[np.generic]]]) -> dict[str, NDArray[np.generic]]:
    """The blocks of all parts as one training leaves them: panels in order of node.

    A panel says where its columns, index and rows begin and how many they are; only the beginnings change.
    """
    panels = np.concatenate([part["panels"] for part in parts]).astype(np.int64)
    owner = np.repeat(np.arange(len(parts)), [len(part["panels"]) for part in parts])
    ranges = {"column_child": 1, "index": 5, "rows": 6}  # the field that holds where they begin
    ends = {
        name: np.concatenate(
            [np.append(part["panels"][1:, field], len(part[name]))[: len(part["panels"])] for part in parts]
        )
        for name, field in ranges.items()
    }
    order = np.argsort(panels[:, 0], kind="stable")
    joined = {
        name: _gathered(parts, name, owner, panels[:, field], ends[name], order) for name, field in ranges.items()
    }
    for name in ("column_scale", "column_rate"):
        joined[name] = _gathered(parts, name, owner, panels[:, 1], ends["column_child"], order)
    for name, field in ranges.items():
        sizes = (ends[name] - panels[:, field])[order]
        panels[order, field] = np.cumsum(sizes) - sizes
    joined["panels"] = np.ascontiguousarray(panels[order])
    joined["table"] = parts[0]["table"]
    return {name: joined[name] for name in parts[0]}


def _gathered(
    parts: list[dict[str, NDArray[np.generic]]],
    name: str,
    owner: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.generic]:
    sizes = end - begin
    joined = np.empty(int(sizes.sum()), dtype=parts[0][name].dtype)
    at = 0
    for panel in order:
        joined[at : at + sizes[panel]] = parts[owner[panel]][name][begin[panel] : end[panel]]
        at += int(sizes[panel])
    return joined
