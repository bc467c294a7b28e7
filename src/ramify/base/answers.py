"""Small operations on answers: sparse arrays of probabilities, a row per example and a column per label."""

from __future__ import annotations

import functools
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.data.csr import csr_rows
from ramify.trees.label_tree import LabelTree

Threshold: TypeAlias = float | NDArray[np.float32]


def keep_best(answer: sparse.csr_array, top_k: int | None, threshold: Threshold) -> sparse.csr_array:
    """The k largest entries of each row (the smaller column first among equals) that reach the threshold."""
    indptr: NDArray[np.integer] = answer.indptr
    indices, data = answer.indices, answer.data
    if top_k is not None:
        indptr, best = _core.best_of_rows(*_for_core(answer), top_k)
        indices, data = indices[best], data[best]
    kept = data >= (threshold[indices] if isinstance(threshold, np.ndarray) else np.float32(threshold))
    if not kept.all():
        indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
        indices, data = indices[kept], data[kept]
    return csr_rows(data.copy() if data is answer.data else data, indices, indptr, answer.shape)


def best_first(answer: sparse.csr_array) -> NDArray[np.int64]:
    """Positions of the entries, row by row, the best of a row first and the smaller column first among equals."""
    return _core.best_first(*_for_core(answer))


def _for_core(answer: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    return (
        answer.indptr.astype(np.int64, copy=False),
        answer.indices.astype(np.int32, copy=False),
        answer.data.astype(np.float32, copy=False),
    )


def node_thresholds(tree: LabelTree, threshold: Threshold) -> tuple[float, NDArray[np.float32] | None]:
    """A threshold as tree searches take it: one number, or for each node the least threshold of the labels below it.

    >>> node_thresholds(LabelTree.from_nested([[0, 1], 2]), 0.5)
    (0.5, None)
    """
    if isinstance(threshold, np.ndarray):
        return 0.0, np.ascontiguousarray(tree.subtree_minimum(threshold), dtype=np.float32)
    return threshold, None


def best_columns(answer: sparse.csr_array) -> NDArray[np.integer]:
    best = np.zeros(answer.shape[0], dtype=np.int64)
    has_answer = np.diff(answer.indptr) > 0
    best[has_answer] = answer.indices[answer.indptr[:-1][has_answer]]
    return best


def one_row(indices: NDArray[np.int32], values: NDArray[np.float32], n_columns: int) -> sparse.csr_array:
    """A csr_array of one row. It is copied from an empty one: scipy's constructor takes longer than most searches.

    >>> one_row(np.array([0, 2], np.int32), np.ones(2, np.float32), 3).toarray()
    array([[1., 0., 1.]], dtype=float32)
    """
    return _row_of(n_columns, np.array([0, len(indices)], dtype=np.int32), indices, values)


def row_by_column(columns: NDArray[np.int32], values: NDArray[np.float32], n_columns: int) -> sparse.csr_array:
    """`one_row` of entries in any order.

    >>> row_by_column(np.array([2, 0], np.int32), np.array([0.5, 1], np.float32), 3).toarray()
    array([[1. , 0. , 0.5]], dtype=float32)
    """
    return _row_of(n_columns, *_core.row_by_column(columns, values))


def _row_of(
    n_columns: int, indptr: NDArray[np.int32], indices: NDArray[np.int32], values: NDArray[np.float32]
) -> sparse.csr_array:
    row = sparse.csr_array.__new__(sparse.csr_array)
    row.__dict__.update(_empty_row(n_columns).__dict__)
    row.data, row.indices, row.indptr = values, indices, indptr
    return row


@functools.lru_cache(maxsize=16)
def _empty_row(n_columns: int) -> sparse.csr_array:
    return no_entries(1, n_columns)


def same_columns(values: NDArray[np.float32], columns: NDArray[np.integer], n_columns: int) -> sparse.csr_array:
    """An answer for named labels: every row holds exactly these columns, in their order.

    >>> same_columns(np.ones((2, 1), np.float32), np.array([2]), 3).toarray()
    array([[0., 0., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    n_rows, n_named = values.shape
    indptr = np.arange(n_rows + 1) * n_named
    return csr_rows(values.ravel(), np.tile(columns, n_rows), indptr, (n_rows, n_columns))


def no_entries(n_rows: int, n_columns: int) -> sparse.csr_array:
    none = np.zeros(0, dtype=np.int32)
    return csr_rows(np.zeros(0, dtype=np.float32), none, np.zeros(n_rows + 1, dtype=np.int32), (n_rows, n_columns))
