"""What every classifier shares: input checks, label encoding and the contract of sparse probability estimates."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from ramify import persist
from ramify.answers import Threshold, best_columns, keep_best, no_entries, one_row
from ramify.data.csr import csr_rows
from ramify.data.labels import LabelEncoding
from ramify.data.names import NameTable
from ramify.inputs import as_texts, canonical_rows, feature_index, plain_row, row_from_dict
from ramify.naming import check_name_table, feature_name_table, label_name_table
from ramify.progress import phase, shown
from ramify.validation import check_integer, check_jobs, check_number, number_of_threads

if TYPE_CHECKING:
    from ramify.explain import Explanation

# What a multi-label answer holds when nothing is asked for, and from where `predict` says yes.
WORTH_SHOWING = 0.01
MORE_LIKELY_THAN_NOT = 0.5

# Attributes with names for people; a model file holds them without the underscore.
NAMES = ("label_names", "feature_column_names")

_ONE_ROW_TYPES = (sparse.csr_array, sparse.csr_matrix)


@dataclass(frozen=True)
class TrainingData:
    """Checked input of `_fit`: X float32 csr, Y 0/1 csr, weights above zero or None, an integer seed."""

    X: sparse.csr_array
    Y: sparse.csr_array
    sample_weight: NDArray[np.float32] | None
    seed: int
    n_threads: int


@dataclass(frozen=True)
class Query:
    """What is asked: at most `top_k` labels a row (None: all), each at least the threshold; or just these columns."""

    top_k: int | None = None
    threshold: Threshold = 0.0
    labels: NDArray[np.int32] | None = None


class ExtremeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all classifiers: `fit` and the `predict` family, over three methods that a model supplies.

    A model supplies `_fit(data)`, `_sparse_probabilities(X, query)` and, to be saved, `_state()` with
    `_restore(metadata, arrays)`. It may supply `_predict_row` (one row, without the cost of a matrix),
    `_dense_probabilities` and `_check_parameters`. Design: section 1, the contract.
    """

    label_encoding_: LabelEncoding
    n_labels_: int
    is_multiclass_: bool
    n_features_in_: int
    label_names_: NameTable
    feature_column_names_: NameTable
    _feature_columns: tuple[LabelEncoding, Mapping[str, int] | None]

    # --- what a model supplies ------------------------------------------------------------------------------------

    def _fit(self, data: TrainingData) -> None:
        """Learn from checked data; set new attributes rather than writing into old ones, so that failure undoes all."""
        raise NotImplementedError

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        """Answer: float32, (n, n_labels_), sorted indices. With `query.labels`: just those columns, all of them."""
        raise NotImplementedError

    # Optional: _predict_row(indices, values, top_k, threshold) -> (columns, probabilities), best first.
    # Gets int32 and float32 arrays, sorted and finite; top_k may be None; the threshold is one number.
    _predict_row: Any = None

    # Optional: _explain_row(indices, values, column) -> [(LabelTree, [(node, probability, features, contributions)])].
    _explain_row: Any = None

    def _dense_probabilities(self, X: sparse.csr_array) -> NDArray[np.float32]:
        """All probabilities of a multi-class model; rows sum to one."""
        return self._sparse_probabilities(X, Query()).toarray()

    def _check_parameters(self) -> None:
        """Refuse bad parameters; called first in `fit`."""

    def _decision_threshold(self) -> Threshold:
        """From which probability on `predict` gives a label; a tuned model has its own thresholds."""
        return MORE_LIKELY_THAN_NOT

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

    def _check_training_data(self, X: Any, Y: Any, sample_weight: ArrayLike | None) -> TrainingData:
        self._check_parameters()
        check_jobs(getattr(self, "n_jobs", None))
        if Y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        texts = as_texts(X)
        if texts is not None:
            rows = self._learn_vocabulary(texts)
        else:
            rows = canonical_rows(self._validate(X, reset=True, ensure_min_samples=1))
        encoding = LabelEncoding()
        indicator = encoding.extend(Y)
        if indicator.shape[0] != rows.shape[0]:
            raise ValueError(
                f"X has {rows.shape[0]} rows, but Y has {indicator.shape[0]}: one entry of Y a row of X is needed"
            )
        if encoding.n_labels == 0:
            raise ValueError("Y has no labels: at least one row must have one")
        self.label_encoding_ = encoding
        self.n_labels_ = encoding.n_labels
        self.is_multiclass_ = encoding.is_multiclass
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, rows, dtype=np.float32, ensure_non_negative=True)
            if not weight.any():
                raise ValueError("sample_weight is zero for every row: at least one weight must be above zero")
            if not weight.all():  # a row of weight zero is a row left out
                kept = np.flatnonzero(weight)
                rows, indicator, weight = rows[kept], indicator[kept], weight[kept]
        self.seed_ = self._draw_seed()
        return TrainingData(rows, indicator, weight, self.seed_, self._n_threads())

    def _draw_seed(self) -> int:
        given = getattr(self, "random_state", None)
        generator = check_random_state(given)  # refuses what is no seed
        return int(given) if isinstance(given, int | np.integer) else int(generator.randint(2**31 - 1))

    def _learn_vocabulary(self, texts: list[str]) -> sparse.csr_array:
        from ramify.data.text import default_vectorizer

        given = getattr(self, "vectorizer", None)
        self.vectorizer_ = default_vectorizer() if given is None else clone(given)
        with phase("vectorising"):
            rows = canonical_rows(self.vectorizer_.fit_transform(texts))
        self.n_features_in_ = rows.shape[1]
        return rows

    def _validate(self, X: Any, *, reset: bool, ensure_min_samples: int) -> Any:
        # Overflow in the conversion becomes infinity, which is refused by name just after.
        with np.errstate(over="ignore", invalid="ignore"):
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=np.float32,
                ensure_min_samples=ensure_min_samples,
            )

    def _n_threads(self) -> int:
        return number_of_threads(getattr(self, "n_jobs", None))

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
        """The most probable class of each row, or for multi-label a csr_array of 0 and 1: the labels with p >= 0.5."""
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
            if hasattr(
                self, "feature_names_in_"
            ):  # the names have just been looked up: no warning that they are missing
                return self._labelled(self._answer(x, self._check_query(top_k, threshold, None)))[0]
        elif isinstance(x, str):
            x = [x]
        elif not sparse.issparse(x) and not isinstance(x, list) and np.ndim(x) == 1:
            x = np.asarray(x).reshape(1, -1)
        answer = self.predict_labels(x, top_k, threshold)
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
        differs = (truth != predicted).astype(np.int64).sum(axis=1) > 0
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
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

    def explain(self, x: Any, label: Any = None, *, top: int = 5) -> Explanation:
        """Why a label (the most probable one, if none is given) has its probability for the row x."""
        from ramify.explain import explain

        return explain(self, x, label, top=top)

    # --- checks of questions --------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "label_encoding_" in self.__dict__

    def _check_fitted(self) -> None:
        if "label_encoding_" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call 'fit' first, or load a model"
            )

    def _check_rows(self, X: Any) -> sparse.csr_array:
        self._check_fitted()
        vectorizer = getattr(self, "vectorizer_", None)
        texts = as_texts(X)
        if texts is not None:
            if vectorizer is None:
                raise ValueError(
                    f"X holds texts, but this {type(self).__name__} was trained on numbers: "
                    f"give it rows of {self.n_features_in_} features, or train it on texts"
                )
            return canonical_rows(vectorizer.transform(texts))
        if vectorizer is not None and isinstance(X, list) and not X:
            return no_entries(0, self.n_features_in_)
        return canonical_rows(self._validate(X, reset=False, ensure_min_samples=0))

    def _check_query(self, top_k: Any, threshold: Any, labels: Any) -> Query:
        if top_k is not None:
            top_k = min(check_integer("top_k", top_k, at_least=1), self.n_labels_)
        columns = None if labels is None else np.unique(self.label_encoding_.columns(labels))
        return Query(top_k, self._check_threshold(threshold), columns)

    def _check_threshold(self, threshold: Any) -> Threshold:
        if threshold is None:
            return 0.0
        if np.ndim(threshold) == 0:
            return check_number("threshold", threshold, at_least=0, at_most=1)
        per_label = np.ascontiguousarray(threshold, dtype=np.float32)
        if per_label.shape != (self.n_labels_,):
            raise ValueError(
                f"threshold must be one number or one a label ({self.n_labels_}), got shape {per_label.shape}"
            )
        if not (per_label >= 0).all():
            raise ValueError(
                f"threshold must not be negative or NaN, got {threshold[int(np.argmin(per_label >= 0))]!r}"
            )
        return per_label

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

    def _takes_plain_rows(self) -> bool:
        # A model with feature names warns about rows without: the long way knows how.
        return "label_encoding_" in self.__dict__ and "feature_names_in_" not in self.__dict__

    def _label_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: Any, threshold: Any
    ) -> list[tuple[Any, float]]:
        if type(top_k) is not int or top_k < 1:
            top_k = None if top_k is None else check_integer("top_k", top_k, at_least=1)
        threshold = 0.0 if threshold is None else check_number("threshold", threshold, at_least=0, at_most=1)
        columns, probabilities = self._predict_row(indices, values, top_k, threshold)
        return list(zip(self.label_encoding_.names(columns), probabilities.tolist(), strict=True))

    def _feature_index(self) -> Mapping[str, int] | None:
        if "_feature_columns" not in self.__dict__ or self._feature_columns[0] is not self.label_encoding_:
            self._feature_columns = (self.label_encoding_, feature_index(self))
        return self._feature_columns[1]

    # --- model files ----------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a directory; `ramify.load` brings it back."""
        persist.save(self, path)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a model needs beyond its parameters and the shared attributes: JSON values, and arrays."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved")

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `_state` gave; shared attributes are set already. Bad content raises ValueError."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded")

    def _fitted_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        encoding = self.label_encoding_
        fitted: dict[str, Any] = {
            "n_features": self.n_features_in_,
            "seed": self.seed_,
            "labels": {"kind": encoding.kind, "n_labels": encoding.n_labels, **encoding.stored_classes()},
        }
        if "feature_names_in_" in self.__dict__:
            fitted["feature_names"] = NameTable.from_names(self.feature_names_in_)
        fitted |= {name: self.__dict__[f"{name}_"] for name in NAMES if f"{name}_" in self.__dict__}
        if "vectorizer_" in self.__dict__:
            from ramify.data.text import vectorizer_state

            fitted["vectorizer"] = vectorizer_state(self.vectorizer_)
        metadata, arrays = self._state()
        return fitted, {"metadata": metadata, "arrays": arrays}

    def _restore_fitted(self, fitted: dict[str, Any], state: dict[str, Any]) -> None:
        self.n_features_in_ = check_integer("n_features", fitted["n_features"], at_least=0)
        self.seed_ = check_integer("seed", fitted["seed"], at_least=0)
        self.label_encoding_ = LabelEncoding.from_stored(**fitted["labels"])
        self.n_labels_ = self.label_encoding_.n_labels
        self.is_multiclass_ = self.label_encoding_.is_multiclass
        if "feature_names" in fitted:
            self.feature_names_in_ = np.array(fitted["feature_names"].tolist(), dtype=object)
        if "label_names" in fitted:
            self.label_names_ = check_name_table(fitted["label_names"], self.n_labels_, "label")
        if "feature_column_names" in fitted:
            self.feature_column_names_ = check_name_table(
                fitted["feature_column_names"], self.n_features_in_, "feature"
            )
        if "vectorizer" in fitted:
            from ramify.data.text import vectorizer_from_state

            self.vectorizer_ = vectorizer_from_state(*fitted["vectorizer"])
        self._restore(state["metadata"], state["arrays"])

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
