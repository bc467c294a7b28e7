"""Rows and labels that arrive piece by piece: columns may be added at any time, and a refused piece changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_array

from ramify.answers import no_entries, one_row
from ramify.data.text import default_stream_vectorizer
from ramify.input_checks import InputChecks
from ramify.inputs import as_texts, canonical_rows, row_from_dict
from ramify.validation import check_integer

# Features of one row may have any number below this.
MAX_FEATURES = 2**31 - 2


class StreamRows(InputChecks):
    """What `InputChecks` does, for a model that learns in pieces: rows of any width, labels that grow."""

    feature_columns_: dict[str, int]

    def _learn_vocabulary(self, texts: list[str]) -> sparse.csr_array:
        given = getattr(self, "vectorizer", None)
        self.vectorizer_ = default_stream_vectorizer() if given is None else clone(given)
        rows = canonical_rows(self.vectorizer_.fit_transform(texts))
        self.n_features_in_ = rows.shape[1]
        return rows

    def _stream_rows(self, X: Any) -> sparse.csr_array:
        """Rows as csr: texts by the vectorizer that is there, numbers as they are, whatever their width."""
        texts = as_texts(X)
        vectorizer = getattr(self, "vectorizer_", None)
        if texts is not None:
            if vectorizer is None:
                raise ValueError(f"X holds texts, but this {type(self).__name__} has learned from numbers so far")
            return canonical_rows(vectorizer.transform(texts))
        if isinstance(X, list) and not X:
            return no_entries(0, self.n_features_in_)
        with np.errstate(over="ignore", invalid="ignore"):
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

    def _stream_dict(self, x: Mapping[Any, Any]) -> sparse.csr_array:
        """One row given as feature -> value; names not met before get the next columns."""
        if any(isinstance(feature, str) for feature in x):
            known = dict(self.__dict__.get("feature_columns_", {}))
            if not known and "n_features_in_" in self.__dict__:
                named = self._feature_index()
                if named is None:
                    raise ValueError("x names its features, but the model has learned from numbered ones so far")
                known = dict(named)
            fresh = [name for name in x if isinstance(name, str) and name not in known]
            known.update(zip(fresh, range(len(known), len(known) + len(fresh)), strict=True))
            indices, values = row_from_dict(x, known, len(known))
            self.feature_columns_ = known
            return one_row(indices, values, len(known))
        if "feature_columns_" in self.__dict__:
            raise ValueError("x numbers its features, but the model has learned from named ones so far")
        indices, values = row_from_dict(x, None, MAX_FEATURES)
        width = int(indices[-1]) + 1 if len(indices) else 0
        return one_row(indices, values, max(width, getattr(self, "n_features_in_", 0)))

    def _stream_labels(self, Y: Any, n_rows: int) -> sparse.csr_array:
        """The 0/1 array of Y; new labels are added to the model's encoding, unless Y is refused."""
        before = self.label_encoding_.n_labels
        indicator = self.label_encoding_.extend(Y)
        if indicator.shape[0] != n_rows:
            self._forget_labels(before)
            raise ValueError(
                f"X has {n_rows} rows, but Y has {indicator.shape[0]}: one entry of Y a row of X is needed"
            )
        return indicator

    def _forget_labels(self, n_labels: int) -> None:
        self.label_encoding_.shrink(n_labels)

    def _widen(self, rows: sparse.csr_array, indicator: sparse.csr_array) -> None:
        self.n_features_in_ = max(self.n_features_in_, check_integer("n_features", rows.shape[1], at_most=MAX_FEATURES))
        self.n_labels_ = indicator.shape[1]

    def _check_rows(self, X: Any) -> sparse.csr_array:
        """Rows to be answered may have features that nobody has seen: they carry no weight."""
        self._check_fitted()
        return self._stream_rows(X)

    def _feature_index(self) -> Mapping[str, int] | None:
        grown = self.__dict__.get("feature_columns_")
        return super()._feature_index() if grown is None else grown
