"""The usual report: all metrics of a test run, from one ranking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ramify.metrics import ranking
from ramify.metrics._inputs import are_probabilities, as_positive_integer, as_probabilities, compare
from ramify.metrics.probability import binned, calibration_gap, mean_log_loss, mean_squared_error


def evaluate(Y_true: Any, P: Any, ks: Iterable[int] = (1, 3, 5), propensity: Any = None) -> dict[str, float]:
    """Return P, R, nDCG and coverage at each k, log loss, Brier score and expected calibration error of one model.

    With `propensity` (see `propensities`) also PSP and PSnDCG. Log loss, Brier score and calibration error are left
    out if `P` contains raw scores: anything outside [0, 1].

    >>> import numpy as np
    >>> report = evaluate([[1, 0, 1], [1, 0, 0]], np.array([[0.9, 0.1, 0.5], [0.2, 0.7, 0.3]]), ks=(1, 2))
    >>> report["P@1"], report["R@2"], sorted(report)[-1]
    (0.5, 0.5, 'nDCG@2')
    """
    if not isinstance(ks, Iterable):
        raise ValueError(f"ks must be a collection of ranks, for example ks=(1, 3, 5), got {ks!r}")
    places = sorted({as_positive_integer(k, "every k of ks") for k in ks})
    if not places:
        raise ValueError("ks is empty; pass at least one k, for example ks=(1, 3, 5)")
    comparison = compare(Y_true, P)
    ranked = ranking.rank(comparison, places[-1])
    report = {f"P@{k}": ranking.precision(ranked, k) for k in places}
    report |= {f"R@{k}": ranking.recall(ranked, k) for k in places}
    report |= {f"nDCG@{k}": ranking.ndcg(ranked, k) for k in places}
    if propensity is not None:
        best = ranking.best_ranking(ranked, ranking.inverse_propensity(propensity, ranked.n_labels))
        report |= {f"PSP@{k}": ranking.psp(ranked, k, best) for k in places}
        report |= {f"PSnDCG@{k}": ranking.psndcg(ranked, k, best) for k in places}
    report |= {f"coverage@{k}": ranking.coverage(ranked, k) for k in places}
    if are_probabilities(comparison.scores):
        p = as_probabilities(comparison.scores)
        report["log_loss"] = mean_log_loss(comparison, p)
        report["brier"] = mean_squared_error(comparison, p)
        report["ece"] = calibration_gap(binned(comparison, p))
    return report
