"""Memory trees side by side: ramify's beside Vowpal Wabbit's `--memory_tree`, on few-shot and on dense classes.

python -m benchmarks.memory_tree.run --data ../shared/data
"""

from __future__ import annotations

from typing import Any

from benchmarks.online_plt import plans, run, tables

SETS = ("wordnet-parent", "few-shot-3", "few-shot-5", "letter", "isolet-1560")
# Vowpal Wabbit's step size is -l; that of the authors of memory trees first, then others to choose from.
PEER = ("memory-tree", "memory-tree-l-0.1", "memory-tree-l-1")
OURS = ("memory-tree", "memory-tree-one-leaf")


def jobs(sets: tuple[str, ...], steps: bool) -> list[plans.Job]:
    peers = PEER if steps else PEER[:1]
    settings = [("ramify", name) for name in OURS] + [("vowpal_wabbit", name) for name in peers]
    return [plans.Job(name, *setting, progressive=True) for name in sets for setting in settings]


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
    return tables.markdown(heading, lines)


def learning(row: dict[str, Any]) -> float:
    """CPU seconds of answering and learning each row, without parsing."""
    return float(row["measured"][0]["cpu_s"]) - float(row["details"].get("parse_cpu_s", 0.0))


def main() -> None:
    parser = run.arguments_for(__doc__)
    parser.add_argument("--sets", default=",".join(SETS), help="names, separated by commas")
    parser.add_argument("--steps", action="store_true", help="other step sizes for Vowpal Wabbit, too")
    arguments = parser.parse_args()
    planned = jobs(tuple(arguments.sets.split(",")), arguments.steps)
    results = run.measure_all(planned, arguments, "memory-tree.jsonl")
    print(table(tables.read(results)))


if __name__ == "__main__":
    main()
