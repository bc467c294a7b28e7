"""Tables from the JSON lines of run.py: means over shuffles.

python -m benchmarks.online_plt.tables paper benchmarks/work/online.jsonl
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.online_plt import plans

Row = dict[str, Any]
JOB_FIELDS = tuple(one.name for one in fields(plans.Job))


def read(results: Path) -> list[Row]:
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def measured(results: Path) -> list[Row]:
    """The jobs that the results hold, failures included."""
    return [{name: row[name] for name in JOB_FIELDS} for row in read(results)]


def one_line(row: Row) -> str:
    """A job and what was measured, for the screen."""
    head = f"{row['set']} {row['system']}:{row['setting']} {row['order']} seed={row['seed']} threads={row['threads']}"
    if row["status"] != "ok":
        return f"{head}: {row['status']}"
    passes = "; ".join(
        f"{one['cpu_s']:.2f} CPU s, {one['wall_s']:.2f} s, {one['peak_mb']:.0f} MB (+{one['grown_mb']:.0f})"
        + (f", {one['p1']:.2f}/{one['p3']:.2f}/{one['p5']:.2f}" if "p1" in one else "")
        for one in row["measured"]
    )
    progress = f", progressive {row['progressive_accuracy']:.2f}" if "progressive_accuracy" in row else ""
    return f"{head}: {passes}{progress} {row['details']}"


def grouped(rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that differ only in the shuffle."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        key = tuple(row[name] for name in ("set", "system", "setting", "order", "threads", "progressive"))
        groups[(*key, len(row["measured"]) if row["status"] == "ok" else 0)].append(row)
    return groups


def mean(rows: list[Row], number: int, name: str) -> float:
    return statistics.fmean(row["measured"][number][name] for row in rows)


def precision(rows: list[Row], number: int, kind: str = "p") -> str:
    """Precision at 1, 3 and 5, or propensity-scored precision; nothing if older results have none."""
    names = [f"{kind}{k}" for k in (1, 3, 5)]
    if any(name not in row["measured"][number] for row in rows for name in names):
        return ""
    return "/".join(f"{mean(rows, number, name):.2f}" for name in names)


def markdown(heading: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [heading, ["---"] * len(heading), *lines])


def throughput(rows: list[Row]) -> str:
    """Time, memory and precision of one pass with one thread, a line for each system."""
    heading = ["set", "system", "order", "CPU s", "rows/s", "peak MB", "learning alone MB", "P@1/3/5", "mean depth"]
    lines = []
    for (name, system, setting, order, threads, is_progressive, passes), group in grouped(rows).items():
        if threads != 1 or is_progressive or passes > 1 or not is_compared(system, setting):
            continue
        head = [name, f"{system} {setting}", order]
        if passes == 0:
            lines.append([*head, group[0]["status"], "", "", "", "", ""])
            continue
        cpu = mean(group, 0, "cpu_s")
        depth = group[0]["details"].get("depth")
        lines.append(
            [
                *head,
                f"{cpu:.2f}",
                f"{group[0]['rows'] / cpu:,.0f}",
                f"{mean(group, 0, 'peak_mb'):.0f}",
                f"{mean(group, 0, 'grown_mb'):.0f}",
                precision(group, 0),
                "" if depth is None else f"{depth:.1f}",
            ]
        )
    return markdown(heading, lines)


def is_compared(system: str, setting: str) -> bool:
    """Whether a setting belongs into the table of throughput: all of other systems, and ramify's main ones."""
    return system != "ramify" or setting in (*plans.POLICIES, "best" + plans.STEPS)


def threads(rows: list[Row]) -> str:
    """Times of one thread beside two, a line for each pass."""
    heading = ["set", "policy", "pass", "one thread, wall s", "two threads, wall s", "ratio"]
    lines = []
    groups = grouped(rows)
    for (name, system, setting, order, n, is_progressive, passes), one in groups.items():
        two = groups.get((name, system, setting, order, 2, is_progressive, passes))
        if n != 1 or two is None:
            continue
        for number in range(passes):
            # least, not mean: whatever else ran only adds
            wall = [min(row["measured"][number]["wall_s"] for row in group) for group in (one, two)]
            cells = [f"{wall[0]:.2f}", f"{wall[1]:.2f}", f"{wall[0] / wall[1]:.2f}"]
            lines.append([name, setting, str(number + 1), *cells])
    return markdown(heading, lines)


