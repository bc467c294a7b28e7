"""Choose c, which sets the cut of the estimates and the initial thresholds, by validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.common.validation import check_choice, check_integer, check_number
from ramify.decide.decisions import is_kept, value_of_kept
from ramify.decide.estimates import Estimates, check_empty, check_prior, estimates
from ramify.decide.fta import tune_fta
from ramify.decide.measures import check_objective
from ramify.decide.ofo import check_ofo_objective, tune_ofo
from ramify.decide.sto import tune_sto

# The set C of the paper (Jasinska et al. 2016, section 6.2).
C = (10000, 1000, 200, 100, 50, 20, 10, 7, 5, 4, 3, 2)
# At most this many labels per row: cut only at 1/10000, rows of many thousands of labels would fill the memory.
CANDIDATES = 200
METHODS = ("ofo", "fta", "sto")


@dataclass(frozen=True)
class Choice:
    """Thresholds, one per label, their c, and the validated objective of every c."""

    thresholds: NDArray[np.float32]
    c: float
    values: dict[float, float] = field(repr=False)


def tune(
    found: Estimates,
    method: str,
    c: float,
    *,
    prior: NDArray[np.float64],
    objective: str = "macro_f1",
    a: float = 1.0,
    common: bool = False,
    empty: str = "zero",
) -> NDArray[np.float32]:
    """Run one tuner with one c: cut the estimates at 1/c, or start the thresholds at a/c."""
    if method == "ofo":
        return tune_ofo(found, None, objective=objective, a=min(a, c), b=c, prior=prior)
    settings: dict[str, Any] = {"objective": objective, "cut": 1 / c, "prior": prior, "empty": empty}
    return tune_fta(found, None, common=common, **settings) if method == "fta" else tune_sto(found, None, **settings)


def tried_values(c: Any) -> list[float]:
    """Return the values of c to try, from one number or several, each at least 1.

    >>> tried_values(10), tried_values((10, 2))
    ([10], [10, 2])
    """
    values = list(c) if isinstance(c, Iterable) and not isinstance(c, str | bytes) else [c]
    if not values:
        raise ValueError("c is empty; pass at least one value")
    for one in values:
        check_number("c", one, at_least=1)
    return values


def choose_thresholds(
    P: Any,
    Y: Any,
    *,
    method: str = "ofo",
    objective: str = "macro_f1",
    c: float | Sequence[float] = C,
    a: float = 1.0,
    common: bool = False,
    prior: ArrayLike | None = None,
    empty: str = "zero",
    folds: int = 1,
) -> Choice:
    """Tune with every c and return the thresholds of the best one.

    For "sto" and "fta" the estimates are cut at max(1/c, prior_j / (prior_j + 1)); for "ofo" thresholds start at
    a / c. `folds=1` measures each c on the rows it was tuned on, as in the paper. More folds cross-validate: each fold
    is decided with thresholds tuned on the others.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", section 6.2.

    >>> from scipy import sparse
    >>> P = sparse.csr_array(np.array([[0.9, 0.2], [0.4, 0.3], [0.3, 0.1]], dtype=np.float32))
    >>> choice = choose_thresholds(P, np.array([[1, 0], [1, 1], [0, 0]]), method="sto", c=(10, 2))
    >>> choice.c, choice.values
    (10, {10: 1.0, 2: 0.3333333333333333})
    """
    check_choice("method", method, METHODS)
    check_objective(objective)
    if method == "ofo":
        check_ofo_objective(objective)
    c = tried_values(c)
    check_number("a", a, at_least=0)
    value_of_empty, folds = check_empty(empty), check_integer("folds", folds, at_least=1)
    found = estimates(P, Y)
    folds = min(folds, max(found.n_rows, 1))
    known = check_prior(prior, found)

    def tuned(part: Estimates, one: float) -> NDArray[np.float32]:
        return tune(part, method, one, objective=objective, a=a, common=common, prior=known, empty=empty)

    fold = np.arange(found.n_rows) % folds
    parts = [found.take(fold != k) for k in range(folds)] if folds > 1 else [found]
    fold_of = fold[found.row_of]
    values, best, best_thresholds = {}, -1.0, np.zeros(0, dtype=np.float32)
    for given in c:
        thresholds = [tuned(part, float(given)) for part in parts]
        kept = [is_kept(found, of_part) & (fold_of == k) for k, of_part in enumerate(thresholds)]
        values[given] = value_of_kept(found, np.logical_or.reduce(kept), objective, value_of_empty)
        if values[given] > best:
            chosen, best, best_thresholds = given, values[given], thresholds[0]
    if folds > 1:
        best_thresholds = tuned(found, float(chosen))
    return Choice(best_thresholds, chosen, values)
