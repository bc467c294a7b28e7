"""Weights and calibration of a mixture, by the Brier score of rows that its parts were not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

# Powers of a part's probabilities that are tried, the identity first.
EXPONENTS = (1.0, 0.5, 0.63, 0.8, 1.25, 1.6, 2.0)
# A part with less weight is left out: it would cost more than it adds.
LEAST_WEIGHT = 0.005
_MAX_STEPS = 10_000


@dataclass
class BrierSums:
    """All that the weights depend on: for estimates P (entries, parts) and targets y, the sums P'P, P'y and y'y.

    More rows add to them, so the weights of a stream follow it without keeping rows.
    """

    gram: NDArray[np.float64]
    target: NDArray[np.float64]
    n_positives: float = 0.0

    @classmethod
    def none(cls, n_parts: int) -> Self:
        return cls(np.zeros((n_parts, n_parts)), np.zeros(n_parts))

    def plus(self, P: NDArray[np.float64], y: NDArray[np.float64], entry_weight: NDArray[np.float64] | None) -> Self:
        weighted = P if entry_weight is None else P * entry_weight[:, None]
        n_positives = float((y if entry_weight is None else y * entry_weight).sum())
        return type(self)(self.gram + weighted.T @ P, self.target + weighted.T @ y, self.n_positives + n_positives)

    def weights(self) -> NDArray[np.float64]:
        """The weights, not negative and with sum one, of the least squared error; equal ones before the first row."""
        n_parts = len(self.target)
        weights = np.full(n_parts, 1 / n_parts)
        if not self.target.any():
            return weights
        weights = _least_on_simplex(self.gram, self.target, weights)
        weights[weights < LEAST_WEIGHT] = 0.0
        scaled: NDArray[np.float64] = weights / weights.sum()
        return scaled


def _least_on_simplex(
    gram: NDArray[np.float64], target: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The minimum of w'Gw - 2 t'w over weights of sum one: projected gradient steps, which a convex problem needs."""
    step = 1 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    weights = start
    for _ in range(_MAX_STEPS):
        moved = project_to_simplex(weights - step * (gram @ weights - target))
        if np.abs(moved - weights).max() < 1e-9:
            return moved
        weights = moved
    return weights


def project_to_simplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest point whose entries are not negative and sum up to one.

    >>> project_to_simplex(np.array([0.9, 0.5, -1.0])).round(3)
    array([0.7, 0.3, 0. ])
    """
    values = values - values.max()  # the same nearest point; large values would hide the one that is subtracted
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    nearest: NDArray[np.float64] = np.maximum(values - shift, 0.0)
    return nearest


def best_exponent(p: NDArray[np.float64], y: NDArray[np.float64], entry_weight: NDArray[np.float64] | None) -> float:
    """The power of a part's probabilities with the least Brier score; the first of equals.

    >>> best_exponent(np.array([0.3, 0.3, 0.3]), np.array([1.0, 0.0, 1.0]), None)
    0.5
    """
    loss = [np.average((p**exponent - y) ** 2, weights=entry_weight) for exponent in EXPONENTS]
    return EXPONENTS[int(np.argmin(loss))]
