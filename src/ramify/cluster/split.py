"""A label tree larger than a node: its subtrees in parts that are loaded apart, and a router for exact answers.

Every part knows the top of the tree, so it answers by itself, with the same probabilities as the whole model, for the
labels below its own subtrees. The router opens only the top. A label is never more probable than the subtree that it is
in: so the parts whose best subtree is less probable than the k-th label found so far need not be asked.

Of classes, nodes that a row reaches with at least `top_from` are revised by what their children claim
(core/plt/tree_search.hpp). Parts that have such nodes are asked first for the sum of what they hand down, and always
for their answers: what is below a revised node may be more probable than the node was before.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import load
from ramify.base.answers import Threshold, keep_best, no_entries, node_thresholds
from ramify.base.fitted import FittedModel
from ramify.base.model import Query
from ramify.cluster.parts import inner_and_whole, panel_bytes, select_blocks
from ramify.cluster.workers import Actor
from ramify.common.validation import check_integer
from ramify.data.csr import csr_rows
from ramify.models.plt.classifier import PLTClassifier
from ramify.models.plt.model import PLTModel
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees.label_tree import LabelTree

MANIFEST = "split.json"
ROUTER = -1  # in place of a part: the subtree is a single label, and the router knows its probability
# Rows that are asked of a part together are asked with the least of their bounds: groups have similar ones.
GROUPS = 4


class SplitPlan(NamedTuple):
    """The nodes that the router opens; the roots of the subtrees below them, and the part of each."""

    top: NDArray[np.int32]
    roots: NDArray[np.int32]
    part_of: NDArray[np.int32]


def split(model: Any, directory: str | os.PathLike[str], n_parts: int) -> Path:
    """Cut a model into parts by subtrees, for `predict`, and return the directory.

    Parameters
    ----------
    model : path or classifier
        A PLTClassifier of one tree, fitted or saved. Its arrays are mapped, so it need not fit into memory.
    directory : path
        A new directory: `top` and `part-00000` and so on in it are models that `ramify.load` loads. A node needs only
        the parts that it answers for, and `top`.
    n_parts : int
        Parts of about the same size, at least 2; fewer if the tree has not as many subtrees.
    """
    check_integer("n_parts", n_parts, at_least=2)
    classifier = load(model) if isinstance(model, str | os.PathLike) else model
    trained = _only_tree(classifier)
    folder = Path(directory)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: give a new directory")
    folder.mkdir(parents=True, exist_ok=True)
    plan = plan_split(trained, n_parts)
    own = [_below(trained.tree, plan.roots[plan.part_of == k]) for k in range(plan.part_of.max() + 1)]
    for name, nodes in [("top", plan.top), *((f"part-{k:05d}", np.union1d(plan.top, of)) for k, of in enumerate(own))]:
        _with_nodes(classifier, nodes).save(folder / name)
    manifest = {"n_parts": len(own), "roots": plan.roots.tolist(), "part_of": plan.part_of.tolist()}
    temporary = folder / f"{MANIFEST}.tmp"
    temporary.write_text(json.dumps(manifest))
    os.replace(temporary, folder / MANIFEST)  # last: a directory with it is complete
    return folder


def is_split(model: Any) -> bool:
    """Whether this is the directory of a model in parts."""
    return isinstance(model, str | os.PathLike) and (Path(model) / MANIFEST).exists()


def parts_of(directory: str | os.PathLike[str]) -> list[Path]:
    """The directory of each part."""
    manifest = json.loads((Path(directory) / MANIFEST).read_text())
    return [Path(directory) / f"part-{k:05d}" for k in range(manifest["n_parts"])]


def plan_split(trained: TrainedTree, n_parts: int) -> SplitPlan:
    """Subtrees of at most their share stay whole; they are put together, in order, until a part has its share."""
    tree, size = trained.tree, panel_bytes(trained.blocks, trained.tree.n_nodes)[:-1]
    share = -(-int(size.sum()) // n_parts)
    top, whole, sizes = inner_and_whole(tree, size, share)
    if not len(whole):
        raise ValueError("the tree has no subtrees to put apart: all labels are children of the root")
    part_of, filled, part = [], 0, 0
    for amount in sizes:
        if filled and filled + amount > share and part < n_parts - 1:
            filled, part = 0, part + 1
        filled += int(amount)
        part_of.append(part)
    is_top = np.zeros(tree.n_nodes, dtype=bool)
    is_top[top] = True
    labels = np.flatnonzero((tree.label >= 0) & is_top[tree.parent])
    roots, parts = np.append(whole, labels), np.append(part_of, np.full(len(labels), ROUTER))
    order = np.argsort(roots)
    return SplitPlan(np.sort(top).astype(np.int32), roots[order].astype(np.int32), parts[order].astype(np.int32))


def _only_tree(classifier: Any) -> TrainedTree:
    if not isinstance(classifier, PLTClassifier) or len(classifier.trees_) != 1:
        raise ValueError(f"a PLTClassifier of one tree can be split, got {classifier!r:.80}")
    trained = classifier.trees_[0]
    if len(trained.blocks["table"]):
        raise ValueError("a model with hash_bits has a table of bounded size, which all nodes share: do not split it")
    if classifier._fitted().hierarchy is not None:
        raise ValueError("a model with a hierarchy cannot be split: a label's answer may need labels of other parts")
    if trained.tree.n_nodes == 1:
        raise ValueError("a tree of one label cannot be split")
    return trained


def _below(tree: LabelTree, roots: NDArray[np.int32]) -> NDArray[np.int64]:
    """The nodes at or below these."""
    is_below = np.zeros(tree.n_nodes, dtype=bool)
    is_below[roots] = True
    for level in tree.levels()[1:]:
        is_below[level] |= is_below[tree.parent[level]]
    return np.flatnonzero(is_below)


def _with_nodes(classifier: Any, nodes: NDArray[np.integer]) -> Any:
    """The same classifier with the blocks of these nodes, and of the root's gate."""
    fitted, model = classifier._fitted(), classifier.model_
    trained = model.trees[0]
    blocks = select_blocks(trained.blocks, np.append(nodes, trained.tree.n_nodes))
    part = copy.copy(classifier)
    part._set_fitted(
        FittedModel(
            fitted.schema,
            PLTModel([replace(trained, blocks=blocks)], model.columns, model.choices),
            seed=fitted.seed,
            thresholds=fitted.thresholds,
        )
    )
    return part


