"""Memory trees side by side: ramify's beside Vowpal Wabbit's `--memory_tree`, on few-shot and on dense classes.

python benchmarks/memory_tree.py --data ../shared/data --work benchmarks/work
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import online
import online_plans
import online_tables

SETS = ("wordnet-parent", "few-shot-3", "few-shot-5", "letter", "isolet-1560")
# Vowpal Wabbit's step size is -l; that of the authors of memory trees first, then others to choose from.
PEER = ("memory-tree", "memory-tree-l-0.1", "memory-tree-l-1")
OURS = ("memory-tree", "memory-tree-one-leaf")


def jobs(sets: tuple[str, ...], steps: bool) -> list[online_plans.Job]:
    peers = PEER if steps else PEER[:1]
    settings = [("ramify", name) for name in OURS] + [("vowpal_wabbit", name) for name in peers]
    return [online_plans.Job(name, *setting, progressive=True) for name in sets for setting in settings]


def table(rows: list[dict[str, Any]]) -> str:
    """A line a run; times beside the first setting of Vowpal Wabbit on the same set, parsing taken off."""
    heading = [
        "set",
        "learner",
        "progressive accuracy",
        "test accuracy",
        "CPU s",
        "times faster",
        "us a test row",
        "MB",
    ]
    chosen = [row for row in rows if row["setting"] in OURS + PEER and row["progressive"] and row["status"] == "ok"]
    peers = {row["set"]: learning(row) for row in chosen if row["system"] != "ramify" and row["setting"] == PEER[0]}
    lines = []
    for row in sorted(chosen, key=lambda row: (SETS.index(row["set"]), row["system"], row["setting"])):
        first = row["measured"][0]
        faster = f"{peers[row['set']] / learning(row):.1f}" if row["set"] in peers else ""
        accuracies = [f"{row['progressive_accuracy']:.2f}", f"{first['p1']:.2f}"]
        times = [f"{learning(row):.2f}", faster, f"{first['batch_cpu_us']:.0f}", f"{first['peak_mb']:.0f}"]
        lines.append([row["set"], f"{row['system']} {row['setting']}", *accuracies, *times])
    return online_tables.markdown(heading, lines)


def learning(row: dict[str, Any]) -> float:
    """CPU seconds of answering and learning each row, without parsing."""
    return float(row["measured"][0]["cpu_s"]) - float(row["details"].get("parse_cpu_s", 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be given again")
    parser.add_argument("--work", type=Path, default=online.HERE / "work", help="environments, unpacked data, results")
    parser.add_argument("--sets", default=",".join(SETS), help="names, separated by commas")
    parser.add_argument("--steps", action="store_true", help="other step sizes for Vowpal Wabbit, too")
    parser.add_argument("--timeout", type=float, default=900.0, help="CPU seconds for one stream")
    parser.add_argument("--results", type=Path, help="JSON lines, appended to; what they hold is not measured again")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    results = arguments.results or work / "memory-tree.jsonl"
    for job in jobs(tuple(arguments.sets.split(",")), arguments.steps):
        if job.as_dict() in online_tables.measured(results):
            continue
        row = online.measure(job, online.prepare(job.set, arguments.data, work / "data"), work, arguments.timeout)
        with results.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        print(online_tables.one_line(row), flush=True)
    print(table(online_tables.read(results)))


if __name__ == "__main__":
    main()
