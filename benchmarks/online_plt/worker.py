"""One stream, one learner, in a process and an environment of its own; prints nothing, writes one JSON object.

python -m benchmarks.online_plt.worker JOB-AS-JSON DATA SCRATCH RESULT
"""

from __future__ import annotations

import importlib.metadata
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, learners, measure, scoring
from benchmarks.online_plt import streams


def run(job: dict[str, Any], data: Path, folder: Path) -> dict[str, Any]:
    system = learners.module(job["system"])
    __import__(system.IMPORT)
    problem, test = datasets.load(data, "train"), datasets.load(data, "test")
    known = problem.Y
    parameters = system.SETTINGS[job["setting"]].train | ({"progressive": True} if job["progressive"] else {})
    learner = system.Learner(parameters | job["parameters"], job["threads"], folder, problem)
    result: dict[str, Any] = {"rows": problem.X.shape[0], "measured": []}
    for number in range(min(job["passes"], system.PASSES)):
        stream = streams.in_order(problem, job["order"], job["seed"] + 1000 * number)
        if number == 0 and job["passes"] == 1:
            del problem  # what waits unread must not count as the learner's memory
        prepared = learner.prepare(stream)
        del stream
        result["measured"].append(one_pass(learner, prepared))
        if number in (0, job["passes"] - 1):
            with measure.Stopwatch() as asking:
                labels = learner.answer(test.X)
            result["measured"][-1] |= scoring.precisions(labels, test.Y)
            result["measured"][-1] |= scoring.propensity_scored(labels, test.Y, known)
            result["measured"][-1]["batch_cpu_us"] = 1e6 * asking.cpu / test.X.shape[0]
    if job["progressive"]:
        result |= progress(learner)
    result["details"] = learner.details()
    result["version"] = importlib.metadata.version(system.PACKAGE)
    return result


def one_pass(learner: Any, prepared: Any) -> dict[str, Any]:
    before = measure.resident_megabytes() or 0.0
    measure.forget_peak()
    with measure.Stopwatch() as learning:
        learner.learn(prepared)
    peak = measure.peak_megabytes()
    return {"cpu_s": learning.cpu, "wall_s": learning.wall, "peak_mb": peak, "grown_mb": peak - before}


def progress(learner: Any) -> dict[str, Any]:
    """Progressive accuracy in percent, of the whole first pass and of each hundredth of it."""
    if hasattr(learner, "result"):
        windows = learner.result.windows
        return {
            "progressive_accuracy": 100 * learner.result.so_far.accuracy,
            "curve": [[window.examples, window.so_far.accuracy] for window in windows],
            "constant": [window.so_far.constant_accuracy for window in windows],
        }
    right = learner.progressive()
    ends = np.linspace(0, len(right), 101).astype(int)[1:]
    so_far = np.cumsum(right)[ends - 1] / ends
    return {
        "progressive_accuracy": 100 * float(right.mean()),
        "curve": [[int(n), float(p)] for n, p in zip(ends, so_far, strict=True)],
    }


def main() -> None:
    text, data, folder, result_file = sys.argv[1:]
    job = json.loads(text)
    resource.setrlimit(resource.RLIMIT_CPU, (int(job["timeout"]), int(job["timeout"]) + 5))
    Path(result_file).write_text(json.dumps(run(job, Path(data), Path(folder))))


if __name__ == "__main__":
    main()
