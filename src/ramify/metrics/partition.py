"""Purity and balance of a split of the rows (Choromanska and Langford 2015)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class PartitionQuality(NamedTuple):
    """The objective J of a split (0 to 1), alpha (the fraction apart from its class), and beta (the fraction right)."""

    objective: float
    purity: float
    balance: float


def partition_quality(y: ArrayLike, goes_right: ArrayLike) -> PartitionQuality:
    """Return the objective J, the purity factor alpha and the balancing factor beta of a split.

    J is 1 if and only if the split is pure (alpha = 0) and balanced (beta = 1/2).
    Paper: Choromanska and Langford 2015, "Logarithmic Time Online Multiclass prediction", section 2.2.

    >>> partition_quality(["a", "a", "b", "c"], [True, True, False, False])
    PartitionQuality(objective=1.0, purity=0.0, balance=0.5)
    """
    right = np.asarray(goes_right, dtype=bool)
    _, codes = np.unique(np.asarray(y), return_inverse=True)
    if right.ndim != 1 or codes.shape != right.shape or not len(right):
        raise ValueError(
            f"y and goes_right must have one entry per row and at least one row, got shapes {codes.shape} and "
            f"{right.shape}"
        )
    share = np.bincount(codes) / len(right)
    right_of_class = np.bincount(codes, right) / np.bincount(codes)
    balance = float(right.mean())
    objective = 2 * float(share @ np.abs(right_of_class - balance))
    return PartitionQuality(objective, float(share @ np.minimum(right_of_class, 1 - right_of_class)), balance)


def leaf_entropy(y: ArrayLike, leaf: ArrayLike) -> float:
    """Return G of a tree: the entropy of the classes in each leaf, in nats, averaged over the rows.

    Paper: Choromanska and Langford 2015, "Logarithmic Time Online Multiclass prediction", section 2.3.

    >>> round(leaf_entropy(["a", "b", "c", "c"], [0, 0, 1, 1]), 4)
    0.3466
    """
    _, codes = np.unique(np.asarray(y), return_inverse=True)
    _, leaves = np.unique(np.asarray(leaf), return_inverse=True)
    if codes.shape != leaves.shape or codes.ndim != 1 or not len(codes):
        raise ValueError(
            f"y and leaf must have one entry per row and at least one row, got shapes {codes.shape} and {leaves.shape}"
        )
    cell, inverse, count = np.unique(
        leaves.astype(np.int64) * (codes.max() + 1) + codes, return_inverse=True, return_counts=True
    )
    in_leaf = np.bincount(leaves)[cell // (codes.max() + 1)]
    surprise: NDArray[np.float64] = np.log(in_leaf / count)
    return float(surprise[inverse].mean())
