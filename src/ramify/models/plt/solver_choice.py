"""Which cost of errors, weight of positives and number of epochs suit the data: tried on held-out rows.

A sample of the nodes is trained without a fifth of their rows, which are then scored. The choice starts from the usual
values and moves to a neighbour on one of the three axes as long as that clearly lowers the loss. The axes are wide
enough for a few rows per label as well as for thousands: benchmarks/robustness.py measures what the choice misses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ramify import _core
from ramify.models.plt.block_trainer import BlockTrainer
from ramify.models.plt.calibration import IDENTITY, Link, fit_link, fit_softmax_link, knot_shares
from ramify.models.plt.fit_report import Trial
from ramify.models.plt.solver import PLTSolver

# Values to choose from; the search starts from the middle C, the fewest epochs and the weight of START_WEIGHT.
COSTS = {"squared_hinge": (0.1, 0.3, 1.0, 4.0, 16.0), "logistic": (1.0, 3.0, 10.0, 30.0, 100.0)}
POSITIVE_WEIGHTS = {"squared_hinge": (0.7, 2.0), "logistic": (1.0, 2.0)}
EPOCHS = (5, 20)
COST_AXIS, WEIGHT_AXIS, EPOCH_AXIS = range(3)
# Where exactly one label is true, positives are few and weigh more.
START_WEIGHT = {False: 0, True: 1}
# A setting is tried on this share of each level's work, more where the data are small; and on at most MAX_ROWS rows of
# a node.
LEAST_SHARE, ENOUGH_WORK, MAX_ROWS = 0.05, 1e6, 12_288
# How much lower the loss of another setting must be: below that the sample cannot tell.
MARGIN = 0.005


class SolverChoice(NamedTuple):
    """The chosen settings as the core takes them, their map from scores to probabilities, and all trials."""

    solver: _core.SolverSettings
    link: Link
    chosen: Trial
    trials: list[Trial]


def choose_solver(trainer: BlockTrainer, given: PLTSolver, *, is_multiclass: bool, calibrate: bool) -> SolverChoice:
    """Solver settings as given, or else those that serve held-out rows best.

    Best is the least Brier score, or for multi-class the least log loss of the softmax.
    """
    axes = (
        COSTS[given.loss] if given.C is None else (float(given.C),),
        POSITIVE_WEIGHTS[given.loss] if given.positive_weight is None else (float(given.positive_weight),),
        EPOCHS if given.n_epochs is None else (given.n_epochs,),
    )
    start = (len(axes[0]) // 2, min(START_WEIGHT[is_multiclass], len(axes[1]) - 1), 0)
    if given.optimizer is not None:  # it takes neither C nor weights, and its epochs are of another kind
        axes = tuple((values[place],) for values, place in zip(axes, start, strict=True))  # type: ignore[assignment]
        start = (0, 0, 0)
    share = min(1.0, max(LEAST_SHARE, ENOUGH_WORK / max(trainer.total_work, 1)))
    tried: dict[tuple[int, ...], tuple[Trial, Link]] = {}

    def try_out(*places: tuple[int, ...]) -> None:
        # Together, so that each node is prepared once and threads have enough to do.
        new = [place for place in dict.fromkeys(places) if place not in tried]
        if not new:
            return
        settings = [_core_settings(given, *_values(axes, place)) for place in new]
        found, stands_for = trainer.held_out(settings, share, MAX_ROWS, is_multiclass=is_multiclass)
        for place, of_solver in zip(new, found, strict=True):
            loss, link = _held_out_loss(*of_solver, stands_for, is_multiclass)
            tried[place] = Trial(*_values(axes, place), loss), link

    best: tuple[int, ...] = start
    if max(map(len, axes)) == 1 and not calibrate:
        chosen = Trial(*_values(axes, best), float("nan"))
        return SolverChoice(_core_settings(given, *chosen[:3]), IDENTITY, chosen, [])
    # At once what nearly every search looks at.
    try_out(best, *_neighbours(axes, best, EPOCH_AXIS), *_neighbours(axes, best, COST_AXIS))
    before: tuple[int, ...] | None = None
    while best != before:
        before = best
        for axis in (EPOCH_AXIS, COST_AXIS, WEIGHT_AXIS):  # more epochs ask for another C, so they come first
            while True:
                neighbours = _neighbours(axes, best, axis)
                try_out(*neighbours)
                least = min([best, *neighbours], key=lambda place: tried[place][0].loss)
                if not tried[least][0].loss < tried[best][0].loss * (1 - MARGIN):
                    break
                best = least
    chosen, link = tried[best]
    trials = [trial for trial, _ in tried.values()]
    return SolverChoice(_core_settings(given, *chosen[:3]), link if calibrate else IDENTITY, chosen, trials)


Axes = tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...]]


def _values(axes: Axes, place: tuple[int, ...]) -> tuple[float, float, int]:
    return axes[0][place[0]], axes[1][place[1]], axes[2][place[2]]


def _neighbours(axes: Axes, place: tuple[int, ...], axis: int) -> list[tuple[int, ...]]:
    """The places one step down and one step up on an axis, as far as they exist."""
    moved = [(*place[:axis], place[axis] + step, *place[axis + 1 :]) for step in (-1, 1)]
    return [other for other in moved if 0 <= other[axis] < len(axes[axis])]


def _core_settings(given: PLTSolver, C: float, positive_weight: float, n_epochs: int) -> _core.SolverSettings:
    return _core.SolverSettings(
        loss=given.loss,
        C=C,
        positive_weight=positive_weight,
        max_epochs=n_epochs,
        eps=given.tol,
        prune=given.prune,
        **given.steps(),
    )


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
