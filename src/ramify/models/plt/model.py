"""A trained probabilistic label tree, or several whose probabilities are averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import Threshold, keep_best, node_thresholds, one_row
from ramify.base.model import Model, Query, RowAnswer, State, arrays_below
from ramify.common.cached import cached_property
from ramify.data.csr import csr_rows
from ramify.explain.label_path import RANKED, RawLabelPaths
from ramify.models.plt.columns import Columns
from ramify.models.plt.fit_report import Tried
from ramify.models.plt.search_report import SearchReport
from ramify.models.plt.trained_tree import Search, TrainedTree

if TYPE_CHECKING:
    from typing_extensions import Self


class PLTModel(Model):
    """One or more trained trees over the same labels.

    Search options: `beam` (nodes kept per level; None searches exactly) and `slack` (see `PLTClassifier`). With
    `columns`, the trees know rows only with standardised columns. `choices` say what was tried for dense rows.
    """

    def __init__(
        self, trees: list[TrainedTree], columns: Columns | None = None, choices: tuple[Tried, ...] = ()
    ) -> None:
        self.trees = trees
        self.columns = columns
        self.choices = choices
        self.n_labels = trees[0].tree.n_labels
        self.n_features = trees[0].n_features
        self.is_multiclass = trees[0].is_multiclass

    @cached_property
    def ensemble(self) -> _core.LabelTreeEnsemble:
        """The compiled searcher of several trees; built at the first query, never stored."""
        return _core.LabelTreeEnsemble([tree.core for tree in self.trees])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "ensemble"}

    def _read(self, X: sparse.csr_array) -> sparse.csr_array:
        return X if self.columns is None else self.columns.rows(X)

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        X = self._read(X)
        how = self._search_of_a_tree(query)
        if len(self.trees) == 1:
            return self.trees[0].search(X, **how)
        limits = [node_thresholds(tree.tree, how["threshold"]) for tree in self.trees]
        per_label = query.threshold if isinstance(query.threshold, np.ndarray) else None
        indptr, indices, data = self.ensemble.search(
            X,
            query.top_k,
            limits[0][0],
            0.0 if isinstance(query.threshold, np.ndarray) else query.threshold,
            [at_node for _, at_node in limits if at_node is not None],
            per_label,
            query.options.get("beam") or 0,
            query.n_threads,
            query.options.get("slack", 0.0),
        )
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels))

    def report(self, X: sparse.csr_array, query: Query) -> SearchReport:
        """`search` with its cost."""
        blocks, missed = np.zeros(X.shape[0], np.int64), np.zeros(X.shape[0], np.float32)
        how, found, X = self._search_of_a_tree(query), [], self._read(X)
        for tree in self.trees:
            answer, tree_blocks, tree_missed = tree.trace(X, **how)
            found.append(answer)
            blocks += tree_blocks
            missed = np.maximum(missed, tree_missed)
        return SearchReport(self._combine(X, query, found), blocks, missed)

    def _search_of_a_tree(self, query: Query) -> Search:
        # Of several trees' best k none may be left out for missing the threshold in its tree: its mean may reach it.
        threshold: Threshold = 0.0 if query.top_k is not None and len(self.trees) > 1 else query.threshold
        return {
            "top_k": query.top_k,
            "threshold": threshold,
            "beam": query.options.get("beam"),
            "slack": query.options.get("slack", 0.0),
            "n_threads": query.n_threads,
        }

    def _combine(self, X: sparse.csr_array, query: Query, found: list[sparse.csr_array]) -> sparse.csr_array:
        if len(found) == 1:
            return found[0]
        # A mean of at least the threshold needs one tree at least at the threshold: no such label is missed.
        candidates = sparse.csr_array(sum(found[1:], start=found[0]))
        candidates.sort_indices()
        mean = self._mean(X, candidates, query)
        answer = sparse.csr_array((mean, candidates.indices, candidates.indptr), shape=candidates.shape)
        return keep_best(answer, query.top_k, query.threshold)

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        """The mean over the trees."""
        return self._mean(self._read(X), candidates, query)

    def _mean(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        total = sum(tree.named(X, candidates, query.n_threads).astype(np.float64) for tree in self.trees)
        return np.asarray(total / len(self.trees), dtype=np.float32)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        beam, slack = query.options.get("beam") or 0, query.options.get("slack", 0.0)
        if self.columns is not None:
            indices, values = self.columns.row(indices, values)
        if len(self.trees) == 1:
            return self.trees[0].core.search_row(indices, values, *query.limits(self.n_labels), beam, slack)
        return self.ensemble.search_row(indices, values, query.top_k, query.limits(self.n_labels)[1], beam, slack)

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawLabelPaths:
        ranked, _ = self.search_row(indices, values, query._replace(top_k=RANKED, threshold=0.0))
        if self.columns is not None:
            indices, values = self.columns.row(indices, values)
        paths = [(tree.tree, tree.core.explain(indices, values, column)) for tree in self.trees]
        exact = None
        if any(tree.claims is not None for tree in self.trees):  # steps are then ratios of sums
            row = one_row(indices, values, self.n_features)
            label = one_row(np.array([column], np.int32), np.ones(1, np.float32), self.n_labels)
            exact = [float(tree.named(row, label)[0]) for tree in self.trees]
        return RawLabelPaths(paths, ranked, exact)

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """Inner products of all trees' searches, without the mean of several trees."""
        how: Search = {"top_k": query.top_k, "threshold": query.threshold, "beam": query.options.get("beam")}
        X = self._read(X)
        return sum(tree.n_inner_products(X, **how) for tree in self.trees)

    def state(self) -> State:
        values: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for k, tree in enumerate(self.trees):
            of_tree, tree_arrays = tree.state()
            values.append(of_tree)
            arrays |= {f"{k}/{name}": array for name, array in tree_arrays.items()}
        if self.columns is not None:
            arrays |= self.columns.arrays()
        stored = {"trees": values}
        return State(stored | ({"choices": [list(tried) for tried in self.choices]} if self.choices else {}), arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        trees = [
            TrainedTree.from_state(values, arrays_below(f"{k}/", state.arrays))
            for k, values in enumerate(state.values["trees"])
        ]
        for tree in trees:
            _ = tree.core  # checks the arrays now, not at the first query
        choices = tuple(Tried.checked(tried) for tried in state.values.get("choices", []))
        return cls(trees, Columns.from_arrays(state.arrays, trees[0].n_features), choices)
