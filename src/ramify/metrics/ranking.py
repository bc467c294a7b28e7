"""Metrics of the top k labels of each row, plain and propensity scored."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.metrics._inputs import Comparison, Truth, as_indicator, as_positive_integer, compare


def precision_at_k(Y_true: Any, P: Any, k: int = 5) -> float:
    """Return the fraction of the top k labels that are true, averaged over rows.

    The divisor is always k, so a row with fewer than k true labels or predictions cannot reach 1.

    >>> import numpy as np
    >>> P = np.array([[0.9, 0.1, 0.5], [0.2, 0.7, 0.3]])
    >>> precision_at_k([[1, 0, 1], [1, 0, 0]], P, k=2)
    0.5
    """
    return precision(*_first(Y_true, P, k))


def recall_at_k(Y_true: Any, P: Any, k: int = 5) -> float:
    """Return the fraction of a row's true labels that are among its top k, averaged over rows.

    A row without labels counts as 0, as in scikit-learn.

    >>> import numpy as np
    >>> recall_at_k([[1, 0, 1], [1, 0, 0]], np.array([[0.9, 0.1, 0.5], [0.2, 0.7, 0.3]]), k=1)
    0.25
    """
    return recall(*_first(Y_true, P, k))


def ndcg_at_k(Y_true: Any, P: Any, k: int = 5) -> float:
    """Return the normalised discounted cumulative gain: a hit at rank r gains 1/log2(r + 1), divided by the ideal gain.

    The ideal ranking starts with the row's min(k, number of true labels) hits. A row without labels counts as 0.

    >>> import numpy as np
    >>> ndcg_at_k([[1, 0, 1]], np.array([[0.9, 0.1, 0.5]]), k=3)
    1.0
    """
    return ndcg(*_first(Y_true, P, k))


def coverage_at_k(Y_true: Any, P: Any, k: int = 5) -> float:
    """Return the fraction of the labels in `Y_true` that are a correct top-k prediction in at least one row.

    Without any true label the result is 0.

    >>> import numpy as np
    >>> coverage_at_k([[1, 0, 1], [1, 0, 0]], np.array([[0.9, 0.1, 0.5], [0.2, 0.7, 0.3]]), k=1)
    0.5
    """
    return coverage(*_first(Y_true, P, k))


def psp_at_k(Y_true: Any, P: Any, propensity: Any, k: int = 5) -> float:
    """Return the propensity scored precision: a hit on label l has weight 1/p_l, so rare labels count more.

    Normalised as in the Extreme Classification Repository: the sum over all rows, divided by the sum for the true
    labels ranked by decreasing weight. `propensity` has one entry per label; see `propensities`.
    Paper: Jain et al. 2016, "Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing
    Label Applications", section 4.

    >>> import numpy as np
    >>> psp_at_k([[1, 0, 1]], np.array([[0.9, 0.1, 0.5]]), propensity=[1.0, 0.5, 0.25], k=1)
    0.25
    """
    ranked, k = _first(Y_true, P, k)
    return psp(ranked, k, best_ranking(ranked, inverse_propensity(propensity, ranked.n_labels)))


def psndcg_at_k(Y_true: Any, P: Any, propensity: Any, k: int = 5) -> float:
    """Return the propensity scored nDCG: a hit on label l at rank r gains 1/(p_l log2(r + 1)).

    Normalised as in the Extreme Classification Repository: each row is divided by its ideal unweighted gain, and the
    sum over rows by the same sum for the true labels ranked by decreasing weight. A row without labels adds nothing.
    Paper: as for `psp_at_k`.

    >>> import numpy as np
    >>> psndcg_at_k([[1, 0, 1]], np.array([[0.1, 0.2, 0.9]]), propensity=[1.0, 0.5, 0.25], k=1)
    1.0
    """
    ranked, k = _first(Y_true, P, k)
    return psndcg(ranked, k, best_ranking(ranked, inverse_propensity(propensity, ranked.n_labels)))


def propensities(Y_train: Any, A: float = 0.55, B: float = 1.5, *, n_labels: int | None = None) -> NDArray[np.float64]:
    """Return the probability that a true label l is recorded: 1/(1 + C exp(-A log(N_l + B))), C = (log n - 1)(B + 1)^A.

    N_l is the count of label l in the n training rows. Common values: A=0.5, B=0.4 for Wikipedia data, A=0.6, B=2.6
    for Amazon data, the defaults otherwise. `n_labels` is the number of classes if `Y_train` is 1-D.
    Paper: as for `psp_at_k`.

    >>> import numpy as np
    >>> propensities(np.eye(4, 3)).round(3)
    array([0.721, 0.721, 0.721])
    """
    for name, value in (("A", A), ("B", B)):
        if not isinstance(value, numbers.Real) or not 0 < value < np.inf:
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    if n_labels is not None:
        n_labels = as_positive_integer(n_labels, "n_labels")
    Y = as_indicator(Y_train, "Y_train", n_labels=n_labels)
    if n_labels is not None and Y.shape[1] != n_labels:
        raise ValueError(f"Y_train has {Y.shape[1]} labels (columns), but n_labels is {n_labels}")
    n = Y.shape[0]
    if n < 3:
        raise ValueError(f"propensities need at least 3 training rows (log n - 1 must be positive), got {n}")
    counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    C = (np.log(n) - 1.0) * (B + 1.0) ** A
    answer: NDArray[np.float64] = 1.0 / (1.0 + C * (counts + B) ** -A)
    return answer


@dataclass(frozen=True)
class Ranked(Truth):
    """The top labels of every row, and whether each is a hit."""

    hits: NDArray[np.bool_]
    labels: NDArray[np.int64]  # 0 after the row's last prediction, and never a hit there

    @property
    def n_true(self) -> NDArray[np.int64]:
        return np.diff(self.truth.indptr).astype(np.int64)


@dataclass(frozen=True)
class BestRanking:
    """The weights of each row's true labels in decreasing order, which normalise the propensity scored metrics."""

    weight: NDArray[np.float64]
    attainable: NDArray[np.float64]


