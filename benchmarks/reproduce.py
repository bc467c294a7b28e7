"""The tables and figures of the five papers, the paper's numbers beside ours.

    python -m benchmarks.reproduce                                              # what there is, with minutes
    python -m benchmarks.reproduce jasinska-kobus-2021 --data ../shared/data    # everything of one paper
    python -m benchmarks.reproduce jasinska-2016 --table 2 --data ../shared/data
    python -m benchmarks.reproduce choromanska-2015 --figure 3
    python -m benchmarks.reproduce jasinska-2016 --quick                        # minutes, on generated sets

Nothing is downloaded: --data names a folder of sets, as for every benchmark, and the sets differ from the papers'
(docs/papers.md). --sets takes others than the item's. --quick generates small sets instead and needs no data.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import ROOT, WORK
from benchmarks.papers import KINDS, PAPERS, Item, Step

# Generated sets of --quick: rows, labels, features.
QUICK = {"quick": (4000, 200, 1000), "quick-classes": (4000, 60, 500), "quick-text": (2000, 100, 500)}
ONE_CLASS = ("few-shot", "figure1", "table ", "purity", "findings", "nodes", "--data {data} --sets {sets} --splits")
QUICK_MINUTES = 0.2  # a step on generated sets; most take seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", nargs="?", choices=sorted(PAPERS), help="first author and year")
    parser.add_argument("--table", help="number of a table")
    parser.add_argument("--figure", help="number of a figure")
    parser.add_argument("--theorem", help="number of a theorem")
    parser.add_argument("--appendix", help="letter of an appendix")
    parser.add_argument("--data", type=Path, help="folder of sets")
    parser.add_argument("--sets", help="other sets than the item's, separated by commas")
    parser.add_argument("--quick", action="store_true", help="on generated sets, in minutes")
    parser.add_argument("--work", type=Path, default=WORK, help="for unpacked data, results and figures")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    given = parser.parse_args()
    if given.paper is None:
        print(overview())
        return
    items = chosen(given)
    if not given.quick and given.data is None and any("{data}" in s.arguments for i in items.values() for s in i.steps):
        sys.exit("error: the sets are missing\nhint: give their folder with --data, or --quick for generated ones")
    work = given.work.resolve()
    data = quick_sets(work) if given.quick and not given.dry_run else (given.data or work).resolve()
    steps = [step for item in items.values() for step in item.steps if not (given.quick and step.quick == "")]
    left, began = sum(minutes(step, given.quick) for step in steps), time.perf_counter()
    print(f"{PAPERS[given.paper][0]}\nabout {max(left, 1):.0f} min\n", flush=True)
    done = 0
    for name, item in items.items():
        print(f"## {name}: {item.title}\n\nThe paper:\n\n{indented(item.paper)}\n\nHere:\n", flush=True)
        if not item.steps:
            print("    (no run)")
        for step in item.steps:
            if step not in steps:
                print("    (not part of --quick)")
                continue
            command = arguments(step, given, data, work)
            report(done, len(steps), left, began, f"{step.module} {command}")
            if not given.dry_run:
                run(step.module, command)
            done += 1
            left -= minutes(step, given.quick)
        print(f"\nWhat matched, on real data: {item.verdict}\n", flush=True)
    report(done, len(steps), 0, began, "done")


def overview() -> str:
    lines = []
    for paper, (title, items) in PAPERS.items():
        lines.append(f"{paper}: {title}")
        for name, item in items.items():
            took = sum(step.minutes for step in item.steps)
            lines.append(f"    {name:<12} {item.title} (about {took:.0f} min)")
    return "\n".join(lines)


def chosen(given: argparse.Namespace) -> dict[str, Item]:
    """The items asked for, or all of the paper."""
    items = PAPERS[given.paper][1]
    wanted = [f"{kind} {number}" for kind in KINDS if (number := getattr(given, kind))]
    for name in wanted:
        if name not in items:
            sys.exit(f"error: {given.paper} has no {name} here\nhint: it has {', '.join(items)}")
    return {name: items[name] for name in wanted} if wanted else items


def minutes(step: Step, quick: bool) -> float:
    return QUICK_MINUTES if quick else step.minutes


def arguments(step: Step, given: argparse.Namespace, data: Path, work: Path) -> str:
    text = step.quick if given.quick and step.quick is not None else step.arguments
    is_one_class = any(text.startswith(start) for start in ONE_CLASS)
    sets = given.sets or (("quick-classes" if is_one_class else "quick") if given.quick else step.sets)
    return text.format(data=shlex.quote(str(data)), work=shlex.quote(str(work)), sets=sets)


def run(module: str, command: str) -> None:
    """One script in a process of its own, from the root of the repository."""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    done = subprocess.run(
        [sys.executable, "-m", module, *shlex.split(command)], cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}
    )
    if done.returncode:
        sys.exit(f"error: {module} ended with code {done.returncode}\nhint: run it alone: python -m {module} {command}")


def report(done: int, total: int, minutes_left: float, began: float, what: str) -> None:
    """A line of progress on stderr: the output of the scripts is the result."""
    width = 20
    bar = "#" * (width * done // max(total, 1))
    took = (time.perf_counter() - began) / 60
    words = f"[{bar:<{width}}] {done}/{total}, {took:.1f} min so far, about {minutes_left:.1f} left: {what}"
    print(words, file=sys.stderr, flush=True)


def quick_sets(work: Path) -> Path:
    """Generated sets as files, made once."""
    from ramify.data import save_xmc
    from ramify.data.synthetic import make_multiclass, make_multilabel

    folder = work / "quick"
    for name, (n_rows, n_labels, n_features) in QUICK.items():
        make = make_multiclass if name == "quick-classes" else make_multilabel
        for split, n in (("train", n_rows), ("test", n_rows // 4)):
            path = folder / name / f"{split}.txt.gz"
            text = path.with_name(f"{split}.fasttext.txt.gz")
            if path.exists() or text.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            made = make(n, n_labels, n_features, split=split, random_state=0)
            if name == "quick-text":
                text.write_bytes(gzip.compress(as_text(made.X, made.Y).encode()))
            else:
                save_xmc(path, made.X, made.Y)
    return folder


def as_text(X: Any, Y: Any) -> str:
    """Rows as fastText reads them: labels, then a word for each feature."""
    lines = []
    for row in range(X.shape[0]):
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        words = X.indices[X.indptr[row] : X.indptr[row + 1]]
        lines.append(" ".join([*(f"__label__{label}" for label in labels), *(f"word{word}" for word in words)]))
    return "\n".join(lines) + "\n"


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


if __name__ == "__main__":
    main()
