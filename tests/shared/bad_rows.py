"""Sparse rows that no function of the core may take."""

from __future__ import annotations


def bad_rows(n_features):
    """(indptr, indices, values) by what is wrong with them."""
    return {
        "no indptr": ([], [], []),
        "indptr does not begin with 0": ([1, 1], [0], [1.0]),
        "indptr ends too late": ([0, 2], [0], [1.0]),
        "indptr ends too early": ([0, 0], [0], [1.0]),
        "indptr falls": ([0, 2, 1, 2], [0, 1], [1.0, 1.0]),
        "indptr is huge": ([0, 2**62, 1], [0], [1.0]),
        "indptr is negative": ([0, -5, 1], [0], [1.0]),
        "a negative feature": ([0, 1], [-1], [1.0]),
        "a feature too many": ([0, 1], [n_features], [1.0]),
        "the largest feature": ([0, 1], [2**31 - 1], [1.0]),
        "too few values": ([0, 1], [0], []),
        "too many values": ([0, 1], [0], [1.0, 2.0]),
    }
