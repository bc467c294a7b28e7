"""An online probabilistic label tree: a learner of the core that grows with its stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.model import Query, RowAnswer, State
from ramify.base.online_model import BestLabels, Indices, Learning, OnlineModel, Values
from ramify.base.stream_schema import Piece
from ramify.common.validation import check_flag
from ramify.common.warn import warn_user
from ramify.data.csr import RowArrays, csr_rows
from ramify.explain.label_path import RANKED, RawLabelPaths
from ramify.models.plt.calibration import IDENTITY
from ramify.models.plt.model import PLTModel
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from typing_extensions import Self


class OnlinePLTModel(OnlineModel):
    """The tree with its node classifiers, and examples that wait to be learned block by block."""

    learner: _core.OnlineLearner
    is_over_budget = False

    @staticmethod
    def new_learner(settings: Mapping[str, Any]) -> _core.OnlineLearner:
        return _core.OnlineLearner(**settings)

    def adopt(self, tree: LabelTree) -> None:
        """Start with a tree instead of nothing."""
        self.learner.adopt(tree)

    @property
    def tree(self) -> LabelTree | None:
        """The tree as it stands; labels that were never seen have no leaf, and without any label there is no tree."""
        if not self.learner.has_labels:
            return None
        parent, label = self.learner.tree()
        return LabelTree(parent, label, n_labels=self.n_labels)

    # --- learning -------------------------------------------------------------------------------------------------

    def learn(self, piece: Piece, order: NDArray[np.int64] | None, how: Learning) -> None:
        X, Y, weight = piece
        self.learner.learn(X, Y, weight, order, how.n_threads, how.policy, how.progress)
        self._warn_of_budget()

    def learn_row(self, indices: Indices, values: Values, labels: Indices, how: Learning) -> None:
        row, named = RowArrays.one(indices, values), RowArrays.one(labels, labels)
        self.learner.learn(row, named, None, None, how.n_threads, how.policy, None)
        if self.settings["memory_budget"]:
            self._warn_of_budget()

    def test_then_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int, how: Learning) -> BestLabels:
        answer = self.learner.test_then_learn(X, Y, top_k, how.n_threads, how.policy)
        self._warn_of_budget()
        return answer

    def _warn_of_budget(self) -> None:
        if self.learner.n_evicted_rows and not self.is_over_budget:
            self.is_over_budget = True
            warn_user(
                f"memory_budget of {self.settings['memory_budget']:,} bytes is used up: from now on the features of "
                "least weight are dropped to stay within it (see n_evicted_rows_); a larger budget keeps them"
            )

    def first_without_leaf(self, labels: NDArray[np.int32]) -> int:
        """The first of these labels that the tree has no leaf for; -1 if it has all."""
        return self.learner.first_without_leaf(labels)

    def can_learn(self, labels: NDArray[np.int32]) -> bool:
        return self.settings["policy"] != "none" or self.first_without_leaf(labels) < 0

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        indptr, labels, probabilities, _ = self._searched(X, query)
        # The width comes last: another thread may have learned new labels meanwhile.
        return csr_rows(probabilities, labels, indptr, (X.shape[0], self.n_labels))

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        return self._searched(X, query)[3]

    def _searched(self, X: sparse.csr_array, query: Query) -> tuple[Any, Any, Any, int]:
        return self.learner.search(X, query.top_k, *query.thresholds, query.n_threads)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self.learner.search_row(indices, values, *query.limits(self.n_labels))

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return self.learner.named(X, candidates, query.n_threads)

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawLabelPaths:
        ranked, _ = self.search_row(indices, values, Query(RANKED))
        steps = self.learner.explain(indices, values, column)
        tree = self.tree
        assert tree is not None  # the label has a leaf
        return RawLabelPaths([(tree, steps)], ranked)

    # --- copies ---------------------------------------------------------------------------------------------------

    def frozen(self, prune: float, n_threads: int) -> PLTModel:
        """A batch model with the tree and the weights as they stand."""
        blocks = self.learner.freeze(self.n_features, prune, n_threads)
        tree = LabelTree(blocks.pop("parent"), blocks.pop("label"), n_labels=self.n_labels)
        bias = float(blocks.pop("bias")[0])
        return PLTModel(
            [
                TrainedTree(
                    tree=tree,
                    blocks=blocks,
                    link=IDENTITY,
                    n_features=self.n_features,
                    normalize=self.settings["normalize"],
                    bias=bias if bias != np.float32(self.settings["bias"]) else self.settings["bias"],
                    is_multiclass=self.settings["is_multiclass"],
                )
            ]
        )

    def learner_arrays(self) -> dict[str, NDArray[Any]]:
        return self.learner.state(1)

    def state(self) -> State:
        values, arrays = super().state()
        return State({"is_over_budget": self.is_over_budget, **values}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        model = super().from_state(state)
        model.is_over_budget = check_flag("is_over_budget", state.values["is_over_budget"])
        if model.learner.n_evicted_rows and not model.settings["memory_budget"]:
            raise ValueError(f"{model.learner.n_evicted_rows} rows of weights were dropped without a memory budget")
        return model
