"""Exactly k labels a row, chosen for a measure of all rows together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.common.validation import check_choice, check_integer, check_number
from ramify.data.csr import csr_rows
from ramify.decide.estimates import as_stored
from ramify.metrics._inputs import as_indicator, check_same_shape, positions_in

BUDGET_OBJECTIVES = ("macro_f1", "macro_recall", "macro_balanced_accuracy", "macro_jaccard", "coverage")
ADDITIVE = (
    "macro_recall",
    "macro_balanced_accuracy",
)  # a decision's gain does not depend on others: one start finds all


@dataclass(frozen=True)
class BudgetDecision:
    """Decisions as a 0/1 array, the value that is expected of them, and that value after each pass over the rows."""

    decisions: sparse.csr_array
    value: float
    values: tuple[float, ...]


def decide_budget(
    P: Any,
    k: int,
    *,
    objective: str = "macro_f1",
    positive: ArrayLike | None = None,
    n_starts: int = 4,
    max_passes: int = 30,
    tolerance: float = 1e-7,
    random_state: Any = 0,
) -> BudgetDecision:
    """Give each row k of its stored labels so that the objective expected of all rows is as large as possible.

    The true labels are not known; with the estimates as their probabilities, hits and positives are expected counts.
    Block coordinate ascent: with all other rows as they are, a row's best labels are those of the largest gains. Rows
    are visited in random order until no pass gains more than `tolerance`; the value never falls, and the best of
    `n_starts` ends is taken. A row with fewer than
    k stored labels gets them all. `positive` gives the expected number of positives of each label, if the estimates
    were cut so low that their sums do not. This goes beyond the extreme-f-measure paper, whose section 7 asks for it.

    objective: "macro_f1", "macro_recall", "macro_balanced_accuracy", "macro_jaccard", or "coverage": the share of
    labels for which at least one decision is right.

    >>> P = np.array([[0.9, 0.5], [0.8, 0.4], [0.7, 0.3]], dtype=np.float32)
    >>> decide_budget(P, 1, objective="coverage").decisions.sum(axis=0).tolist()  # the first is each row's best label
    [1, 2]
    """
    scores, objective, k = _checked(P, objective, k)
    check_integer("n_starts", n_starts, at_least=1)
    check_integer("max_passes", max_passes, at_least=1)
    check_number("tolerance", tolerance, at_least=0)
    from sklearn.utils import check_random_state

    generator = check_random_state(random_state)
    found: list[BudgetDecision] = []
    for _ in range(1 if objective in ADDITIVE else n_starts):
        counts = _Counts(scores.shape[1], objective)
        counts.expect(scores, positive)
        is_chosen = np.zeros(scores.nnz, dtype=np.uint8)
        values: list[float] = []
        for _ in range(max_passes):
            order = generator.permutation(scores.shape[0]).astype(np.int64)
            n_changed = counts.ascend(scores, k, order, is_chosen)
            values.append(counts.value())
            if n_changed == 0 or (len(values) > 1 and values[-1] - values[-2] <= tolerance):
                break
        found.append(BudgetDecision(_chosen(scores, is_chosen), values[-1], tuple(values)))
    return max(found, key=lambda decision: decision.value)


class OnlineBudget:
    """The same for rows that come in pieces and must be decided at once: each row takes the largest gains as it comes.

    What was decided before counts, and is not changed any more.

    >>> online = OnlineBudget(2, k=1, objective="coverage")
    >>> [online.decide(np.array([[0.9, p]], dtype=np.float32)).indices.tolist() for p in (0.5, 0.4)]
    [[0], [1]]
    """

    def __init__(self, n_labels: int, k: int, *, objective: str = "macro_f1") -> None:
        check_integer("n_labels", n_labels, at_least=0)
        self.k = check_integer("k", k, at_least=1)
        self._counts = _Counts(n_labels, check_choice("objective", objective, BUDGET_OBJECTIVES))

    def decide(self, P: Any) -> sparse.csr_array:
        """Decisions for these rows, one after the other."""
        scores, _, _ = _checked(P, self._counts.objective, self.k)
        if scores.shape[1] != len(self._counts.hits):
            raise ValueError(f"P has {scores.shape[1]} labels, but there are {len(self._counts.hits)}")
        self._counts.expect(scores, None)
        is_chosen = np.zeros(scores.nnz, dtype=np.uint8)
        self._counts.ascend(scores, self.k, np.arange(scores.shape[0], dtype=np.int64), is_chosen)
        return _chosen(scores, is_chosen)

    @property
    def value(self) -> float:
        """What is expected of all decisions so far."""
        return self._counts.value()


def expected_value(P: Any, decisions: Any, *, objective: str = "macro_f1", positive: ArrayLike | None = None) -> float:
    """The objective expected of 0/1 decisions, the estimates being the labels' probabilities.

    >>> round(expected_value(np.array([[0.8, 0.2], [0.4, 0.6]]), [[1, 0], [0, 1]]), 3)
    0.697
    """
    scores, objective, _ = _checked(P, objective, 1)
    decided = as_indicator(decisions, "decisions", n_labels=scores.shape[1])
    check_same_shape(decided, "decisions", scores, "P")
    counts = _Counts(scores.shape[1], objective)
    counts.expect(scores, positive)
    at = positions_in(decided, scores)
    label, p = scores.indices[at], scores.data[at].astype(np.float64)
    counts.predicted += np.bincount(decided.indices, minlength=scores.shape[1])
    if objective == "coverage":
        np.multiply.at(counts.hits, label, np.maximum(1 - p, 1e-9))
    else:
        counts.hits += np.bincount(label, p, minlength=scores.shape[1])
    return counts.value()


class _Counts:
    """Expected counts of each label, as core/decide/block_ascent.hpp keeps them."""

    def __init__(self, n_labels: int, objective: str) -> None:
        self.objective = objective
        self.hits = np.ones(n_labels) if objective == "coverage" else np.zeros(n_labels)
        self.predicted, self.positive = np.zeros(n_labels), np.zeros(n_labels)
        self.n_rows = 0

    def expect(self, scores: sparse.csr_array, positive: ArrayLike | None) -> None:
        """There are further rows."""
        n_labels = len(self.hits)
        self.n_rows += scores.shape[0]
        if positive is None:
            self.positive += np.bincount(scores.indices, scores.data, minlength=n_labels)
            return
        given = np.array(positive, dtype=np.float64)
        if given.shape != (n_labels,) or not ((given >= 0) & (given <= self.n_rows)).all():
            raise ValueError(
                f"positive must hold a number of rows, at most {self.n_rows}, for each of {n_labels} labels"
            )
        self.positive = given

    def ascend(self, scores: sparse.csr_array, k: int, order: NDArray[np.int64], is_chosen: NDArray[np.uint8]) -> int:
        return _core.ascend_budget(
            self.objective,
            min(k, max(len(self.hits), 1)),  # no row has more labels than there are
            scores.indptr.astype(np.int64, copy=False),
            scores.indices.astype(np.int32, copy=False),
            scores.data,
            order,
            self.hits,
            self.predicted,
            self.positive,
            float(self.n_rows),
            is_chosen,
        )

    def value(self) -> float:
        hits, predicted, positive = self.hits, self.predicted, self.positive
        if len(hits) == 0:
            return float("nan")
        if self.objective == "coverage":
            return float((1 - hits).mean())
        if self.objective == "macro_f1":
            return float(_ratio(2 * hits, predicted + positive).mean())
        if self.objective == "macro_jaccard":
            return float(_ratio(hits, predicted + positive - hits).mean())
        recall = _ratio(hits, positive)
        if self.objective == "macro_recall":
            return float(recall.mean())
        negative = self.n_rows - positive
        return float((recall + _ratio(negative - (predicted - hits), negative)).mean() / 2)


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _checked(P: Any, objective: Any, k: Any) -> tuple[sparse.csr_array, str, int]:
    scores = as_stored(P)
    if scores.nnz and scores.data.max() > 1 + 1e-5:
        raise ValueError(f"P must hold probabilities, but its largest value is {scores.data.max()}")
    return scores, check_choice("objective", objective, BUDGET_OBJECTIVES), check_integer("k", k, at_least=1)


def _chosen(scores: sparse.csr_array, is_chosen: NDArray[np.uint8]) -> sparse.csr_array:
    kept = is_chosen.astype(bool)
    indptr = np.concatenate([[0], np.cumsum(kept)])[scores.indptr]
    return csr_rows(np.ones(int(kept.sum()), dtype=np.int64), scores.indices[kept], indptr, scores.shape)
