"""LOMtree beside Vowpal Wabbit, the random and the filter tree and one-against-all; and figures 1 and 3 of its paper.

    .venv/bin/python benchmarks/lomtree.py table --data ../shared/data
    .venv/bin/python benchmarks/lomtree.py figure1 --data ../shared/data
    .venv/bin/python benchmarks/lomtree.py figure3

One thread. Settings are chosen on a tenth of the training rows, from the paper's step sizes and numbers of nodes;
then all training rows are learned, and the test rows answered. Seconds are CPU seconds of the training alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import environments
import lomtree_sets
from lomtree_sets import ClassSet, Rows, write_vw
from measure import Stopwatch

RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
NODES = (1, 4, 16)
PEERS = ("log_multi", "recall_tree", "oaa")
WORK = Path(__file__).parent / "work"


def ours(name: str, passes: int, **settings: Any) -> Any:
    from ramify.models.presets import make_classifier

    repeated = {} if name in ("random-tree", "oaa") else {"passes": passes}
    return make_classifier(name, n_jobs=1, random_state=0, **repeated, **settings)


def measured(name: str, passes: int, train: Rows, test: Rows, **settings: Any) -> dict[str, float]:
    clf = ours(name, passes, **settings)
    with Stopwatch() as training:
        clf.fit(train.X, train.y)
    with Stopwatch() as testing:
        predicted = clf.predict(test.X)
    return {"error": 100 * float(np.mean(predicted != test.y)), "train": training.cpu, "test": testing.cpu}


def grid(name: str, n_classes: int, quick: bool) -> list[dict[str, Any]]:
    """Settings to choose from."""
    rates = RATES[:3] if quick else RATES
    if name == "lomtree":
        return [
            {"learning_rate": rate, "max_nodes": nodes * n_classes - 1, "forgetting": forgetting}
            for rate, nodes, forgetting in itertools.product(rates, NODES, (0.0, 0.05))
        ]
    if name == "filter-tree":
        return [{"learning_rate": rate} for rate in rates]
    return [{}]


def best(name: str, passes: int, data: ClassSet, quick: bool) -> dict[str, Any]:
    """The settings of least validation error, and what they do on the test rows."""
    fit, check = data.split()
    choices = grid(name, data.n_classes, quick)
    scores = [measured(name, passes, fit, check, **one)["error"] for one in choices] if len(choices) > 1 else [0.0]
    chosen = choices[int(np.argmin(scores))]
    return {"system": f"ramify {name}", "settings": chosen, **measured(name, passes, data.train, data.test, **chosen)}


def vw(options: str, passes: int, train: Path, test: Path, folder: Path) -> dict[str, float]:
    python = environments.python_with("vowpal_wabbit", [["vowpalwabbit", "scipy"]], WORK)
    job = {"options": options, "passes": passes, "train": str(train), "test": str(test), "folder": str(folder)}
    command = [str(python), str(Path(__file__).parent / "lomtree_vw.py"), json.dumps(job)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return found


def best_vw(peer: str, passes: int, data: ClassSet, folder: Path, quick: bool) -> dict[str, Any]:
    paths = {name: folder / f"{name}.vw" for name in ("fit", "check", "train", "test")}
    for name, rows in zip(paths, (*data.split(), data.train, data.test), strict=True):
        if not paths[name].exists():
            write_vw(rows, paths[name])
    # --log_multi has one inner node fewer than the classes that it is told of.
    factors = NODES if peer == "log_multi" else (1,)
    choices = [
        f"--{peer} {factor * data.n_classes + 1} -l {rate} -b 24"
        for rate, factor in itertools.product(RATES[:3] if quick else RATES, factors)
    ]
    scores = [vw(one, passes, paths["fit"], paths["check"], folder)["error"] for one in choices]
    chosen = choices[int(np.argmin(scores))]
    return {"system": f"VW --{peer}", "settings": chosen, **vw(chosen, passes, paths["train"], paths["test"], folder)}


def table(arguments: argparse.Namespace) -> None:
    print("| set | passes | system | error | train CPU s | parsing | us a row | chosen |\n" + 8 * "|---" + "|")
    for name in arguments.sets:
        data = lomtree_sets.load(name, arguments.data, WORK / "data")
        folder = WORK / "lomtree" / name
        folder.mkdir(parents=True, exist_ok=True)
        for passes in arguments.passes:
            for system in arguments.systems:
                if system.startswith("vw:"):
                    row = best_vw(system[3:], passes, data, folder, arguments.quick)
                else:
                    row = best(system, passes, data, arguments.quick)
                per_row = 1e6 * (row["train"] - row.get("parse", 0.0)) / len(data.train.y) / passes
                print(
                    f"| {name} | {passes} | {row['system']} | {row['error']:.2f} | {row['train']:.2f} | "
                    f"{row.get('parse', 0.0):.2f} | {per_row:.1f} | {row['settings']} |",
                    flush=True,
                )
        for path in folder.glob("*.vw"):
            path.unlink()


def figure1(arguments: argparse.Namespace) -> None:
    """One-against-all, cut off after the seconds that LOMtree takes: on as many rows as it can learn in them."""
    print("| set | LOMtree | seconds | one-against-all in that time | rows of | whole | seconds |\n" + 7 * "|---" + "|")
    for name in arguments.sets:
        data = lomtree_sets.load(name, arguments.data, WORK / "data")
        passes = arguments.passes[-1]
        tree = best("lomtree", passes, data, arguments.quick)
        n = len(data.train.y)
        sample = min(n, max(64, n // 50))
        pace = (
            measured("online-oaa", 1, data.train.take(np.arange(sample)), data.test.take(np.arange(1)))["train"]
            / sample
        )
        n_rows = int(min(n, max(data.n_classes // 100, tree["train"] / pace)))
        cut = measured("online-oaa", 1, data.train.take(np.arange(n_rows)), data.test)
        whole = measured("online-oaa", 1, data.train, data.test) if pace * n < arguments.most_seconds else None
        told = f"{whole['error']:.2f} | {whole['train']:.1f}" if whole else f"not run | about {pace * n:.0f}"
        print(
            f"| {name} | {tree['error']:.2f} | {tree['train']:.2f} | {cut['error']:.2f} | {n_rows} of {n} | {told} |",
            flush=True,
        )


def figure3(arguments: argparse.Namespace) -> None:
    """Time of one answer against the number of classes, 128 dense features; one-against-all has untrained weights."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from ramify import LOMTreeClassifier, OnlinePLTClassifier
    from ramify.data.synthetic import make_dense
    from ramify.trees.simple import one_level_tree

    found = []
    for k in arguments.classes:
        data = make_dense(max(20_000, 2 * k), k, 128)
        test = data.X[:2000]
        tree = LOMTreeClassifier(max_nodes=k - 1, n_jobs=1, random_state=0).fit(data.X, data.y)
        # Its weights are zero but for a few rows: that does not change how long they take.
        few = np.arange(5)
        all_labels = one_level_tree(None, np.arange(k))
        flat = OnlinePLTClassifier(tree=all_labels, policy=None, n_jobs=1, random_state=0)
        flat.partial_fit(data.X[few], data.y[few], classes=np.arange(k))
        n_flat = max(5, min(2000, 20_000_000 // (128 * k)))
        seconds = []
        for clf, rows in ((tree, test), (flat, test[:n_flat])):
            clf.predict(rows[:1])
            with Stopwatch() as watch:
                clf.predict(rows)
            seconds.append(1e6 * watch.cpu / rows.shape[0])
        depth = np.mean([len(tree.explain(test[[row]]).path) - 1 for row in range(50)])
        found.append((k, *seconds, depth))
        print(
            f"{k:>7} classes: LOMtree {seconds[0]:.2f} us (depth {depth:.1f}), one-against-all {seconds[1]:.2f} us, "
            f"ratio {seconds[1] / seconds[0]:.1f}, log2 {math.log2(seconds[1] / seconds[0]):.2f}",
            flush=True,
        )
    classes, lom, oaa, _ = (np.array(column) for column in zip(*found, strict=True))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    left.loglog(classes, lom, "o-", label="LOMtree")
    left.loglog(classes, oaa, "s-", label="one-against-all")
    left.set(xlabel="classes", ylabel="microseconds an answer")
    left.legend()
    right.plot(np.log2(classes), np.log2(oaa / lom), "o-")
    right.set(xlabel="log2 of the classes", ylabel="log2 of one-against-all's time over LOMtree's")
    figure.tight_layout()
    figure.savefig(arguments.out, dpi=120)
    print(f"wrote {arguments.out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "figure1", "figure3"])
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="folders that hold the sets")
    parser.add_argument("--sets", nargs="+", default=list(lomtree_sets.SETS))
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 5])
    systems = ["lomtree", "filter-tree", "random-tree", "oaa", *(f"vw:{peer}" for peer in PEERS)]
    parser.add_argument("--systems", nargs="+", default=systems)
    parser.add_argument("--quick", action="store_true", help="three step sizes instead of five")
    parser.add_argument(
        "--most-seconds", type=float, default=60, help="figure 1: one-against-all as a whole, up to this"
    )
    parser.add_argument("--classes", type=int, nargs="+", default=[26, 100, 1000, 10_000, 100_000])
    parser.add_argument("--out", type=Path, default=WORK / "lomtree-figure3.png")
    arguments = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    {"table": table, "figure1": figure1, "figure3": figure3}[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())
