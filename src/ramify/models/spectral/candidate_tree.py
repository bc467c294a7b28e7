"""The filter: a tree of eigen-splits whose leaves name the few labels that are worth looking at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.data.csr import csr_rows

# What the core reads of a tree; the labels of its leaves are made from the counts.
NODES = ("child", "mass", "sigma", "weight_begin", "weight_feature", "weight")
COUNTS = ("count_begin", "count_label", "count")
STORED = (*NODES, *COUNTS, "depth", "label_mass", "head", "head_count", "space")

DEVIATIONS = ("eigenvalue", "within")
# Beside its candidates, a leaf remembers the counts of twice as many labels that may become candidates later.
WAITING = 2
# A head label that no row of a leaf has is a candidate there all the same; the core wants no zeros.
LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class TreeSettings:
    """How a candidate tree is grown; see `SpectralTreeClassifier` for what each does."""

    depth: int = 12
    n_candidates: int = 100
    recall: float = 0.999
    noise: float = 1.0
    deviation: str = "eigenvalue"
    min_path: float = 0.05
    prune: float = 0.0
    solver: str = "randomised"
    max_iterations: int = 6
    tol: float = 0.01
    cg_iterations: int = 8
    squares_frequency: bool = False

    def core(self, keeps_inner: bool) -> _core.CandidateTreeSettings:
        return _core.CandidateTreeSettings(
            max_depth=self.depth,
            n_candidates=self.n_candidates,
            recall=self.recall,
            noise=self.noise,
            deviation=self.deviation,
            min_path=self.min_path,
            prune=self.prune,
            keeps_inner=keeps_inner,
            solver=self.solver,
            max_iterations=self.max_iterations,
            tolerance=self.tol,
            cg_iterations=self.cg_iterations,
            squares_frequency=self.squares_frequency,
        )


def grow_candidate_tree(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    settings: TreeSettings,
    *,
    sample_weight: NDArray[np.float32] | None = None,
    head: NDArray[np.int32] | None = None,
    space: NDArray[np.float32] | None = None,
    normalize: bool = True,
    keeps_inner: bool = False,
    seed: int = 0,
    n_threads: int = 1,
    progress: _core.Progress | None = None,
) -> CandidateTree:
    """Split the rows by eigen-splits until the depth, or the wanted recall of a node's candidates, is reached.

    Rows go both ways in fractions. Paper: Mineiro and Karampatziakis, "A Hierarchical Spectral Method for Extreme
    Classification", section 3.4. `head` labels are candidates everywhere,
    and the splits do not care about them (its discussion). `space`: rows are split where their features are projected
    to, as many numbers for each feature, one feature after the other (`learn_space`).
    """
    head = np.zeros(0, dtype=np.int32) if head is None else np.sort(head).astype(np.int32)
    space = np.zeros(0, dtype=np.float32) if space is None else space
    arrays = _core.grow_candidate_tree(
        X,
        Y,
        Y.shape[1],
        head,
        sample_weight,
        _core.FeatureSettings(X.shape[1], normalize, 1.0),
        space,
        settings.core(keeps_inner),
        seed,
        n_threads,
        progress,
    )
    return CandidateTree({**arrays, "head": head, "space": space}, settings.n_candidates, Y.shape[1])


@dataclass(frozen=True)
class CandidateTree:
    """A grown tree: nodes breadth first, the root first, the children of a node side by side.

    `arrays` are described in core/spectral/grow.hpp; they may be memory-mapped. Nothing is changed in place.
    """

    arrays: dict[str, NDArray[Any]]
    n_candidates: int
    n_labels: int

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        return np.asarray(self.arrays["child"] < 0)

    @property
    def n_leaves(self) -> int:
        return int(self.is_leaf.sum())

    @property
    def height(self) -> int:
        return int(self.arrays["depth"].max())

    def candidates(self) -> sparse.csr_array:
        """For each node (of inner ones, if they were kept) its candidates, with their share of the node's rows."""
        n_nodes = len(self.arrays["child"])
        node, label, count = self._counts()
        first = self.arrays["count_begin"][:-1]
        kept = np.arange(len(label)) - first[node] < self.n_candidates
        has_counts = np.flatnonzero(self.is_leaf | (np.diff(self.arrays["count_begin"]) > 0))
        head = self.arrays["head"]
        head_count = self._head_count()[has_counts]
        node = np.concatenate([node[kept], np.repeat(has_counts, len(head))])
        label = np.concatenate([label[kept], np.tile(head, len(has_counts))])
        count = np.concatenate([count[kept], head_count.ravel()])
        order = np.lexsort((label, node))
        node, label, count = node[order], label[order], count[order]
        # A node that only rows of weight 0 reached has no mass, and no counts either.
        mass = np.maximum(self.arrays["mass"][node], np.finfo(np.float32).tiny)
        share = np.clip(count / mass, LEAST_SHARE, 1.0).astype(np.float32)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=n_nodes))])
        return csr_rows(share, label, indptr, (n_nodes, self.n_labels))

    def core_arrays(self) -> dict[str, NDArray[Any]]:
        """The tree as the core reads it."""
        found = self.candidates()
        inner = np.flatnonzero(~self.is_leaf)
        if np.diff(found.indptr)[inner].any():  # of inner nodes that kept their counts
            kept = np.repeat(self.is_leaf, np.diff(found.indptr))
            lengths = np.where(self.is_leaf, np.diff(found.indptr), 0)
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            found = csr_rows(found.data[kept], found.indices[kept], indptr, found.shape)
        return {
            "tree_begin": np.array([0, len(self.arrays["child"])], dtype=np.int64),
            "label_begin": found.indptr.astype(np.int64),
            "label": found.indices,
            "probability": found.data,
            **{name: self.arrays[name] for name in (*NODES, "head", "space")},
        }

    def training_recall(self) -> float:
        """Share of the training labels that are among the candidates where their row went, in expectation."""
        leaf = self.is_leaf
        node, _, count = self._counts()
        rank = np.arange(len(count)) - self.arrays["count_begin"][:-1][node]
        covered = float(count[leaf[node] & (rank < self.n_candidates)].sum(dtype=np.float64))
        head = float(self._head_count()[leaf].sum(dtype=np.float64))
        total = float(self.arrays["label_mass"][leaf].sum(dtype=np.float64)) + head
        return min(1.0, (covered + head) / total) if total > 0 else 1.0

    def report(self) -> dict[str, Any]:
        """Depth and candidates, averaged over the training rows, and how well the candidates cover their labels."""
        leaf = np.flatnonzero(self.is_leaf)
        mass = self.arrays["mass"][leaf].astype(np.float64)
        n_candidates = np.minimum(np.diff(self.arrays["count_begin"])[leaf], self.n_candidates)
        n_candidates = n_candidates + len(self.arrays["head"])
        return {
            "leaves": len(leaf),
            "depth": self.height,
            "mean_depth": float(np.average(self.arrays["depth"][leaf], weights=mass)),
            "mean_candidates": float(np.average(n_candidates, weights=mass)),
            "training_recall": self.training_recall(),
        }

    def most_frequent(self, top: int) -> list[list[tuple[int, float]]]:
        """Of each node the labels that most of its training rows have, with their expected numbers of rows.

        Paper: Mineiro and Karampatziakis, "A Hierarchical Spectral Method for Extreme Classification", section 5.1
        (table 2).
        """
        n_nodes = len(self.arrays["child"])
        node, label, count = self._counts()
        is_of_leaf = self.is_leaf[node]
        shape = (n_nodes, self.n_labels)
        counts = sparse.csr_array((count[is_of_leaf], (node[is_of_leaf], label[is_of_leaf])), shape=shape)
        head = self.arrays["head"]
        at = np.flatnonzero(self.is_leaf)
        where = (np.repeat(at, len(head)), np.tile(head, len(at)))
        counts = counts + sparse.csr_array((self._head_count()[at].ravel(), where), shape=shape)
        counts = sparse.csr_array(self._below() @ counts)
        found = []
        for start, stop in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
            labels, numbers = counts.indices[start:stop], counts.data[start:stop]
            # Fractions of equal counts add up to equal counts but for rounding.
            best = np.lexsort((labels, -np.round(numbers, 2)))[:top]
            found.append([(int(labels[k]), float(numbers[k])) for k in best if numbers[k] > 0])
        return found

    def label_share(self, column: int) -> NDArray[np.float64]:
        """For each node the share of its training rows that have a label, as far as the leaves remember it."""
        node, label, count = self._counts()
        at = np.flatnonzero((label == column) & self.is_leaf[node])
        counted = np.zeros(len(self.arrays["child"]))
        counted[node[at]] = count[at]
        head = np.flatnonzero(self.arrays["head"] == column)
        if len(head):
            counted = np.where(self.is_leaf, self._head_count()[:, head[0]], 0.0)
        share: NDArray[np.float64] = (self._below() @ counted) / self.arrays["mass"]
        return share

    def with_rows(
        self, leaf_share: sparse.csr_array, Y: sparse.csr_array, weight: NDArray[np.float32]
    ) -> CandidateTree:
        """The tree with more rows counted in its leaves: `leaf_share` (rows, nodes) is how much of each goes where.

        A label that has become more frequent in a leaf than one of its candidates takes the place of that.
        """
        n_nodes = len(self.arrays["child"])
        share = sparse.csr_array(sparse.diags_array(weight.astype(np.float64)) @ leaf_share.astype(np.float64))
        fresh = sparse.csr_array(share.T @ Y.astype(np.float64))
        node, label, count = self._counts()
        old = sparse.csr_array((count.astype(np.float64), (node, label)), shape=(n_nodes, Y.shape[1]))
        head = self.arrays["head"]
        head_count = self._head_count() + fresh[:, head].toarray() if len(head) else self._head_count()
        is_tail = np.ones(Y.shape[1])
        is_tail[head] = 0
        fresh_tail = sparse.csr_array(fresh @ sparse.diags_array(is_tail))
        counts = sparse.coo_array(old + fresh_tail)
        counts.eliminate_zeros()
        below = self._below()
        added = below @ np.asarray(share.sum(axis=0)).ravel()
        added_labels = below @ np.asarray(fresh_tail.sum(axis=1)).ravel()
        begin, kept_label, kept_count = _most_frequent_first(
            counts.coords[0], counts.coords[1], counts.data, n_nodes, self.n_candidates * (1 + WAITING)
        )
        arrays = {
            **self.arrays,
            "mass": (self.arrays["mass"] + added).astype(np.float32),
            "label_mass": (self.arrays["label_mass"] + added_labels).astype(np.float32),
            "count_begin": begin,
            "count_label": kept_label,
            "count": kept_count,
            "head_count": head_count.astype(np.float32).ravel(),
        }
        return replace(self, arrays=arrays, n_labels=Y.shape[1])

    def _counts(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        node = np.repeat(np.arange(len(self.arrays["child"])), np.diff(self.arrays["count_begin"]))
        return node, self.arrays["count_label"], self.arrays["count"]

    def _head_count(self) -> NDArray[np.float32]:
        counts: NDArray[np.float32] = self.arrays["head_count"].reshape(len(self.arrays["child"]), -1)
        return counts

    def parents(self) -> NDArray[np.int64]:
        """The parent of each node; -1 for the root."""
        child = self.arrays["child"]
        parent = np.full(len(child), -1)
        inner = np.flatnonzero(child >= 0)
        parent[child[inner]] = parent[child[inner] + 1] = inner
        return parent

    def _below(self) -> sparse.csr_array:
        """Row v: the nodes at or below v."""
        child, parent = self.arrays["child"], self.parents()
        above, node = [np.arange(len(child))], [np.arange(len(child))]
        while len(at := np.flatnonzero(parent[above[-1]] >= 0)):
            above.append(parent[above[-1][at]])
            node.append(node[-1][at])
        ones = np.ones(sum(map(len, node)))
        return sparse.csr_array((ones, (np.concatenate(above), np.concatenate(node))), shape=(len(child), len(child)))

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays to be stored."""
        return {name: self.arrays[name] for name in STORED}

    def check(self) -> None:
        """Refuse arrays that lead outside each other; the core checks what it reads."""
        arrays, n_nodes = self.arrays, len(self.arrays["child"])
        for name in ("mass", "sigma", "depth", "label_mass"):
            if arrays[name].shape != (n_nodes,):
                raise ValueError(f"the tree's array {name} has {arrays[name].shape} entries, expected {n_nodes}")
        begin, label, head = arrays["count_begin"], arrays["count_label"], arrays["head"]
        if begin.shape != (n_nodes + 1,) or begin[0] != 0 or begin[-1] != len(label) or (np.diff(begin) < 0).any():
            raise ValueError("count_begin must not decrease, from 0 to the length of count_label")
        if len(arrays["count"]) != len(label) or arrays["head_count"].shape != (n_nodes * len(head),):
            raise ValueError("count and head_count must have one entry per label that they count")
        for numbers in (label, head):
            if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.n_labels):
                raise ValueError("count_label or head contains a label >= n_labels")
        if len(head) and (np.diff(head) <= 0).any():
            raise ValueError("head must be strictly increasing")
        if not all(np.isfinite(arrays[name]).all() for name in ("count", "head_count", "label_mass")):
            raise ValueError("count, head_count and label_mass must be finite")
        mass = arrays["mass"]
        if not (np.isfinite(mass).all() and (mass >= 0).all()):
            raise ValueError("mass must be finite and at least 0")
        if (mass[np.repeat(np.arange(n_nodes), np.diff(begin))] == 0).any():
            raise ValueError("a node with counted labels must have a mass above 0")


def _most_frequent_first(
    node: NDArray[np.integer], label: NDArray[np.integer], count: NDArray[np.float64], n_nodes: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Counts of a node side by side, falling; of equals the smaller label first; at most so many a node."""
    count = count.astype(np.float32)
    order = np.lexsort((label, -count, node))
    node, label, count = node[order], label[order], count[order]
    lengths = np.bincount(node, minlength=n_nodes)
    first = np.cumsum(lengths) - lengths
    kept = np.arange(len(node)) - first[node] < most
    begin = np.concatenate([[0], np.cumsum(np.minimum(lengths, most))]).astype(np.int64)
    return begin, label[kept].astype(np.int32), count[kept]


def depth_recalls(
    tree: CandidateTree, core: _core.SpectralModel, X: sparse.csr_array, Y: sparse.csr_array, n_threads: int
) -> list[float]:
    """Recall of the tree cut off at each depth, on rows that it was not grown on; inner nodes must have kept counts."""
    depth, parent = tree.arrays["depth"], tree.parents()
    at = core.leaves(X, None, n_threads).astype(np.int64)
    candidates = tree.candidates().astype(bool)
    recalls = []
    for limit in range(int(depth.max()), -1, -1):
        at = np.where(depth[at] > limit, parent[at], at)
        found = (candidates[at].astype(np.int32) * Y.astype(np.int32)).sum()
        recalls.append(float(found / max(Y.nnz, 1)))
    return recalls[::-1]
