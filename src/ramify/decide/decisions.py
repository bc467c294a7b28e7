"""Decide with given thresholds, and measure the decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify.data.csr import csr_rows
from ramify.data.masked import check_no_mask
from ramify.decide.estimates import Estimates
from ramify.decide.measures import label_measure
from ramify.metrics._inputs import as_scores


def apply_thresholds(P: Any, thresholds: float | ArrayLike) -> sparse.csr_array:
    """Return the labels with p >= tau as a 0/1 array; pass one threshold, or one per label.

    >>> P = sparse.csr_array(np.array([[0.3, 0.0, 0.6], [0.2, 0.5, 0.0]], dtype=np.float32))
    >>> apply_thresholds(P, [0.25, 0.5, 0.7]).toarray().tolist()
    [[1, 0, 0], [0, 1, 0]]
    """
    scores = as_scores(P)
    return kept_labels(scores, _is_kept(scores, check_thresholds(thresholds, scores.shape[1])))


def kept_labels(scores: sparse.csr_array, is_kept: NDArray[np.bool_]) -> sparse.csr_array:
    """Return the kept entries of `scores` as a 0/1 array."""
    indptr = np.concatenate([[0], np.cumsum(is_kept)])[scores.indptr]
    indices = scores.indices[is_kept]
    return csr_rows(np.ones(len(indices), dtype=np.int64), indices, indptr, scores.shape)


def check_thresholds(thresholds: float | ArrayLike, n_labels: int) -> NDArray[np.float32]:
    """Return one threshold, or one per label, as float32 like the probabilities."""
    allowed = f"thresholds must be one number or one for each of the {n_labels} labels, and at least 0"
    check_no_mask("thresholds", thresholds)
    try:
        given = np.asarray(thresholds, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{allowed}, got {thresholds!r}") from error
    if given.shape not in ((), (n_labels,)):
        raise ValueError(f"{allowed}, got shape {given.shape}")
    if not (given >= 0).all():
        raise ValueError(f"{allowed}, got {given.flat[int(np.argmin(given >= 0))]}")
    return given


def value_of(found: Estimates, thresholds: float | ArrayLike, objective: str, empty: float) -> float:
    """Return the objective of deciding with these thresholds, as `ramify.metrics` defines it."""
    return value_of_kept(found, is_kept(found, thresholds), objective, empty)


def is_kept(found: Estimates, thresholds: float | ArrayLike) -> NDArray[np.bool_]:
    """Mark the stored probabilities that reach their label's threshold."""
    return _is_kept(found.P, check_thresholds(thresholds, found.n_labels))


def value_of_kept(found: Estimates, kept: NDArray[np.bool_], objective: str, empty: float) -> float:
    """Return the objective of predicting the kept labels."""
    hits = kept & found.is_hit
    if objective == "micro_f1":
        total = int(kept.sum()) + found.truth.nnz
        return 2.0 * int(hits.sum()) / total if total else empty
    measure = label_measure(objective)
    place: NDArray[np.integer[Any]]
    place, size = (found.P.indices, found.n_labels) if measure else (found.row_of, found.n_rows)
    if not size:
        return float("nan")
    decided, right = (np.bincount(place[chosen], minlength=size) for chosen in (kept, hits))
    if measure:
        return float(measure.value(right, decided, found.positives, found.n_rows, empty).mean())
    return float(f_measure(right, decided + np.diff(found.truth.indptr), empty).mean())


def f_measure(common: NDArray[Any], total: NDArray[Any], empty: float) -> NDArray[np.float64]:
    """Return 2 common / total, or `empty` where total is 0."""
    return np.where(total > 0, 2.0 * common / np.maximum(total, 1), empty)


def _is_kept(scores: sparse.csr_array, thresholds: NDArray[np.float32]) -> NDArray[np.bool_]:
    needed = thresholds[scores.indices] if thresholds.ndim else thresholds
    return np.asarray(scores.data >= needed)


def best_first(
    place: NDArray[np.integer], p: NDArray[np.float32], is_hit: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.bool_]]:
    """Sort all three arrays by place, then by decreasing probability.

    Each 64-bit key packs the place, the probability (the bits of positive floats sort like the floats) and the hit, so
    one plain sort, many times faster than a sort by several keys, orders everything.

    >>> given = np.array([1, 0, 1]), np.array([0.2, 0.5, 0.7], dtype=np.float32), np.array([False, False, True])
    >>> place, p, is_hit = best_first(*given)
    >>> place.tolist(), p.round(1).tolist(), is_hit.tolist()
    ([0, 1, 1], [0.5, 0.699999988079071, 0.20000000298023224], [False, True, False])
    """
    all_bits = np.uint64(0xFFFFFFFF)
    key = place.astype(np.uint64) << np.uint64(33)
    key |= (all_bits - p.view(np.uint32)) << np.uint64(1)
    key |= is_hit
    key.sort()
    bits = (all_bits - ((key >> np.uint64(1)) & all_bits)).astype(np.uint32)
    return (key >> np.uint64(33)).astype(np.int64), bits.view(np.float32), (key & np.uint64(1)).astype(bool)


def row_gains(found: Estimates, empty: float) -> tuple[NDArray[np.float32], NDArray[np.float64], float]:
    """Return each row's probabilities in decreasing order, their gains in the summed F, and the sum without any.

    The sum of the gains above a common threshold is the example-based F of that threshold, so one sort gives it for
    all thresholds at once. Equal probabilities of a row are always predicted together.
    """
    _, p, is_hit = best_first(found.row_of, found.P.data, found.is_hit)
    starts, size = found.P.indptr[:-1], np.diff(found.P.indptr)
    rank = np.arange(found.P.nnz) - np.repeat(starts, size)
    running = np.concatenate([[0], np.cumsum(is_hit)])
    positives = np.diff(found.truth.indptr)
    f = 2.0 * (running[1:] - np.repeat(running[starts], size)) / (rank + 1 + np.repeat(positives, size))
    f_before = np.concatenate([[0.0], f])[:-1]
    f_before = np.where(rank == 0, np.repeat(np.where(positives == 0, empty, 0.0), size), f_before)
    return p, f - f_before, empty * int((positives == 0).sum())
