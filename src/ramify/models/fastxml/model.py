"""A grown FastXML forest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.model import Model, Query, RowAnswer, State, named_by_label_set, shape_of
from ramify.common.cached import cached_property
from ramify.common.validation import check_flag, check_number
from ramify.data.csr import csr_rows
from ramify.explain.row_path import RawRowPaths

if TYPE_CHECKING:
    from typing_extensions import Self


class FastXMLModel(Model):
    """The flat arrays of the trees, maybe memory-mapped: see core/forest/instance_forest.hpp."""

    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        *,
        normalize: bool,
        bias: float,
        n_labels: int,
        n_features: int,
        is_multiclass: bool,
    ) -> None:
        self.arrays = arrays
        self.normalize = normalize
        self.bias = bias
        self.n_labels = n_labels
        self.n_features = n_features
        self.is_multiclass = is_multiclass

    @cached_property
    def core(self) -> _core.InstanceForest:
        """The compiled reader; checks the arrays when it is built, and is never stored."""
        features = _core.FeatureSettings(self.n_features, self.normalize, self.bias)
        return _core.InstanceForest(self.arrays, self.n_labels, features)

    @property
    def n_trees(self) -> int:
        return len(self.arrays["tree_begin"]) - 1

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        indptr, indices, data, _ = self._answered(X, query)
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels))

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """Separators evaluated."""
        return self._answered(X, query)[3]

    def _answered(self, X: sparse.csr_array, query: Query) -> tuple[Any, Any, Any, int]:
        return self.core.predict(X, query.top_k, *query.thresholds, query.n_threads)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self.core.predict_row(indices, values, *query.limits(self.n_labels))

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return named_by_label_set(X, candidates, lambda rows, labels: self.core.named(rows, labels, query.n_threads))

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawRowPaths:
        share, mass = self.label_share(column), self.arrays["mass"]
        routes = (self.core.route(indices, values, tree) for tree in range(self.n_trees))
        return RawRowPaths(
            [
                [
                    (node, float(mass[node]), float(share[node]), score, features, added)
                    for node, score, features, added in route
                ]
                for route in routes
            ]
        )

    def label_share(self, column: int) -> NDArray[np.float64]:
        """For each node the share of its training rows that have a label, as its leaves store it."""
        child, mass = self.arrays["child"], self.arrays["mass"]
        counted = np.zeros(len(child), dtype=np.float64)
        entries = np.flatnonzero(self.arrays["label"] == column)
        leaves = np.searchsorted(self.arrays["label_begin"], entries, side="right") - 1
        counted[leaves] = self.arrays["probability"][entries] * mass[leaves].astype(np.float64)
        # Children come after their parents, and a level of a tree is contiguous: from the deepest level up.
        for inner in reversed(self._levels()):
            counted[inner] = counted[child[inner]] + counted[child[inner] + 1]
        share: NDArray[np.float64] = counted / mass
        return share

    def _levels(self) -> list[NDArray[np.int64]]:
        child = self.arrays["child"]
        levels, level = [], self.arrays["tree_begin"][:-1]
        while len(level := level[child[level] >= 0]):
            levels.append(level)
            level = np.concatenate((child[level], child[level] + 1))
        return levels

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> State:
        return State({**self.shape_values(), "normalize": self.normalize, "bias": self.bias}, self.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        model = cls(
            state.arrays,
            normalize=check_flag("normalize", state.values["normalize"]),
            bias=check_number("bias", state.values["bias"]),
            **shape_of(state.values),
        )
        _ = model.core  # checks the arrays now, not at the first query
        return model
