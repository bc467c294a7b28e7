"""The order in which a set's training rows come."""

from __future__ import annotations

import numpy as np

from benchmarks import datasets

ORDERS = ("shuffled", "stored", "by-label")


def in_order(problem: datasets.Problem, order: str, seed: int) -> datasets.Problem:
    """Rows shuffled with this seed, as they are stored, or by their first label, so that labels come one by one."""
    if order == "stored":
        return problem
    n_rows = problem.X.shape[0]
    if order == "shuffled":
        rows = np.random.default_rng(seed).permutation(n_rows)
    else:
        lengths = np.diff(problem.Y.indptr)
        first = np.full(n_rows, -1, dtype=np.int64)
        first[lengths > 0] = problem.Y.indices[problem.Y.indptr[:-1][lengths > 0]]
        rows = np.argsort(first, kind="stable")
    return datasets.Problem(problem.X[rows], problem.Y[rows], problem.text)
