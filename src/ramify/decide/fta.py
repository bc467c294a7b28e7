"""The fixed thresholds approach (FTA): try a grid of thresholds, per label or for all labels together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.common.validation import check_integer
from ramify.decide.decisions import f_measure, row_gains
from ramify.decide.estimates import Estimates, check_cut, check_empty, estimates
from ramify.decide.measures import LabelMeasure, check_objective, label_measure

# From the smallest cut of the estimates to the largest possible optimum (Jasinska et al. 2016, equation 5).
GRID = np.array([1e-4, 1e-3, 2e-3, 5e-3, *np.arange(1, 51) / 100], dtype=np.float32)
# For measures whose best threshold may be above one half.
WIDE_GRID = np.array([*GRID, *np.arange(51, 100) / 100], dtype=np.float32)

_LABELS_AT_ONCE = 1 << 14


class FixedThresholds:
    """FTA in one pass over batches of rows: keeps counts for every threshold of the grid, not the rows.

    Memory: two counts per label and threshold.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 4.2.

    >>> from scipy import sparse
    >>> P = sparse.csr_array(np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.1]], dtype=np.float32))
    >>> Y = np.array([[1, 0], [1, 1], [0, 0]])
    >>> fta = FixedThresholds(2, grid=[0.15, 0.25, 0.35, 0.45])
    >>> for row in range(3):
    ...     _ = fta.update(P[[row]], Y[[row]])
    >>> fta.thresholds(bounded=False).round(3).tolist()
    [0.3499999940395355, 0.25]
    """

    def __init__(
        self, n_labels: int, *, grid: ArrayLike | None = None, objective: str = "macro_f1", empty: str = "zero"
    ) -> None:
        check_integer("n_labels", n_labels, at_least=0)
        self.objective = check_objective(objective)
        self._measure = label_measure(objective)
        self.grid = _check_grid(grid, self._measure)
        self.empty = check_empty(empty)
        self.n_rows = 0
        self.positives = np.zeros(n_labels, dtype=np.int64)
        n_slots = n_labels if self._measure else 1
        self._hits = np.zeros((n_slots, len(self.grid)), dtype=np.int32)
        self._predicted = np.zeros((n_slots, len(self.grid)), dtype=np.int32)
        self._row_sums = np.zeros(len(self.grid))

    def update(self, P: Any, Y: Any) -> FixedThresholds:
        """Count these rows."""
        found = estimates(P, Y)
        if found.n_labels != len(self.positives):
            raise ValueError(f"P must have {len(self.positives)} labels (columns), got {found.n_labels}")
        self.n_rows += found.n_rows
        self.positives += found.positives
        if self.objective == "example_f1":
            p, gains, base = row_gains(found, self.empty)
            reached = self._reached(p)
            sums = np.bincount(reached[reached >= 0], gains[reached >= 0], minlength=len(self.grid))
            self._row_sums += base + np.cumsum(sums[::-1])[::-1]
            return self
        reached = self._reached(found.P.data)
        place = found.P.indices.astype(np.int64) if self._measure else np.int64(0)
        slot = place * len(self.grid) + reached
        for counts, kept in ((self._predicted, reached >= 0), (self._hits, (reached >= 0) & found.is_hit)):
            _add_counts(counts, slot[kept])
        return self

    @classmethod
    def side_by_side(cls, parts: Sequence[FixedThresholds]) -> FixedThresholds:
        """The counts of all labels, from counts of some labels each over the same rows; not for "example_f1"."""
        first = parts[0]
        joined = cls(sum(len(part.positives) for part in parts), grid=first.grid, objective=first.objective)
        joined.empty, joined.n_rows = first.empty, first.n_rows
        joined.positives = np.concatenate([part.positives for part in parts])
        joined._hits = np.concatenate([part._hits for part in parts])
        joined._predicted = np.concatenate([part._predicted for part in parts])
        return joined

    def _reached(self, p: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the index of the largest threshold that each probability reaches, or -1."""
        return np.searchsorted(self.grid, p, side="right") - 1

    def thresholds(
        self, *, common: bool = False, cut: float = 0.0, prior: ArrayLike | None = None, bounded: bool = True
    ) -> NDArray[np.float32]:
        """Return the best thresholds for the rows so far, one per label; with `common`, the best single one.

        A label's threshold is at least `cut` and above prior / (prior + 1); `bounded=False` disables the second bound.
        """
        cut = check_cut(cut)
        n_labels, offered = len(self.positives), self.grid >= np.float32(cut)
        offered[-1] = True
        totals = self._common_values()
        best_common = self.grid[_last_largest(np.where(offered, totals, -1.0)[None])[0]]
        if common or self._measure is None:
            return np.full(n_labels, best_common, dtype=np.float32)
        share = self.positives / max(self.n_rows, 1) if prior is None else np.asarray(prior, dtype=np.float64)
        bound = self._measure.lower_bound(share) if bounded else np.zeros(n_labels, dtype=np.float32)
        if bound.shape != (n_labels,):
            raise ValueError(f"prior must have shape ({n_labels},), one entry per label, got {bound.shape}")
        thresholds = np.empty(n_labels, dtype=np.float32)
        for start in range(0, n_labels, _LABELS_AT_ONCE):
            part = slice(start, start + _LABELS_AT_ONCE)
            f = np.where(offered & (self.grid > bound[part, None]), self._f(part), -1.0)
            best = f.max(axis=1)
            # Among ties, the threshold nearest to the common one generalises best.
            nearest = np.argmin(np.where(f == best[:, None], np.abs(self.grid - best_common), np.inf), axis=1)
            # A label without evidence uses the common threshold.
            thresholds[part] = np.where(best > 0, self.grid[nearest], np.maximum(best_common, bound[part]))
        return thresholds

    def _f(self, part: slice) -> NDArray[np.float64]:
        hits, predicted = (_above(counts[part]) for counts in (self._hits, self._predicted))
        assert self._measure is not None  # of the others there is one threshold for all labels
        return self._measure.value(hits, predicted, self.positives[part, None], self.n_rows, self.empty)

    def _common_values(self) -> NDArray[np.float64]:
        """Return the objective of each threshold if all labels use it."""
        if self.objective == "example_f1":
            return self._row_sums
        if self.objective == "micro_f1":
            total = _above(self._predicted) + self.positives.sum()
            return f_measure(_above(self._hits), total, self.empty).reshape(-1)
        parts = range(0, len(self.positives), _LABELS_AT_ONCE)
        sums = [self._f(slice(start, start + _LABELS_AT_ONCE)).sum(axis=0) for start in parts]
        return np.asarray(np.sum(sums, axis=0)) if sums else np.zeros(len(self.grid))


