"""Search-based threshold optimisation (STO): try every probability as a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.common.validation import check_choice
from ramify.decide.decisions import best_first, row_gains
from ramify.decide.estimates import Estimates, check_cut, check_empty, check_prior, estimates, kappa
from ramify.decide.fta import tune_fta
from ramify.decide.measures import LabelMeasure, check_objective, label_measure

TIES = ("common", "highest")


def tune_sto(
    P: Any,
    Y: Any,
    *,
    objective: str = "macro_f1",
    cut: float = 0.0,
    prior: ArrayLike | None = None,
    empty: str = "zero",
    ties: str = "common",
) -> NDArray[np.float32]:
    """Return the best threshold of each label on these rows, found by sorting the label's probabilities.

    Only probabilities of at least kappa_j = max(cut, prior_j / (prior_j + 1)) are tried; a cut of 0 tries all of them.
    All thresholds between two consecutive probabilities decide alike. `ties="common"` takes the one nearest to the best
    common threshold, which generalises better; "highest" takes the largest probability with the best value, the first
    that a pass over the sorted list finds, as in the paper. A label without evidence (no threshold finds a positive)
    gets the common threshold. For "micro_f1" and "example_f1" a single threshold for all labels is returned. "macro_f1"
    may be another beta, such as "macro_f2", "macro_jaccard" or "macro_g_mean".
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 4.1 and
    algorithm 1.

    >>> from scipy import sparse
    >>> P = sparse.csr_array(np.array([[0.75, 0.25], [0.5, 0.0], [0.25, 0.0]], dtype=np.float32))
    >>> tune_sto(P, np.array([[1, 1], [0, 0], [0, 0]])).tolist()  # anything in (0.5, 0.75] is optimal for label 0
    [0.5000000596046448, 0.25]
    """
    measure = label_measure(check_objective(objective))
    check_choice("ties", ties, TIES)
    cut, value_of_empty = check_cut(cut), check_empty(empty)
    found = estimates(P, Y)
    if measure is None:
        best = _best_common(found, objective, cut, value_of_empty)
        return np.full(found.n_labels, best, dtype=np.float32)
    common = tune_fta(found, None, objective=objective, common=True, cut=cut, prior=prior, empty=empty)
    return best_near(found, measure, cut, check_prior(prior, found), value_of_empty, common, ties == "highest")


def best_near(
    found: Estimates,
    measure: LabelMeasure,
    cut: float,
    prior: NDArray[np.float64],
    empty: float,
    common: NDArray[np.float32],
    takes_highest: bool = False,
) -> NDArray[np.float32]:
    """Return the best threshold of each label, near the common one where several are best."""
    thresholds = _best_per_label(found, measure, kappa(cut, prior, measure), common, takes_highest)
    if empty > 0:
        _never_predict_labels_without_positives(thresholds, found)
    return thresholds


def _best_per_label(
    found: Estimates,
    measure: LabelMeasure,
    floor: NDArray[np.float32],
    common: NDArray[np.float32],
    takes_highest: bool,
) -> NDArray[np.float32]:
    label, p = found.P.indices, found.P.data
    has_hit = np.zeros(found.n_labels, dtype=bool)
    has_hit[label[found.is_hit]] = True
    kept = has_hit[label] & (p >= floor[label])
    place, p, is_hit = best_first(label[kept], p[kept], found.is_hit[kept])
    thresholds = np.maximum(common, floor)
    if len(p) == 0:
        return thresholds
    is_new = place[1:] != place[:-1]
    starts = np.concatenate([[0], np.flatnonzero(is_new) + 1])
    size = np.diff(np.concatenate([starts, [len(p)]]))
    running = np.concatenate([[0], np.cumsum(is_hit)])
    # Hits and predictions are counted from the label's first entry.
    hits, predicted = running[1:] - np.repeat(running[starts], size), np.arange(1, len(p) + 1) - np.repeat(starts, size)
    f = measure.value(hits, predicted, found.positives[place], found.n_rows, 0.0)
    f[:-1][~is_new & (p[1:] == p[:-1])] = -1.0  # equal probabilities are predicted together
    best = np.maximum.reduceat(f, starts)
    at = np.flatnonzero(f == np.repeat(np.where(best > 0, best, np.inf), size))
    of = place[at]
    if takes_highest:
        label_of, first = np.unique(of, return_index=True)
        thresholds[label_of] = p[at[first]]
        return thresholds
    is_last = np.concatenate([is_new, [True]])[at]
    next_smaller = np.where(is_last, np.float32(0), p[np.minimum(at + 1, len(p) - 1)])
    least = np.maximum(np.where(is_last, np.float32(0), np.nextafter(next_smaller, np.float32(2))), floor[of])
    nearest = np.clip(common[of], least, p[at])
    order = np.lexsort((np.abs(nearest - common[of]), of))
    first = order[np.unique(of[order], return_index=True)[1]]
    thresholds[of[first]] = nearest[first]
    return thresholds


def _never_predict_labels_without_positives(thresholds: NDArray[np.float32], found: Estimates) -> None:
    """Raise the thresholds of labels without positives above all probabilities: then F = 1 by convention."""
    largest = np.zeros(found.n_labels, dtype=np.float32)
    np.maximum.at(largest, found.P.indices, found.P.data)
    silent = np.nextafter(largest, np.float32(2.0))
    without = found.positives == 0
    thresholds[without] = np.maximum(thresholds, silent)[without]


def _best_common(found: Estimates, objective: str, cut: float, empty: float) -> float:
    """Return the stored probability that is the best common threshold."""
    if objective == "micro_f1":
        _, p, is_hit = best_first(np.zeros(found.P.nnz, dtype=np.int64), found.P.data, found.is_hit)
        value = 2.0 * np.cumsum(is_hit) / (np.arange(1, len(p) + 1) + found.truth.nnz)
    else:
        p, gains, base = row_gains(found, empty)
        order = np.argsort(-p)
        p, value = p[order], base + np.cumsum(gains[order])
    is_candidate = (p >= np.float32(cut)) & np.concatenate([p[1:] != p[:-1], [True]])[: len(p)]
    if not is_candidate.any():
        return 0.5
    return float(p[int(np.argmax(np.where(is_candidate, value, -np.inf)))])
