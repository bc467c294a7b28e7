"""Entries of sparse answers: joined, found again, replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import keep_best
from ramify.data.csr import csr_rows


def union(answers: Sequence[sparse.csr_array], n_columns: int) -> sparse.csr_array:
    """The entries of the first columns that any of the answers stores, sorted; their values are ones."""
    total: Any = None
    for answer in answers:
        ones = csr_rows(np.ones(answer.nnz, np.float32), answer.indices, answer.indptr, answer.shape)
        if ones.shape[1] > n_columns:
            ones = sparse.csr_array(ones[:, :n_columns])
        total = ones if total is None else total + ones
    found: sparse.csr_array = sparse.csr_array(total)
    found.sort_indices()
    return found


def least_of_rows(answer: sparse.csr_array, n_asked: int) -> NDArray[np.float64]:
    """The n_asked-th largest entry of each row: no other label has more; 0 for a row with fewer."""
    if answer.nnz and np.diff(answer.indptr).max() > n_asked:
        answer = keep_best(answer, n_asked, 0.0)
    least = np.minimum.reduceat(np.append(answer.data, np.inf), answer.indptr[:-1]).astype(np.float64)
    least[np.diff(answer.indptr) < n_asked] = 0.0
    return least


def row_sums(values: NDArray[np.float64], begin: NDArray[np.int64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.add.reduceat(np.append(values, 0.0), begin[:-1])
    sums[np.diff(begin) == 0] = 0.0
    return sums


def places(wanted: sparse.csr_array, stored: sparse.csr_array) -> NDArray[np.int64]:
    """Where each entry of `wanted` is among those of `stored`, -1 where it is not; both have sorted rows."""
    if stored.nnz == 0:
        return np.full(wanted.nnz, -1, dtype=np.int64)
    n = max(wanted.shape[1], stored.shape[1])
    keys, sought = (
        np.repeat(np.arange(array.shape[0]) * n, np.diff(array.indptr)) + array.indices for array in (stored, wanted)
    )
    at = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
    place: NDArray[np.int64] = np.where(keys[at] == sought, at, -1)
    return place


def some_entries(array: sparse.csr_array, kept: NDArray[np.bool_]) -> sparse.csr_array:
    """Only these of an array's entries."""
    indptr = np.concatenate([[0], np.cumsum(kept)])[array.indptr]
    return csr_rows(array.data[kept], array.indices[kept], indptr, array.shape)


def first_columns(is_wanted: NDArray[np.bool_], n_first: int, n_columns: int) -> sparse.csr_array:
    """The first columns, for the rows that want them."""
    indptr = np.concatenate([[0], np.cumsum(is_wanted * n_first)])
    indices = np.tile(np.arange(n_first), int(is_wanted.sum()))
    return csr_rows(np.ones(len(indices), np.float32), indices, indptr, (len(is_wanted), n_columns))


def replace_rows(answer: sparse.csr_array, rows: NDArray[np.int64], better: sparse.csr_array) -> sparse.csr_array:
    """The answer with these rows replaced."""
    both = sparse.csr_array(sparse.vstack([answer, better], format="csr"))
    order = np.arange(answer.shape[0])
    order[rows] = answer.shape[0] + np.arange(len(rows))
    return sparse.csr_array(both[order])
