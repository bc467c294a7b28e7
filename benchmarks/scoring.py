"""One scorer for every system: precision at k, log loss, Brier score and calibration error, numpy only.

An answer is two arrays of shape (rows, k), best label first: `labels` (-1 where there are fewer than k) and
`probabilities`. A label that is not in the answer has probability FLOOR.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

FLOOR = 1e-6
N_BINS = 15


def hits(labels: np.ndarray, Y: sp.csr_matrix) -> np.ndarray:
    """Whether each answered label is true, shape (rows, k)."""
    width = np.int64(Y.shape[1] + 1)
    truth = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr)) * width + Y.indices
    asked = np.arange(len(labels), dtype=np.int64)[:, None] * width + labels
    return np.isin(asked, truth) & (labels >= 0)


def precisions(labels: np.ndarray, Y: sp.csr_matrix) -> dict[str, float]:
    """P@1, P@3 and P@5 in percent; a missing answer is a miss."""
    hit = hits(labels, Y)
    return {f"p{k}": round(100 * float(hit[:, :k].mean()), 2) for k in (1, 3, 5)}


def propensity_scored(labels: np.ndarray, Y: sp.csr_matrix, train: sp.csr_matrix) -> dict[str, float]:
    """PSP@1, PSP@3 and PSP@5 in percent (Jain et al. 2016, with A = 0.55 and B = 1.5), relative to the best."""
    n, count = train.shape[0], np.bincount(train.indices, minlength=Y.shape[1])
    factor = (np.log(n) - 1) * (1.5 + 1) ** 0.55
    inverse = 1 + factor * (count + 1.5) ** -0.55
    gains = np.where(hits(labels, Y), inverse[np.maximum(labels, 0)], 0.0)
    best = np.zeros((Y.shape[0], 5))
    for row in range(Y.shape[0]):
        of_row = np.sort(inverse[Y.indices[Y.indptr[row] : Y.indptr[row + 1]]])[::-1][:5]
        best[row, : len(of_row)] = of_row
    return {f"psp{k}": round(100 * float(gains[:, :k].sum() / max(best[:, :k].sum(), 1e-12)), 2) for k in (1, 3, 5)}


def probability_scores(labels: np.ndarray, probabilities: np.ndarray, Y: sp.csr_matrix) -> dict[str, float]:
    """Log loss and Brier score, summed over labels and averaged over rows; calibration error of the top 5."""
    given = labels >= 0
    hit = hits(labels, Y)
    p = np.clip(probabilities.astype(np.float64), FLOOR, 1 - FLOOR)
    n_true = np.diff(Y.indptr)
    n_missed = n_true - hit.sum(axis=1)
    n_silent = Y.shape[1] - given.sum(axis=1) - n_missed
    losses = np.where(given, -np.log(np.where(hit, p, 1 - p)), 0.0).sum(axis=1)
    squares = np.where(given, (p - hit) ** 2, 0.0).sum(axis=1)
    return {
        "log_loss": round(float((losses - n_missed * np.log(FLOOR) - n_silent * np.log1p(-FLOOR)).mean()), 4),
        "brier": round(float((squares + n_missed).mean()), 4),
        "ece": round(calibration_error(p[:, :5][given[:, :5]], hit[:, :5][given[:, :5]]), 4),
    }


def calibration_error(p: np.ndarray, hit: np.ndarray) -> float:
    """Expected calibration error over bins of equal width."""
    bins = np.minimum((p * N_BINS).astype(np.int64), N_BINS - 1)
    gap = np.bincount(bins, weights=p - hit, minlength=N_BINS)
    return float(np.abs(gap).sum() / max(len(p), 1))


def answer_from_sparse(scores: sp.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The best k of each row of a sparse score matrix, ties in column order."""
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, rows))
    rank = np.arange(len(rows)) - np.asarray(scores.indptr, dtype=np.int64)[rows]
    return _padded(scores.shape[0], k, rows, rank, scores.indices[order], scores.data[order])


def answer_from_pairs(answers: list[list[tuple[int, float]]], k: int) -> tuple[np.ndarray, np.ndarray]:
    """The same from a list of (label, probability) pairs per row, best first."""
    lengths = np.array([len(answer) for answer in answers], dtype=np.int64)
    rows = np.repeat(np.arange(len(answers)), lengths)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    flat = np.array([pair for answer in answers for pair in answer], dtype=np.float64).reshape(-1, 2)
    return _padded(len(answers), k, rows, rank, flat[:, 0], flat[:, 1])


def _padded(
    n_rows: int, k: int, rows: np.ndarray, rank: np.ndarray, labels: np.ndarray, probabilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    kept = rank < k
    answer_labels = np.full((n_rows, k), -1, dtype=np.int64)
    answer_probabilities = np.zeros((n_rows, k))
    answer_labels[rows[kept], rank[kept]] = labels[kept]
    answer_probabilities[rows[kept], rank[kept]] = probabilities[kept]
    return answer_labels, answer_probabilities
