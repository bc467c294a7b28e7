"""Which cost of errors suits the data: tried on rows that are held out from a sample of the nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ramify import _core
from ramify.models.plt.calibration import IDENTITY, Link, fit_link, fit_softmax_link, knot_shares
from ramify.models.plt.solver import PLTSolver

# Pairs (C, positive_weight), the most usual first: it is kept where the held-out rows cannot tell them apart.
# Where exactly one label is true, positives are few and weigh more.
MULTILABEL = {
    "squared_hinge": [(1.0, 0.7), (0.3, 1.0), (0.1, 1.0)],
    "logistic": [(10.0, 1.0), (3.0, 1.0), (1.0, 1.0)],
}
MULTICLASS = {
    "squared_hinge": [(1.0, 2.0), (0.3, 2.0), (0.1, 2.0)],
    "logistic": [(10.0, 2.0), (3.0, 2.0), (1.0, 2.0)],
}
# A candidate is tried on this share of each level's work, more where the data are small; and on so many rows of a node.
LEAST_SHARE, ENOUGH_WORK, MAX_ROWS = 0.05, 2e6, 12_288
# How much better than the first a candidate must be: below that the sample cannot tell.
MARGIN = 0.003
# By how much the second must beat the first for the others, further along the same way, to be worth trying. The loss
# bends upwards: on the multi-label sets of benchmarks/plt/README.md each step gains 0.015 to 0.09 less than the last.
PROMISING = 0.01


def choose_solver(
    trainer: _core.BlockTrainer, given: PLTSolver, *, is_multiclass: bool, calibrate: bool
) -> tuple[_core.SolverSettings, Link]:
    """Solver settings with C and positive_weight as given, or else those that serve held-out rows best, and their link.

    Best is the least Brier score, or for multi-class the least log loss of the softmax. Unless the second candidate is
    clearly better than the first, the others, further along the same way, are not tried.
    """
    usual = (MULTICLASS if is_multiclass else MULTILABEL)[given.loss]
    if given.C is not None or given.optimizer is not None:
        usual = usual[:1]
    pairs = dict.fromkeys(
        (C if given.C is None else given.C, weight if given.positive_weight is None else given.positive_weight)
        for C, weight in usual
    )
    solvers = [
        _core.SolverSettings(
            loss=given.loss,
            C=C,
            positive_weight=weight,
            max_epochs=given.n_epochs,
            eps=given.tol,
            prune=given.prune,
            **given.steps(),
        )
        for C, weight in pairs
    ]
    if len(solvers) == 1 and not calibrate:
        return solvers[0], IDENTITY
    share = min(1.0, max(LEAST_SHARE, ENOUGH_WORK / max(trainer.total_work, 1)))

    def try_out(batch: list[_core.SolverSettings]) -> list[tuple[float, Link]]:
        # Together, so that each node is prepared once and threads have enough to do.
        found, stands_for = trainer.held_out(batch, share, MAX_ROWS, is_multiclass=is_multiclass)
        return [_held_out_loss(*of_solver, stands_for, is_multiclass) for of_solver in found]

    tried = try_out(solvers[:2])
    first = tried[0][0]
    if tried[-1][0] < first * (1 - PROMISING):
        tried += try_out(solvers[2:])
    least = min(range(len(tried)), key=lambda k: tried[k][0])
    best = least if tried[least][0] < first * (1 - MARGIN) else 0
    return solvers[best], tried[best][1] if calibrate else IDENTITY


def _held_out_loss(
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    softmax: NDArray[np.float64],
    stands_for: NDArray[np.float64],
    is_multiclass: bool,
) -> tuple[float, Link]:
    if is_multiclass:
        return float(stands_for @ softmax.min(axis=1)), fit_softmax_link(softmax)
    link = fit_link(positive, negative)
    return held_out_brier(positive, negative, stands_for, link), link


def held_out_brier(
    positive: NDArray[np.float64], negative: NDArray[np.float64], stands_for: NDArray[np.float64], link: Link
) -> float:
    """Sum of squared errors of the calibrated probabilities of held-out scores (levels x bins).

    Levels are sampled at unequal shares: each counts as if it had been held out whole.
    """
    shares = knot_shares(np.arange(positive.shape[1]))
    total = 0.0
    for level, logits in enumerate(link.logits):
        p = expit(shares @ logits)
        total += float(stands_for[level] * (positive[level] @ (1 - p) ** 2 + negative[level] @ p**2))
    return total
