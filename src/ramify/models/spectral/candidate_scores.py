"""Any classifier of the library behind a candidate tree: it scores the candidates of each leaf, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from ramify.base.answers import keep_best, same_columns
from ramify.base.classifier import Query, TrainingData
from ramify.base.nested import train_inside
from ramify.data.csr import csr_rows

if TYPE_CHECKING:
    from ramify.models.spectral.answers import SpectralAnswers
    from ramify.models.spectral.classifier import SpectralTreeClassifier


def trained_base(model: SpectralTreeClassifier, data: TrainingData) -> Any:
    """The classifier given as `base`, trained on the same rows as its own `fit` would."""
    inner = clone(model.base)
    if model.n_jobs is not None:
        inner.n_jobs = model.n_jobs
    return train_inside(model, inner, data)


def scores_behind(model: SpectralAnswers, X: sparse.csr_array, candidates: sparse.csr_array) -> sparse.csr_array:
    """Probabilities of each row's candidates; of one class a row they are made to sum to one."""
    if model.n_jobs is not None:
        model.scorer_.n_jobs = model.n_jobs
    data = np.empty(candidates.nnz, dtype=np.float32)
    for rows in _with_the_same(candidates):
        labels = candidates.indices[candidates.indptr[rows[0]] : candidates.indptr[rows[0] + 1]]
        found = model.scorer_._sparse_probabilities(sparse.csr_array(X[rows]), Query(labels=labels))
        probability = found.data.reshape(len(rows), len(labels))
        if model.is_multiclass_:
            total = probability.sum(axis=1, keepdims=True, dtype=np.float64)
            even = np.full_like(probability, 1 / len(labels))
            probability = np.where(total > 0, probability / np.where(total > 0, total, 1), even).astype(np.float32)
        data[candidates.indptr[rows][:, None] + np.arange(len(labels))] = probability
    return csr_rows(data, candidates.indices, candidates.indptr, candidates.shape)


def _with_the_same(candidates: sparse.csr_array) -> list[NDArray[np.int64]]:
    """Rows that have the same candidates together, those without any left out."""
    found: dict[bytes, list[int]] = {}
    for row, (start, stop) in enumerate(zip(candidates.indptr[:-1], candidates.indptr[1:], strict=True)):
        if stop > start:
            found.setdefault(candidates.indices[start:stop].tobytes(), []).append(row)
    return [np.array(rows) for rows in found.values()]


def complete(found: sparse.csr_array, query: Query) -> sparse.csr_array:
    """The answer to a question from the candidates' probabilities: all other labels have probability zero."""
    n, n_labels = found.shape
    if query.labels is not None:
        dense = sparse.csc_array(found)[:, query.labels].toarray()
        return same_columns(dense, query.labels, n_labels)
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