# --- on a worker -----------------------------------------------------------------------------------------------------


class Part:
    """A part of a split model, loaded for as long as it is asked."""

    def __init__(self, directory: str) -> None:
        self._fitted = load(directory)._fitted()
        self._model: PLTModel = self._fitted.model

    def top_sums(self, rows: sparse.csr_array) -> NDArray[np.float64]:
        """For each row the sum by which its probabilities would be divided if this part were all."""
        return self._model.trees[0].top_sums(self._model._read(rows))

    def search(
        self, rows: sparse.csr_array, top_k: int | None, threshold: Threshold, sums: NDArray[np.float64] | None = None
    ) -> sparse.csr_array:
        """The exact answer among the part's labels; `sums` are those of the whole tree, of classes with claims."""
        if sums is not None:
            return self._model.trees[0].search_in_part(self._model._read(rows), sums, top_k=top_k, threshold=threshold)
        answer: sparse.csr_array = self._fitted.search(rows, Query(top_k, threshold))
        return answer


class Router:
    """Answers rows exactly by asking parts of a model; searches are exact whatever `beam` and `slack` are."""

    def __init__(self, directory: str | os.PathLike[str], parts: Sequence[Actor]) -> None:
        manifest = json.loads((Path(directory) / MANIFEST).read_text())
        self.parts, self.part_of = parts, np.array(manifest["part_of"], dtype=np.int64)
        self._fitted: FittedModel = load(Path(directory) / "top")._fitted()
        self._model: PLTModel = self._fitted.model
        self._roots = np.array(manifest["roots"], dtype=np.int32)
        self._top = top_of(self._model.trees[0], self._roots)
        self.n_features_in_ = self._fitted.schema.n_features
        self.asked = 0  # rows, summed over the parts that were asked

    def predict_labels(self, X: Any, top_k: int | None = 5, threshold: Any = None) -> list[list[tuple[Any, float]]]:
        """Per row, (label, probability) pairs, best first, as the whole model answers."""
        query = self._fitted.query(top_k, threshold)
        return self._fitted.pairs(self.search(self._fitted.schema.rows(X), query.top_k, query.threshold))

    def search(self, rows: sparse.csr_array, top_k: int | None, threshold: Threshold) -> sparse.csr_array:
        """The answer of the whole model."""
        tree = self._model.trees[0].tree
        of_all, of_node = node_thresholds(tree, threshold)
        of_roots: Threshold = of_all if of_node is None else of_node[self._roots]
        read, sums = self._model._read(rows), None
        is_revised = np.zeros((rows.shape[0], len(self.parts)), dtype=bool)
        if self._top.claims is None:
            reached = self._top.search(read, top_k=None, threshold=of_roots)
        else:
            sums, is_revised = self._sums(rows, read)
            reached = self._top.search_in_part(read, sums, top_k=None, threshold=of_roots)
        bound, answer = self._bounds(reached), self._own_labels(reached, tree)
        is_open = (bound > 0) | is_revised
        if top_k is not None:  # first the most probable part, then what may still matter
            first = np.zeros_like(is_open)
            first[np.arange(len(bound)), bound.argmax(axis=1)] = True
            answer = self._ask(rows, answer, first & is_open, top_k, threshold, None, sums)
            lowest = _kth(answer, top_k)
            is_open &= ~first & ((bound >= lowest[:, None]) | is_revised)
            answer = self._ask(rows, answer, is_open, top_k, threshold, lowest, sums)
        else:
            answer = self._ask(rows, answer, is_open, top_k, threshold, None, sums)
        return keep_best(answer, top_k, threshold)

    def _sums(self, rows: sparse.csr_array, read: sparse.csr_array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Of classes: for each row the sum by which the whole model divides, and the parts with revised nodes."""
        products = replace(self._top, claims=None, top_from=1.0)  # of the shares alone: they decide what is revised
        least = self._top.top_from * (1 - 1e-5)  # rounding must not hide one
        is_revised = self._bounds(products.search(read, top_k=None, threshold=least)) > 0
        own = self._top.top_sums(read)
        asked = [np.flatnonzero(is_revised[:, k]) for k in range(len(self.parts))]
        running = [
            (part, part.call("top_sums", rows[of_part])) if len(of_part) else None
            for part, of_part in zip(self.parts, asked, strict=True)
        ]
        sums = own.copy()
        for call, of_part in zip(running, asked, strict=True):
            if call is not None:
                part, reference = call
                sums[of_part] += part.get(reference) - own[of_part]
        return sums, is_revised

    def _bounds(self, reached: sparse.csr_array) -> NDArray[np.float32]:
        """For each row and part the probability of its best subtree."""
        bound = np.zeros((reached.shape[0], len(self.parts)), dtype=np.float32)
        part = self.part_of[reached.indices]
        row = np.repeat(np.arange(reached.shape[0]), np.diff(reached.indptr))
        inside = part != ROUTER
        np.maximum.at(bound, (row[inside], part[inside]), reached.data[inside])
        return bound

    def _own_labels(self, reached: sparse.csr_array, tree: LabelTree) -> sparse.csr_array:
        """Labels that are children of nodes at the top."""
        row = np.repeat(np.arange(reached.shape[0]), np.diff(reached.indptr))
        own = self.part_of[reached.indices] == ROUTER
        place = row[own], tree.label[self._roots[reached.indices[own]]]
        return sparse.csr_array((reached.data[own], place), shape=(reached.shape[0], tree.n_labels))

    def _ask(
        self,
        rows: sparse.csr_array,
        answer: sparse.csr_array,
        asked: NDArray[np.bool_],
        top_k: int | None,
        threshold: Threshold,
        lowest: NDArray[np.float32] | None,
        sums: NDArray[np.float64] | None,
    ) -> sparse.csr_array:
        """The answer with those of the parts that are asked; labels below a row's `lowest` do not matter."""
        running, places = [], []
        for k, part in enumerate(self.parts):
            wanted = np.flatnonzero(asked[:, k])
            if lowest is not None:
                wanted = wanted[np.argsort(lowest[wanted], kind="stable")]
            for group in np.array_split(wanted, 1 if lowest is None else GROUPS):
                if not len(group):
                    continue
                least = threshold if lowest is None else np.maximum(threshold, lowest[group[0]])
                least = least if isinstance(least, np.ndarray) and least.ndim else float(least)
                of_group = None if sums is None else sums[group]
                running.append((part, part.call("search", rows[group], top_k, least, of_group)))
                places.append(group)
                self.asked += len(group)
        for (part, reference), group in zip(running, places, strict=True):
            found = part.get(reference)
            sizes = np.zeros(rows.shape[0], dtype=np.int64)
            sizes[group] = np.diff(found.indptr)
            order = np.argsort(group, kind="stable")
            spread = found[order]
            wide = csr_rows(spread.data, spread.indices, np.concatenate(([0], np.cumsum(sizes))), answer.shape)
            answer = answer.maximum(wide)  # parts know the labels at the top, too, with the same probability
        answer = sparse.csr_array(answer) if answer.nnz else no_entries(*answer.shape)
        answer.sort_indices()
        return answer


def top_of(trained: TrainedTree, roots: NDArray[np.int32]) -> TrainedTree:
    """The top of a tree, with the given roots of subtrees, and children without any block, as leaves."""
    tree = trained.tree
    is_top = np.zeros(tree.n_nodes, dtype=bool)
    is_top[trained.blocks["panels"][:, 0][trained.blocks["panels"][:, 0] < tree.n_nodes]] = True
    kept = np.flatnonzero(is_top | np.append(False, is_top[tree.parent[1:]]))
    number = np.full(tree.n_nodes + 1, -1, dtype=np.int64)
    number[kept], number[-1] = np.arange(len(kept)), len(kept)
    label = np.full(len(kept), -1, dtype=np.int32)
    label[number[roots]] = np.arange(len(roots))
    others = np.flatnonzero((label < 0) & ~is_top[kept])  # nothing was learned below them
    label[others] = len(roots) + np.arange(len(others))
    parent = np.where(tree.parent[kept] < 0, -1, number[tree.parent[kept]])
    small = LabelTree(parent, label, len(roots) + len(others))
    panels = trained.blocks["panels"].copy()
    panels[:, 0] = number[panels[:, 0]]
    return replace(trained, tree=small, blocks={**trained.blocks, "panels": panels})


def _kth(answer: sparse.csr_array, k: int) -> NDArray[np.float32]:
    """The k-th largest probability of each row, 0 if it has fewer."""
    lowest = np.zeros(answer.shape[0], dtype=np.float32)
    best = keep_best(answer, k, 0.0)
    full = np.flatnonzero(np.diff(best.indptr) >= k)
    for row in full:
        lowest[row] = best.data[best.indptr[row] : best.indptr[row + 1]].min()
    return lowest
