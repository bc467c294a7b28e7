"""Theorem 1 of "Logarithmic Time Online Multiclass prediction" (Choromanska and Langford, 2015) as an experiment.

    python -m benchmarks.lomtree.theorem --data ../shared/data --sets isolet-1560 aloi-like --splits 200

The theorem lets the heaviest leaf be split, again and again, by hypotheses that are better than chance by gamma: the
entropy G_t then falls below alpha after (1 / alpha)^(4 (1 - gamma)^2 ln k / gamma^2) splits. Here every split is a root
of LOMtree, learned on the rows of the heaviest leaf. The table shows G_t, the bound G_1 t^-c with the smallest gamma
seen so far (c = gamma^2 / (4 (1 - gamma)^2 ln k), by Lemma 3 with its constant of 16), and the exponent that fits.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from benchmarks import WORK
from benchmarks.lomtree import sets
from ramify import LOMTreeClassifier
from ramify.metrics.partition import leaf_entropy, partition_quality


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="folders that hold the sets")
    parser.add_argument("--sets", nargs="+", default=["isolet-1560", "aloi-like"])
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--rows", type=int, default=20_000, help="training rows at most")
    given = parser.parse_args()
    print(
        "| set | classes | splits t | G_t | bound G_1 t^-c | gamma | c of the bound | c that fits |\n"
        + 8 * "|---"
        + "|"
    )
    for name in given.sets:
        rows = sets.load(name, given.data, WORK / "data").train
        rows = rows.take(np.arange(min(given.rows, len(rows.y))))
        split_again_and_again(name, rows, given.splits)


def split_again_and_again(name: str, rows: sets.Rows, n_splits: int) -> None:
    n_classes = len(np.unique(rows.y))
    leaf = np.zeros(len(rows.y), dtype=np.int64)
    gamma, first = 0.5, 0.0
    done: set[int] = set()  # leaves that no hypothesis splits
    t = 0
    while t < n_splits:
        weight = np.bincount(leaf).astype(float)
        weight[list(done)] = 0
        inside = np.flatnonzero(leaf == int(weight.argmax()))
        if weight.max() < 2:
            break
        side = right_side(rows.take(inside))
        objective, _, beta = partition_quality(rows.y[inside], side)
        if len(np.unique(rows.y[inside])) == 1 or not 0 < beta < 1:
            done.add(int(weight.argmax()))
            continue
        t += 1
        leaf[inside[side]] = leaf.max() + 1
        gamma = min(gamma, objective / 2, beta, 1 - beta)
        entropy = leaf_entropy(rows.y, leaf)
        first = entropy if t == 1 else first
        if t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) or t == n_splits:
            c = gamma**2 / (4 * (1 - gamma) ** 2 * math.log(n_classes))
            fits = f"{math.log(first / entropy) / math.log(t):.3f}" if t > 1 and entropy > 0 else ""
            print(
                f"| {name} | {n_classes} | {t} | {entropy:.3f} | {first * t**-c:.3f} | {gamma:.3f} | {c:.4f} | "
                f"{fits} |",
                flush=True,
            )


def right_side(rows: sets.Rows) -> np.ndarray:
    """Where a single node of LOMtree, learned on these rows, sends each of them."""
    clf = LOMTreeClassifier(max_nodes=1, n_epochs=5, n_jobs=1, random_state=0).fit(rows.X, rows.y)
    leaf = clf.apply(rows.X)
    return np.asarray(leaf == leaf.max())


if __name__ == "__main__":
    main()
