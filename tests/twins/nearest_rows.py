"""Nearest rows in plain Python: every similarity is computed, in the order of the row's features."""

from __future__ import annotations

import math

import numpy as np


def unit_row(indices, values):
    """Feature -> value of the row scaled to unit length, as the core stores it."""
    length = math.sqrt(sum(float(v) * float(v) for v in values))
    factor = 1 / length if length > 0 else 1.0
    return {int(f): np.float32(float(v) * factor) for f, v in zip(indices, values, strict=True) if v != 0}


def rows_of_csr(X):
    return [
        unit_row(X.indices[start:stop], X.data[start:stop])
        for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    ]


def nearest(stored, x, k, weight=None):
    """(row, similarity, counted weight) of the nearest rows, until their weights sum up to k."""
    similar = []
    for row, features in enumerate(stored):
        total = 0.0
        for feature, value in sorted(features.items()):
            total += float(value) * float(x.get(feature, 0.0))
        similar.append((-float(np.float32(total)), row))
    found, left = [], float(k)
    for negative, row in sorted(similar):
        if not -negative > 0 or left <= 0:
            break
        counted = min(1.0 if weight is None else float(weight[row]), left)
        found.append((row, -negative, counted))
        left -= counted
    return found


def probabilities(stored, Y, x, k, power, weight=None):
    """The label's share of the votes, dense; the share of all rows if no row is similar."""
    found = nearest(stored, x, k, weight)
    votes = [counted * similarity**power for _, similarity, counted in found]
    dense = np.asarray(Y.todense(), dtype=np.float64)
    if not sum(votes) > 0:
        return np.average(dense, axis=0, weights=weight)
    return sum(vote / sum(votes) * dense[row] for vote, (row, _, _) in zip(votes, found, strict=True))
