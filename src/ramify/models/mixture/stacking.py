"""A logistic model over what the parts of a mixture say about a row's candidates.

Where every row has one label it is a softmax over the candidates of a row, also if labels came as an indicator array;
otherwise each candidate is judged for itself. A part enters with the logarithm of its probability (or odds), alone and
times the logarithm of the label's rows (a part may be right about rare labels and wrong about frequent ones), with the
probability itself, and with whether it is zero: that none of the nearest rows has a label tells more than a small
probability does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.models.mixture.entries import row_sums

TERMS_OF_PART = 4
LEAST_PROBABILITY = 1e-6
# A coefficient of one deviation costs as much as half a unit of log loss on a single row.
_PENALTY = 1.0
_MAX_STEPS = 30
_FOLDS = 2


@dataclass(frozen=True)
class Judged:
    """Candidates of held-out rows, row by row: what the parts say, and the truth."""

    begin: NDArray[np.int64]  # of each row's candidates, and one more
    columns: NDArray[np.integer]
    P: NDArray[np.float64]  # (entries, parts)
    y: NDArray[np.float64]
    row_weight: NDArray[np.float64]

    def of_rows(self, rows: NDArray[np.bool_]) -> Judged:
        kept = np.repeat(rows, np.diff(self.begin))
        begin = np.concatenate([[0], np.cumsum(np.diff(self.begin)[rows])])
        return Judged(begin, self.columns[kept], self.P[kept], self.y[kept], self.row_weight[rows])


@dataclass(frozen=True)
class Stacking:
    """The coefficients: four for each part, one for the label's rows, and the intercept (0 for a softmax)."""

    coefficients: NDArray[np.float64]
    log_rows: NDArray[np.float64]  # per label: log(1 + its training rows)
    is_one_of_all: bool  # a softmax over the row's candidates

    def terms(self, P: NDArray[np.float64], columns: NDArray[np.integer]) -> NDArray[np.float64]:
        """What each part, and last the label itself, adds to the score: (entries, parts + 1)."""
        n_parts = P.shape[1]
        weighted = features(P, self.log_rows[columns], self.is_one_of_all) * self.coefficients[:-1]
        of_parts = weighted[:, :-1].reshape(len(P), n_parts, TERMS_OF_PART).sum(axis=2)
        return np.column_stack([of_parts, weighted[:, -1] + self.coefficients[-1]])

    def probabilities(
        self, P: NDArray[np.float64], columns: NDArray[np.integer], begin: NDArray[np.int64], mass: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Of candidates, row by row; one class per row: they sum up to the row's mass."""
        score = self.terms(P, columns).sum(axis=1)
        return _softmax(score, begin) * np.repeat(mass, np.diff(begin)) if self.is_one_of_all else _sigmoid(score)

    def score_of(self, probability: float) -> float:
        """The logarithm of a probability, or of its odds where labels are judged one by one."""
        p = min(max(probability, 1e-30), 1 - 1e-7)
        return math.log(p) if self.is_one_of_all else math.log(p) - math.log1p(-p)


def features(P: NDArray[np.float64], log_rows: NDArray[np.float64], is_one_of_all: bool) -> NDArray[np.float64]:
    clipped = np.clip(P, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    log = np.log(clipped) if is_one_of_all else np.log(clipped) - np.log1p(-clipped)
    of_parts = np.stack([log, log * log_rows[:, None], P, P == 0], axis=2)
    return np.column_stack([of_parts.reshape(len(P), -1), log_rows])


def learn_stacking(
    judged: Judged, mean: NDArray[np.float64], label_rows: NDArray[np.float64], is_one_of_all: bool
) -> Stacking | None:
    """The coefficients of the least log loss; None if `mean`, the entries' weighted mean, is better on rows left out.

    Better is one whose log loss is lower and whose best labels are true as often.
    """
    log_rows = np.log1p(label_rows)
    n_rows = len(judged.row_weight)
    if n_rows < 2 * _FOLDS or not judged.y.any():
        return None
    fold = np.arange(n_rows) % _FOLDS
    gain = hits = 0.0
    for k in range(_FOLDS):
        trained = Stacking(_fit(judged.of_rows(fold != k), log_rows, is_one_of_all), log_rows, is_one_of_all)
        rest, rest_mean = judged.of_rows(fold == k), mean[np.repeat(fold == k, np.diff(judged.begin))]
        mass = np.ones(len(rest.row_weight))
        ours = trained.probabilities(rest.P, rest.columns, rest.begin, mass)
        if is_one_of_all:
            rest_mean = rest_mean / np.repeat(np.maximum(row_sums(rest_mean, rest.begin), 1e-300), np.diff(rest.begin))
        gain += _log_loss(rest_mean, rest, is_one_of_all) - _log_loss(ours, rest, is_one_of_all)
        hits += _hits(ours, rest) - _hits(rest_mean, rest)
    if gain <= 0 or hits < 0:
        return None
    return Stacking(_fit(judged, log_rows, is_one_of_all), log_rows, is_one_of_all)


def _fit(judged: Judged, log_rows: NDArray[np.float64], is_one_of_all: bool) -> NDArray[np.float64]:
    """Newton's method with halved steps: the problem is convex, and has a few numbers only."""
    F = features(judged.P, log_rows[judged.columns], is_one_of_all)
    centre, scale = F.mean(axis=0), F.std(axis=0)
    scale[scale < 1e-9] = np.inf  # a constant tells nothing
    Z = (F - centre) / scale
    weight = np.repeat(judged.row_weight, np.diff(judged.begin))
    if is_one_of_all:  # rows whose class is no candidate teach nothing
        weight = weight * np.repeat(row_sums(judged.y, judged.begin) > 0, np.diff(judged.begin))
    else:
        Z = np.column_stack([Z, np.ones(len(Z))])
    penalty = np.full(Z.shape[1], _PENALTY)
    penalty[F.shape[1] :] = 1e-6

    def at(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = Z @ w
        p = _softmax(score, judged.begin) if is_one_of_all else _sigmoid(score)
        true = judged.y > 0
        loss = -(weight[true] * np.log(np.maximum(p[true], 1e-300))).sum()
        if not is_one_of_all:
            loss -= (weight[~true] * np.log(np.maximum(1 - p[~true], 1e-300))).sum()
        return float(loss + 0.5 * penalty @ w**2), p

    w = np.zeros(Z.shape[1])
    loss, p = at(w)
    for _ in range(_MAX_STEPS):
        gradient = Z.T @ (weight * (p - judged.y)) + penalty * w
        if is_one_of_all:
            rows = np.add.reduceat(Z * p[:, None], judged.begin[:-1], axis=0)
            hessian = (Z * (weight * p)[:, None]).T @ Z - (rows * weight[judged.begin[:-1], None]).T @ rows
        else:
            hessian = (Z * (weight * p * (1 - p))[:, None]).T @ Z
        step = np.linalg.solve(hessian + np.diag(penalty), gradient)
        size = 1.0
        while size > 1e-6 and (moved := at(w - size * step))[0] > loss - 1e-4 * size * float(gradient @ step):
            size /= 2
        if size <= 1e-6:
            break
        w = w - size * step
        decrease, (loss, p) = loss - moved[0], moved
        if decrease < 1e-6 * (1 + abs(loss)):
            break
    coefficients = w[: F.shape[1]] / scale
    intercept = 0.0 if is_one_of_all else w[-1] - float(coefficients @ centre)
    return np.append(coefficients, intercept)


def _softmax(score: NDArray[np.float64], begin: NDArray[np.int64]) -> NDArray[np.float64]:
    n = np.diff(begin)
    largest = np.maximum.reduceat(np.append(score, 0.0), begin[:-1])
    e = np.exp(score - np.repeat(largest, n))
    share: NDArray[np.float64] = e / np.repeat(row_sums(e, begin), n)
    return share


def _sigmoid(score: NDArray[np.float64]) -> NDArray[np.float64]:
    p: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(score, -700, 700)))
    return p


def _log_loss(p: NDArray[np.float64], judged: Judged, is_one_of_all: bool) -> float:
    p = np.clip(p, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    weight = np.repeat(judged.row_weight, np.diff(judged.begin))
    of_entry = judged.y * np.log(p) if is_one_of_all else np.where(judged.y > 0, np.log(p), np.log1p(-p))
    return -float(weight @ of_entry)


def _hits(p: NDArray[np.float64], judged: Judged) -> float:
    """The weight of the rows whose best label is true."""
    order = np.lexsort((judged.columns, -p, np.repeat(np.arange(len(judged.row_weight)), np.diff(judged.begin))))
    has_any = np.diff(judged.begin) > 0
    return float(judged.row_weight[has_any] @ judged.y[order[judged.begin[:-1][has_any]]])
