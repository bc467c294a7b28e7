"""The quality of a candidate filter, before a classifier ranks the candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ramify.data.csr import check_csr
from ramify.metrics._inputs import as_indicator


def filter_recall(Y_true: Any, candidates: Any) -> float:
    """Return the fraction of all true labels that are among their row's candidates.

    This bounds the recall of any classifier that ranks the candidates. `candidates` is a sparse array of shape (n, m);
    each stored entry is a candidate. Without any true label the result is nan.
    Paper: Mineiro and Karampatziakis 2015, "A Hierarchical Spectral Method for Extreme Classification", section 3.3
    and the tables ("tree recall").

    >>> candidates = sparse.csr_array(np.array([[0.5, 0.2, 0], [0, 0.1, 0]]))
    >>> filter_recall([[1, 0, 1], [0, 1, 0]], candidates)
    0.6666666666666666
    """
    given: Any = candidates
    if not sparse.issparse(candidates):
        raise ValueError(f"candidates must be a sparse array of the candidate labels, got {type(candidates).__name__}")
    named = check_csr("candidates", given, is_copied=True)
    truth = as_indicator(Y_true, "Y_true", n_labels=named.shape[1])
    if truth.shape != named.shape:
        raise ValueError(f"Y_true has shape {truth.shape}, but candidates has shape {named.shape}")
    if not truth.nnz:
        return float("nan")
    mask = sparse.csr_array((np.ones(named.nnz, dtype=np.int64), named.indices, named.indptr), shape=named.shape)
    mask.sum_duplicates()
    mask.data[:] = 1
    hits: Any = truth.astype(np.int64) * mask
    return float(hits.sum() / truth.nnz)
