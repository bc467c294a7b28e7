"""What a trained spectral tree is asked: candidates, answers, explanations, and what a file holds of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ramify import _core
from ramify.base.answers import same_columns
from ramify.base.classifier import ExtremeClassifier, Query
from ramify.common.validation import check_integer
from ramify.data.csr import csr_parts, csr_rows
from ramify.explain.row_path import RawStep
from ramify.models.spectral import BaseClassifier, CandidateTree, scaled_rows
from ramify.models.spectral.candidate_scores import complete, scores_behind
from ramify.models.spectral.parameters import MOST_WAYS


class SpectralAnswers(ExtremeClassifier):
    """A candidate tree with a classifier behind it, after training: `SpectralTreeClassifier` adds how it is trained."""

    filter_: CandidateTree
    base_: BaseClassifier
    scorer_: Any  # the classifier given as `base`, trained; None: the arrays of `base_` answer
    training_report_: dict[str, Any]

    base: Any
    ways: int
    min_path: float
    scaling: str | None

    # --- the filter -----------------------------------------------------------------------------------------------

    def candidates(self, X: Any) -> sparse.csr_array:
        """The labels that the tree finds worth looking at, with their share of the training rows where the row goes.

        What `ramify.metrics.filter_recall` takes.
        """
        return self._candidates(scaled_rows(self._check_rows(X), self.scaling))

    def _candidates(self, rows: sparse.csr_array) -> sparse.csr_array:
        indptr, indices, data, _ = self._core_model.candidates(
            *csr_parts(rows), self._checked_ways(), self._n_threads()
        )
        return csr_rows(data, indices, indptr, (rows.shape[0], self.n_labels_))

    def _leaf_shares(self, X: sparse.csr_array) -> sparse.csr_array:
        """How much of each row goes to which leaf: (rows, nodes)."""
        begin, leaf, share = self._core_model.fractions(*csr_parts(X), self.min_path, self._n_threads())
        shares = csr_rows(share, leaf, begin, (X.shape[0], len(self.filter_.arrays["child"])))
        shares.sort_indices()
        return shares

    def _checked_ways(self) -> int:
        """`ways` may be changed on a trained model, so it is checked at each question."""
        return check_integer("ways", self.ways, at_least=1, at_most=MOST_WAYS)

    def _normalizes(self) -> bool:
        return self.scaling == "unit"

    def _n_slots(self) -> int:
        return len(self._tree_arrays["label"])

    @cached_property
    def _tree_arrays(self) -> dict[str, NDArray[Any]]:
        return self.filter_.core_arrays()

    @cached_property
    def _core_model(self) -> _core.SpectralModel:
        return self.base_.core(
            self._tree_arrays, self.n_labels_, self.filter_.n_candidates, self._normalizes(), self.is_multiclass_
        )

    def _forget_core(self) -> None:
        for name in ("_tree_arrays", "_core_model"):
            self.__dict__.pop(name, None)

    # --- answers --------------------------------------------------------------------------------------------------

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        rows = scaled_rows(X, self.scaling)
        if self.scorer_ is not None:
            return complete(scores_behind(self, X, self._candidates(rows)), query)
        core, threads = self._core_model, self._n_threads()
        if query.labels is not None:
            labels = query.labels.astype(np.int32, copy=False)
            return same_columns(
                core.named(*csr_parts(rows), labels, self._checked_ways(), threads), labels, self.n_labels_
            )
        indptr, indices, data, _ = core.predict(
            *csr_parts(rows), query.top_k, *query.thresholds, self._checked_ways(), threads
        )
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels_))

    def _n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """What an answer costs: nodes on the way and candidates."""
        rows = scaled_rows(X, self.scaling)
        core, threads = self._core_model, self._n_threads()
        return core.predict(*csr_parts(rows), query.top_k, *query.thresholds, self._checked_ways(), threads)[3]

    def _predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int | None, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if self.scorer_ is None and self.scaling != "hellinger":
            most = self.n_labels_ if top_k is None else top_k
            return self._core_model.predict_row(indices, values, most, threshold, self._checked_ways())
        X = csr_rows(values, indices, np.array([0, len(indices)]), (1, self.n_features_in_))
        answer = self._sparse_probabilities(X, Query(top_k, threshold))
        order = np.lexsort((answer.indices, -answer.data))
        return answer.indices[order], answer.data[order]

    def _explain_candidates(self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int) -> Any:
        """The row's way with the label's share on it, its candidates with probabilities, the score's parts."""
        X = csr_rows(values, indices, np.array([0, len(indices)]), (1, self.n_features_in_))
        row = scaled_rows(X, self.scaling)
        share = self.filter_.label_share(column)
        mass = self.filter_.arrays["mass"]
        route: list[RawStep] = [
            (node, float(mass[node]), float(share[node]), score, features, added)
            for node, score, features, added in self._core_model.route(row.indices, row.data)
        ]
        labels = self._candidates(row).indices
        probabilities = self._sparse_probabilities(X, Query(labels=labels)).data
        parts = None
        if self.scorer_ is None:
            parts = self._core_model.candidate_parts(row.indices, row.data, column, self._checked_ways())
        return route, labels, probabilities, parts, self._checked_ways()

    # --- model files ----------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        self._check_parameters()  # what could not be loaded again is not saved
        base = self.base_
        metadata: dict[str, Any] = {
            "n_candidates": self.filter_.n_candidates,
            "n_updates": self.n_updates_,
            "space_rank": len(self.filter_.arrays["space"]) // max(self.n_features_in_, 1),
            "report": self.training_report_,
            "base": {"weights": base.weights, "rank": base.rank, "has_slot_weights": base.has_slot_weights},
        }
        if self.scorer_ is not None:
            fitted, state = self.scorer_._fitted_state()
            metadata["scorer"] = {"fitted": fitted, "state": state}
        arrays = {f"tree/{name}": array for name, array in self.filter_.state().items()}
        arrays |= {f"base/{name}": array for name, array in base.arrays.items()}
        return metadata, arrays

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._check_parameters()
        tree, base = (
            {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(part)}
            for part in ("tree/", "base/")
        )
        space = tree.setdefault("space", np.zeros(0, dtype=np.float32))  # files of before there were any
        if len(space) != self.n_features_in_ * int(metadata.get("space_rank", 0)):
            raise ValueError("the space that the tree was grown in is missing or has a wrong length")
        self.filter_ = CandidateTree(tree, int(metadata["n_candidates"]), self.n_labels_)
        self.filter_.check()
        self.base_ = BaseClassifier(base, **metadata["base"], n_features=self.n_features_in_)
        self.n_updates_ = int(metadata["n_updates"])
        self.training_report_ = dict(metadata["report"])
        self.scorer_ = None
        if "scorer" in metadata:
            if self.base is None:
                raise ValueError("the model has a classifier behind its candidates, but its parameters name none")
            self.scorer_ = clone(self.base)
            self.scorer_._restore_fitted(metadata["scorer"]["fitted"], metadata["scorer"]["state"])
            if (self.scorer_.n_labels_, self.scorer_.n_features_in_) != (self.n_labels_, self.n_features_in_):
                raise ValueError("the classifier behind the candidates has other labels or features")
        _ = self._core_model  # checks the arrays now, not at the first question

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_tree_arrays", "_core_model"):
            state.pop(name, None)
        return state
