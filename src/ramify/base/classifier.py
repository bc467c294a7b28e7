"""What every classifier shares: training that is all or nothing, and the contract of sparse probability estimates."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight

from ramify.base.answers import Threshold, best_columns, keep_best, no_entries, one_row
from ramify.base.fitted_state import FittedState
from ramify.base.input_checks import InputChecks, Query, TrainingData
from ramify.base.inputs import as_one_row, plain_row, row_from_dict
from ramify.base.naming import feature_name_table, label_name_table
from ramify.common.progress import shown
from ramify.common.validation import check_integer, check_number
from ramify.data.csr import csr_rows
from ramify.decide.decisions import check_thresholds

if TYPE_CHECKING:
    from ramify.explain.candidates import CandidateExplanation
    from ramify.explain.label_path import Explanation
    from ramify.explain.neighbours import MemoryExplanation
    from ramify.explain.row_path import RouteExplanation

__all__ = ["MORE_LIKELY_THAN_NOT", "WORTH_SHOWING", "ExtremeClassifier", "Query", "TrainingData"]

# What a multi-label answer holds when nothing is asked for, and from where `predict` says yes.
WORTH_SHOWING = 0.01
MORE_LIKELY_THAN_NOT = 0.5

_ONE_ROW_TYPES = (sparse.csr_array, sparse.csr_matrix)


class ExtremeClassifier(InputChecks, FittedState, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all classifiers: `fit` and the `predict` family, over three methods that a model supplies.

    A model supplies `_fit(data)`, `_sparse_probabilities(X, query)` and, to be saved, `_state()` with
    `_restore(metadata, arrays)`. It may supply `_predict_row` (one row, without the cost of a matrix),
    `_dense_probabilities` and `_check_parameters`. Design: section 1, the contract.
    """

    # --- what a model supplies ------------------------------------------------------------------------------------

    @abstractmethod
    def _fit(self, data: TrainingData) -> None:
        """Learn from checked data; set new attributes rather than writing into old ones, so that failure undoes all."""

    @abstractmethod
    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        """Answer: float32, (n, n_labels_), sorted indices. With `query.labels`: just those columns, all of them."""

    # Optional: _predict_row(indices, values, top_k, threshold) -> (columns, probabilities), best first.
    # Gets int32 and float32 arrays, sorted and finite; top_k may be None; the threshold is one number.
    _predict_row: Any = None

    # Optional: _explain_row(indices, values, column) -> [(LabelTree, [(node, probability, features, contributions)])].
    _explain_row: Any = None

    # Optional, instead, for trees over rows: _explain_routes(indices, values, column) -> [[RawStep]], a list a tree.
    _explain_routes: Any = None

    # Optional, instead, for a filter with a classifier behind it: see `ramify.explain.candidates`.
    _explain_candidates: Any = None

    # Optional, instead, for stored examples: see `ramify.explain.neighbours`.
    _explain_memories: Any = None

    def _dense_probabilities(self, X: sparse.csr_array) -> NDArray[np.float32]:
        """All probabilities of a multi-class model; rows sum to one."""
        return self._sparse_probabilities(X, Query()).toarray()

    def _decision_threshold(self) -> Threshold:
        """From which probability on `predict` gives a label: tuned thresholds, a half without, and for later labels."""
        tuned = self.__dict__.get("thresholds_")
        if tuned is None:
            return MORE_LIKELY_THAN_NOT
        later = np.full(self.n_labels_ - len(tuned), MORE_LIKELY_THAN_NOT, dtype=np.float32)
        return np.concatenate([tuned, later])

    # --- training -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Train on rows X with labels y (written small, as scikit-learn's tools give it by name).

        X: numpy array, any scipy sparse array, DataFrame, or texts (a list, Series or 1-D array of strings).
        y: a 0/1 array (sparse or not), a list of label collections, or a 1-D array of classes.
        """
        with shown(getattr(self, "verbose", False) is True), self._unchanged_on_failure():
            self._fit(self._check_training_data(X, y, sample_weight))
        return self

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        before = dict(self.__dict__)
        try:
            for name in before:
                if name.endswith("_") and not name.startswith("_"):
                    del self.__dict__[name]  # nothing of an earlier fit may shine through
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    # --- prediction -----------------------------------------------------------------------------------------------

    def predict_proba(
        self,
        X: Any,
        top_k: int | None = None,
        threshold: float | ArrayLike | None = None,
        labels: Iterable[Any] | None = None,
    ) -> Any:
        """Probabilities of the labels that matter, as a csr_array of shape (n, n_labels_).

        `top_k` and `threshold` (one number, or one a label) together: at most k labels, each at least the threshold.
        `labels`: exactly these labels. With none of them, a multi-label answer holds what is at least 0.01, and a
        multi-class answer is scikit-learn's dense array, rows summing to one.
        """
        rows = self._check_rows(X)
        if top_k is None and threshold is None and labels is None:
            if self.is_multiclass_:
                return self._dense_probabilities(rows) if rows.shape[0] else self._no_rows().toarray()
            threshold = WORTH_SHOWING
        return self._answer(rows, self._check_query(top_k, threshold, labels))

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, or for multi-label a csr_array of 0 and 1: the labels with p >= 0.5.

        A model with tuned thresholds (`thresholds_`) uses those.
        """
        rows = self._check_rows(X)
        if self.is_multiclass_:
            return self.classes_[best_columns(self._answer(rows, Query(top_k=1)))]
        answer = self._answer(rows, Query(threshold=self._decision_threshold()))
        return csr_rows(np.ones(answer.nnz, dtype=np.int64), answer.indices, answer.indptr, answer.shape)

    def predict_labels(
        self, X: Any, top_k: int | None = 5, threshold: float | ArrayLike | None = None
    ) -> list[list[tuple[Any, float]]]:
        """Per row, (label, probability) pairs, best first."""
        if self._predict_row is not None and type(X) in _ONE_ROW_TYPES and X.shape[0] == 1:
            row = plain_row(X, self.n_features_in_) if self._takes_plain_rows() else None
            if row is not None and (threshold is None or isinstance(threshold, float)):
                return [self._label_row(*row, top_k, threshold)]
        rows = self._check_rows(X)
        return self._labelled(self._answer(rows, self._check_query(top_k, threshold, None)))

    def predict_one(self, x: Any, top_k: int | None = 5, threshold: float | None = None) -> list[tuple[Any, float]]:
        """(label, probability) pairs of one row, best first; x is a dict feature -> value, a one-row array or a text.

        Features of a dict are column numbers, or names where the model knows them; unknown ones are left out.
        """
        if isinstance(x, Mapping):
            self._check_fitted()
            indices, values = row_from_dict(x, self._feature_index(), self.n_features_in_)
            if self._predict_row is not None:
                return self._label_row(indices, values, top_k, threshold)
            x = one_row(indices, values, self.n_features_in_)
            if hasattr(self, "feature_names_in_"):  # looked up just now: no warning that they are missing
                return self._labelled(self._answer(x, self._check_query(top_k, threshold, None)))[0]
        answer = self.predict_labels(as_one_row(x), top_k, threshold)
        if len(answer) != 1:
            raise ValueError(f"predict_one takes one row, got {len(answer)}; use predict_labels for several")
        return answer[0]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of rows whose class, or whose whole set of labels, is predicted exactly."""
        predicted = self.predict(X)
        if self.is_multiclass_:
            predicted = self.label_encoding_.encode(predicted)[0]
        truth, has_unknown = self.label_encoding_.encode(y)
        if truth.shape[0] != predicted.shape[0]:
            raise ValueError(f"X has {predicted.shape[0]} rows, but Y has {truth.shape[0]}")
        if truth.shape[0] == 0:
            raise ValueError("score needs at least one row, got none")
        differs = (truth != predicted).astype(np.int64).sum(axis=1) > 0
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, predicted, dtype=np.float64)
            if not weights.sum() > 0:
                raise ValueError("sample_weight is zero for every row: at least one weight must be above zero")
        return float(np.average(~(differs | has_unknown), weights=weights))

    @property
    def classes_(self) -> NDArray[Any]:
        """The label of each column: for a 0/1 array the column numbers."""
        encoding = self.__dict__.get("label_encoding_")
        if encoding is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no classes_")
        return encoding.classes  # type: ignore[no-any-return]

    # --- for people -----------------------------------------------------------------------------------------------

    def set_names(
        self, *, labels: Mapping[Any, str] | Sequence[str] | None = None, features: Sequence[str] | None = None
    ) -> Any:
        """Say what labels (in column order, or as label -> name) and feature columns are called.

        Names are shown by explanations and the command line, and saved with the model; a new `fit` forgets them.
        """
        self._check_fitted()
        label_names = None if labels is None else label_name_table(labels, self.classes_)
        feature_names = None if features is None else feature_name_table(features, self.n_features_in_)
        if label_names is not None:
            self.label_names_ = label_names
        if feature_names is not None:
            self.feature_column_names_ = feature_names
            self.__dict__.pop("_feature_columns", None)
        return self

    def set_thresholds(self, thresholds: float | ArrayLike | None) -> Any:
        """Say from which probability on `predict` gives a label: one number, or one a label; None: from 0.5 on.

        `ramify.decide` tunes them. They are saved with the model; a new `fit` forgets them.
        """
        self._check_fitted()
        if self.is_multiclass_:
            raise ValueError("with one class a row there is nothing to decide: `predict` gives the most probable one")
        if thresholds is None:
            self.__dict__.pop("thresholds_", None)
            return self
        self.thresholds_ = np.broadcast_to(check_thresholds(thresholds, self.n_labels_), self.n_labels_).copy()
        return self

    def explain(
        self, x: Any, label: Any = None, *, top: int = 5
    ) -> Explanation | RouteExplanation | CandidateExplanation | MemoryExplanation:
        """Why a label (the most probable one, if none is given) has its probability for the row x."""
        from ramify.explain.label_path import explain

        return explain(self, x, label, top=top)

    # --- answers --------------------------------------------------------------------------------------------------

    def _no_rows(self) -> sparse.csr_array:
        return no_entries(0, self.n_labels_)

    def _answer(self, rows: sparse.csr_array, query: Query) -> sparse.csr_array:
        if rows.shape[0] == 0:
            return self._no_rows()
        if query.labels is None:
            return self._sparse_probabilities(rows, query)
        answer = self._sparse_probabilities(rows, Query(labels=query.labels))
        return keep_best(answer, query.top_k, query.threshold)

    def _labelled(self, answer: sparse.csr_array) -> list[list[tuple[Any, float]]]:
        row_of = np.repeat(np.arange(answer.shape[0]), np.diff(answer.indptr))
        order = np.lexsort((answer.indices, -answer.data, row_of))
        labels = self.label_encoding_.names(answer.indices[order])
        pairs = list(zip(labels, answer.data[order].tolist(), strict=True))
        bounds = answer.indptr.tolist()
        return [pairs[start:stop] for start, stop in itertools.pairwise(bounds)]

    def _label_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: Any, threshold: Any
    ) -> list[tuple[Any, float]]:
        if top_k is not None:
            # Before the first label of a stream there is none to be asked for, but that is no mistake.
            top_k = top_k if type(top_k) is int and top_k >= 1 else check_integer("top_k", top_k, at_least=1)
            top_k = min(top_k, max(self.n_labels_, 1))
        threshold = 0.0 if threshold is None else check_number("threshold", threshold, at_least=0, at_most=1)
        columns, probabilities = self._predict_row(indices, values, top_k, threshold)
        return list(zip(self.label_encoding_.names(columns), probabilities.tolist(), strict=True))

    # --- scikit-learn ---------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = getattr(self, "vectorizer", None) is not None
        tags.classifier_tags.multi_label = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_feature_columns", None)
        return state