def tune_fta(
    P: Any,
    Y: Any,
    *,
    objective: str = "macro_f1",
    common: bool = False,
    grid: ArrayLike | None = None,
    cut: float = 0.0,
    prior: ArrayLike | None = None,
    empty: str = "zero",
) -> NDArray[np.float32]:
    """Return the best threshold of a grid within (prior_j / (prior_j + 1), 0.5] per label, or one for all labels.

    Only thresholds of at least `cut` are tried; a cut of 0 disables the bound. Ties go to the threshold nearest to the
    best common threshold; a label without evidence gets the common threshold. `FixedThresholds` does the same on a
    stream.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 4.2.

    >>> from scipy import sparse
    >>> P = sparse.csr_array(np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.1]], dtype=np.float32))
    >>> tune_fta(P, np.array([[1, 0], [1, 1], [0, 0]]), grid=[0.125, 0.25, 0.375, 0.5]).tolist()
    [0.375, 0.25]
    """
    found: Estimates = estimates(P, Y)
    counted = FixedThresholds(found.n_labels, grid=grid, objective=objective, empty=empty).update(found, None)
    return counted.thresholds(common=common, cut=cut, prior=prior, bounded=check_cut(cut) > 0)


def _check_grid(grid: ArrayLike | None, measure: LabelMeasure | None) -> NDArray[np.float32]:
    if grid is None:
        return GRID if measure is None or measure.highest_threshold <= 0.5 else WIDE_GRID
    given = np.unique(np.asarray(grid, dtype=np.float32))
    if given.ndim != 1 or not len(given) or not ((given > 0) & (given <= 1)).all():
        raise ValueError(f"grid must be a list of thresholds above 0 and at most 1, got {grid!r}")
    return given


def _add_counts(counts: NDArray[np.int32], slots: NDArray[np.int64]) -> None:
    """Add 1 to each slot: in place for a few slots, with bincount, which is faster, for many."""
    flat = counts.reshape(-1)
    if len(slots) * 8 < len(flat):
        np.add.at(flat, slots, np.int32(1))
    else:
        flat += np.bincount(slots, minlength=len(flat)).astype(np.int32, copy=False)


def _above(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the counts at or above each threshold."""
    return np.cumsum(counts[:, ::-1], axis=1, dtype=np.int64)[:, ::-1]


def _last_largest(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.asarray(values.shape[1] - 1 - np.argmax(values[:, ::-1], axis=1))
