"""Labels in the one form that the library works with: a sparse 0/1 array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def label_indicator(Y: Any) -> sp.csr_array:
    """A float32 csr_array of ones, a column per label, from a sparse or dense indicator or a 1-D array of classes."""
    if not sp.issparse(Y):
        Y = np.asarray(Y)
        if Y.ndim == 1:
            if Y.dtype.kind not in "iu" or len(Y) == 0 or Y.min() < 0:
                raise ValueError("a 1-D Y must be a non-empty array of class numbers of at least 0")
            shape = (len(Y), int(Y.max()) + 1)
            return sp.csr_array((np.ones(len(Y), np.float32), Y, np.arange(len(Y) + 1)), shape=shape)
    indicator = sp.csr_array(Y, dtype=np.float32, copy=True)
    indicator.sum_duplicates()
    indicator.eliminate_zeros()
    indicator.data[:] = 1.0
    return indicator
