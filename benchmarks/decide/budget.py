"""Exactly k labels a row: block coordinate ascent beside the `xcolumns` package, on the same sparse estimates.

    pip install xcolumns
    python -m benchmarks.decide.budget --data ../shared/data --sets eurlex57k,debian-depends --k 3

The value of a decision is its expected value, by `ramify.decide.expected_value` for both; the macro-F on true labels
is beside it. xcolumns starts from random labels by default and from the most probable ones on request: both are shown.
CPU time of one thread; xcolumns compiles its kernels before the clock starts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import WORK
from benchmarks.datasets import load, prepare
from ramify import PLTClassifier, decide, metrics


def peer_functions() -> dict[str, Any]:
    """The functions of xcolumns by objective."""
    try:
        from xcolumns import block_coordinate
        from xcolumns import metrics as their_metrics
    except ImportError:
        raise SystemExit("error: the package xcolumns is not installed\nhint: pip install xcolumns") from None
    other = block_coordinate.predict_using_bc_with_0approx
    return {
        "macro_f1": block_coordinate.predict_optimizing_macro_f1_score_using_bc,
        "macro_recall": block_coordinate.predict_optimizing_macro_recall_using_bc,
        "macro_balanced_accuracy": partial(
            other, binary_metric_func=their_metrics.binary_balanced_accuracy_on_conf_matrix
        ),
        "macro_jaccard": partial(other, binary_metric_func=their_metrics.binary_jaccard_score_on_conf_matrix),
        "coverage": block_coordinate.predict_optimizing_coverage_using_bc,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--sets", default="eurlex57k")
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--per-row", type=int, default=50, help="labels of each row that are estimated")
    parser.add_argument("--work", type=Path, default=WORK)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    peers = peer_functions()
    for name in given.sets.split(","):
        folder = prepare(name, given.data, given.work / "data")
        train, test = load(folder, "train"), load(folder, "test")
        P = PLTClassifier(random_state=0).fit(train.X, train.Y).predict_proba(test.X, top_k=given.per_row)
        compare(name, P, test.Y, given.k, peers)


def compare(name: str, P: sparse.csr_array, Y: Any, k: int, peers: dict[str, Any]) -> None:
    print(f"\n{name}: {P.shape[0]:,} rows, {P.shape[1]:,} labels, {P.nnz / P.shape[0]:.0f} estimates a row, k = {k}\n")
    print("| objective | system | expected value | macro-F of the true labels | CPU s | passes |")
    print("|---|---|--:|--:|--:|--:|")
    for objective, theirs in peers.items():
        began = time.process_time()
        found = decide.decide_budget(P, k, objective=objective)
        show(objective, "ramify", P, Y, found.decisions, time.process_time() - began, len(found.values))
        began = time.process_time()
        online = decide.OnlineBudget(P.shape[1], k, objective=objective).decide(P)
        show(objective, "ramify, online", P, Y, online, time.process_time() - began, 1)
        matrix = sparse.csr_matrix((P.data, P.indices, P.indptr), shape=P.shape)
        theirs(matrix[:20], k=k, seed=0)  # compiles
        # Version 0.0.2 fails when it is to start coverage greedily.
        for start in ("random", "top") if objective == "coverage" else ("random", "top", "greedy"):
            began = time.process_time()
            decided, meta = theirs(matrix.copy(), k=k, init_y_pred=start, seed=0, return_meta=True)
            taken = time.process_time() - began
            decided = sparse.csr_array(decided)
            decided.data = np.ones(decided.nnz)
            show(objective, f"xcolumns, {start}", P, Y, decided, taken, meta["iters"])


def show(objective: str, system: str, P: Any, Y: Any, decided: Any, taken: float, passes: int) -> None:
    value = decide.expected_value(P, decided, objective=objective)
    true = metrics.macro_f1(Y, decided, empty=0.0)
    print(f"| {objective} | {system} | {100 * value:.3f} | {100 * true:.2f} | {taken:.2f} | {passes} |", flush=True)


if __name__ == "__main__":
    main()
