"""How well a filter of candidates does, before anything decides among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ramify.metrics._inputs import as_indicator


def filter_recall(Y_true: Any, candidates: Any) -> float:
    """Share of all true labels of all rows that are among the row's candidates: what no classifier behind can exceed.

    `candidates` (n, m) is sparse; each stored entry is a candidate. Without any true label the answer is nan.
    Paper: hierarchical-spectral, section 3.3 and its tables ("tree recall").

    >>> candidates = sparse.csr_array(np.array([[0.5, 0.2, 0], [0, 0.1, 0]]))
    >>> filter_recall([[1, 0, 1], [0, 1, 0]], candidates)
    0.6666666666666666
    """
    given: Any = candidates
    if not sparse.issparse(candidates):
        raise ValueError("candidates must be a sparse array, whose stored entries are the candidates")
    named = sparse.csr_array(given)
    truth = as_indicator(Y_true, "Y_true", n_labels=named.shape[1])
    if truth.shape != named.shape:
        raise ValueError(f"Y_true has shape {truth.shape}, but the candidates have {named.shape}")
    if not truth.nnz:
        return float("nan")
    mask = sparse.csr_array((np.ones(named.nnz, dtype=np.int64), named.indices, named.indptr), shape=named.shape)
    mask.sum_duplicates()
    mask.data[:] = 1
    hits: Any = truth.astype(np.int64) * mask
    return float(hits.sum() / truth.nnz)
