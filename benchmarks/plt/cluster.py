"""What a cluster costs: seconds of `fit`, and of the same steps in parts with rows gathered from shards.

    PYTHONPATH=$PWD/src python -m benchmarks.plt.cluster --scale 0.1
    PYTHONPATH=$PWD/src python -m benchmarks.plt.cluster --scale 0.1 --ray 1 2

Without --ray all work runs in this process, so that the CPU time is all there is, and the entries that would move are
counted. With --ray the wall time of workers of one core each is measured, on a Ray of this machine that is started and
warm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ramify import FastXMLClassifier, PLTClassifier
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
    parser.add_argument("--workers", type=int, default=2, help="to plan for, without --ray")
    parser.add_argument("--ray", type=int, nargs="+", metavar="N", help="numbers of Ray workers to measure")
    parser.add_argument("--classifier", choices=["plt", "fastxml"], default="plt")
    given = parser.parse_args()
    n_rows, n_labels, n_features = (int(n * given.scale) for n in (490_000, 670_000, 136_000))
    data = make_multilabel(
        n_rows, n_labels, n_features, labels_per_row=5.45, features_per_row=76, exponent=0.6, random_state=0
    )
    print(f"{data}, {data.X.nnz:,} entries", flush=True)
    if given.ray:
        measure_ray(NEW[given.classifier], data, given.ray)
    else:
        measure_parts(data, given.workers)


NEW: dict[str, Callable[[], Any]] = {
    "plt": lambda: PLTClassifier(random_state=0, n_jobs=1),
    "fastxml": lambda: FastXMLClassifier(random_state=0, n_jobs=1, n_trees=8),
}


def measure_ray(new: Callable[[], Any], data: Any, numbers: list[int]) -> None:
    """Wall seconds of `fit` with one thread, and of `cluster.fit` with some workers of one core each."""
    import ray

    alone, plain, phases = timed(lambda: new().fit(data.X, data.Y))
    print(f"fit, one thread: {plain:.1f} s {phases}", flush=True)
    small = make_multilabel(2000, 200, 500, random_state=0)
    for n_workers in numbers:
        ray.init("local", num_cpus=n_workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        fit(new(), (small.X, small.Y), n_shards=4)  # workers start and import
        shared, seconds, phases = timed(lambda: fit(new(), (data.X, data.Y)))
        ray.shutdown()
        print(f"{n_workers} workers: {seconds:.1f} s, {seconds / plain:.3f} times {phases}", flush=True)
        print(f"  same bits: {same_arrays(alone, shared)}", flush=True)


def timed(work: Callable[[], Any]) -> tuple[Any, float, dict[str, float]]:
    """The result, wall seconds, and seconds of each phase."""
    with shown(False) as phases:
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
    return result, took, {name: round(seconds, 1) for name, seconds in phases.seconds.items()}


def same_arrays(one: Any, other: Any) -> bool:
    stored = other.model_.state().arrays
    return all(np.array_equal(array, stored[name]) for name, array in one.model_.state().arrays.items())


def measure_parts(data: Any, n_workers: int) -> None:
    """CPU seconds of `fit`, and of the steps for a cluster run in this process."""
    start = time.process_time()
    with shown(False) as phases:
        alone = PLTClassifier(random_state=0, n_jobs=1).fit(data.X, data.Y)
    plain = time.process_time() - start
    print(f"fit: {plain:.1f} CPU s; wall by phase {phases.seconds}", flush=True)
    workers = Counting(n_workers)
    start = time.process_time()
    shared = fit(PLTClassifier(random_state=0, n_jobs=1), (data.X, data.Y), workers=workers)
    parts = time.process_time() - start
    print(f"in parts for {n_workers} workers: {parts:.1f} CPU s, {parts / plain:.3f} times")
    print(f"  same bits: {same_arrays(alone, shared)}")
    print(f"entries moved: {workers.moved:,}, {workers.moved / data.X.nnz:.1f} times those of X")
    for name, seconds in workers.seconds.items():
        print(f"  {name}: {len(seconds)} tasks, {sum(seconds):.1f} CPU s, the longest {max(seconds):.1f}")
    in_tasks = sum(map(sum, workers.seconds.values()))
    print(f"  on the driver: {parts - in_tasks:.1f} CPU s")


if __name__ == "__main__":
    main()
