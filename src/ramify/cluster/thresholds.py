"""Thresholds tuned by workers: one machine's choice, bit for bit.

Workers search the rows that are held out, shard by shard, and send each label's probabilities to the worker that owns
the label. Fixed thresholds (FTA) and the common one are chosen from counts; the search by sorting (STO) and the online
pass (OFO) go over a label's probabilities where they are. An objective that mixes labels, "micro_f1" or "example_f1",
is tuned by the driver on all probabilities.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.fitted import FittedModel
from ramify.base.model import Query
from ramify.cluster.tasks import stack
from ramify.decide import choose_thresholds
from ramify.decide.choice import Choice, tune
from ramify.decide.decisions import is_kept
from ramify.decide.estimates import EMPTY, Estimates, estimates
from ramify.decide.fta import FixedThresholds
from ramify.decide.measures import LabelMeasure, label_measure
from ramify.decide.sto import best_near

if TYPE_CHECKING:
    from ramify.cluster.rows import ShardedRows

Thresholds = NDArray[np.float32]
ALL_ROWS = -1  # in place of the number of a fold


class Tuning(NamedTuple):
    """What is tuned, and how: the settings of `choose_thresholds`."""

    method: str
    objective: str
    c: list[float]
    a: float
    common: bool
    empty: str
    folds: int

    @property
    def measure(self) -> LabelMeasure:
        measure = label_measure(self.objective)
        assert measure is not None
        return measure

    @property
    def parts(self) -> list[int]:
        """The parts of the rows that a validation tunes on: all but a fold each."""
        return list(range(self.folds)) if self.folds > 1 else [ALL_ROWS]


# --- on a worker -----------------------------------------------------------------------------------------------------


def search_rows(fitted: FittedModel, query: Query, bounds: NDArray[np.int64], rows: sparse.csr_array) -> Any:
    """The answers for some rows, cut into ranges of labels; one range gives one array."""
    P = fitted.search(rows, query)
    if len(bounds) == 2:
        return P
    return [P[:, first:end] for first, end in itertools.pairwise(bounds)]


def own_labels(order: NDArray[np.int64], Y: sparse.csr_array, *pieces: sparse.csr_array) -> Estimates:
    """The probabilities of a range of labels for all rows, in the order of tuning."""
    return estimates(stack(pieces)[order], Y)


def count_labels(found: Estimates, tuning: Tuning, parts: list[int]) -> list[FixedThresholds]:
    """For each part of the rows the counts of FTA."""
    return [
        FixedThresholds(found.n_labels, objective=tuning.objective, empty=tuning.empty).update(
            _part(found, tuning, k), None
        )
        for k in parts
    ]


def tune_labels(
    found: Estimates, tuning: Tuning, c: float, part: int, prior: NDArray[np.float64], given: Any
) -> Thresholds:
    """Thresholds tuned on a part of the rows. `given`: thresholds by counts ("fta"), or the common one ("sto")."""
    if tuning.method == "fta":
        thresholds: Thresholds = given
        return thresholds
    rows = _part(found, tuning, part)
    if tuning.method == "ofo":
        return tune(rows, "ofo", c, prior=prior, objective=tuning.objective, a=tuning.a)
    common = np.full(found.n_labels, given, dtype=np.float32)
    return best_near(rows, tuning.measure, 1 / c, prior, EMPTY[tuning.empty], common)


def validate_labels(
    found: Estimates, tuning: Tuning, prior: NDArray[np.float64], given: dict[tuple[float, int], Any]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each c how often each label is decided, and rightly so, each fold by thresholds of the others."""
    fold_of = (np.arange(found.n_rows) % tuning.folds)[found.row_of]
    counts = []
    for c in tuning.c:
        kept = np.zeros(found.P.nnz, dtype=bool)
        for k in tuning.parts:
            thresholds = tune_labels(found, tuning, c, k, prior, given.get((c, k)))
            kept |= is_kept(found, thresholds) & (True if k == ALL_ROWS else fold_of == k)
        decided, right = (
            np.bincount(found.P.indices[chosen], minlength=found.n_labels) for chosen in (kept, kept & found.is_hit)
        )
        counts.append((decided, right))
    return counts


def _part(found: Estimates, tuning: Tuning, part: int) -> Estimates:
    return found if part == ALL_ROWS else found.take(np.arange(found.n_rows) % tuning.folds != part)


# --- the driver ------------------------------------------------------------------------------------------------------


