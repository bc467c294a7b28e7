"""A LOMtree: a learner of the core that splits and recycles nodes as rows arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.model import Query, RowAnswer, named_by_label_set
from ramify.base.online_model import BestLabels, Indices, Learning, OnlineModel, Values
from ramify.base.stream_schema import Piece
from ramify.data.csr import RowArrays, csr_rows
from ramify.explain.row_path import RawRowPaths

Answer = TypeVar("Answer")

TREE_SETTINGS = ("max_nodes", "nodes_per_class", "swap_resistance", "forgetting")


class LOMTreeModel(OnlineModel):
    """The tree with its nodes' regressors and class counts; Y has exactly one class per row."""

    learner: _core.LomTree

    @staticmethod
    def new_learner(settings: Mapping[str, Any]) -> _core.LomTree:
        of_tree = {name: settings[name] for name in TREE_SETTINGS}
        of_regressor = {name: value for name, value in settings.items() if name not in TREE_SETTINGS}
        return _core.LomTree(regressor=_core.RegressorSettings(**of_regressor), **of_tree)

    def learn(self, piece: Piece, order: NDArray[np.int64] | None, how: Learning) -> None:
        X, Y, weight = piece
        self.learner.learn(X, Y.indices.astype(np.int32, copy=False), weight, order, how.progress)

    def learn_row(self, indices: Indices, values: Values, labels: Indices, how: Learning) -> None:
        self.learner.learn(RowArrays.one(indices, values), labels)

    def can_learn(self, labels: NDArray[np.int32]) -> bool:
        return len(labels) == 1

    def test_then_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int, how: Learning) -> BestLabels:
        return self.learner.test_then_learn(X, Y.indices.astype(np.int32, copy=False), top_k)

    @property
    def depth(self) -> int:
        """Steps from the root to the deepest leaf."""
        parent = self.learner.state()["parent"]
        depth, level = 0, np.flatnonzero(parent == 0)
        while len(level):
            depth, level = depth + 1, np.flatnonzero(np.isin(parent, level))
        return depth

    def leaves(self, X: sparse.csr_array, n_threads: int) -> NDArray[np.int32]:
        """The leaf that each row reaches."""
        return self.learner.leaves(X, n_threads)

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        def ask(n_labels: int) -> sparse.csr_array:
            indptr, labels, probabilities = self.learner.predict(
                X, n_labels, query.top_k, *query.thresholds, query.n_threads
            )
            return csr_rows(probabilities, labels, indptr, (X.shape[0], n_labels))

        return self._with_all_labels(ask)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self._with_all_labels(
            lambda n_labels: self.learner.predict_row(indices, values, n_labels, *query.limits(n_labels))
        )

    def _with_all_labels(self, ask: Callable[[int], Answer]) -> Answer:
        """Ask with the number of labels; again if another thread has learned a new one in between."""
        while True:
            n_labels = self.n_labels
            try:
                return ask(n_labels)
            except ValueError:
                if self.n_labels == n_labels:
                    raise

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return named_by_label_set(X, candidates, lambda rows, labels: self.learner.named(rows, labels, query.n_threads))

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawRowPaths:
        return RawRowPaths([self.learner.route(indices, values, column)])
