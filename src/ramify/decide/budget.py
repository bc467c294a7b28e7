"""Predict exactly k labels per row so that a metric over all rows is as large as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.common.validation import check_choice, check_integer, check_number
from ramify.decide.decisions import kept_labels
from ramify.decide.estimates import as_stored
from ramify.metrics._inputs import as_indicator, check_probabilities, check_same_shape, positions_in

BUDGET_OBJECTIVES = ("macro_f1", "macro_recall", "macro_balanced_accuracy", "macro_jaccard", "coverage")
# The gain of a decision does not depend on the others, so one start finds the optimum.
ADDITIVE = ("macro_recall", "macro_balanced_accuracy")


@dataclass(frozen=True)
class BudgetDecision:
    """Decisions as a 0/1 array, their expected value, and the expected value after each pass over the rows."""

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
    n_epochs: int = 30,
    tol: float = 1e-7,
    random_state: Any = 0,
) -> BudgetDecision:
    """Predict k of the stored labels of each row so that the expected objective over all rows is as large as possible.

    The true labels are unknown, so the estimates serve as their probabilities, and hits and positives are expected
    counts. Block coordinate ascent: with all other rows fixed, a row's best labels are those with the largest gains.
    Rows are visited in random order, at most `n_epochs` times, until a pass gains no more than `tol`. The value never
    falls. The best of `n_starts` runs is returned. A row with fewer than k stored labels gets all of them. `positive`
    is the expected number of positives of each label, needed if the estimates are cut so high that their sums are too
    small. Not in the paper: section 7 of Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse
    Probability Estimates", leaves it open.

    objective: "macro_f1", "macro_recall", "macro_balanced_accuracy", "macro_jaccard", or "coverage": the fraction of
    labels with at least one correct decision.

    >>> P = np.array([[0.9, 0.5], [0.8, 0.4], [0.7, 0.3]], dtype=np.float32)
    >>> decide_budget(P, 1, objective="coverage").decisions.sum(axis=0).tolist()  # label 0 is the best of each row
    [1, 2]
    """
    scores, objective, k = _checked(P, objective, k)
    check_integer("n_starts", n_starts, at_least=1)
    check_integer("n_epochs", n_epochs, at_least=1)
    check_number("tol", tol, at_least=0)
    from sklearn.utils import check_random_state

    generator = check_random_state(random_state)
    found: list[BudgetDecision] = []
    for _ in range(1 if objective in ADDITIVE else n_starts):
        counts = _Counts(scores.shape[1], objective)
        counts.expect(scores, positive)
        is_chosen = np.zeros(scores.nnz, dtype=np.uint8)
        values: list[float] = []
        for _ in range(n_epochs):
            order = generator.permutation(scores.shape[0]).astype(np.int64)
            n_changed = counts.ascend(scores, k, order, is_chosen)
            values.append(counts.value())
            if n_changed == 0 or (len(values) > 1 and values[-1] - values[-2] <= tol):
                break
        found.append(BudgetDecision(kept_labels(scores, is_chosen.astype(bool)), values[-1], tuple(values)))
    return max(found, key=lambda decision: decision.value)


class OnlineBudget:
    """Decide with a budget on a stream: each row takes the labels with the largest gains when it arrives.

    Earlier decisions count and are never changed.

    >>> online = OnlineBudget(2, k=1, objective="coverage")
    >>> [online.decide(np.array([[0.9, p]], dtype=np.float32)).indices.tolist() for p in (0.5, 0.4)]
    [[0], [1]]
    """

    def __init__(self, n_labels: int, k: int, *, objective: str = "macro_f1") -> None:
        check_integer("n_labels", n_labels, at_least=0)
        self.k = check_integer("k", k, at_least=1)
        self._counts = _Counts(n_labels, check_choice("objective", objective, BUDGET_OBJECTIVES))

    def decide(self, P: Any) -> sparse.csr_array:
        """Return the decisions for these rows, made one after the other."""
        scores, _, _ = _checked(P, self._counts.objective, self.k)
        if scores.shape[1] != len(self._counts.hits):
            raise ValueError(f"P must have {len(self._counts.hits)} labels (columns), got {scores.shape[1]}")
        self._counts.expect(scores, None)
        is_chosen = np.zeros(scores.nnz, dtype=np.uint8)
        self._counts.ascend(scores, self.k, np.arange(scores.shape[0], dtype=np.int64), is_chosen)
        return kept_labels(scores, is_chosen.astype(bool))

    @property
    def value(self) -> float:
        """The expected value of all decisions so far."""
        return self._counts.value()


def expected_value(P: Any, decisions: Any, *, objective: str = "macro_f1", positive: ArrayLike | None = None) -> float:
    """Return the expected objective of 0/1 decisions; the estimates are the probabilities of the labels.

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
    """Expected counts of each label, in the form of core/decide/block_ascent.hpp."""

    def __init__(self, n_labels: int, objective: str) -> None:
        self.objective = objective
        self.hits = np.ones(n_labels) if objective == "coverage" else np.zeros(n_labels)
        self.predicted, self.positive = np.zeros(n_labels), np.zeros(n_labels)
        self.n_rows = 0

    def expect(self, scores: sparse.csr_array, positive: ArrayLike | None) -> None:
        """Add the expected positives of these rows."""
        n_labels = len(self.hits)
        self.n_rows += scores.shape[0]
        if positive is None:
            self.positive += np.bincount(scores.indices, scores.data, minlength=n_labels)
            return
        given = np.array(positive, dtype=np.float64)
        if given.shape != (n_labels,) or not ((given >= 0) & (given <= self.n_rows)).all():
            raise ValueError(
                f"positive must have shape ({n_labels},), with a number between 0 and {self.n_rows} for each label"
            )
        self.positive = given

    def ascend(self, scores: sparse.csr_array, k: int, order: NDArray[np.int64], is_chosen: NDArray[np.uint8]) -> int:
        return _core.ascend_budget(
            self.objective,
            min(k, max(len(self.hits), 1)),  # a row cannot have more labels than there are
            scores,
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
    check_probabilities(scores)
    return scores, check_choice("objective", objective, BUDGET_OBJECTIVES), check_integer("k", k, at_least=1)