def choose_on_workers(
    rows: ShardedRows,
    fitted: FittedModel,
    places: NDArray[np.integer],
    Y: sparse.csr_array,
    query: Query,
    settings: dict[str, Any],
) -> Choice:
    """`choose_thresholds` with these settings on the answers for the rows at `places`; Y has their labels."""
    ascending = np.argsort(places, kind="stable")
    order = np.argsort(ascending, kind="stable")
    shared, query = rows.workers.put(fitted), query._replace(n_threads=1, options=dict(query.options))
    [pieces] = rows.gathered([np.asarray(places, np.int64)[ascending]])
    if label_measure(settings["objective"]) is None:
        every = np.array([0, Y.shape[1]])
        answers = [rows.workers.submit(search_rows, shared, query, every, piece) for piece in pieces]
        return choose_thresholds(stack(rows.workers.get(answers))[order], Y, **settings)
    return _LabelRanges(rows, shared, query, pieces, order, Y, settings).choice()


class _LabelRanges:
    """Ranges of labels with about as many positives, each with its probabilities on a worker."""

    def __init__(
        self,
        rows: ShardedRows,
        fitted: Any,
        query: Query,
        pieces: Sequence[Any],
        order: NDArray[np.int64],
        Y: sparse.csr_array,
        settings: dict[str, Any],
    ) -> None:
        self.workers, self.Y, self.prior = rows.workers, Y, np.asarray(settings["prior"])
        self.tuning = Tuning(**{name: value for name, value in settings.items() if name != "prior"})
        before = np.cumsum(np.bincount(Y.indices, minlength=Y.shape[1]) + 1)
        cuts = np.searchsorted(before, np.arange(1, rows.n_tasks) * before[-1] / rows.n_tasks)
        self.bounds = np.unique(np.concatenate(([0], cuts, [Y.shape[1]])))
        n = len(self.bounds) - 1
        answers = [self.workers.submit(search_rows, fitted, query, self.bounds, piece, n_returns=n) for piece in pieces]
        by_range = zip(*answers, strict=True) if n > 1 else [answers]
        self.found = [
            self.workers.submit(own_labels, order, Y[:, first:end], *of_range)
            for (first, end), of_range in zip(itertools.pairwise(self.bounds), by_range, strict=True)
        ]

    def choice(self) -> Choice:
        tuning = self.tuning
        given = self._given([(c, k) for c in tuning.c for k in tuning.parts])
        counts = self._on_each(validate_labels, [(tuning, prior, of_range) for prior, of_range in given])
        positives = np.bincount(self.Y.indices, minlength=self.Y.shape[1]).astype(np.int64)
        values = {}
        for place, c in enumerate(tuning.c):
            decided, right = (np.concatenate([of_range[place][k] for of_range in counts]) for k in (0, 1))
            value = tuning.measure.value(right, decided, positives, self.Y.shape[0], EMPTY[tuning.empty])
            values[c] = float(value.mean())
        chosen = max(tuning.c, key=values.__getitem__)
        final = [
            (tuning, float(chosen), ALL_ROWS, prior, of_range.get((chosen, ALL_ROWS)))
            for prior, of_range in self._given([(chosen, ALL_ROWS)])
        ]
        return Choice(np.concatenate(self._on_each(tune_labels, final)), chosen, values)

    def _given(self, wanted: list[tuple[float, int]]) -> list[tuple[NDArray[np.float64], dict[Any, Any]]]:
        """For each range its priors, and what tuning it needs of all labels."""
        ranges = list(itertools.pairwise(self.bounds))
        priors = [self.prior[first:end] for first, end in ranges]
        if self.tuning.method == "ofo":
            return [(prior, {}) for prior in priors]
        parts = sorted({k for _, k in wanted})
        counted = self._on_each(count_labels, [(self.tuning, parts)] * len(ranges))
        joined = {k: FixedThresholds.side_by_side([of_range[i] for of_range in counted]) for i, k in enumerate(parts)}
        is_sto = self.tuning.method == "sto"
        given: list[dict[Any, Any]] = [{} for _ in ranges]
        for c, k in wanted:
            common = is_sto or self.tuning.common
            thresholds = joined[k].thresholds(common=common, cut=1 / c, prior=self.prior)
            for (first, end), of_range in zip(ranges, given, strict=True):
                of_range[c, k] = thresholds[first] if is_sto else thresholds[first:end]
        return list(zip(priors, given, strict=True))

    def _on_each(self, task: Any, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        running = [self.workers.submit(task, found, *given) for found, given in zip(self.found, arguments, strict=True)]
        answers: list[Any] = self.workers.get(running)
        return answers
