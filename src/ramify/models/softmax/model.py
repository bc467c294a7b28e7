"""A trained tree softmax: a label tree, tables of embeddings, and their small, quantised form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.trees.label_tree import LabelTree

TABLES = ("embedding", "output")
STORAGES = ("float32", "int8")


@dataclass(frozen=True)
class SoftmaxModel:
    """The flat arrays of core/softmax/tree_softmax.hpp, maybe memory-mapped, with the tree that they decide in.

    `column` lists the features that have an embedding, rising; rows of `embedding` follow it, the bias comes last.
    `output` has a row a decision: see core/softmax/sibling_decisions.hpp. Rows are padded to a multiple of eight.
    """

    tree: LabelTree
    arrays: dict[str, NDArray[Any]]
    n_features: int
    dim: int
    is_plt: bool
    normalize: bool
    bias: float

    @cached_property
    def core(self) -> _core.TreeSoftmax:
        """The compiled searcher; checks the arrays when it is built, and is never stored."""
        tree = self.tree
        return _core.TreeSoftmax(
            self.arrays,
            tree.parent,
            tree.first_child,
            tree.n_children,
            tree.label,
            tree.n_labels,
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
        return replace(self, arrays=arrays)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "core"}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON values and arrays to be stored."""
        metadata = {"dim": self.dim, "is_plt": self.is_plt, "normalize": self.normalize, "bias": self.bias}
        return metadata, {"parent": self.tree.parent, "label": self.tree.label, **self.arrays}

    @classmethod
    def from_state(
        cls, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]], n_features: int, n_labels: int
    ) -> SoftmaxModel:
        """Take back what `state` gave; the arrays are checked at once."""
        model = cls(
            tree=LabelTree(arrays["parent"], arrays["label"], n_labels),
            arrays={name: array for name, array in arrays.items() if name not in ("parent", "label")},
            n_features=n_features,
            dim=check_integer("dim", metadata["dim"], at_least=1),
            is_plt=check_flag("is_plt", metadata["is_plt"]),
            normalize=check_flag("normalize", metadata["normalize"]),
            bias=check_number("bias", metadata["bias"]),
        )
        _ = model.core  # checks the arrays now, not at the first question
        return model


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