def rank(comparison: Comparison, k: int) -> Ranked:
    """Sort each row by decreasing score, ties by column, and keep the top k."""
    positions = top_positions(comparison.scores, min(k, comparison.n_labels))
    is_filled = positions >= 0
    hits = np.zeros(positions.shape, dtype=bool)
    labels = np.zeros(positions.shape, dtype=np.int64)
    hits[is_filled] = comparison.is_hit[positions[is_filled]]
    labels[is_filled] = comparison.scores.indices[positions[is_filled]]
    return Ranked(comparison.truth, hits, labels)


def top_positions(scores: csr_array, k: int) -> NDArray[np.int64]:
    """Return the positions in `scores.data` of each row's top k, padded with -1; shape (n, k)."""
    answer = np.full((scores.shape[0], k), -1, dtype=np.int64)
    if k == 0:
        return answer
    falling = np.negative(scores.data, dtype=np.float32 if scores.data.dtype == np.float32 else np.float64)
    contenders, indptr = _contenders(falling, scores.indptr.astype(np.int64), k)
    for rows, position, key in _padded(falling[contenders], indptr):
        # Columns are sorted within a row, so a stable sort puts the lower column first among equal scores.
        order = np.argsort(key, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(position, order, axis=1)
        answer[rows, : best.shape[1]] = np.where(best >= 0, contenders[best], -1)
    return answer


def _contenders(
    falling: NDArray[Any], indptr: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the entries at least as good as their row's k-th best, and their indptr.

    Finding the k-th best is several times cheaper than sorting the row, and leaves few entries to sort.
    """
    is_worse = np.zeros(falling.size, dtype=bool)
    for _, position, key in _padded(falling, indptr, longer_than=2 * k):
        kth_best = np.partition(key, k - 1, axis=1)[:, k - 1 : k]
        is_worse[position[(key > kth_best) & (position >= 0)]] = True
    kept_before = np.concatenate([[0], np.cumsum(~is_worse)])
    return np.flatnonzero(~is_worse), kept_before[indptr]


def _padded(
    falling: NDArray[Any], indptr: NDArray[np.int64], longer_than: int = 0
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]]:
    """Yield rows of similar length as padded arrays: rows, positions (-1 for padding), values (inf for padding).

    Lengths within an array differ by less than a factor of two, so padding at most doubles the work.
    """
    length = np.diff(indptr)
    bucket = np.ceil(np.log2(np.maximum(length, 1))).astype(np.int64)
    bucket[length <= longer_than] = -1
    for power in np.unique(bucket[bucket >= 0]):
        rows = np.flatnonzero(bucket == power)
        place = np.arange(length[rows].max())
        position = indptr[rows, None] + place
        is_padding = place >= length[rows, None]
        position[is_padding] = 0
        key = falling[position]
        key[is_padding] = np.inf
        position[is_padding] = -1
        yield rows, position, key


def inverse_propensity(propensity: Any, n_labels: int) -> NDArray[np.float64]:
    """Check the propensities and return their inverses, the weights."""
    try:
        p = np.asarray(propensity, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"propensity must be an array with one entry per label, got {propensity!r}") from error
    if p.shape != (n_labels,):
        raise ValueError(f"propensity must have shape ({n_labels},), one entry per label, got {p.shape}")
    wrong = ~((p > 0) & (p <= 1))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"propensity must be above 0 and at most 1, but label {at} has {p[at]!s}")
    return 1.0 / p


def best_ranking(ranked: Ranked, weight: NDArray[np.float64]) -> BestRanking:
    """Rank the true labels by weight, the best possible ranking."""
    truth = ranked.truth
    weighted = csr_array((weight[truth.indices], truth.indices, truth.indptr), shape=truth.shape)
    positions = top_positions(weighted, ranked.hits.shape[1])
    attainable = np.zeros(positions.shape)
    attainable[positions >= 0] = weighted.data[positions[positions >= 0]]
    return BestRanking(weight, attainable)


def precision(ranked: Ranked, k: int) -> float:
    return _ratio(float(ranked.hits[:, :k].sum()), ranked.n_rows * k)


def recall(ranked: Ranked, k: int) -> float:
    return _ratio(float((ranked.hits[:, :k].sum(axis=1) / np.maximum(ranked.n_true, 1)).sum()), ranked.n_rows)


def ndcg(ranked: Ranked, k: int) -> float:
    gain = ranked.hits[:, :k] @ _discount(ranked, k)
    return _ratio(float((gain / _ideal_gain(ranked, k)).sum()), ranked.n_rows)


def coverage(ranked: Ranked, k: int) -> float:
    found = np.unique(ranked.labels[:, :k][ranked.hits[:, :k]]).size
    return _attained(ranked, found, np.unique(ranked.truth.indices).size)


def psp(ranked: Ranked, k: int, best: BestRanking) -> float:
    hits = ranked.hits[:, :k]
    return _attained(ranked, float(best.weight[ranked.labels[:, :k][hits]].sum()), float(best.attainable[:, :k].sum()))


def psndcg(ranked: Ranked, k: int, best: BestRanking) -> float:
    gained = np.where(ranked.hits[:, :k], best.weight[ranked.labels[:, :k]], 0.0) if ranked.hits.size else ranked.hits
    discount, ideal = _discount(ranked, k), _ideal_gain(ranked, k)
    return _attained(
        ranked,
        float((gained[:, :k] @ discount / ideal).sum()),
        float((best.attainable[:, :k] @ discount / ideal).sum()),
    )


def _first(Y_true: Any, P: Any, k: int) -> tuple[Ranked, int]:
    k = as_positive_integer(k, "k")
    return rank(compare(Y_true, P), k), k


def _discount(ranked: Ranked, k: int) -> NDArray[np.float64]:
    return 1.0 / np.log2(np.arange(2.0, min(k, ranked.hits.shape[1]) + 2.0))


def _ideal_gain(ranked: Ranked, k: int) -> NDArray[np.float64]:
    """Return the gain of each row's true labels ranked first; 1 for a row without labels, to avoid dividing by 0."""
    attainable = np.concatenate([[1.0], np.cumsum(_discount(ranked, k))])
    answer: NDArray[np.float64] = attainable[np.minimum(ranked.n_true, k)]
    return answer


def _ratio(total: float, count: int) -> float:
    return total / count if count else float("nan")


def _attained(ranked: Ranked, gained: float, attainable: float) -> float:
    if ranked.n_rows == 0:
        return float("nan")
    return gained / attainable if attainable else 0.0
