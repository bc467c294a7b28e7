"""Rows and labels that arrive piece by piece: columns may be added at any time, and a refused piece changes nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import _check_feature_names, _get_feature_names, check_array

from ramify.base.answers import no_entries, one_row
from ramify.base.input_checks import InputChecks, check_as_many_rows, weighted_rows
from ramify.base.inputs import as_texts, canonical_rows, clearer_refusal, holds_no_rows, row_from_dict
from ramify.common.validation import check_integer
from ramify.data.labels import LabelEncoding
from ramify.data.names import NameTable
from ramify.data.text import default_stream_vectorizer

# Features of one row may have any number below this.
MAX_FEATURES = 2**31 - 2

# Threads that learn at the same time must not give two labels, or two features, the same column.
GROWING = threading.RLock()

Piece = tuple[sparse.csr_array, sparse.csr_array, NDArray[np.float32] | None]


@dataclass(frozen=True)
class DictRow:
    """One row given as feature -> value."""

    x: Mapping[Any, Any]


class StreamRows(InputChecks):
    """What `InputChecks` does, for a model that learns in pieces: rows of any width, labels that grow."""

    feature_columns_: dict[str, int]
    feature_names_in_: NDArray[np.object_]

    # --- learning -------------------------------------------------------------------------------------------------

    def _first_piece(self, X: Any, y: Any, classes: ArrayLike | None, sample_weight: ArrayLike | None) -> Piece:
        """Rows and labels that a model begins with; there may be no label among them yet."""
        if isinstance(X, DictRow):
            rows, fresh = self._stream_dict(X.x)
            self.n_features_in_ = rows.shape[1]
            if fresh is not None:
                self.feature_columns_ = fresh
        else:
            rows = self._training_rows(X)
        encoding = LabelEncoding()
        if classes is not None:
            encoding.name_in_advance(y, classes)
        self.label_encoding_ = encoding
        indicator = self._stream_labels(y, rows.shape[0])
        self.n_labels_ = encoding.n_labels
        self.is_multiclass_ = encoding.is_multiclass
        return weighted_rows(rows, indicator, sample_weight)

    def _next_piece(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Piece:
        """Rows and labels for a model that knows some; what they bring is known from now on, unless it is refused."""
        with self.label_encoding_.unchanged_on_failure():
            rows, fresh = self._stream_dict(X.x) if isinstance(X, DictRow) else (self._stream_rows(X), None)
            check_integer("the number of features", rows.shape[1], at_most=MAX_FEATURES)
            indicator = self._stream_labels(y, rows.shape[0])
            piece = weighted_rows(rows, indicator, sample_weight)
            self._check_piece(piece[1])
        if fresh is not None:
            if "feature_columns_" not in self.__dict__:
                self.feature_columns_ = dict(self._feature_index() or {})
            self.feature_columns_.update(fresh)
        elif "feature_names_in_" in self.__dict__ and rows.shape[1] > self.n_features_in_:
            names = None if isinstance(X, DictRow) else _get_feature_names(X)
            self.feature_names_in_ = self.feature_names_in_ if names is None else names
        self._widen(rows.shape[1], indicator.shape[1])
        return piece

    def _check_piece(self, indicator: sparse.csr_array) -> None:
        """Refuse labels that the model cannot learn."""

    def _widen(self, n_features: int, n_labels: int) -> None:
        self.n_features_in_ = max(self.n_features_in_, n_features)
        self.n_labels_ = max(self.n_labels_, n_labels)
        for name, size in (("label_names_", self.n_labels_), ("feature_column_names_", self.n_features_in_)):
            table = self.__dict__.get(name)
            if table is not None:
                self.__dict__[name] = table.widened(size)

    def _default_vectorizer(self) -> Any:
        return default_stream_vectorizer()

    def _stream_rows(self, X: Any) -> sparse.csr_array:
        """Rows as csr: texts by the vectorizer that is there, numbers as they are, whatever their width."""
        texts = as_texts(X)
        vectorizer = getattr(self, "vectorizer_", None)
        if texts is not None:
            if vectorizer is None:
                raise ValueError(f"X holds texts, but this {type(self).__name__} was trained on numbers so far")
            return canonical_rows(vectorizer.transform(texts))
        if holds_no_rows(X):
            return no_entries(0, self.n_features_in_)
        self._check_names(X)
        with np.errstate(over="ignore", invalid="ignore"), clearer_refusal(X):
            checked = check_array(
                X,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=np.float32,
                ensure_min_samples=0,
                ensure_min_features=0,
                estimator=self,
                input_name="X",
            )
        return canonical_rows(checked)

    def _check_names(self, X: Any) -> None:
        """Columns that have names must be those known, in their order; new ones may follow."""
        known, names = self.__dict__.get("feature_names_in_"), _get_feature_names(X)
        if known is None or names is None or not np.array_equal(names[: len(known)], known):
            _check_feature_names(self, X, reset=False)

    def _stream_dict(self, x: Mapping[Any, Any]) -> tuple[sparse.csr_array, dict[str, int] | None]:
        """One row given as feature -> value, and the columns of names not met before (None: it names none)."""
        n_features = self.__dict__.get("n_features_in_", 0)
        if any(isinstance(feature, str) for feature in x):
            known = self._feature_index() if "label_encoding_" in self.__dict__ else {}
            if known is None:
                if n_features:
                    raise ValueError("x names its features, but the model has learned from numbered ones so far")
                known = {}
            fresh: dict[str, int] = {}
            columns: dict[str, int] = {}
            for name in x:
                if isinstance(name, str):
                    if name not in known:
                        fresh[name] = max(n_features, len(known)) + len(fresh)
                    columns[name] = fresh[name] if name in fresh else known[name]
            width = max(n_features, *(column + 1 for column in columns.values()))
            return one_row(*row_from_dict(x, columns, width), width), fresh
        if "feature_columns_" in self.__dict__ and x:
            raise ValueError("x numbers its features, but the model has learned from named ones so far")
        too_large = [feature for feature in x if isinstance(feature, int | np.integer) and feature >= MAX_FEATURES]
        if too_large:
            raise ValueError(f"feature numbers must be below {MAX_FEATURES}, got {too_large[0]}")
        indices, values = row_from_dict(x, None, MAX_FEATURES)
        width = max(int(indices[-1]) + 1 if len(indices) else 0, n_features)
        return one_row(indices, values, width), None

    def _one_label_row(self, y: Any) -> Any:
        """The labels of one row: a class, a collection of labels, or, where Y are 0/1 arrays, such a row."""
        encoding = self.__dict__.get("label_encoding_")
        is_indicator = encoding is not None and encoding.kind == "indicator"
        if sparse.issparse(y):
            given: Any = y
            return given if given.ndim == 2 else given.reshape((1, -1))
        if isinstance(y, list | tuple | np.ndarray) and np.ndim(y) == 1:
            row = np.asarray(y if len(y) else np.zeros(0))
            if is_indicator and row.dtype.kind in "biuf":
                return sparse.csr_array(row[None])
            y = tuple(y.tolist() if isinstance(y, np.ndarray) else y)  # a list of 0 and 1 could be taken for such a row
        return [y]

    def _stream_labels(self, Y: Any, n_rows: int) -> sparse.csr_array:
        """The 0/1 array of Y; new labels are added to the model's encoding."""
        indicator = self.label_encoding_.extend(Y)
        check_as_many_rows(n_rows, indicator)
        return indicator

    # --- questions ------------------------------------------------------------------------------------------------

    def _check_rows(self, X: Any) -> sparse.csr_array:
        """Rows to be answered may have features that nobody has seen: they are left out, as in a dict."""
        self._check_fitted()
        rows = self._stream_rows(X)
        return rows if rows.shape[1] <= self.n_features_in_ else sparse.csr_array(rows[:, : self.n_features_in_])

    def _feature_index(self) -> Mapping[str, int] | None:
        grown = self.__dict__.get("feature_columns_")
        return super()._feature_index() if grown is None else grown

    # --- model files ----------------------------------------------------------------------------------------------

    def _stored_feature_columns(self) -> dict[str, Any]:
        """Names of features that came one by one, for a model file."""
        grown = self.__dict__.get("feature_columns_")
        if grown is None:
            return {}
        return {
            "names": NameTable.from_names(list(grown)),
            "columns": np.fromiter(grown.values(), np.int64, len(grown)),
        }

    def _restore_feature_columns(self, stored: dict[str, Any]) -> None:
        if not stored:
            return
        names, columns = stored["names"].tolist(), stored["columns"]
        known = dict(zip(names, columns.tolist(), strict=True))
        is_sound = columns.dtype == np.int64 and len(known) == len(names) == len(set(known.values()))
        if not is_sound or not all(0 <= column < self.n_features_in_ for column in known.values()):
            raise ValueError("the names of features do not fit")
        self.feature_columns_ = known

    def _feature_name_table(self) -> NameTable | None:
        """Those names by column, as a model that learns no more has them."""
        grown = self.__dict__.get("feature_columns_")
        if grown is None:
            return None
        names = [""] * self.n_features_in_
        for name, column in grown.items():
            names[column] = name
        return NameTable.from_names(names)
