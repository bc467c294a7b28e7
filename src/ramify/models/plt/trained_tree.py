"""A label tree with its trained blocks, ready to be searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import Threshold, node_thresholds
from ramify.common.cached import cached_property
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.models.plt.calibration import Link
from ramify.models.plt.fit_report import UNKNOWN, Setting, Trial
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from typing_extensions import Required, Unpack


class Search(TypedDict, total=False):
    """Arguments of a search: at most top_k labels a row (None: all), each at least the threshold.

    Thresholds per label prune a subtree at the least of them (Jasinska et al. 2016, section 5). A beam keeps that many
    nodes at each level. With slack, a node is opened only if 1 - slack of its probability beats the answer so far.
    """

    top_k: Required[int | None]
    threshold: Required[Threshold]
    beam: int | None
    slack: float
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
    setting: Setting = UNKNOWN  # of the solver, for the record
    trials: tuple[Trial, ...] = ()
    levels: tuple[Setting, ...] = ()  # settings of each level, if they differ
    scale: float = 1.0  # of all values, where rows are not normalised
    # Of classes: the maps (logits and slopes, at the link's knots) of each child for itself. Nodes that a row reaches
    # with at least `top_from` are revised by what their children claim; None: siblings share a softmax everywhere.
    claims: NDArray[np.float32] | None = None
    top_from: float = 1.0

    @cached_property
    def core(self) -> _core.LabelTreeModel:
        """The compiled searcher; built at the first query, never stored."""
        return _core.LabelTreeModel(
            self.blocks,
            self.tree,
            _core.FeatureSettings(self.n_features, self.normalize, self.bias, self.scale),
            self.link.logits,
            self.link.slope_table(),
            self.link.low,
            self.link.step,
            self.is_multiclass,
            self.claims,
            self.top_from,
        )

    def search(self, X: sparse.csr_array, **how: Unpack[Search]) -> sparse.csr_array:
        """Labels of each row by exact best-first search, or by a beam."""
        indptr, indices, data, _ = self.core.search(*self._asked(X, **how))
        return sparse.csr_array((data, indices, indptr), shape=(X.shape[0], self.tree.n_labels))

    def trace(
        self, X: sparse.csr_array, **how: Unpack[Search]
    ) -> tuple[sparse.csr_array, NDArray[np.int32], NDArray[np.float32]]:
        """`search` with its cost: for each row the blocks scored, and the probability of the best path left out."""
        indptr, indices, data, _, blocks, missed = self.core.trace(*self._asked(X, **how))
        return sparse.csr_array((data, indices, indptr), shape=(X.shape[0], self.tree.n_labels)), blocks, missed

    def n_inner_products(self, X: sparse.csr_array, **how: Unpack[Search]) -> int:
        """Inner products that `search` computes for all these rows, counted as in Jasinska et al. 2016, table 2."""
        return self.core.search(*self._asked(X, **how))[3]

    def _asked(
        self,
        X: sparse.csr_array,
        *,
        top_k: int | None,
        threshold: Threshold,
        beam: int | None = None,
        slack: float = 0.0,
        n_threads: int = 1,
    ) -> tuple[sparse.csr_array, int | None, float, NDArray[np.float32] | None, int, int, float]:
        """Arguments of the core's searches."""
        return X, top_k, *node_thresholds(self.tree, threshold), beam or 0, n_threads, slack

    def top_sums(self, X: sparse.csr_array, n_threads: int = 1) -> NDArray[np.float64]:
        """For each row the sum by which its probabilities are divided, of classes with claims."""
        return self.core.top_sums(X, n_threads)

    def search_in_part(
        self, X: sparse.csr_array, top_sums: NDArray[np.float64], **how: Unpack[Search]
    ) -> sparse.csr_array:
        """`search` with the blocks of a part of the tree, and the sums of the whole of it."""
        indptr, indices, data, _ = self.core.search(*self._asked(X, **how), top_sums)
        return sparse.csr_array((data, indices, indptr), shape=(X.shape[0], self.tree.n_labels))

    def named(self, X: sparse.csr_array, labels: sparse.csr_array, n_threads: int = 1) -> NDArray[np.float32]:
        """Probabilities of the entries of `labels` (n, n_labels): of each row, the labels that it names."""
        return self.core.named(X, labels, n_threads)

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
            "C": self.setting.C,
            "positive_weight": self.setting.positive_weight,
            "n_epochs": self.setting.n_epochs,
            "gap": self.setting.gap,
            "trials": [trial.stored() for trial in self.trials],
            "levels": [list(setting) for setting in self.levels],
            "scale": self.scale,
            "top_from": self.top_from,
        }
        arrays = {"parent": self.tree.parent, "label": self.tree.label, **self.blocks}
        arrays |= {"link": self.link.logits, "link_slopes": self.link.slope_table()}
        if self.claims is not None:
            arrays["claims"] = self.claims
        return metadata, arrays

    @classmethod
    def from_state(cls, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> TrainedTree:
        """Take back what `state` gave."""
        own = ("parent", "label", "link", "link_slopes", "claims")
        blocks = {name: array for name, array in arrays.items() if name not in own}
        blocks.setdefault("column_rate", np.zeros(len(blocks["column_child"]), np.float32))  # older files have none
        metadata = {"scale": 1.0, "n_epochs": 0, "gap": 0.0, "top_from": 1.0, **metadata}  # older files have none
        metadata["n_epochs"] = metadata["n_epochs"] or UNKNOWN.n_epochs
        numbers = {
            name: check_number(name, metadata[name]) for name in ("link_low", "link_step", "bias", "scale", "top_from")
        }
        return cls(
            tree=LabelTree(arrays["parent"], arrays["label"], metadata["n_labels"]),
            blocks=blocks,
            link=Link(arrays["link"], numbers.pop("link_low"), numbers.pop("link_step"), arrays.get("link_slopes")),
            claims=arrays.get("claims"),
            n_features=check_integer("n_features", metadata["n_features"], at_least=0),
            normalize=check_flag("normalize", metadata["normalize"]),
            is_multiclass=check_flag("is_multiclass", metadata["is_multiclass"]),
            setting=Setting.checked([metadata[name] for name in ("C", "positive_weight", "n_epochs", "gap")]),
            trials=tuple(Trial.checked(trial) for trial in metadata.get("trials", [])),
            levels=tuple(Setting.checked(setting) for setting in metadata.get("levels", [])),
            **numbers,
        )
