"""A label tree with trained blocks: what a label-tree model is made of once training is over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import Threshold
from ramify.data.csr import csr_parts
from ramify.models.plt.calibration import Link
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from typing_extensions import Required, Unpack


def node_thresholds(tree: LabelTree, threshold: Threshold) -> tuple[float, NDArray[np.float32] | None]:
    """A threshold as searches take it: one number, or for each node the least that a label below it asks for.

    >>> node_thresholds(LabelTree.from_nested([[0, 1], 2]), 0.5)
    (0.5, None)
    """
    if isinstance(threshold, np.ndarray):
        return 0.0, np.ascontiguousarray(tree.subtree_minimum(threshold), dtype=np.float32)
    return threshold, None


class Search(TypedDict, total=False):
    """What a search is asked for: at most top_k labels a row (None: all), each at least the threshold.

    Thresholds per label prune a subtree at the least of them (extreme-f-measure, section 5). With a beam, so many nodes
    are kept at each level. With a bound, a node is opened only where 1 - bound of its probability is not beaten by the
    answer so far.
    """

    top_k: Required[int | None]
    threshold: Required[Threshold]
    beam: int | None
    bound: float
    n_threads: int


@dataclass(frozen=True)
class TrainedTree:
    """Frozen blocks over a label tree, with the map from scores to probabilities.

    The arrays are described in core/plt/frozen_blocks.hpp; they may be memory-mapped.
    """

    tree: LabelTree
    blocks: dict[str, NDArray[Any]]
    link: Link
    n_features: int
    normalize: bool
    bias: float
    is_multiclass: bool
    C: float = 1.0  # how it was trained, for the record
    positive_weight: float = 1.0

    @cached_property
    def core(self) -> _core.LabelTreeModel:
        """The compiled searcher; built when first asked, and never stored."""
        tree = self.tree
        return _core.LabelTreeModel(
            self.blocks,
            tree.parent,
            tree.first_child,
            tree.n_children,
            tree.label,
            tree.n_labels,
            _core.FeatureSettings(self.n_features, self.normalize, self.bias),
            self.link.logits,
            self.link.low,
            self.link.step,
            self.is_multiclass,
        )

    def search(self, X: sparse.csr_array, **how: Unpack[Search]) -> sparse.csr_array:
        """Labels of each row by exact best-first search, or by a beam."""
        indptr, indices, data, _ = self.core.search(*self._asked(X, **how))
        return sparse.csr_array((data, indices, indptr), shape=(X.shape[0], self.tree.n_labels))

    def trace(self, X: sparse.csr_array, **how: Unpack[Search]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """What `search` costs: for each row the blocks that it scores, and the likeliest path that it gives up."""
        traced = self.core.trace(*self._asked(X, **how))
        return traced[4], traced[5]

    def n_inner_products(self, X: sparse.csr_array, **how: Unpack[Search]) -> int:
        """Inner products that `search` takes for all these rows; as the paper's table 2 counts (extreme-f-measure)."""
        return self.core.search(*self._asked(X, **how))[3]

    def _asked(
        self,
        X: sparse.csr_array,
        *,
        top_k: int | None,
        threshold: Threshold,
        beam: int | None = None,
        bound: float = 0.0,
        n_threads: int = 1,
    ) -> tuple[Any, Any, Any, int | None, float, NDArray[np.float32] | None, int, int, float]:
        """Arguments of the core's searches."""
        return *csr_parts(X), top_k, *node_thresholds(self.tree, threshold), beam or 0, n_threads, bound

    def named(self, X: sparse.csr_array, labels: sparse.csr_array, n_threads: int = 1) -> NDArray[np.float32]:
        """Probabilities of the entries of `labels` (n, n_labels): of each row, the labels that it names."""
        return self.core.named(
            *csr_parts(X), labels.indptr.astype(np.int64), labels.indices.astype(np.int32, copy=False), n_threads
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "core"}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON values and arrays to be stored."""
        metadata = {
            "n_labels": self.tree.n_labels,
            "link_low": self.link.low,
            "link_step": self.link.step,
            "n_features": self.n_features,
            "normalize": self.normalize,
            "bias": self.bias,
            "is_multiclass": self.is_multiclass,
            "C": self.C,
            "positive_weight": self.positive_weight,
        }
        arrays = {"parent": self.tree.parent, "label": self.tree.label, "link": self.link.logits, **self.blocks}
        return metadata, arrays

    @classmethod
    def from_state(cls, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> TrainedTree:
        """Take back what `state` gave."""
        blocks = {name: array for name, array in arrays.items() if name not in ("parent", "label", "link")}
        return cls(
            tree=LabelTree(arrays["parent"], arrays["label"], metadata["n_labels"]),
            blocks=blocks,
            link=Link(arrays["link"], metadata["link_low"], metadata["link_step"]),
            n_features=metadata["n_features"],
            normalize=metadata["normalize"],
            bias=metadata["bias"],
            is_multiclass=metadata["is_multiclass"],
            C=metadata["C"],
            positive_weight=metadata["positive_weight"],
        )
