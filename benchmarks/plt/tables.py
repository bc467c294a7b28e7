"""Tables from the JSON lines of run.py: medians over repetitions, with ratios to ramify.

python -m benchmarks.plt.tables benchmarks/work/results.jsonl --best
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

Row = dict[str, Any]
# heading, field, format, whether a ratio to ramify makes sense
COLUMNS = (
    ("train CPU s", "train_cpu_s", ".1f", True),
    ("wall s", "train_wall_s", ".1f", False),
    ("peak MB", "peak_mb", ".0f", True),
    ("model MB", "model_mb", ".1f", True),
    ("first answer ms", "first_answer_ms", ".0f", False),
    ("batch µs", "batch_us", ".0f", True),
    ("batch CPU µs", "batch_cpu_us", ".0f", True),
    ("one row µs", "single_us", ".0f", True),
    ("p99 µs", "single_p99_us", ".0f", True),
    ("P@1", "p1", ".2f", False),
    ("P@3", "p3", ".2f", False),
    ("P@5", "p5", ".2f", False),
    ("log loss", "log_loss", ".2f", False),
    ("Brier", "brier", ".3f", False),
    ("ECE", "ece", ".3f", False),
)


def read(results: Path) -> list[Row]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines()]


def times_measured(results: Path, run: Any) -> int:
    """How often the results hold this run, failures included."""
    counts = [
        sum(
            (row["set"], row["system"], row["setting"], row["threads"])
            == (run.data.name, run.system, name, run.threads)
            for row in read(results)
        )
        for name in run.settings
    ]
    return min(counts)


def medians(rows: list[Row]) -> list[Row]:
    """One row per (set, threads, system, setting); numbers are medians of the runs that succeeded."""
    grouped: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["set"], row["threads"], row["system"], row["setting"]].append(row)
    merged = []
    for group in grouped.values():
        good = [row for row in group if row["status"] == "ok"]
        summary = dict((good or group)[-1])
        for name, value in summary.items():
            if good and isinstance(value, float):
                summary[name] = statistics.median(row[name] for row in good if name in row)
        merged.append(summary | {"runs": len(good)})
    return merged


def best_of_each(rows: list[Row]) -> list[Row]:
    """Of each system the setting with the highest P@1 + P@3 + P@5, and the one that trains fastest."""
    kept: list[Row] = []
    by_system: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["status"] == "ok":
            by_system[row["set"], row["threads"], row["system"]].append(row)
    for group in by_system.values():
        most_precise = max(group, key=lambda row: row["p1"] + row["p3"] + row["p5"])
        fastest = min(group, key=lambda row: row["train_cpu_s"])
        kept += [most_precise] if fastest is most_precise else [most_precise, fastest]
    return kept


def cell(row: Row, reference: Row | None, field: str, form: str, has_ratio: bool) -> str:
    if row.get(field) is None:
        return ""
    text = format(row[field], form)
    if has_ratio and reference is not None and reference is not row and reference.get(field):
        ratio = row[field] / reference[field]
        text += f" ({ratio:.{0 if ratio >= 9.5 else 1}f}x)"
    return text


def render(results: Path, *, sets: set[str] | None = None, best: bool = False) -> str:
    rows = [row for row in medians(read(results)) if sets is None or row["set"] in sets]
    rows = best_of_each(rows) if best else rows
    tables = []
    for name, threads in dict.fromkeys((row["set"], row["threads"]) for row in rows):
        own = [row for row in rows if (row["set"], row["threads"]) == (name, threads)]
        own.sort(key=lambda row: (row["system"] != "ramify", row["system"], row["setting"]))
        reference = next((row for row in own if row["system"] == "ramify" and row["status"] == "ok"), None)
        lines = [f"### {name}, {threads} thread{'s' if threads > 1 else ''}", ""]
        lines.append("| system | setting | runs | " + " | ".join(column[0] for column in COLUMNS) + " |")
        lines.append("|---|---|" + "---|" * (len(COLUMNS) + 1))
        for row in own:
            cells = [cell(row, reference, *column[1:]) for column in COLUMNS]
            if row["status"] != "ok":
                cells[0] = row["status"]
            lines.append(f"| {row['system']} | {row['setting']} | {row['runs']} | " + " | ".join(cells) + " |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def one_line(row: Row) -> str:
    head = f"{row['set']} {row['system']}:{row['setting']} threads={row['threads']}"
    if row["status"] != "ok":
        return f"{head}: {row['status']}"
    return f"{head}: " + ", ".join(f"{column[0]} {cell(row, None, *column[1:])}" for column in COLUMNS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", help="names, separated by commas; default: all")
    parser.add_argument("--best", action="store_true", help="each system's most precise and its fastest setting only")
    arguments = parser.parse_args()
    print(
        render(arguments.results, sets=set(arguments.sets.split(",")) if arguments.sets else None, best=arguments.best)
    )


if __name__ == "__main__":
    main()
