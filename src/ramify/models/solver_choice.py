"""Which cost of errors suits the data: tried on rows that are held out from a sample of the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.models.calibration import KNOTS, fit_link

# Pairs (C, positive_weight), the most usual first: it is kept where the held-out rows cannot tell them apart.
CANDIDATES = {
    "squared_hinge": [(1.0, 0.7), (0.3, 1.0), (0.3, 0.7), (0.1, 1.0)],
    "logistic": [(10.0, 1.0), (3.0, 1.0), (1.0, 1.0)],
}
# How much of each level's work a candidate is tried on, and the most rows of a node that take part.
SAMPLE, SAMPLE_ROWS = 0.03, 4_096


def choose_solver(
    trainer: _core.BlockTrainer, *, loss: str, C: float | None, positive_weight: float | None, **settings: Any
) -> _core.SolverSettings:
    """Solver settings with C and positive_weight as given, or else of the least Brier score on held-out rows."""
    candidates = {
        (usual_C if C is None else C, usual_weight if positive_weight is None else positive_weight): None
        for usual_C, usual_weight in CANDIDATES[loss]
    }
    solvers = [_core.SolverSettings(loss=loss, C=c, positive_weight=weight, **settings) for c, weight in candidates]
    if len(solvers) == 1:
        return solvers[0]
    return min(solvers, key=lambda solver: held_out_brier(*trainer.held_out(solver, SAMPLE, SAMPLE_ROWS)))


def held_out_brier(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> float:
    """Sum of squared errors of the calibrated probabilities of held-out scores (levels x bins)."""
    link = fit_link(positive, negative)
    scores = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(positive.shape[1]) + 0.5)
    total = 0.0
    for level, logits in enumerate(link.logits):
        p = 1 / (1 + np.exp(-np.interp(scores, KNOTS, logits)))
        total += float(positive[level] @ (1 - p) ** 2 + negative[level] @ p**2)
    return total
