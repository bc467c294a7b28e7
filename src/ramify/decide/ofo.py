"""Online F-measure optimisation (OFO): one pass over the rows, two numbers per label."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.common.validation import check_flag, check_number
from ramify.decide.decisions import f_measure
from ramify.decide.estimates import Estimates, as_stored, check_empty, check_prior, estimates, lower_bound
from ramify.decide.measures import check_objective
from ramify.metrics._inputs import as_indicator, check_same_shape

OFO_OBJECTIVES = ("macro_f1", "micro_f1")
# First values of a and b: one number for all labels, or one per label.
Initial: TypeAlias = float | NDArray[np.float64]


class OnlineF:
    """Thresholds that follow a stream: tau_j = a_j / b_j, half the F measure of the label so far.

    a_j counts true positives and b_j positives plus predicted positives, starting at `a` and `b`: numbers, or arrays of
    one number per label, as in the paper. Only labels that are true or predicted change. New labels can appear at any
    time: `update` accepts wider arrays (arrays `a` and `b` must have room for them).
    With `bounded`, thresholds stay at or above prior_j / (prior_j + 1). The prior is `prior`, or by default the
    fraction of the rows seen so far (causal).
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 4.3 and
    algorithm 2.

    >>> from scipy import sparse
    >>> P = sparse.csr_array(np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.1]], dtype=np.float32))
    >>> ofo = OnlineF(a=1, b=4).update(P, np.array([[1, 0], [1, 1], [0, 0]]))
    >>> ofo.a.tolist(), ofo.b.tolist(), ofo.thresholds.round(3).tolist()
    ([2.0, 2.0], [7.0, 6.0], [0.4000000059604645, 0.3330000042915344])
    >>> round(ofo.f1(), 3)
    0.833
    """

    def __init__(
        self,
        *,
        a: float | ArrayLike = 1.0,
        b: float | ArrayLike = 20.0,
        objective: str = "macro_f1",
        bounded: bool = True,
        prior: ArrayLike | None = None,
    ) -> None:
        self.first_a, self.first_b = check_initial(a, b)
        self.objective = check_ofo_objective(objective)
        if objective != "macro_f1" and (np.ndim(self.first_a) or np.ndim(self.first_b)):
            raise ValueError(f"objective={objective!r} has one threshold for all labels: give numbers for a and b")
        self.bounded = check_flag("bounded", bounded)
        self.n_seen = 0
        n_slots = 0 if objective == "macro_f1" else 1
        self.a, self.b = _first(self.first_a, 0, n_slots), _first(self.first_b, 0, n_slots)
        self.positives = np.zeros(0, dtype=np.int64)
        # The bound is per label, so a common threshold has none.
        fixed = bounded and prior is not None and objective == "macro_f1"
        self._bound = lower_bound(np.asarray(prior)) if fixed else None

    def update(self, P: Any, Y: Any) -> OnlineF:
        """Decide each row with the current thresholds, then update them with its true labels."""
        found = P if isinstance(P, Estimates) else None
        scores = as_stored(P) if found is None else found.P
        truth = as_indicator(Y, "Y", n_labels=scores.shape[1]) if found is None else found.truth
        check_same_shape(truth, "Y", scores, "P")
        self._widen(scores.shape[1])
        is_causal = self.bounded and self._bound is None and self.objective == "macro_f1"
        _core.online_f_pass(
            scores,
            truth,
            len(self.positives),
            self.a,
            self.b,
            self._bound,
            self.positives if is_causal else None,
            self.n_seen,
        )
        if not is_causal:
            self.positives += np.bincount(truth.indices, minlength=len(self.positives))
        self.n_seen += scores.shape[0]
        return self

    @property
    def n_labels(self) -> int:
        return len(self.positives)

    @property
    def thresholds(self) -> NDArray[np.float32]:
        """The current thresholds, one per label."""
        return self.least_after(0)

    def least_after(self, n_rows: int) -> NDArray[np.float32]:
        """Return a lower bound of the thresholds during the next `n_rows` rows: b grows by at most 2 per row and label.

        Estimates below it cannot affect the decisions of these rows.
        """
        half_f: NDArray[np.float32] = (self.a / (self.b + 2 * n_rows * self._labels_a_slot())).astype(np.float32)
        if self.objective != "macro_f1":
            return np.full(self.n_labels, half_f[0], dtype=np.float32)
        if not self.bounded or (self._bound is None and self.n_seen == 0):
            return half_f
        bound = self._bound
        if bound is None:
            bound = (self.positives / (self.positives + (self.n_seen + n_rows))).astype(np.float32)
        return np.asarray(np.maximum(half_f, bound))

    def f1(self, *, empty: str = "zero") -> float:
        """Return the progressive F (macro or micro) of the decisions so far, each made before its row was learned."""
        value = check_empty(empty)
        if self.n_labels == 0:
            return float("nan")
        n = len(self.a)
        hits, total = self.a - _first(self.first_a, 0, n), self.b - _first(self.first_b, 0, n)
        return float(f_measure(hits, total, value).mean())

    def restore(
        self, a: NDArray[np.float64], b: NDArray[np.float64], positives: NDArray[np.int64], n_seen: int
    ) -> None:
        """Resume from stored counts. The arrays are copied."""
        n_slots = len(positives) if self.objective == "macro_f1" else 1
        is_sound = a.dtype == b.dtype == np.float64 and positives.dtype == np.int64 and a.shape == b.shape == (n_slots,)
        if not is_sound or not (b > 0).all() or not (a >= 0).all() or type(n_seen) is not int or n_seen < 0:
            raise ValueError(
                f"invalid counts of online thresholds: a and b must be float64 of shape ({n_slots},) with a >= 0 and "
                "b > 0, positives int64, and n_seen an integer of at least 0"
            )
        if n_seen > 2**62 or not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise ValueError("invalid counts of online thresholds: a and b must be finite, and n_seen below 2**62")
        if len(positives) and (positives.min() < 0 or positives.max() > n_seen):
            raise ValueError(f"invalid counts of online thresholds: positives must lie between 0 and n_seen = {n_seen}")
        self.a, self.b, self.positives, self.n_seen = a.copy(), b.copy(), positives.copy(), n_seen

    def _labels_a_slot(self) -> int:
        return 1 if self.objective == "macro_f1" else max(1, self.n_labels)

    def _widen(self, n_labels: int) -> None:
        n_new = n_labels - len(self.positives)
        if n_new < 0:
            raise ValueError(f"P must have at least {len(self.positives)} labels (columns), as before, got {n_labels}")
        if self._bound is not None and n_labels > len(self._bound):
            raise ValueError(f"P has {n_labels} labels (columns), but prior has only {len(self._bound)} entries")
        if n_new == 0:
            return
        for name, first in (("a", self.first_a), ("b", self.first_b)):
            if np.ndim(first) and n_labels > len(np.atleast_1d(first)):
                raise ValueError(f"P has {n_labels} labels (columns), but {name} has only {np.shape(first)[0]} entries")
        self.positives = np.concatenate([self.positives, np.zeros(n_new, dtype=np.int64)])
        if self.objective == "macro_f1":
            self.a = np.concatenate([self.a, _first(self.first_a, n_labels - n_new, n_labels)])
            self.b = np.concatenate([self.b, _first(self.first_b, n_labels - n_new, n_labels)])


def _first(initial: Initial, start: int, stop: int) -> NDArray[np.float64]:
    """First values of the labels from `start` to before `stop`."""
    if np.ndim(initial):
        return np.array(np.asarray(initial)[start:stop])
    return np.full(stop - start, initial, dtype=np.float64)


def tune_ofo(
    P: Any,
    Y: Any,
    *,
    objective: str = "macro_f1",
    a: float | ArrayLike = 1.0,
    b: float | ArrayLike = 20.0,
    prior: ArrayLike | None = None,
    bounded: bool = True,
) -> NDArray[np.float32]:
    """Return the thresholds after one pass of OFO over these rows, at or above prior / (prior + 1).

    Every threshold starts at a / b, numbers or one of each per label; the paper's experiments set a = 1 and choose b.
    "micro_f1" keeps one pair for all labels.
    `OnlineF` does the same on a stream.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 4.3 and
    algorithm 2.

    >>> from scipy import sparse
    >>> P = sparse.csr_array(np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.1]], dtype=np.float32))
    >>> tune_ofo(P, np.array([[1, 0], [1, 1], [0, 0]]), b=4).round(3).tolist()
    [0.4000000059604645, 0.3330000042915344]
    """
    found = estimates(P, Y)
    ofo = OnlineF(a=a, b=b, objective=objective, bounded=bounded, prior=check_prior(prior, found))
    return ofo.update(found, None).thresholds


def check_ofo_objective(objective: Any) -> str:
    if objective in OFO_OBJECTIVES:
        return str(objective)
    check_objective(objective)
    raise ValueError(f"method 'ofo' has no rule for objective={objective!r}; use method 'fta' or 'sto'")


def check_initial(a: Any, b: Any) -> tuple[Initial, Initial]:
    """The first counts: numbers, or one number per label."""
    first, second = _check_counts("a", a), _check_counts("b", b)
    if (np.asarray(second) <= 0).any():
        raise ValueError(f"b must be a number above 0, got {b!r}")
    if np.ndim(first) and np.ndim(second) and np.shape(first) != np.shape(second):
        raise ValueError(f"a and b must have one number per label each, got {np.shape(first)} and {np.shape(second)}")
    if (np.asarray(first) > np.asarray(second)).any():
        raise ValueError(f"a must be at most b (a / b is the initial threshold), got a={a!r} and b={b!r}")
    return first, second


def _check_counts(name: str, given: Any) -> Initial:
    if np.ndim(given) == 0:
        return check_number(name, given, at_least=0)
    counts = np.array(given, dtype=np.float64)
    if counts.ndim != 1 or not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError(f"{name} must be a number of at least 0, or one such number per label, got {given!r}")
    return counts
