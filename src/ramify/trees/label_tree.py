"""The label tree: a few flat arrays; every leaf is a label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.common.cached import cached_property
from ramify.trees import conversion, text_format
from ramify.trees.rendering import render_tree

Int32Array = NDArray[np.int32]


class LabelTree:
    """A rooted tree with a label column at each leaf and -1 at each inner node.

    Pass one parent and one label per node, in any numbering. The tree is stored breadth first: node 0 is the root, the
    children of a node are contiguous and in the given order, and a parent comes before its children. The arrays are
    read-only.
    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", section 3 (probabilistic label trees).

    >>> tree = LabelTree(parent=[-1, 0, 0, 1, 1], label=[-1, -1, 2, 0, 1])
    >>> tree.n_nodes, tree.n_labels, tree.height
    (5, 3, 2)
    >>> tree.path(1)
    array([0, 1, 4], dtype=int32)
    >>> print(tree.render(["cat", "dog", "fish"]))
    root: 3 labels
    ├─ node 1: 2 labels
    │  ├─ 0 cat
    │  └─ 1 dog
    └─ 2 fish
    """

    parent: Int32Array
    label: Int32Array
    n_labels: int
    first_child: Int32Array
    n_children: Int32Array
    leaf_of: Int32Array

    def __init__(self, parent: ArrayLike, label: ArrayLike, n_labels: int | None = None) -> None:
        parents, labels = _node_array(parent, "parent"), _node_array(label, "label")
        if len(parents) != len(labels):
            raise ValueError(
                f"parent and label must each have one entry per node, got {len(parents)} and {len(labels)}"
            )
        order = _breadth_first_order(parents)
        if order is not None:
            number_of = np.empty_like(order)
            number_of[order] = np.arange(len(order), dtype=np.int32)
            original, parents, labels = order, np.append(np.int32(-1), number_of[parents[order[1:]]]), labels[order]
        else:
            original = np.arange(len(parents), dtype=np.int32)
        n_children = np.bincount(parents[1:], minlength=len(parents)).astype(np.int32)
        _check_leaves_carry_labels(n_children, labels, original)
        n_labels = _checked_n_labels(n_labels, labels, original)

        first_child = np.cumsum(n_children, dtype=np.int32) - n_children + np.int32(1)
        first_child[n_children == 0] = -1
        leaves = np.flatnonzero(n_children == 0).astype(np.int32)
        leaf_of = np.full(n_labels, -1, dtype=np.int32)
        leaf_of[labels[leaves]] = leaves
        _check_labels_are_unique(leaf_of, labels, leaves, original)

        self._set(
            parent=_read_only(parents),
            label=_read_only(labels),
            n_labels=n_labels,
            first_child=_read_only(first_child),
            n_children=_read_only(n_children),
            leaf_of=_read_only(leaf_of),
        )

    # ---- shape

    @property
    def n_nodes(self) -> int:
        """The number of nodes, including leaves."""
        return len(self.parent)

    @cached_property
    def depth(self) -> Int32Array:
        """The distance of every node from the root."""
        return _read_only(_core.node_depths(self.parent))

    @cached_property
    def label_depth(self) -> Int32Array:
        """The depth of every label's leaf; -1 for a label without a leaf.

        >>> LabelTree.from_nested([0, [1, 2]]).label_depth
        array([1, 2, 2], dtype=int32)
        """
        return _read_only(np.where(self.leaf_of < 0, np.int32(-1), self.depth[self.leaf_of]))

    @cached_property
    def n_labels_below(self) -> Int32Array:
        """The number of labels at or below every node."""
        return _read_only(_core.subtree_sum(self.parent, (self.label >= 0).astype(np.int64)).astype(np.int32))

    @cached_property
    def nodes_per_depth(self) -> NDArray[np.int64]:
        """The number of nodes at every depth, starting at the root."""
        return _read_only(np.bincount(self.depth))

    def levels(self) -> list[slice]:
        """Return the nodes at every depth, starting at the root.

        >>> LabelTree.from_nested([0, [1, 2]]).levels()
        [slice(0, 1, None), slice(1, 3, None), slice(3, 5, None)]
        """
        stops = np.cumsum(self.nodes_per_depth).tolist()
        return [slice(start, stop) for start, stop in pairwise([0, *stops])]

    @property
    def height(self) -> int:
        """The depth of the deepest leaf; 0 if the tree is a single leaf."""
        return int(self.depth[-1])  # in breadth-first order the last node is one of the deepest

    def is_leaf(self, node: int) -> bool:
        """Return whether the node is a leaf, so has a label."""
        return bool(self.label[self._checked_node(node)] >= 0)

    def children(self, node: int) -> range:
        """Return the children of a node; empty for a leaf.

        >>> LabelTree([-1, 0, 0], [-1, 0, 1]).children(0)
        range(1, 3)
        """
        node = self._checked_node(node)
        first = max(int(self.first_child[node]), 0)
        return range(first, first + int(self.n_children[node]))

    def depth_of(self, label: int) -> int:
        """Return the depth of a label's leaf."""
        return int(self.depth[self._leaf(label)])

    def path(self, label: int) -> Int32Array:
        """Return the nodes from the root to a label's leaf, including both."""
        node = self._leaf(label)
        path = np.empty(self.depth[node] + 1, dtype=np.int32)
        for place in range(len(path) - 1, -1, -1):
            path[place] = node
            node = int(self.parent[node])
        return path

    def subtree_minimum(self, values_per_label: ArrayLike) -> NDArray[np.float64]:
        """Return the smallest value among the labels at or below every node.

        With per-label thresholds, a search can prune a node whose probability is below this minimum.
        Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 5.

        >>> LabelTree.from_nested([[0, 1], 2]).subtree_minimum([0.5, 0.2, 0.3])
        array([0.2, 0.2, 0.3, 0.5, 0.2])
        """
        values = np.asarray(values_per_label, dtype=np.float64)
        if values.shape != (self.n_labels,):
            raise ValueError(f"values_per_label must have shape ({self.n_labels},), got {values.shape}")
        at_node = np.full(self.n_nodes, np.inf)
        leaves = self.label >= 0
        at_node[leaves] = values[self.label[leaves]]
        return _core.subtree_minimum(self.parent, at_node)

    # ---- other forms

    @classmethod
    def from_nested(cls, nested: Any, n_labels: int | None = None) -> LabelTree:
        """Build the tree from nested lists (or tuples) of label columns.

        >>> LabelTree.from_nested([[0, 1], [2, [3, 4]]]).depth_of(4)
        3
        """
        return cls(*conversion.arrays_from_nested(nested), n_labels)

    def to_nested(self) -> Any:
        """Return the tree as nested lists of label columns; a single leaf is its label.

        >>> LabelTree([-1, 0, 0, 1, 1], [-1, -1, 2, 0, 1]).to_nested()
        [[0, 1], 2]
        """
        return conversion.nested_from_arrays(self.parent, self.label)

    @classmethod
    def from_networkx(cls, graph: Any, n_labels: int | None = None) -> LabelTree:
        """Build the tree from a networkx DiGraph with edges from parent to child.

        Each leaf has its label column in the node attribute ``label``. Siblings keep the order of their edges.
        """
        return cls(*conversion.arrays_from_networkx(graph), n_labels)

    def to_networkx(self) -> Any:
        """Return a networkx DiGraph with edges from parent to child; leaves have the node attribute ``label``."""
        return conversion.networkx_from_arrays(self.parent, self.label)

    @classmethod
    def from_text(cls, text: str) -> LabelTree:
        """Read the format of :meth:`to_text`; empty lines and lines that start with ``#`` are skipped."""
        return cls(*text_format.parse_tree(text, "tree"))

    def to_text(self) -> str:
        """Return the tree as text: a header, then one line per node with its parent and label.

        >>> print(LabelTree.from_nested([[0, 1], 2]).to_text(), end="")
        ramify-label-tree 1 nodes 5 labels 3
        -1 -1
        0 -1
        0 2
        1 0
        1 1
        """
        return text_format.format_tree(self.parent, self.label, self.n_labels)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> LabelTree:
        """Read a tree from a text file; errors name the file and the line."""
        return cls(*text_format.parse_tree(Path(path).read_text(encoding="utf-8"), str(path)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree to a text file that :meth:`load` reads."""
        Path(path).write_text(self.to_text(), encoding="utf-8", newline="\n")

    def render(
        self,
        label_names: Sequence[str] | Mapping[int, str] | None = None,
        max_depth: int | None = None,
        max_children: int = 12,
    ) -> str:
        """Return the tree as indented text, with label counts at inner nodes and names at leaves.

        >>> print(LabelTree.from_nested([[0, 1, 2], 3]).render(max_children=1))
        root: 4 labels
        ├─ node 1: 3 labels
        │  ├─ 0
        │  └─ … 2 more children, 2 labels
        └─ … 1 more child, 1 label
        """
        return render_tree(self, label_names, max_depth, max_children)

    # ---- Python protocols

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelTree):
            return NotImplemented
        return (
            self.n_labels == other.n_labels
            and np.array_equal(self.parent, other.parent)
            and np.array_equal(self.label, other.label)
        )

    def __hash__(self) -> int:
        return hash((self.n_labels, self.parent.tobytes(), self.label.tobytes()))

    def __repr__(self) -> str:
        return f"LabelTree({self.n_labels} labels, {self.n_nodes} nodes, height {self.height})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelTree, (self.parent, self.label, self.n_labels)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: a LabelTree is immutable; build a new one")

    def _set(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    def _checked_node(self, node: int) -> int:
        if not _is_integer(node) or not 0 <= node < self.n_nodes:
            raise ValueError(f"node must be an integer between 0 and {self.n_nodes - 1}, got {node}")
        return int(node)

    def _leaf(self, label: int) -> int:
        if not _is_integer(label) or not 0 <= label < self.n_labels:
            raise ValueError(f"label must be an integer between 0 and {self.n_labels - 1}, got {label}")
        leaf = int(self.leaf_of[label])
        if leaf < 0:
            raise ValueError(f"label {label} has no leaf in this tree")
        return leaf


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)  # True selects, as an index, all


def _node_array(values: ArrayLike, name: str) -> Int32Array:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) == 0 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a non-empty 1-D array of integers, got shape {array.shape} and dtype {array.dtype}"
        )
    if array.min() < -1 or array.max() > np.iinfo(np.int32).max:
        node = int(np.flatnonzero((array < -1) | (array > np.iinfo(np.int32).max))[0])
        raise ValueError(f"{name}[{node}] is {array[node]}; use -1 for none, or a number from 0 to 2147483647")
    return array.astype(np.int32)  # copies, so the caller cannot change the tree


def _breadth_first_order(parent: Int32Array) -> Int32Array | None:
    """Return the given node numbers in breadth-first order; None if they already are in that order."""
    n_nodes = len(parent)
    if parent.max() >= n_nodes:
        node = int(np.argmax(parent >= n_nodes))
        raise ValueError(f"parent[{node}] is {parent[node]}, but there are only {n_nodes} nodes")
    roots = np.flatnonzero(parent == -1)
    if len(roots) == 0:
        raise ValueError("no node has parent -1, so there is no root and the nodes form a cycle")
    if len(roots) > 1:
        raise ValueError(
            f"nodes {roots[0]} and {roots[1]} both have parent -1; a tree has one root, found {len(roots)}"
        )
    if bool(np.all(parent[1:] >= parent[:-1])) and bool(np.all(parent < np.arange(n_nodes))):
        return None
    order = _core.breadth_first(parent, int(roots[0]))
    if len(order) < n_nodes:
        reached = np.zeros(n_nodes, dtype=bool)
        reached[order] = True
        raise ValueError(f"node {int(np.argmin(reached))} cannot be reached from the root: its parents form a cycle")
    return order


def _check_leaves_carry_labels(n_children: Int32Array, label: Int32Array, original: Int32Array) -> None:
    bare = (n_children == 0) & (label < 0)
    if bare.any():
        raise ValueError(f"node {original[np.argmax(bare)]} has neither children nor a label; add one or remove it")
    both = (n_children > 0) & (label >= 0)
    if both.any():
        node = int(np.argmax(both))
        raise ValueError(
            f"node {original[node]} has label {label[node]} and children; only leaves have labels, "
            "so add a leaf for the label below the node"
        )


def _checked_n_labels(n_labels: int | None, label: Int32Array, original: Int32Array) -> int:
    largest = int(label.max())
    if n_labels is None:
        return largest + 1
    if isinstance(n_labels, bool) or not isinstance(n_labels, int | np.integer) or n_labels < 1:
        raise ValueError(f"n_labels must be an integer of at least 1, got {n_labels!r}")
    if largest >= n_labels:
        raise ValueError(f"node {original[label.argmax()]} has label {largest}, but n_labels is {n_labels}")
    return int(n_labels)


def _check_labels_are_unique(leaf_of: Int32Array, label: Int32Array, leaves: Int32Array, original: Int32Array) -> None:
    overwritten = leaf_of[label[leaves]] != leaves
    if overwritten.any():
        node = leaves[np.argmax(overwritten)]
        twin = leaf_of[label[node]]
        raise ValueError(
            f"label {label[node]} has two leaves, nodes {original[node]} and {original[twin]}; keep only one"
        )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
