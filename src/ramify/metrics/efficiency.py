"""The expected search depth in a label tree, and how few labels cover most rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.metrics._inputs import as_indicator, as_positive_integer, as_scores, check_real, rows_of
from ramify.metrics.ranking import top_positions


def expected_depth_at_k(P: Any, depth: ArrayLike, k: int = 1) -> float:
    """Return the depth of the deepest of a row's first k labels, averaged over rows.

    `depth` has one entry per label, for example `LabelTree.label_depth`. A row without predictions counts as 0.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    section 5.

    >>> expected_depth_at_k([[0.9, 0.5, 0.1], [0.2, 0.1, 0.7]], depth=[1, 3, 2], k=2)
    2.5
    """
    scores, k = as_scores(P), as_positive_integer(k, "k")
    depths = np.asarray(depth)
    if depths.shape != (scores.shape[1],):
        raise ValueError(f"depth must have one number for each of {scores.shape[1]} labels, got shape {depths.shape}")
    check_real(depths.dtype, "depth")
    if scores.shape[0] == 0:
        return float("nan")
    positions = top_positions(scores, min(k, int(scores.shape[1])))
    found = np.where(positions >= 0, np.append(depths[scores.indices], 0)[positions], 0)
    if (found < 0).any():
        label = int(scores.indices[positions[found < 0][0]])
        raise ValueError(f"P predicts label {label}, whose depth is {depths[label]}, so it has no place in the tree")
    return float(found.max(axis=1, initial=0).mean())


def labels_needed(Y: Any, k: int | None = 1) -> NDArray[np.int64]:
    """Return, for each row with labels, how many of the most frequent labels of Y cover k of its labels.

    With k=None, or in a row with fewer than k labels, all of the row's labels must be covered. Ties in frequency go to
    the lower column.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    figures 1 and 6.

    >>> labels_needed([[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 1, 0]], k=1)
    array([1, 1, 1, 2])
    >>> labels_needed([[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 1, 0]], k=None)
    array([2, 3, 1, 2])
    """
    indicator = as_indicator(Y, "Y")
    if k is not None:
        k = as_positive_integer(k, "k")
    frequency = np.bincount(indicator.indices, minlength=indicator.shape[1])
    rank = np.empty(indicator.shape[1], dtype=np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(1, indicator.shape[1] + 1)
    row = rows_of(indicator)
    sorted_ranks = rank[indicator.indices][np.lexsort((rank[indicator.indices], row))]
    lengths = np.diff(indicator.indptr)
    has_labels = lengths > 0
    place = lengths if k is None else np.minimum(lengths, k)
    answer: NDArray[np.int64] = sorted_ranks[(indicator.indptr[:-1] + place - 1)[has_labels]]
    return answer
