"""Dual coordinate descent for the binary problems of siblings, a number at a time, in float64.

Same order of rows and same rules (what is shrunk, which steps are too small, the damped last epoch) as the compiled
solver, so that weights can be compared and not only objectives.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from twins.hashing import WORD, mix

LANES = 8  # columns that are shrunk and skipped together
TILE = 32  # columns that share one order of rows
LAST_STEP = 0.6


def tile_seed(seed, node, tile):
    return mix((seed * 31 + mix(node * 4096 + tile)) % WORD)


class SplitMix:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) % WORD
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
        return ((z >> 32) * n) >> 32


def solve(X, Y, *, loss, C, positive_weight, max_epochs, eps, seed, node=0, row_weight=None):
    """Weights (features x columns) for prepared dense rows X and 0/1 columns Y, those in the order of solving."""
    weights = np.zeros((X.shape[1], Y.shape[1]))
    for tile in range(-(-Y.shape[1] // TILE)):
        columns = slice(TILE * tile, TILE * (tile + 1))
        weights[:, columns] = _solve_tile(
            X, Y[:, columns], loss, C, positive_weight, max_epochs, eps, tile_seed(seed, node, tile), row_weight
        )
    return weights


def relative_gaps(X, Y, *, loss, C, positive_weight, n_epochs, eps, seed, row_weight=None):
    """The duality gap of each epoch, at most 32 columns together, as a share of the first one's."""
    gaps = []
    _solve_tile(X, Y, loss, C, positive_weight, n_epochs + 1, eps, tile_seed(seed, 0, 0), row_weight, gaps)
    return np.array(gaps[:n_epochs]) / gaps[0]


def _solve_tile(X, Y, loss, C, positive_weight, max_epochs, eps, seed, row_weight, gaps=None):
    n, width = Y.shape
    # Columns are padded with problems that have no positive row.
    signs = np.full((n, -(-width // LANES) * LANES), -1.0)
    signs[:, :width] = np.where(Y > 0, 1.0, -1.0)
    costs = np.where(signs > 0, C * positive_weight, C) * (np.ones(n) if row_weight is None else row_weight)[:, None]
    weights, duals = np.zeros((X.shape[1], signs.shape[1])), np.zeros_like(signs)
    is_active = np.ones((n, signs.shape[1] // LANES), dtype=bool)
    squared_norm = (X**2).sum(axis=1)
    order, random = list(range(n)), SplitMix(seed)
    for epoch in range(max_epochs):
        order = [r for r in order if is_active[r].any()]
        for k in range(len(order) - 1, 0, -1):
            j = random.below(k + 1)
            order[k], order[j] = order[j], order[k]
        damping = LAST_STEP if epoch == max_epochs - 1 else 1.0
        has_moved, gap = False, 0.0
        for r in order:
            scores = X[r] @ weights
            for group in np.flatnonzero(is_active[r]):
                lanes = slice(LANES * group, LANES * (group + 1))
                y, dual, cost = signs[r, lanes], duals[r, lanes], costs[r, lanes]
                used = slice(0, width - LANES * group)
                gap += _gap((y * scores[lanes])[used], dual[used], cost[used], loss)
                if loss == "squared_hinge":
                    gradient = y * scores[lanes] - 1 + dual / (2 * cost)
                    new = np.maximum(dual - damping * gradient / (squared_norm[r] + 1 / (2 * cost)), 0)
                    step = new - dual
                    is_active[r, group] = ((new > 0) | (gradient <= 0.1)).any()
                else:
                    new = dual + damping * (logistic_dual(y * scores[lanes], dual, cost * squared_norm[r]) - dual)
                    step = (new - dual) * cost
                if (np.abs(step) > eps).any():
                    duals[r, lanes] = new
                    weights[:, lanes] += np.outer(X[r], step * y)
                    has_moved = True
        if gaps is not None:
            gaps.append(gap)
        if not has_moved:
            break
    return weights[:, :width]


def _gap(margins, duals, costs, loss):
    """Loss and conjugate less their product; for logistic loss its lower bound by Pinsker's inequality."""
    if loss == "squared_hinge":
        slack = 1 - margins
        return (costs * np.maximum(slack, 0) ** 2 + duals**2 / (4 * costs) - duals * slack).sum()
    return (2 * costs * (duals - expit(-margins)) ** 2).sum()


def logistic_dual(margin, dual, curvature):
    """The dual value at which it equals sigmoid(-margin), the margin moving with it: by bisection, in (0, 1)."""
    low, high = np.zeros_like(dual), np.ones_like(dual)
    for _ in range(40):
        middle = (low + high) / 2
        is_low = middle < expit(-(margin + curvature * (middle - dual)))
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return (low + high) / 2


def primal_objective(w, X, y, costs, loss):
    """Half the squared length of w plus the costs of the rows' losses; y is +1 or -1."""
    margins = y * (X @ w)
    losses = np.maximum(0, 1 - margins) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -margins)
    return 0.5 * w @ w + costs @ losses
