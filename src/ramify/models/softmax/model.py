"""A trained tree softmax: a label tree, tables of embeddings, and their small, quantised form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import node_thresholds
from ramify.base.model import Model, Query, RowAnswer, State, named_by_label_set, shape_of
from ramify.common.cached import cached_property
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.data.csr import csr_rows
from ramify.explain.label_path import RANKED, RawLabelPaths
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from typing_extensions import Self

TABLES = ("embedding", "output")
STORAGES = ("float32", "int8")


class SoftmaxModel(Model):
    """The flat arrays of core/softmax/tree_softmax.hpp, maybe memory-mapped, with the tree that they decide in.

    `column` lists the features that have an embedding, in increasing order; rows of `embedding` follow it, the bias is
    last. `output` has a row per decision: see core/softmax/sibling_decisions.hpp. Rows are padded to a multiple of 8.
    """

    def __init__(
        self,
        *,
        tree: LabelTree,
        arrays: dict[str, NDArray[Any]],
        n_features: int,
        is_multiclass: bool,
        dim: int,
        is_plt: bool,
        normalize: bool,
        bias: float,
    ) -> None:
        self.tree = tree
        self.arrays = arrays
        self.n_labels = tree.n_labels
        self.n_features = n_features
        self.is_multiclass = is_multiclass
        self.dim = dim
        self.is_plt = is_plt
        self.normalize = normalize
        self.bias = bias

    @cached_property
    def core(self) -> _core.TreeSoftmax:
        """The compiled searcher; checks the arrays when it is built, and is never stored."""
        return _core.TreeSoftmax(
            self.arrays,
            self.tree,
            self.is_plt,
            _core.FeatureSettings(self.n_features, self.normalize, self.bias),
            self.dim,
        )

    @property
    def storage(self) -> str:
        """How the tables are kept: one of STORAGES."""
        return "int8" if "embedding_scale" in self.arrays else "float32"

    def rows(self, table: str) -> NDArray[np.float32]:
        """A table as floats, a row each, without the padding."""
        values = self.arrays[table].reshape(-1, (self.dim + 7) // 8 * 8)[:, : self.dim]
        scale = self.arrays.get(f"{table}_scale")
        return values if scale is None else values * scale[:, None]

    def stored_as(self, storage: str) -> SoftmaxModel:
        """The same model in bytes: each row's numbers are whole multiples of a 127th of its largest."""
        if storage == self.storage:
            return self
        if self.storage != "float32":
            raise ValueError(f"the model is kept as {self.storage}, and what that has lost does not come back")
        arrays = dict(self.arrays)
        for table in TABLES:
            arrays[table], arrays[f"{table}_scale"] = in_bytes(self.arrays[table], (self.dim + 7) // 8 * 8)
        values, _ = self.state()
        return SoftmaxModel._from_parts(self.tree, arrays, values)

    def embed(self, X: sparse.csr_array, n_threads: int) -> NDArray[np.float32]:
        """The rows as vectors: the mean of their features' embeddings."""
        return self.core.hidden(X, n_threads)[:, : self.dim]

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        thresholds = node_thresholds(self.tree, query.threshold)
        indptr, indices, data, _ = self.core.search(X, query.top_k, *thresholds, query.n_threads)
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels))

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self.core.search_row(indices, values, *query.limits(self.n_labels))

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return named_by_label_set(X, candidates, lambda rows, labels: self.core.named(rows, labels, query.n_threads))

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawLabelPaths:
        ranked, _ = self.search_row(indices, values, Query(RANKED))
        return RawLabelPaths([(self.tree, self.core.explain(indices, values, column))], ranked)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> State:
        values = {
            **self.shape_values(),
            "dim": self.dim,
            "is_plt": self.is_plt,
            "normalize": self.normalize,
            "bias": self.bias,
        }
        return State(values, {"parent": self.tree.parent, "label": self.tree.label, **self.arrays})

    @classmethod
    def from_state(cls, state: State) -> Self:
        tree = LabelTree(state.arrays["parent"], state.arrays["label"], shape_of(state.values)["n_labels"])
        arrays = {name: array for name, array in state.arrays.items() if name not in ("parent", "label")}
        model = cls._from_parts(tree, arrays, state.values)
        _ = model.core  # checks the arrays now, not at the first query
        return model

    @classmethod
    def _from_parts(cls, tree: LabelTree, arrays: dict[str, NDArray[Any]], values: Mapping[str, Any]) -> Self:
        shape = shape_of(values)
        return cls(
            tree=tree,
            arrays=arrays,
            n_features=shape["n_features"],
            is_multiclass=shape["is_multiclass"],
            dim=check_integer("dim", values["dim"], at_least=1),
            is_plt=check_flag("is_plt", values["is_plt"]),
            normalize=check_flag("normalize", values["normalize"]),
            bias=check_number("bias", values["bias"]),
        )


def in_bytes(values: NDArray[np.float32], stride: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Rows as whole numbers from -127 to 127, and what a row's numbers are to be multiplied by.

    >>> whole, scale = in_bytes(np.array([0.5, -1.0, 0.0, 0.0], dtype=np.float32), 2)
    >>> whole.tolist(), (scale * 127).round(3).tolist()
    ([64, -127, 0, 0], [1.0, 0.0])
    """
    rows = values.reshape(-1, stride)
    scale = (np.abs(rows).max(axis=1, initial=0) / 127).astype(np.float32)
    whole = np.rint(rows / np.where(scale > 0, scale, 1)[:, None])
    return np.clip(whole, -127, 127).astype(np.int8).ravel(), scale
