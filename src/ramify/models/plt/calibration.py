"""From scores to probabilities: a monotone map per level of the tree, fitted on examples that were held out."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify import _core

KNOTS: NDArray[np.float64] = _core.LINK_LOW + _core.LINK_STEP * np.arange(_core.LINK_KNOTS, dtype=np.float64)
USUAL_LOGITS = 3.0 * KNOTS - 2.0
# How the weight of a child's rate depends on its score: known at fewer knots than the map itself.
RATE_KNOTS = np.linspace(KNOTS[0] / 2, KNOTS[-1] / 2, 9)
RATE_SMOOTHNESS = 10.0
N_RATES = 14  # classes of log rate, each one wide: down to one row in a million
# Siblings of which one is true: how much of the logit, the rest being the log of the probability.
LOGIT_SHARES = (0.0, 0.5, 1.0)
# Nodes that a row reaches with at least this probability are revised by what their children claim, each for itself.
TOP_FROM = 0.03


class Link(NamedTuple):
    """Logits at the knots of a uniform grid of scores, a row for each level; linear between and beyond the knots.

    `slopes`, of the same shape, times the log of a child's rate (the share of its parent's rows) are added to that:
    where scores say nothing, rare labels are less probable than common ones. No rows: scores are logits themselves.
    """

    logits: NDArray[np.float32]
    low: float = float(KNOTS[0])
    step: float = float(_core.LINK_STEP)
    slopes: NDArray[np.float32] | None = None

    def slope_table(self) -> NDArray[np.float32]:
        """The slopes, zeros where there are none."""
        return np.zeros_like(self.logits) if self.slopes is None else self.slopes


IDENTITY = Link(np.zeros((0, 0), np.float32))


class RateCurves(NamedTuple):
    """A map for each level as two curves (levels x knots): for children of the least and of the highest log rate."""

    rates: NDArray[np.float64]  # (levels, 2)
    rare: NDArray[np.float64]
    common: NDArray[np.float64]

    def link(self) -> Link:
        """The line through both curves, at every knot."""
        apart = np.diff(self.rates, axis=1)
        slopes = (self.common - self.rare) / np.where(apart > 0, apart, 1.0)
        return Link((self.rare - slopes * self.rates[:, :1]).astype(np.float32), slopes=slopes.astype(np.float32))

    def softened(self, shares: NDArray[np.float64], factors: NDArray[np.float64]) -> RateCurves:
        """For a softmax: `shares` of the logit and the rest of the log of the probability, times `factors`.

        A logit ranks siblings as if each could be true next to the others; the log of a probability stops rising
        where a child is nearly certain. Which mixture suits siblings of which exactly one is true depends on the data.
        """

        def soften(logits: NDArray[np.float64]) -> NDArray[np.float64]:
            share, factor = shares[:, None], factors[:, None]
            mixed: NDArray[np.float64] = factor * (share * logits - (1 - share) * np.logaddexp(0, -logits))
            return mixed

        return RateCurves(self.rates, soften(self.rare), soften(self.common))

    def raised(self, exponents: NDArray[np.float64]) -> RateCurves:
        """Each level's probabilities to the power of its exponent."""

        def bend(logits: NDArray[np.float64]) -> NDArray[np.float64]:
            logs = -exponents[:, None] * np.logaddexp(0, -logits)
            bent: NDArray[np.float64] = logs - np.log(-np.expm1(np.minimum(logs, -1e-30)))
            return bent

        return RateCurves(self.rates, bend(self.rare), bend(self.common))


def fit_link(positive: NDArray[np.float64], negative: NDArray[np.float64], *, smoothness: float = 1.0) -> Link:
    """Fit a map for each level from histograms of held-out scores (levels x bins).

    Each is the rising, piecewise linear logit of least log loss; second differences are penalised, so that
    sparse data give a straight line (Platt's scaling) and rich data their own shape. A level without data
    borrows the map of all levels together, moved to the share of positives where scores are nearly all of one kind, as
    those of a gate that most rows pass; where all levels together are of one kind, there is nothing to learn, and the
    usual line stays.

    >>> scores = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(512) + 0.5)
    >>> chance = 1 / (1 + np.exp(-3 * scores))
    >>> link = fit_link(1000 * chance[None], 1000 * (1 - chance)[None])
    >>> np.allclose(link.logits[0], 3 * KNOTS, atol=0.3)
    True
    """
    pooled = USUAL_LOGITS
    if positive.any() and negative.any():
        pooled = _fit_level(positive.sum(axis=0), negative.sum(axis=0), smoothness)
    logits = [
        _fit_level(p, n, smoothness, start=pooled) if min(p.sum(), n.sum()) >= 10 else _moved(pooled, p, n)
        for p, n in zip(positive, negative, strict=True)
    ]
    return Link(np.asarray(logits, np.float32))


