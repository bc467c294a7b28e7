"""A contextual memory tree: stored examples, routers and a similarity in a learner of the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.model import Query, RowAnswer, named_by_label_set
from ramify.base.online_model import BestLabels, Indices, Learning, OnlineModel, Values
from ramify.base.stream_schema import Piece
from ramify.common.progress import phase
from ramify.data.csr import RowArrays, csr_rows
from ramify.explain.neighbours import RawNeighbours


class MemoryTreeModel(OnlineModel):
    """Answers with the labels of stored examples that a query retrieves."""

    learner: _core.MemoryTree

    @staticmethod
    def new_learner(settings: Mapping[str, Any]) -> _core.MemoryTree:
        return _core.MemoryTree(**settings)

    def learn(self, piece: Piece, order: NDArray[np.int64] | None, how: Learning) -> None:
        X, Y, weight = piece
        self.learner.learn(X, Y, weight, order, how.progress)

    def revisit(self, order: NDArray[np.int64]) -> None:
        """Another pass over the stored examples."""
        with phase("another pass", progress := _core.Progress()):
            self.learner.revisit(order, progress)

    def learn_row(self, indices: Indices, values: Values, labels: Indices, how: Learning) -> None:
        labels = np.sort(labels)
        self.learner.learn(RowArrays.one(indices, values), RowArrays.one(labels, labels), None, None, None)

    def test_then_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int, how: Learning) -> BestLabels:
        return self.learner.test_then_learn(X, Y, top_k)

    @property
    def n_learned(self) -> int:
        return self.learner.n_learned

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        n_labels = self.n_labels
        indptr, indices, data, *_ = self.retrieve(X, n_labels, query)
        return csr_rows(data, indices, indptr, (X.shape[0], n_labels))

    def retrieve(self, X: sparse.csr_array, n_labels: int, query: Query) -> tuple[Any, Any, Any, int, int]:
        """CSR parts of the answer, and how many nodes and examples were visited."""
        return self.learner.query(X, n_labels, query.top_k, *query.thresholds, query.n_threads)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self.learner.query_row(indices, values, self.n_labels, *query.limits(self.n_labels))

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        n_labels = candidates.shape[1]
        return named_by_label_set(
            X, candidates, lambda rows, labels: self.learner.named(rows, n_labels, labels, query.n_threads)
        )

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawNeighbours:
        label = np.array([column], dtype=np.int32)
        probability = self.learner.named(RowArrays.one(indices, values), self.n_labels, label, 1)[0, 0]
        neighbours = self.learner.neighbours(indices, values)
        best = next((found for found in neighbours if column in found[5]), neighbours[0] if neighbours else None)
        route = [] if best is None else self.learner.route(indices, values, best[0], column)
        return RawNeighbours(float(probability), neighbours, route)
