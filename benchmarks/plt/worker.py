"""One phase of one measurement, in a process and an environment of its own; prints nothing, writes one JSON object.

python -m benchmarks.plt.worker train   SYSTEM PARAMETERS-AS-JSON THREADS DATA MODEL RESULT MOST-CPU-SECONDS
python -m benchmarks.plt.worker predict ...the same
python -m benchmarks.plt.worker single  ...the same
"""

from __future__ import annotations

import importlib.metadata
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, measure, scoring, systems

BATCH_ROWS, BATCH_SECONDS, BATCH_REPEATS = 20_000, 15.0, 3
SINGLE_ROWS, SINGLE_SECONDS, WARM_UP_ROWS = 2_000, 30.0, 20
SCORED_ROWS, SCORED_LABELS = 2_000, 1_000  # probabilities are scored on the best thousand labels of each row


def train(system: Any, parameters: dict[str, Any], threads: int, data: Path, folder: Path) -> dict[str, Any]:
    """Train and save a model; its size, the memory that it took, and the times of each stage."""
    __import__(system.IMPORT)
    # arrays that a system never sees must not count as its memory
    problem = datasets.text_only(data, "train") if system.READS_TEXT else datasets.load(data, "train")
    before = measure.resident_megabytes()
    measure.forget_peak()
    stages = system.train(problem, folder, parameters, threads)
    result: dict[str, Any] = {"peak_mb": measure.peak_megabytes(), "model_mb": measure.folder_megabytes(folder)}
    if before is not None:
        result["grown_mb"] = result["peak_mb"] - before
    for stage, watch in stages.items():
        result |= {f"{stage}_cpu_s": watch.cpu, f"{stage}_wall_s": watch.wall}
    return result


def predict(system: Any, parameters: dict[str, Any], threads: int, data: Path, folder: Path) -> dict[str, Any]:
    """Load the model and answer the test rows: times in batch and one by one, memory, precision and probabilities."""
    problem = datasets.load(data, "test")
    X, Y = problem.X[:BATCH_ROWS], problem.Y[:BATCH_ROWS]
    first_row = X[0]
    __import__(system.IMPORT)  # not part of loading a model: it is paid once a process
    with measure.Stopwatch() as loading:
        model = system.Model(folder, parameters, threads)
        model.one(model.prepare_one(first_row), 5)
    result: dict[str, Any] = {"first_answer_ms": 1e3 * loading.wall}
    result |= time_batches(model, X, Y)
    result["predict_mb"] = measure.peak_megabytes()
    result |= time_single_rows(model, X)
    answer = model.batch(model.prepare(X[:SCORED_ROWS]), SCORED_LABELS)
    labels, probabilities = model.unpack(answer, SCORED_LABELS)
    return result | scoring.probability_scores(labels, probabilities, Y[:SCORED_ROWS])


def single(system: Any, parameters: dict[str, Any], threads: int, data: Path, folder: Path) -> dict[str, Any]:
    """Load the model and answer the test rows one at a time."""
    X = datasets.load(data, "test").X
    __import__(system.IMPORT)
    return dict(time_single_rows(system.Model(folder, parameters, threads), X))


def time_batches(model: Any, X: Any, Y: Any) -> dict[str, Any]:
    """Microseconds a row in batch, medians of some repeats, and the precision of the answers."""
    rows = model.prepare(X)
    watches: list[measure.Stopwatch] = []
    while len(watches) < BATCH_REPEATS and sum(watch.wall for watch in watches) < BATCH_SECONDS:
        with measure.Stopwatch() as watch:
            answer = model.batch(rows, 5)
        watches.append(watch)
    labels, _ = model.unpack(answer, 5)
    per_row = 1e6 / X.shape[0]
    return {
        "batch_us": per_row * float(np.median([watch.wall for watch in watches])),
        "batch_cpu_us": per_row * float(np.median([watch.cpu for watch in watches])),
        **scoring.precisions(labels, Y),
    }


def time_single_rows(model: Any, X: Any) -> dict[str, float]:
    """Microseconds for one row at a time, after a warm-up: the median and the 99th percentile."""
    rows = [model.prepare_one(X[row]) for row in range(min(SINGLE_ROWS, X.shape[0]))]
    taken: list[float] = []
    end = time.perf_counter() + SINGLE_SECONDS
    for row in rows[:WARM_UP_ROWS] + rows:
        start = time.perf_counter()
        model.one(row, 5)
        taken.append(time.perf_counter() - start)
        if start > end:
            break
    taken = taken[WARM_UP_ROWS:] or taken
    return {"single_us": 1e6 * float(np.median(taken)), "single_p99_us": 1e6 * float(np.quantile(taken, 0.99))}


def main() -> None:
    phase, name, parameters, threads, data, folder, result_file, most_seconds = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (int(most_seconds), int(most_seconds) + 5))
    system = systems.module(name)
    run = {"train": train, "predict": predict, "single": single}[phase]
    result = run(system, json.loads(parameters), int(threads), Path(data), Path(folder))
    result["version"] = importlib.metadata.version(system.PACKAGE)
    Path(result_file).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
