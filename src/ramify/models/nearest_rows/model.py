"""Stored rows with their labels, and the vote of the nearest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.model import Model, Query, RowAnswer, State, shape_of
from ramify.common.validation import check_flag
from ramify.data.csr import RowArrays, csr_rows
from ramify.explain.neighbours import RawVote

if TYPE_CHECKING:
    from typing_extensions import Self


class NearestRowsModel(Model):
    """The arrays of the rows, maybe memory-mapped: see core/nearest_rows/row_index.hpp.

    Of centroids, row j is the mean of the rows with label j. Search options: `k` rows vote, each with similarity **
    `power`.
    """

    needed_options = ("k", "power")
    n_cheap_answers = 256

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        *,
        n_labels: int,
        n_features: int,
        is_multiclass: bool,
        is_of_centroids: bool = False,
    ) -> None:
        self.arrays = arrays
        self.is_of_centroids = is_of_centroids
        self.n_labels = n_labels
        self.n_features = n_features
        self.is_multiclass = is_multiclass

    @cached_property
    def core(self) -> _core.NearestRows:
        """The compiled reader; checks the arrays and indexes the rows when it is built, and is never stored."""
        return _core.NearestRows(self.arrays, self.n_labels, self.n_features)

    @property
    def n_rows(self) -> int:
        return len(self.arrays["weight"])

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        indptr, indices, data, _ = self._answered(X, query)
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels))

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """Rows compared in full."""
        return self._answered(X, query)[3]

    def _answered(self, X: sparse.csr_array, query: Query) -> tuple[Any, Any, Any, int]:
        return self.core.predict(X, *_vote(query), query.top_k, *query.thresholds, query.n_threads)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self.core.predict_row(indices, values, *_vote(query), *query.limits(self.n_labels))

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return self.core.named(X, candidates, *_vote(query), query.n_threads)

    def nearest(self, X: sparse.csr_array, k: int, n_threads: int = 1) -> tuple[Any, Any, Any]:
        """CSR parts: the nearest rows and their similarities, nearest first within each row."""
        return self.core.nearest(X, k, n_threads)

    def explain(self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query) -> RawVote:
        label = RowArrays.one(np.array([column], dtype=np.int32), np.ones(1, dtype=np.float32))
        probability = self.core.named(RowArrays.one(indices, values), label, *_vote(query), 1)
        neighbours = self.core.neighbours(indices, values, *_vote(query))
        return RawVote(float(probability[0]), neighbours, self.is_of_centroids)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> State:
        kind = {"is_of_centroids": True} if self.is_of_centroids else {}
        return State(self.shape_values() | kind, self.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        is_of_centroids = check_flag("is_of_centroids", state.values.get("is_of_centroids", False))
        model = cls(state.arrays, **shape_of(state.values), is_of_centroids=is_of_centroids)
        _ = model.core  # checks the arrays now, not at the first query
        return model


def _vote(query: Query) -> tuple[int, float]:
    return query.options["k"], query.options["power"]
