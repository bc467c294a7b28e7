"""What a cluster costs: CPU seconds of `fit`, and of the same steps in parts with rows gathered from shards.

    PYTHONPATH=src python -m benchmarks.plt.cluster --scale 0.1

All work runs in this process, so that the CPU time is all there is; Ray adds the moving of bytes, which are counted.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from ramify import PLTClassifier
from ramify.cluster import fit
from ramify.cluster.workers import InProcess
from ramify.common.progress import shown
from ramify.data.synthetic import make_multilabel


class Counting(InProcess):
    """Plans for some workers; counts the seconds of each kind of task, the longest one, and the rows that move."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.seconds: dict[str, list[float]] = {}
        self.moved = 0

    def submit(self, function: Any, *arguments: Any, n_returns: int = 1) -> Any:
        start = time.process_time()
        answer = super().submit(function, *arguments, n_returns=n_returns)
        self.seconds.setdefault(function.__name__, []).append(time.process_time() - start)
        if function.__name__ == "select":
            self.moved += sum(piece.nnz for piece in (answer if n_returns > 1 else [answer]))
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plt.cluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", type=float, default=0.1, help="of 490,000 rows, 670,000 labels, 136,000 features")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    n_rows, n_labels, n_features = (int(n * given.scale) for n in (490_000, 670_000, 136_000))
    data = make_multilabel(
        n_rows, n_labels, n_features, labels_per_row=5.45, features_per_row=76, exponent=0.6, random_state=0
    )
    print(f"{data}, {data.X.nnz:,} entries", flush=True)
    start = time.process_time()
    with shown(False) as phases:
        alone = PLTClassifier(random_state=0, n_jobs=1).fit(data.X, data.Y)
    plain = time.process_time() - start
    print(f"fit: {plain:.1f} CPU s; wall by phase {phases.seconds}", flush=True)
    workers = Counting(given.workers)
    start = time.process_time()
    shared = fit(PLTClassifier(random_state=0, n_jobs=1), (data.X, data.Y), workers=workers)
    parts = time.process_time() - start
    same = all(
        np.array_equal(array, shared.trees_[0].state()[1][name]) for name, array in alone.trees_[0].state()[1].items()
    )
    print(f"in parts for {given.workers} workers: {parts:.1f} CPU s, {parts / plain:.3f} times; same bits: {same}")
    print(f"entries moved: {workers.moved:,}, {workers.moved / data.X.nnz:.1f} times those of X")
    for name, seconds in workers.seconds.items():
        print(f"  {name}: {len(seconds)} tasks, {sum(seconds):.1f} CPU s, the longest {max(seconds):.1f}")
    in_tasks = sum(map(sum, workers.seconds.values()))
    print(f"  on the driver: {parts - in_tasks:.1f} CPU s")


if __name__ == "__main__":
    main()
