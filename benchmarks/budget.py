"""Exactly k labels a row: block coordinate ascent beside the `xcolumns` package, on the same sparse estimates.

    pip install xcolumns
    python benchmarks/budget.py --data ../shared/data --sets eurlex57k,debian-depends --k 3

Values are what is expected of the decisions, measured for both by `ramify.decide.expected_value`; beside it the value
on the true labels (macro-F). xcolumns starts from random labels by default and from the most probable ones on request:
both are shown. CPU time of one thread; xcolumns has compiled its kernels before.
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
from xcolumns import block_coordinate
from xcolumns import metrics as their_metrics

from datasets import load, prepare
from ramify import PLTClassifier, decide, metrics

ANY = block_coordinate.predict_using_bc_with_0approx
THEIRS = {
    "macro_f1": block_coordinate.predict_optimizing_macro_f1_score_using_bc,
    "macro_recall": block_coordinate.predict_optimizing_macro_recall_using_bc,
    "macro_balanced_accuracy": partial(ANY, binary_metric_func=their_metrics.binary_balanced_accuracy_on_conf_matrix),
    "macro_jaccard": partial(ANY, binary_metric_func=their_metrics.binary_jaccard_score_on_conf_matrix),
    "coverage": block_coordinate.predict_optimizing_coverage_using_bc,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--sets", default="eurlex57k")
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--per-row", type=int, default=50, help="labels of each row that are estimated")
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets.split(","):
        folder = prepare(name, [given.data], given.work)
        train, test = load(folder, "train"), load(folder, "test")
        P = PLTClassifier(random_state=0).fit(train.X, train.Y).predict_proba(test.X, top_k=given.per_row)
        compare(name, P, test.Y, given.k)


def compare(name: str, P: sparse.csr_array, Y: Any, k: int) -> None:
    print(f"\n{name}: {P.shape[0]:,} rows, {P.shape[1]:,} labels, {P.nnz / P.shape[0]:.0f} estimates a row, k = {k}\n")
    print("| objective | system | expected value | macro-F of the true labels | CPU s | passes |")
    print("|---|---|--:|--:|--:|--:|")
    for objective, theirs in THEIRS.items():
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
