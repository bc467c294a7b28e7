"""Feature hashing for numbers: the columns of X are folded into fewer, which bounds the number of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from ramify.common.validation import check_integer
from ramify.data.csr import checked_rows

_ODD = np.uint64(0x9E3779B97F4A7C15)


class FeatureHashing(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Folds the columns of X into 2**n_bits by a hash, with random signs so that inner products keep their mean.

    A step of a scikit-learn pipeline before any classifier. It has nothing to learn: rows may come with any number of
    columns. Texts have no use for it, since their vectorizers hash words directly.
    Papers: Weinberger et al. 2009; Mineiro and Karampatziakis 2015, section 5.3, hash the features of ODP to 15 bits.

    Parameters
    ----------
    n_bits : int
        Binary logarithm of the number of columns.
    signed : bool
        Half of the columns are added with a minus, so that collisions cancel on average.

    >>> X = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], dtype=np.float32))
    >>> FeatureHashing(n_bits=4).transform(X).shape
    (2, 16)
    """

    def __init__(self, n_bits: int = 15, *, signed: bool = True) -> None:
        self.n_bits = n_bits
        self.signed = signed

    def fit(self, X: Any, y: Any = None) -> FeatureHashing:
        """Check the parameters; there is nothing to learn."""
        check_integer("n_bits", self.n_bits, at_least=1, at_most=30)
        return self

    def transform(self, X: Any) -> sparse.csr_array:
        """The rows with their hashed columns: values that meet in a column are added."""
        self.fit(X)
        rows = checked_rows(X)
        column, sign = self._places(np.arange(rows.shape[1], dtype=np.uint64))
        data = rows.data * sign[rows.indices] if self.signed else rows.data.copy()
        shape = rows.shape[0], 2**self.n_bits
        hashed = sparse.csr_array((data, column[rows.indices], rows.indptr.copy()), shape=shape)
        hashed.sum_duplicates()  # in place, so that the caller's indptr must not be shared
        return hashed

    def _places(self, feature: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        z = (feature + np.uint64(1)) * _ODD
        z ^= z >> np.uint64(29)
        z *= np.uint64(0xBF58476D1CE4E5B9)
        z ^= z >> np.uint64(32)
        column = (z & np.uint64(2**self.n_bits - 1)).astype(np.int32)
        return column, np.where(z >> np.uint64(63), np.float32(-1), np.float32(1))

    def __sklearn_is_fitted__(self) -> bool:
        return True