def _moved(
    pooled: NDArray[np.float64], positive: NDArray[np.float64], negative: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The map with a constant added so that its mean is the share of positives, half an example of each kind more.

    Few examples, or none in all levels, leave it as it is.
    """
    from scipy.special import expit

    total = positive + negative
    if pooled is USUAL_LOGITS or total.sum() < 10:
        return pooled
    used = np.flatnonzero(total)
    logits, share = knot_shares(used) @ pooled, (positive.sum() + 0.5) / (total.sum() + 1)
    low, high = -40.0, 40.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        is_below = total[used] @ expit(logits + middle) < share * total.sum()
        low, high = (middle, high) if is_below else (low, middle)
    return pooled + low


def fit_rate_curves(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> RateCurves:
    """Fit a map for each level from histograms of held-out scores by the rate of the child (levels x rates x bins).

    A squared hinge gives all children that do not apply a score near -1, rare and common ones alike; so the logit also
    has a term in the log of the rate, with a weight that depends on the score.
    """
    plain = fit_link(positive.sum(axis=1), negative.sum(axis=1)).logits.astype(np.float64)
    fitted = [
        _fit_rates(p, n, logits) if min(p.sum(), n.sum()) >= 10 else (np.zeros(2), logits, logits)
        for p, n, logits in zip(positive, negative, plain, strict=True)
    ]
    return RateCurves(*(np.stack(parts) for parts in zip(*fitted, strict=True)))


def best_softening(loss: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of the logit and the factor of least loss for each level, from losses (levels x shares x factors).

    A level without data takes those of all levels together.
    """
    pooled = _best_softening(loss.sum(axis=0))
    found = [_best_softening(of_level) if of_level.any() else pooled for of_level in loss]
    shares, factors = np.array(found).T
    return shares, factors


def _best_softening(loss: NDArray[np.float64]) -> tuple[float, float]:
    """The share with the least loss, its factor at the vertex of the parabola around the best, on a log scale."""
    share = int(np.argmin(loss.min(axis=1)))
    grid, of_share = np.log(_core.SOFTMAX_FACTORS), loss[share]
    k = int(np.clip(np.argmin(of_share), 1, len(grid) - 2))
    curve = np.polyfit(grid[k - 1 : k + 2], of_share[k - 1 : k + 2], 2)
    vertex = -curve[1] / (2 * curve[0]) if curve[0] > 0 else grid[int(np.argmin(of_share))]
    return LOGIT_SHARES[share], float(np.exp(np.clip(vertex, grid[0], grid[-1])))


def knot_shares(bins: NDArray[Any]) -> NDArray[np.float64]:
    """What each knot gives to the logit of each bin of the histogram: beyond the knots the outer pieces go on."""
    return _hats(_core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (bins.astype(np.float64) + 0.5), KNOTS)


def _hats(values: NDArray[np.float64], knots: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each of the knots gives to each value of a piecewise linear function that goes on beyond them."""
    at = (values - knots[0]) / (knots[1] - knots[0])
    knot = np.clip(at, 0, len(knots) - 2).astype(int)
    shares = np.zeros((len(values), len(knots)))
    shares[np.arange(len(values)), knot] = 1 - (at - knot)
    shares[np.arange(len(values)), knot + 1] = at - knot
    return shares


def _fit_level(
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    smoothness: float,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Logits at the knots that minimise the log loss of one histogram, then made to rise."""
    used = np.flatnonzero(positive + negative)
    hat = knot_shares(used)
    anchor = USUAL_LOGITS if start is None else start
    pull = np.full(len(KNOTS), 1e-3)  # towards the anchor, so that knots without data stay finite
    total, wins = (positive + negative)[used], positive[used]
    logits, certainty = _minimise(hat, total, wins, _bending(len(KNOTS), smoothness), anchor, pull)
    return _rising(logits, np.abs(hat).T @ certainty + pull)


def _fit_rates(
    positive: NDArray[np.float64], negative: NDArray[np.float64], plain: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The least and the highest log rate in one level's histograms (rates x bins), and the map's curves for both."""
    rate_bins, bins = np.nonzero(positive + negative)
    rate = -(rate_bins + 0.5)
    total, wins = (positive + negative)[rate_bins, bins], positive[rate_bins, bins]
    least, highest = float(rate.min()), float(rate.max())
    if least == highest:
        return np.array([least, highest]), plain, plain
    middle = float(total @ rate / total.sum())
    hat = knot_shares(bins)
    weigh = _hats(np.clip(KNOTS, RATE_KNOTS[0], RATE_KNOTS[-1]), RATE_KNOTS)  # constant beyond the outer ones
    both = np.hstack([hat, (hat @ weigh) * (rate - middle)[:, None]])
    n, m = len(KNOTS), len(RATE_KNOTS)
    penalty = np.zeros((n + m, n + m))
    penalty[:n, :n], penalty[n:, n:] = _bending(n, 1.0), _bending(m, RATE_SMOOTHNESS)
    pull = np.concatenate([np.full(n, 1e-3), np.ones(m)])  # no data: rates do not matter
    found, certainty = _minimise(both, total, wins, penalty, np.concatenate([plain, np.zeros(m)]), pull)
    slopes = weigh @ found[n:]
    towards = (rate - least) / (highest - least)
    curves = [
        _rising(found[:n] + slopes * (end - middle), np.abs(hat).T @ (certainty * share) + 1e-3)
        for end, share in ((least, 1 - towards), (highest, towards))
    ]
    return np.array([least, highest]), curves[0], curves[1]


def _bending(n: int, smoothness: float) -> NDArray[np.float64]:
    """The penalty of second differences, as a matrix."""
    bend = np.diff(np.eye(n), 2, axis=0)
    return smoothness * (bend.T @ bend)


@cache
def blas_threads() -> Any:
    """What limits the threads of BLAS: on small matrices others than the first would only wait."""
    # Comes with scikit-learn, which a trained model does not need.
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _minimise(
    design: NDArray[np.float64],
    total: NDArray[np.float64],
    wins: NDArray[np.float64],
    penalty: NDArray[np.float64],
    anchor: NDArray[np.float64],
    pull: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients of the least penalised log loss, by Newton's method from the anchor; and each row's curvature."""
    from scipy.special import expit  # slow to import, and models that are only asked do not need it

    with blas_threads().limit(limits=1, user_api="blas"):

        def objective(x: NDArray[np.float64]) -> float:
            z = design @ x
            fit = total @ np.logaddexp(0, z) - wins @ z
            return float(fit + 0.5 * x @ penalty @ x + 0.5 * pull @ (x - anchor) ** 2)

        x, value = anchor, objective(anchor)
        for _ in range(50):
            p = expit(design @ x)
            gradient = design.T @ (total * p - wins) + penalty @ x + pull * (x - anchor)
            hessian = (design * (total * p * (1 - p) + 1e-9)[:, None]).T @ design + penalty + np.diag(pull)
            step = np.linalg.solve(hessian, gradient)
            size = 1.0
            while (new := objective(x - size * step)) > value and size > 1e-4:
                size /= 2
            if value - new < 1e-6 * abs(value):
                break
            x, value = x - size * step, new
        p = expit(design @ x)
        return x, total * p * (1 - p)


def _rising(logits: NDArray[np.float64], certainty: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest curve that rises, knots counting by what the data say about them.

    A running maximum would rise with every bump of noise, and all probabilities with it: falling stretches are levelled
    to their mean.
    """
    return rising_means(logits, certainty) + 1e-3 * np.arange(len(KNOTS))


def rising_means(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence that never falls, by weighted squares: neighbours that fall are pooled to their mean.

    >>> rising_means(np.array([1.0, 3.0, 2.0, 4.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    array([1. , 2.5, 2.5, 4. ])
    """
    means: list[float] = []
    totals: list[float] = []
    lengths: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, length = value, weight, 1
        while means and means[-1] >= mean:
            before = totals.pop()
            mean = (means.pop() * before + mean * total) / (before + total)
            total, length = before + total, length + lengths.pop()
        means.append(mean)
        totals.append(total)
        lengths.append(length)
    return np.repeat(means, lengths)