def paper(rows: list[Row]) -> str:
    heading = ["set", "setting", "shuffles", "1 pass P@1/3/5", "PSP@1/3/5", "CPU s", "us a test row"]
    heading += ["3 passes P@1/3/5", "PSP@1/3/5", "CPU s", "mean depth"]
    chosen = {job.setting for job in plans.jobs("paper", ["any"], ["*"], 1)}
    lines = []
    for (name, system, setting, order, n, is_progressive, passes), group in grouped(rows).items():
        if (system, order, n, is_progressive) != ("ramify", "shuffled", 1, False) or passes not in (1, 3):
            continue
        if setting not in chosen or (passes == 1 and setting != "batch"):
            continue
        later = passes == 3
        depth = [row["details"]["depth"] for row in group if "depth" in row["details"]]
        lines.append(
            [
                name,
                setting,
                str(len(group)),
                precision(group, 0),
                precision(group, 0, "psp"),
                f"{mean(group, 0, 'cpu_s'):.2f}",
                f"{mean(group, 0, 'batch_cpu_us'):.0f}",
                precision(group, 2) if later else "",
                precision(group, 2, "psp") if later else "",
                f"{total_cpu(group):.2f}" if later else "",
                f"{statistics.fmean(depth):.1f}" if depth else "",
            ]
        )
    return markdown(heading, lines)


def sweeps(rows: list[Row]) -> str:
    heading = ["set", "setting", "shuffles", "P@1/3/5", "CPU s", "mean depth", "height"]
    chosen = {job.setting for job in plans.jobs("sweeps", ["any"], ["*"], 1)}
    lines = [
        [
            name,
            setting,
            str(len(group)),
            precision(group, 0),
            f"{mean(group, 0, 'cpu_s'):.2f}",
            f"{statistics.fmean(row['details']['depth'] for row in group):.1f}",
            f"{statistics.fmean(row['details']['height'] for row in group):.0f}",
        ]
        for (name, _, setting, _, _, _, passes), group in grouped(rows).items()
        if setting in chosen and passes
    ]
    return markdown(heading, lines)


def few_shot(rows: list[Row]) -> str:
    """Test-then-learn is what progressive accuracy costs; Vowpal Wabbit answers whenever it learns, so has no other."""
    heading = ["set", "learner", "progressive accuracy", "test accuracy", "test-then-learn CPU s", "learn CPU s"]
    groups = grouped(rows)
    lines = []
    for (name, system, setting, order, n, is_progressive, passes), group in groups.items():
        if not is_progressive:
            continue
        head = [name, f"{system} {setting}"]
        if passes == 0:
            lines.append([*head, group[0]["status"], *[""] * 6])
            continue
        longer = groups.get((name, system, setting, order, n, False, 3))
        accuracy = statistics.fmean(row["progressive_accuracy"] for row in group)
        cells = [f"{accuracy:.2f}", f"{mean(group, 0, 'p1'):.2f}", f"{mean(group, 0, 'cpu_s'):.2f}"]
        cells.append(f"{mean(longer, 0, 'cpu_s'):.2f}" if longer else "")
        cells.append(f"{mean(group, 0, 'peak_mb'):.0f}")
        three = [f"{mean(longer, 2, 'p1'):.2f}", f"{total_cpu(longer):.2f}"] if longer else ["", ""]
        lines.append([*head, *cells, *three])
    return markdown([*heading, "peak MB", "3 passes: test accuracy", "learn CPU s"], lines)


def total_cpu(rows: list[Row]) -> float:
    return sum(mean(rows, number, "cpu_s") for number in range(len(rows[0]["measured"])))


TABLES = {"throughput": throughput, "threads": threads, "paper": paper, "sweeps": sweeps, "few-shot": few_shot}


def render(plan: str, results: Path) -> str:
    # settings tried by hand with other parameters stand in no table
    return TABLES[plan]([row for row in read(results) if not row["parameters"]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=sorted(TABLES))
    parser.add_argument("results", type=Path)
    arguments = parser.parse_args()
    print(render(arguments.plan, arguments.results))


if __name__ == "__main__":
    main()
