"""Cost per example from a thousand labels to a million, against the logarithm of the number of labels.

    python -m benchmarks.plt.scale --threads 2 --most 100000

Measures as run.py does, on generated sets that differ only in the number of labels.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from benchmarks import WORK, datasets, synthetic
from benchmarks.plt import run

COLUMNS = (
    "labels",
    "rows",
    "train CPU µs a row",
    "per log2(labels)",
    "batch CPU µs a row",
    "per log2(labels)",
    "one row µs",
    "peak MB",
    "model MB",
    "P@1/3/5",
)


def cells(row: dict[str, Any], n_labels: int, n_rows: int) -> list[str]:
    """A measured row in the order of COLUMNS."""
    a_row = 1e6 * row["train_cpu_s"] / n_rows
    precision = "/".join(f"{row[name]:.1f}" for name in ("p1", "p3", "p5"))
    times = []
    for cost in (a_row, row["batch_cpu_us"]):
        times += [f"{cost:.0f}", f"{cost / math.log2(n_labels):.1f}"]
    times.append(f"{row['single_us']:.0f}")
    return [f"{n_labels:,}", f"{n_rows:,}", *times, f"{row['peak_mb']:.0f}", f"{row['model_mb']:.1f}", precision]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--system", default="ramify")
    parser.add_argument("--setting", default="default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most", type=int, default=1_000_000, help="the largest number of labels")
    parser.add_argument("--timeout", type=float, default=3600.0, help="CPU seconds for a training")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for name, n_labels in synthetic.SCALE.items():
        if n_labels > arguments.most:
            continue
        data = synthetic.prepare(name, work / "data")
        n_rows = datasets.load(data, "train").X.shape[0]
        one = run.Run(arguments.system, (arguments.setting,), data, arguments.threads)
        for row in run.measure(one, work, arguments.timeout):
            with (work / "scale.jsonl").open("a") as lines:
                lines.write(json.dumps(row) + "\n")
            if row["status"] == "ok":
                shown = cells(row, n_labels, n_rows)
            else:
                shown = [f"{n_labels:,}", f"{n_rows:,}", row["status"]] + [""] * (len(COLUMNS) - 3)
            print("| " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
