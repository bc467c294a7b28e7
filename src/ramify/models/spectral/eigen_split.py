"""One node by itself: the direction that parts the labels, and how pure the parts are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.common.validation import check_choice, check_integer, check_number
from ramify.data.csr import checked_rows
from ramify.data.labels import label_indicator

SOLVERS = ("randomised", "power")


class EigenSplit(NamedTuple):
    """A node's routing: a row goes right if its product with `direction` is above `bias`.

    `sigma` is how far a row like the one at hand may lie from it: the eigenvalue over the sum of the importances.
    """

    direction: NDArray[np.float32]
    bias: float
    sigma: float
    eigenvalue: float


def eigen_split(
    X: Any,
    Y: Any,
    importance: ArrayLike | None = None,
    *,
    solver: str = "randomised",
    max_iterations: int = 20,
    tol: float = 1e-3,
    cg_iterations: int = 8,
    squares_frequency: bool = False,
    random_state: int = 0,
    n_jobs: int = 1,
) -> EigenSplit:
    """The direction that explains most of the labels' space, orthogonal to the mean row, with the median as bias.

    max |X^ w|^2 over unit w with 1' X w = 0, X^ being the best linear prediction of X from Y; rows count by their
    importance. With `squares_frequency` and one class per row, classes count by the square of their frequency.
    Paper: Mineiro and Karampatziakis 2015, "A Hierarchical Spectral Method for Extreme Classification", section 3.3
    (equations 2 and 3, or 1).

    >>> from scipy import sparse
    >>> X = sparse.csr_array(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], dtype=np.float32))
    >>> split = eigen_split(X, np.array([0, 0, 1, 1]))
    >>> (X @ split.direction > split.bias).tolist() in ([True, True, False, False], [False, False, True, True])
    True
    """
    check_choice("solver", solver, SOLVERS)
    check_integer("max_iterations", max_iterations, at_least=1)
    check_integer("cg_iterations", cg_iterations, at_least=1)
    check_number("tol", tol, at_least=0)
    rows = checked_rows(X).copy()
    rows.sum_duplicates()
    labels = label_indicator(Y)
    weight = np.ones(rows.shape[0]) if importance is None else np.ascontiguousarray(importance, dtype=np.float64)
    direction, eigenvalue = _core.split_direction(
        rows,
        labels,
        rows.shape[1],
        labels.shape[1],
        weight,
        solver,
        max_iterations,
        tol,
        cg_iterations,
        random_state,
        n_jobs,
        squares_frequency,
    )
    bias = _core.weighted_median(np.asarray(rows @ direction, dtype=np.float64), weight)
    return EigenSplit(direction, bias, eigenvalue / float(weight.sum()), eigenvalue)


def purity(goes_right: ArrayLike, Y: Any) -> float:
    """How much of a label stays together: the larger share of its rows on one side, averaged over its rows.

    One is perfect, a half is the worst. Paper: Mineiro and Karampatziakis 2015, sections 3.3
    and 5.2 (table 3).

    >>> purity([True, True, True, False], np.array([0, 0, 1, 1]))
    0.75
    """
    labels = label_indicator(Y)
    right = np.asarray(labels.T @ np.asarray(goes_right, dtype=np.float64))
    total = np.bincount(labels.indices, minlength=labels.shape[1]).astype(np.float64)
    return float(np.maximum(right, total - right).sum() / total.sum())
