"""From scores to probabilities: a monotone map per level of the tree, fitted on examples that were held out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify import _core

KNOT_STEP = 0.25
KNOTS = np.arange(-4.0, 4.0 + KNOT_STEP, KNOT_STEP)


class Link(NamedTuple):
    """Logits at the knots of a uniform grid of scores, a row for each level; linear between and beyond the knots.

    No rows: scores are logits themselves.
    """

    logits: NDArray[np.float32]
    low: float = float(KNOTS[0])
    step: float = KNOT_STEP


IDENTITY = Link(np.zeros((0, 0), np.float32))


def fit_link(positive: NDArray[np.float64], negative: NDArray[np.float64], *, smoothness: float = 1.0) -> Link:
    """Fit a map for each level from histograms of held-out scores (levels x bins).

    Each is the rising, piecewise linear logit of least log loss; second differences are penalised, so that
    sparse data give a straight line (Platt's scaling) and rich data their own shape. A level without data
    borrows the map of all levels together.

    >>> scores = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(512) + 0.5)
    >>> chance = 1 / (1 + np.exp(-3 * scores))
    >>> link = fit_link(1000 * chance[None], 1000 * (1 - chance)[None])
    >>> np.allclose(link.logits[0], 3 * KNOTS, atol=0.3)
    True
    """
    pooled = _fit_level(positive.sum(axis=0), negative.sum(axis=0), smoothness)
    logits = [
        _fit_level(p, n, smoothness, start=pooled) if min(p.sum(), n.sum()) >= 10 else pooled
        for p, n in zip(positive, negative, strict=True)
    ]
    return Link(np.asarray(logits, np.float32))


def fit_softmax_link(loss: NDArray[np.float64]) -> Link:
    """Fit a slope for each level from the losses (levels x slopes) of the softmax of slope * score.

    Where exactly one child is true, siblings are normalised, and only the slope (a temperature) is left to fit.
    """
    slopes = np.array([_best_slope(of_level) for of_level in loss])
    pooled = _best_slope(loss.sum(axis=0))
    slopes = np.where(loss.any(axis=1), slopes, pooled)
    return Link(np.outer(slopes, KNOTS).astype(np.float32))


def softmax_link(link: Link, loss: NDArray[np.float64]) -> Link:
    """A map for siblings of which exactly one is true: the mean of two logits of the softmax, each fitted on its own.

    The slope (`fit_softmax_link`) ranks siblings well, but is the same for hopeless and for promising scores; the log
    of the probability that each child has for itself (`fit_link`) has the right shape, but ignores the siblings.
    """
    of_itself = -np.logaddexp(0, -link.logits.astype(np.float64))
    return Link((0.5 * (fit_softmax_link(loss).logits + of_itself)).astype(np.float32))


def _best_slope(loss: NDArray[np.float64]) -> float:
    """The vertex of the parabola through the least loss and its neighbours, on the scale of log slope."""
    grid = np.log(_core.SOFTMAX_SLOPES)
    k = int(np.clip(np.argmin(loss), 1, len(grid) - 2))
    curve = np.polyfit(grid[k - 1 : k + 2], loss[k - 1 : k + 2], 2)
    vertex = -curve[1] / (2 * curve[0]) if curve[0] > 0 else grid[int(np.argmin(loss))]
    return float(np.exp(np.clip(vertex, grid[0], grid[-1])))


def knot_shares(bins: NDArray[np.integer]) -> NDArray[np.float64]:
    """What each knot gives to the logit of each bin of the histogram: beyond the knots the outer pieces go on."""
    at = (_core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (bins + 0.5) - KNOTS[0]) / KNOT_STEP
    knot = np.clip(at, 0, len(KNOTS) - 2).astype(int)
    shares = np.zeros((len(bins), len(KNOTS)))
    shares[np.arange(len(bins)), knot] = 1 - (at - knot)
    shares[np.arange(len(bins)), knot + 1] = at - knot
    return shares


def _fit_level(
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    smoothness: float,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Logits at the knots that minimise the log loss of one histogram, by Newton's method, then made to rise."""
    used = np.flatnonzero(positive + negative)
    hat = knot_shares(used)
    bend = np.diff(np.eye(len(KNOTS)), 2, axis=0)
    penalty = smoothness * (bend.T @ bend)
    anchor = 3.0 * KNOTS - 2.0 if start is None else start
    pull = 1e-3  # towards the anchor, so that knots without data stay finite
    total, wins = (positive + negative)[used], positive[used]

    from scipy.special import expit  # slow to import, and models that are only asked do not need it

    def objective(logits: NDArray[np.float64]) -> float:
        z = hat @ logits
        fit = total @ np.logaddexp(0, z) - wins @ z
        return float(fit + 0.5 * logits @ penalty @ logits + 0.5 * pull * ((logits - anchor) ** 2).sum())

    logits, value = anchor, objective(anchor)
    for _ in range(50):
        p = expit(hat @ logits)
        gradient = hat.T @ (total * p - wins) + penalty @ logits + pull * (logits - anchor)
        hessian = (hat * (total * p * (1 - p) + 1e-9)[:, None]).T @ hat + penalty + pull * np.eye(len(KNOTS))
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while (new := objective(logits - size * step)) > value and size > 1e-4:
            size /= 2
        if value - new < 1e-6 * abs(value):
            break
        logits, value = logits - size * step, new
    # A running maximum would rise with every bump of noise, and all probabilities with it: falling stretches are
    # levelled to their mean, knots counting by what the data say about them.
    from sklearn.isotonic import isotonic_regression  # a trained model is queried without scikit-learn

    p = expit(hat @ logits)
    certainty = np.abs(hat).T @ (total * p * (1 - p)) + pull
    return np.asarray(isotonic_regression(logits, sample_weight=certainty) + 1e-3 * np.arange(len(KNOTS)))
