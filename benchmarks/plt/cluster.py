"""What a cluster costs: seconds of `fit`, and of the same steps in parts with rows gathered from shards.

    PYTHONPATH=$PWD/src python -m benchmarks.plt.cluster --scale 0.1
    PYTHONPATH=$PWD/src python -m benchmarks.plt.cluster --scale 0.1 --ray 1 2

Without --ray all work runs in this process, so that the CPU time is all there is, and the entries that would move are
counted. With --ray the wall time of workers of one core each is measured, on a Ray of this machine that is started and
warm.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ramify import FastXMLClassifier, PLTClassifier, _core
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
        self.vector_entries = 0

    def submit(self, function: Any, *arguments: Any, n_returns: int = 1) -> Any:
        start = time.process_time()
        answer = super().submit(function, *arguments, n_returns=n_returns)
        self.seconds.setdefault(function.__name__, []).append(time.process_time() - start)
        if function.__name__ == "select":
            self.moved += sum(piece.nnz for piece in (answer if n_returns > 1 else [answer]))
        if function.__name__ == "join_vectors":
            self.vector_entries = answer.nnz
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
    parser.add_argument(
        "--shape", type=int, nargs=3, metavar=("ROWS", "LABELS", "FEATURES"), help="in place of --scale"
    )
    given = parser.parse_args()
    n_rows, n_labels, n_features = given.shape or (int(n * given.scale) for n in (490_000, 670_000, 136_000))
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

    alone, plain, plain_cpu, phases = timed(lambda: new().fit(data.X, data.Y))
    print(f"fit, one thread: {plain:.1f} s, {plain_cpu:.1f} CPU s {phases}", flush=True)
    small = make_multilabel(2000, 200, 500, random_state=0)
    for n_workers in numbers:
        ray.init("local", num_cpus=n_workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        fit(new(), (small.X, small.Y), n_shards=4)  # workers start and import
        shared, seconds, cpu, phases = timed(lambda: fit(new(), (data.X, data.Y)))
        ray.shutdown()
        print(f"{n_workers} workers: {seconds:.1f} s, {seconds / plain:.3f} times {phases}", flush=True)
        print(f"  {cpu:.1f} CPU s of driver, workers and Ray, {cpu / plain_cpu:.3f} times", flush=True)
        print(f"  same bits: {same_arrays(alone, shared)}", flush=True)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float, dict[str, float]]:
    """The result, wall seconds, CPU seconds of this process and those below it, and seconds of phases and others."""
    with shown(False) as phases:
        start, cpu, busy = time.perf_counter(), cpu_seconds(), busy_seconds()
        result = work()
        took, cpu, busy = time.perf_counter() - start, cpu_seconds() - cpu, busy_seconds() - busy
    seconds = {**phases.seconds, "CPU of other processes": max(0.0, busy - cpu)}
    return result, took, cpu, {name: round(of_phase, 1) for name, of_phase in seconds.items()}


def busy_seconds() -> float:
    """CPU seconds of all processes of the machine."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Of this process and those that it has started, such as Ray's, which have not ended."""
    ticks, parent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        ticks[int(stat.parent.name)], parent[int(stat.parent.name)] = int(fields[11]) + int(fields[12]), int(fields[1])
    below, grown = {os.getpid()}, True
    while grown:
        more = {process for process, started_by in parent.items() if started_by in below} - below
        below, grown = below | more, bool(more)
    return sum(ticks.get(process, 0) for process in below) / os.sysconf("SC_CLK_TCK")


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
    print(f"label vectors: {workers.vector_entries / data.Y.shape[1]:,.0f} entries a label")
    model = sum(array.nbytes for array in alone.model_.state().arrays.values())
    print(f"model: {model / 1e6:.1f} MB, {model / data.Y.shape[1]:,.0f} bytes a label, {alone.tree_.height} levels")
    del workers, shared
    ctypes.CDLL(None).malloc_trim(0)  # or the plan would use memory that was freed before
    before = resident()
    plan = _core.NodePlan(data.Y, alone.tree_, np.diff(data.X.indptr).astype(np.int64), None, 0, 1)
    grown, work = resident() - before, plan.work()
    print(f"rows of nodes on the driver: {grown / data.Y.nnz / alone.tree_.height:.1f} bytes a label and level")
    print(f"the largest node: {work.max() / work.sum():.3f} of the work in blocks")


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main()
