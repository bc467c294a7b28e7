"""The objective of the tuned thresholds for each c, on validation and test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ramify.common.validation import check_choice
from ramify.decide.choice import METHODS, C, tried_values, tune
from ramify.decide.decisions import value_of
from ramify.decide.estimates import check_empty, check_prior, estimates
from ramify.decide.measures import check_objective
from ramify.decide.ofo import OFO_OBJECTIVES


@dataclass(frozen=True)
class Curve:
    """The objective of one method for each c, on the rows used for tuning (validation) and on others (test)."""

    method: str
    c: tuple[float, ...]
    validation: tuple[float, ...]
    test: tuple[float, ...]


def f_measure_curves(
    P_validation: Any,
    Y_validation: Any,
    P_test: Any,
    Y_test: Any,
    *,
    methods: Sequence[str] = METHODS,
    objective: str = "macro_f1",
    c: float | Sequence[float] = C,
    prior: ArrayLike | None = None,
    empty: str = "zero",
) -> list[Curve]:
    """Tune with every method and every c, and measure on both sets.

    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", figure 1.

    >>> import numpy as np
    >>> P, Y = np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.1]], dtype=np.float32), np.array([[1, 0], [1, 1], [0, 0]])
    >>> [curve] = f_measure_curves(P, Y, P[:2], Y[:2], methods=["sto"], c=(10, 2))
    >>> curve.validation, curve.test
    ((1.0, 0.3333333333333333), (1.0, 0.3333333333333333))
    """
    check_objective(objective)
    value_of_empty, tried = check_empty(empty), tried_values(c)
    tuned_on, others = estimates(P_validation, Y_validation), estimates(P_test, Y_test)
    known = check_prior(prior, tuned_on)
    curves = []
    for method in methods:
        check_choice("method", method, METHODS)
        if method == "ofo" and objective not in OFO_OBJECTIVES:
            continue
        found = [tune(tuned_on, method, one, objective=objective, prior=known, empty=empty) for one in tried]
        validation, test = (
            tuple(value_of(rows, thresholds, objective, value_of_empty) for thresholds in found)
            for rows in (tuned_on, others)
        )
        curves.append(Curve(method, tuple(tried), validation, test))
    return curves
