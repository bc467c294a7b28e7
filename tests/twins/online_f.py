"""Algorithm 2 of Jasinska et al. 2016, as plainly as it is written there."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


def ofo(P, Y, a, b, objective, bound, prior):
    """Dense arrays in; a, b, thresholds and the decisions made on the way out."""
    n, m = P.shape
    a, b = np.full(m, float(a)), np.full(m, float(b))
    if objective == "micro_f1":
        a, b = a[:1], b[:1]
    decisions = np.zeros((n, m), dtype=int)

    def thresholds(row):
        tau = (a / b).astype(np.float32)
        if objective == "micro_f1" or bound is None:
            return tau
        share = np.asarray(prior, dtype=float) if bound == "fixed" else Y[:row].sum(axis=0) / max(row, 1)
        return np.maximum(tau, (share / (share + 1)).astype(np.float32))

    for row in range(n):
        decisions[row] = (P[row] > 0) & (thresholds(row) <= P[row])
        hits, touched = Y[row] * decisions[row], Y[row] + decisions[row]
        a += hits if objective == "macro_f1" else hits.sum()
        b += touched if objective == "macro_f1" else touched.sum()
    return SimpleNamespace(a=a, b=b, thresholds=np.broadcast_to(thresholds(n), m), decisions=decisions)
