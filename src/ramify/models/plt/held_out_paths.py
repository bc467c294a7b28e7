"""Whole paths of held-out rows: how the levels' probabilities go together.

Each level's map is fitted on rows for which the parent is true, so it ignores that a high score of a child also makes
its parent more likely. Products of the levels are too low where labels are found, and nodes of low probability are
opened too late. What the held-out rows show at the end of their paths gives each level an exponent: a label's
probability is the product of the levels' powers, and each power is again a map from scores to probabilities.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.training import TrainingData
from ramify.data.remote_rows import RemoteRows
from ramify.models.plt.block_trainer import BlockTrainer, with_known_rates
from ramify.models.plt.calibration import RateCurves, blas_threads
from ramify.trees.label_tree import LabelTree

# Held-out rows to look at: so many that about this many true labels lie below nodes of the sample, within these bounds.
TRUE_LABELS, ROWS = 2000, (200, 2000)
LEAST = 2e-3  # labels below that hardly count, and most are
MAX_OTHERS = 100_000  # of the labels that are not true, evenly spread ones count for all
# How strongly exponents are drawn to 1, and their ranges: what children tell only raises their parents, but the last
# level makes up for all above it.
PULL, INNER, LAST = 20.0, (0.5, 1.0), (0.5, 1.5)


class HeldOutPaths:
    """The rows that a trainer holds out, and the tree whose paths they are asked for."""

    def __init__(self, data: TrainingData, tree: LabelTree, features: _core.FeatureSettings, seed: int) -> None:
        self.data, self.tree, self.features, self.seed = data, tree, features, seed

    def exponents(self, trainer: BlockTrainer, curves: RateCurves, share: float) -> NDArray[np.float64]:
        """The exponent of each level, from the blocks that the trainer kept when it fitted the maps on that share."""
        rows = self._rows(share)
        if not len(rows):
            return np.ones(len(curves.rates))
        X, link = self.data.X, curves.link()
        blocks = with_known_rates(trainer.held_out_blocks(), self.tree, curves.rates)
        model = _core.LabelTreeModel(
            blocks, self.tree, self.features, link.logits, link.slope_table(), link.low, link.step, False
        )
        row, label, logs = model.paths(X.gather(rows) if isinstance(X, RemoteRows) else X[rows], LEAST)
        is_true = _are_entries(self.data.Y[rows], row, label)
        others = np.flatnonzero(~is_true)
        thinned = -(-len(others) // MAX_OTHERS) or 1
        counted = np.sort(np.concatenate([np.flatnonzero(is_true), others[::thinned]]))
        weight = np.where(is_true, 1.0, thinned)[counted]
        if self.data.sample_weight is not None:
            weight *= self.data.sample_weight[rows][row[counted]]
        with blas_threads().limit(limits=1, user_api="blas"):
            return fit_exponents(logs[counted].astype(np.float64), is_true[counted], weight)

    def _rows(self, share: float) -> NDArray[np.int64]:
        """Held-out rows, evenly spread."""
        rows = np.arange(self.data.X.shape[0], dtype=np.int64)
        if self.data.sample_weight is not None:
            rows = rows[self.data.sample_weight > 0]
        held_out = rows[_core.is_held_out(rows, self.seed) > 0]
        true_labels = share * max(self.data.Y.nnz, 1) / self.data.Y.shape[0]  # of a row
        most = int(np.clip(TRUE_LABELS / true_labels, *ROWS))
        return held_out[:: -(-len(held_out) // most) or 1]


def _are_entries(Y: sparse.csr_array, row: NDArray[np.int32], column: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of these places have an entry."""
    width = np.int64(Y.shape[1])
    entries = np.sort(np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)) * width + Y.indices)
    wanted = row * width + column
    found: NDArray[np.bool_] = np.append(entries, -1)[np.searchsorted(entries, wanted)] == wanted
    return found


def fit_exponents(
    logs: NDArray[np.float64], is_true: NDArray[np.bool_], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Exponents for the columns of `logs` (logs of probabilities) that minimise the log loss of the products.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, (20_000, 2))
    >>> fit_exponents(np.log(p), rng.random(20_000) < p[:, 0] ** 0.7 * p[:, 1], np.ones(20_000)).round(1)
    array([0.7, 1. ])
    """
    hit, missed = weight * is_true, weight * ~is_true
    low, high = np.array([*[INNER] * (logs.shape[1] - 1), LAST]).T

    def logs_of(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.minimum(logs @ exponents, -1e-6)

    def objective(exponents: NDArray[np.float64]) -> float:
        z = logs_of(exponents)
        return float(-hit @ z - missed @ np.log(-np.expm1(z)) + 0.5 * PULL * ((exponents - 1) ** 2).sum())

    found = np.ones(logs.shape[1])
    value = objective(found)
    for _ in range(20):
        odds = 1 / np.expm1(-logs_of(found))  # p / (1 - p)
        gradient = logs.T @ (missed * odds - hit) + PULL * (found - 1)
        hessian = (logs * (missed * odds * (1 + odds))[:, None]).T @ logs + PULL * np.eye(len(found))
        is_free = ~((found <= low) & (gradient > 0) | (found >= high) & (gradient < 0))
        step, size = np.zeros(len(found)), 1.0
        step[is_free] = np.linalg.solve(hessian[np.ix_(is_free, is_free)], gradient[is_free])
        while not (new := objective(np.clip(found - size * step, low, high))) <= value and size > 1e-4:
            size /= 2
        if not value - new > 1e-5 * abs(value):
            break
        found, value = np.clip(found - size * step, low, high), new
    return found
