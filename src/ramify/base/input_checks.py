"""What a classifier makes of what it is given: rows as csr, labels as columns, and what may be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from ramify.base.answers import Threshold, no_entries
from ramify.base.inputs import as_texts, canonical_rows, clearer_refusal, feature_index, holds_no_rows
from ramify.common.progress import phase
from ramify.common.validation import check_integer, check_jobs, check_number, number_of_threads
from ramify.data.labels import LabelEncoding


@dataclass(frozen=True)
class TrainingData:
    """Checked input of `_fit`: X float32 csr, Y 0/1 csr, weights above zero or None, an integer seed."""

    X: sparse.csr_array
    Y: sparse.csr_array
    sample_weight: NDArray[np.float32] | None
    seed: int
    n_threads: int

    def part(self, rows: NDArray[np.integer]) -> TrainingData:
        """Just these rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], sample_weight=weight)


@dataclass(frozen=True)
class Query:
    """What is asked: at most `top_k` labels a row (None: all), each at least the threshold; or just these columns."""

    top_k: int | None = None
    threshold: Threshold = 0.0
    labels: NDArray[np.int32] | None = None

    @property
    def thresholds(self) -> tuple[float, NDArray[np.float32] | None]:
        """The threshold as the core takes it: one number for all labels, and one a label if they differ."""
        if isinstance(self.threshold, np.ndarray):
            return 0.0, self.threshold
        return self.threshold, None


class InputChecks:
    """Refuses bad input before anything is learned or answered, and brings the rest into one form.

    `_check_training_data` is put together from steps (`_training_rows`, `_learn_labels`, ...) that a model which
    learns in pieces takes one by one, its labels growing with an encoding that it keeps.
    """

    label_encoding_: LabelEncoding
    n_labels_: int
    is_multiclass_: bool
    n_features_in_: int
    _feature_columns: tuple[LabelEncoding, Mapping[str, int] | None]

    # --- training data --------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Refuse bad parameters; called first in `fit`."""

    def _check_training_data(
        self, X: Any, Y: Any, sample_weight: ArrayLike | None, classes: ArrayLike | None = None
    ) -> TrainingData:
        self._check_parameters()
        check_jobs(getattr(self, "n_jobs", None))
        if Y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None")
        rows = self._training_rows(X)
        encoding = LabelEncoding()
        if classes is not None:
            encoding.name_in_advance(Y, classes)
        indicator = self._learn_labels(encoding, Y, rows.shape[0])
        rows, indicator, weight = weighted_rows(rows, indicator, sample_weight)
        self.seed_ = self._draw_seed()
        return TrainingData(rows, indicator, weight, self.seed_, self._n_threads())

    def _training_rows(self, X: Any) -> sparse.csr_array:
        """Rows of numbers, or of texts by a vocabulary learned from them; sets what later rows must look like."""
        texts = as_texts(X)
        if texts is not None:
            return self._learn_vocabulary(texts)
        return canonical_rows(self._validate(X, reset=True, ensure_min_samples=1))

    def _default_vectorizer(self) -> Any:
        """What reads texts if the user has not said."""
        from ramify.data.text import default_vectorizer

        return default_vectorizer()

    def _learn_vocabulary(self, texts: list[str]) -> sparse.csr_array:
        given = getattr(self, "vectorizer", None)
        try:
            self.vectorizer_ = self._default_vectorizer() if given is None else clone(given)
        except TypeError as error:
            raise ValueError(
                f"vectorizer must be None, a TfidfVectorizer(), a HashingVectorizer() or alike, got {given!r}"
            ) from error
        with phase("vectorising"):
            rows = canonical_rows(self.vectorizer_.fit_transform(texts))
        self.n_features_in_ = rows.shape[1]
        return rows

    def _learn_labels(self, encoding: LabelEncoding, Y: Any, n_rows: int) -> sparse.csr_array:
        """The 0/1 array of Y, one row a row of X; new labels are added to the encoding, which becomes the model's."""
        indicator = encoding.extend(Y)
        check_as_many_rows(n_rows, indicator)
        if encoding.n_labels == 0:
            raise ValueError("Y has no labels: at least one row must have one")
        self.label_encoding_ = encoding
        self.n_labels_ = encoding.n_labels
        self.is_multiclass_ = encoding.is_multiclass
        return indicator

    def _draw_seed(self) -> int:
        given = getattr(self, "random_state", None)
        if isinstance(given, int | np.integer) and not 0 <= given < 2**32:
            raise ValueError(f"random_state must be at least 0 and below 2**32, got {given}")
        generator = check_random_state(given)  # refuses what is no seed
        return int(given) if isinstance(given, int | np.integer) else int(generator.randint(2**31 - 1))

    def _n_threads(self) -> int:
        return number_of_threads(getattr(self, "n_jobs", None))

    def _validate(self, X: Any, *, reset: bool, ensure_min_samples: int) -> Any:
        # Overflow in the conversion becomes infinity, which is refused by name just after.
        with np.errstate(over="ignore", invalid="ignore"), clearer_refusal(X):
            return validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=np.float32,
                ensure_min_samples=ensure_min_samples,
            )

    # --- questions ------------------------------------------------------------------------------------------------

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
        if vectorizer is not None and holds_no_rows(X):
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

    def _takes_plain_rows(self) -> bool:
        # A model with feature names warns about rows without: the long way knows how.
        return "label_encoding_" in self.__dict__ and "feature_names_in_" not in self.__dict__

    def _feature_index(self) -> Mapping[str, int] | None:
        if "_feature_columns" not in self.__dict__ or self._feature_columns[0] is not self.label_encoding_:
            self._feature_columns = (self.label_encoding_, feature_index(self))
        return self._feature_columns[1]


def check_as_many_rows(n_rows: int, indicator: sparse.csr_array) -> None:
    """Refuse labels that are not those of the rows."""
    if indicator.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows} rows, but Y has {indicator.shape[0]}: one entry of Y a row of X is needed")


def weighted_rows(
    rows: sparse.csr_array, indicator: sparse.csr_array, sample_weight: ArrayLike | None
) -> tuple[sparse.csr_array, sparse.csr_array, NDArray[np.float32] | None]:
    """A row of weight zero is a row left out."""
    if sample_weight is None:
        return rows, indicator, None
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float32, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight is zero for every row: at least one weight must be above zero")
    if weight.all():
        return rows, indicator, weight
    kept = np.flatnonzero(weight)
    return rows[kept], indicator[kept], weight[kept]
