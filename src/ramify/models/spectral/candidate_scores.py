"""Any classifier behind a candidate tree: it scores the candidates of each row, and nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import keep_best
from ramify.base.fitted import FittedModel
from ramify.base.model import Query
from ramify.data.csr import csr_rows


def scores_behind(
    behind: FittedModel, X: sparse.csr_array, candidates: sparse.csr_array, query: Query
) -> sparse.csr_array:
    """Probabilities of each row's candidates; with one class per row they sum to one."""
    asked = Query(n_threads=query.n_threads, options=behind.options)
    found = behind.model.named(X, candidates, asked)
    if behind.model.is_multiclass:
        found = _summing_to_one(found, candidates.indptr)
    return csr_rows(found, candidates.indices, candidates.indptr, candidates.shape)


def _summing_to_one(found: NDArray[np.float32], indptr: NDArray[np.integer]) -> NDArray[np.float32]:
    """Each row divided by its sum; rows of zeros are spread evenly."""
    size = np.diff(indptr)
    row_of = np.repeat(np.arange(len(size)), size)
    total = np.zeros(len(size))
    nonempty = np.flatnonzero(size)
    if len(nonempty):
        total[nonempty] = np.add.reduceat(found.astype(np.float64), indptr[:-1][nonempty])
    share = np.where(total[row_of] > 0, found / np.where(total > 0, total, 1)[row_of], 1 / size[row_of])
    return np.asarray(share, dtype=np.float32)


def named_of(found: sparse.csr_array, asked: sparse.csr_array) -> NDArray[np.float32]:
    """The entries of `found` at the places of `asked`; labels that are no candidates have probability zero."""
    n_labels = found.shape[1]
    keys = [
        np.repeat(np.arange(part.shape[0], dtype=np.int64), np.diff(part.indptr)) * n_labels + part.indices
        for part in (found, asked)
    ]
    place = np.searchsorted(keys[0], keys[1])
    is_found = place < len(keys[0])
    is_found[is_found] = keys[0][place[is_found]] == keys[1][is_found]
    values = np.zeros(len(keys[1]), dtype=np.float32)
    values[is_found] = found.data[place[is_found]]
    return values


def complete(found: sparse.csr_array, query: Query) -> sparse.csr_array:
    """The answer to a query from the candidates' probabilities: all other labels have probability zero."""
    n, n_labels = found.shape
    threshold = query.threshold
    per_label = threshold if isinstance(threshold, np.ndarray) else np.full(n_labels, threshold, dtype=np.float32)
    always = np.flatnonzero(per_label <= 0)
    top_k = n_labels if query.top_k is None else query.top_k
    best = keep_best(found, query.top_k, threshold)
    if not len(always) or (np.diff(best.indptr) >= top_k).all():
        return best
    labels, values = [], []
    for row in range(n):
        own = slice(best.indptr[row], best.indptr[row + 1])
        known = found.indices[found.indptr[row] : found.indptr[row + 1]]
        absent = np.setdiff1d(always, known, assume_unique=True)[: top_k - (own.stop - own.start)]
        columns = np.concatenate([best.indices[own], absent])
        numbers = np.concatenate([best.data[own], np.zeros(len(absent), dtype=np.float32)])
        in_order = np.argsort(columns, kind="stable")
        labels.append(columns[in_order])
        values.append(numbers[in_order])
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in labels])])
    return csr_rows(np.concatenate(values), np.concatenate(labels), indptr, (n, n_labels))
