"""LOMtree beside Vowpal Wabbit, the random and the filter tree and one-against-all; and figures 1 and 3 of its paper.

    python -m benchmarks.lomtree.run table --data ../shared/data
    python -m benchmarks.lomtree.run figure1 --data ../shared/data
    python -m benchmarks.lomtree.run figure3

One thread. Settings are chosen on a tenth of the training rows, from the paper's step sizes and numbers of nodes;
then the model is trained on all rows and tested. Errors and CPU seconds of training are means over --orders random
orders of the training rows, the same for every system. Runs that take more than --most-seconds are skipped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import ROOT, WORK, environments
from benchmarks.lomtree import sets
from benchmarks.lomtree.sets import ClassSet, Rows, write_vw
from benchmarks.measure import Stopwatch
from ramify.optimizers import AdaGrad

RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
NODES = (1, 4, 16, 64)
FORGETTING = (0.0, 0.03, 0.1)  # 0 is the paper's mean of all scores
PAPERS_RATES = (0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 8.0)
PAPERS_NODES = (1, 2, 4, 8, 16, 32, 64)
PAPERS_RESISTANCES = (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
PEERS = ("log_multi", "recall_tree", "oaa")  # its memory tree: benchmarks/memory_tree


def ours(name: str, passes: int, **settings: Any) -> Any:
    from ramify.registry import make_classifier

    repeated = {} if name in ("random-tree", "oaa") else {"n_epochs": passes}
    return make_classifier(name, n_jobs=1, random_state=0, **repeated, **settings)


def mean(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def interval(error: float, n_rows: int) -> float:
    """Half of the 95 % confidence interval of an error in percent on this many test rows, as in the paper's table 4."""
    share = error / 100
    return 100 * 1.96 * math.sqrt(share * (1 - share) / n_rows)


def measured(name: str, passes: int, train: Rows, test: Rows, orders: int = 1, **settings: Any) -> dict[str, float]:
    found = []
    for order in range(orders):
        rows = train.shuffled(order)
        clf = ours(name, passes, **settings)
        with Stopwatch() as training:
            clf.fit(rows.X, rows.y)
            if name.startswith("online-"):
                clf.model_.learner.apply_all(1)  # queued examples count as training
        with Stopwatch() as testing:
            predicted = clf.predict(test.X)
        error = 100 * float(np.mean(predicted != test.y))
        found.append({"error": error, "train": training.cpu, "test": testing.cpu})
    return mean(found)


def grid(name: str, n_classes: int, quick: bool) -> list[dict[str, Any]]:
    """Settings to choose from."""
    rates = RATES[:3] if quick else RATES
    if name == "lomtree":
        return [
            {
                "optimizer": AdaGrad(learning_rate=rate),
                "max_nodes": nodes * n_classes - 1,
                "forgetting": forgetting,
                "normalize": normalize,
            }
            for rate, nodes, forgetting, normalize in itertools.product(rates, NODES, FORGETTING, (True, False))
        ]
    if name == "lomtree-2015":
        return papers_grid(n_classes, quick)
    if name == "filter-tree":
        return [{"optimizer": AdaGrad(learning_rate=rate)} for rate in rates]
    return [{}]


def papers_grid(n_classes: int, quick: bool) -> list[dict[str, Any]]:
    """The paper's own grid of step sizes, nodes and swap resistances; quick: one of each axis at a time."""
    if not quick:
        axes: Any = itertools.product(PAPERS_RATES, PAPERS_NODES, PAPERS_RESISTANCES)
    else:
        middle = (1.0, 16, 4.0)
        axes = [(rate, *middle[1:]) for rate in PAPERS_RATES]
        axes += [(middle[0], nodes, middle[2]) for nodes in PAPERS_NODES]
        axes += [(*middle[:2], resistance) for resistance in PAPERS_RESISTANCES]
    return [
        {
            "optimizer": AdaGrad(learning_rate=rate),
            "max_nodes": nodes * n_classes - 1,
            "swap_resistance": resistance,
        }
        for rate, nodes, resistance in axes
    ]


def best(
    name: str, passes: int, data: ClassSet, orders: int, quick: bool, fixed: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The settings of least validation error, some of them fixed, and what they do on the test rows."""
    fit, check = data.split()
    choices = [one | (fixed or {}) for one in grid(name, data.n_classes, quick)]
    choices = [one for place, one in enumerate(choices) if repr(one) not in map(repr, choices[:place])]
    errors = [0.0]
    if len(choices) > 1:
        errors = [measured(name, passes, fit, check, orders, **one)["error"] for one in choices]
    chosen = choices[int(np.argmin(errors))]
    found = measured(name, passes, data.train, data.test, orders, **chosen)
    return {"system": f"ramify {name}", "settings": chosen, **found}


class TooLong(Exception):
    """A peer has used up its CPU seconds."""


def vw(options: str, passes: int, train: list[Path], test: Path, folder: Path, most_seconds: float) -> dict[str, float]:
    """Vowpal Wabbit's error and times, the mean over the training texts."""
    python = environments.python_with("vowpal_wabbit", [["vowpalwabbit", "scipy"]], WORK)
    found = []
    for path in train:
        job = {"options": options, "passes": passes, "train": str(path), "test": str(test), "folder": str(folder)}
        job["most_seconds"] = most_seconds
        command = [str(python), "-m", "benchmarks.lomtree.vw_worker", json.dumps(job)]
        said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if said.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TooLong(f"more than {most_seconds:.0f} CPU s")
        if said.returncode:
            sys.exit(f"vw {options}: {said.stderr[-2000:]}")
        found.append(json.loads(said.stdout.splitlines()[-1]))
    return mean(found)


def options(peer: str, data: ClassSet, quick: bool) -> list[str]:
    """Settings of a peer to choose from."""
    rates = RATES[:3] if quick else RATES
    # --log_multi has one inner node fewer than the classes that it is given.
    factors = NODES if peer == "log_multi" else (1,)
    return [f"--{peer} {f * data.n_classes + 1} -l {rate} -b 24" for rate, f in itertools.product(rates, factors)]


def best_vw(peer: str, passes: int, data: ClassSet, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    def written(name: str, rows: Rows) -> Path:
        path = folder / f"{name}.vw"
        if not path.exists():
            write_vw(rows, path)
        return path

    fit, check = data.split()
    orders = range(arguments.orders)
    train = {
        "fit": [written(f"fit-{order}", fit.shuffled(order)) for order in orders],
        "train": [written(f"train-{order}", data.train.shuffled(order)) for order in orders],
    }
    limit = arguments.most_seconds
    choices = options(peer, data, arguments.quick)
    errors = []
    for one in choices:
        errors.append(vw(one, passes, train["fit"], written("check", check), folder, limit)["error"])
    chosen = choices[int(np.argmin(errors))]
    found = vw(chosen, passes, train["train"], written("test", data.test), folder, limit)
    return {"system": f"VW --{peer}", "settings": chosen, **found}


def table(arguments: argparse.Namespace) -> None:
    print("| set | passes | system | error | train CPU s | parsing | us a row | chosen |\n" + 8 * "|---" + "|")
    for name in arguments.sets:
        data = sets.load(name, arguments.data, WORK / "data")
        folder = WORK / "lomtree" / name
        folder.mkdir(parents=True, exist_ok=True)
        for passes in arguments.passes:
            for system in arguments.systems:
                if system.startswith("vw:"):
                    try:
                        row = best_vw(system[3:], passes, data, folder, arguments)
                    except TooLong as reason:
                        print(f"| {name} | {passes} | VW --{system[3:]} | {reason} |||||", flush=True)
                        continue
                else:
                    row = best(system, passes, data, arguments.orders, arguments.quick)
                per_row = 1e6 * (row["train"] - row.get("parse", 0.0)) / len(data.train.y) / passes
                spread = interval(row["error"], len(data.test.y))
                print(
                    f"| {name} | {passes} | {row['system']} | {row['error']:.2f} ± {spread:.2f} | {row['train']:.2f} | "
                    f"{row.get('parse', 0.0):.2f} | {per_row:.1f} | {row['settings']} |",
                    flush=True,
                )
        for path in folder.glob("*.vw"):
            path.unlink()


def figure1(arguments: argparse.Namespace) -> None:
    """One-against-all, cut off after the seconds that LOMtree takes: on as many rows as it can learn in them."""
    print("| set | LOMtree | seconds | one-against-all in that time | rows of | whole | seconds |\n" + 7 * "|---" + "|")
    for name in arguments.sets:
        data = sets.load(name, arguments.data, WORK / "data")
        passes = arguments.passes[-1]
        # As in the paper, with no more weights than one-against-all: k - 1 inner nodes.
        bound = {"max_nodes": data.n_classes - 1}
        tree = best("lomtree", passes, data, 1, arguments.quick, bound if arguments.bounded else {})
        n = len(data.train.y)
        sample = min(n, max(64, n // 50))
        pace = (
            measured("online-oaa", 1, data.train.take(np.arange(sample)), data.test.take(np.arange(1)))["train"]
            / sample
        )
        n_rows = int(min(n, max(data.n_classes // 100, tree["train"] / pace)))
        cut = measured("online-oaa", 1, data.train.take(np.arange(n_rows)), data.test)
        whole = measured("online-oaa", 1, data.train, data.test) if pace * n < arguments.most_seconds else None
        cells = f"{whole['error']:.2f} | {whole['train']:.1f}" if whole else f"not run | about {pace * n:.0f}"
        print(
            f"| {name} | {tree['error']:.2f} | {tree['train']:.2f} | {cut['error']:.2f} | {n_rows} of {n} | {cells} |",
            flush=True,
        )


def figure3(arguments: argparse.Namespace) -> None:
    """Time of one answer against the number of classes, 128 dense features; one-against-all has untrained weights."""
    from ramify import LOMTreeClassifier, OnlinePLTClassifier
    from ramify.data.synthetic import make_dense
    from ramify.plots.drawing import COLOURS, finish, new_figure, readable_log_ticks
    from ramify.trees.simple import one_level_tree

    found = []
    for k in arguments.classes:
        data = make_dense(max(20_000, 2 * k), k, 128)
        test = data.X[:2000]
        tree = LOMTreeClassifier(max_nodes=k - 1, n_jobs=1, random_state=0).fit(data.X, data.y)
        # Its weights are those of a few rows, enough that no feature is kept as the steps that made it: after that, the
        # time of an answer does not depend on how many were learned.
        few = np.arange(20)
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
    figure = new_figure(10, 4, arguments.out)
    left, right = figure.subplots(1, 2)
    left.loglog(classes, lom, "o-", color=COLOURS[0], label="LOMtree")
    left.loglog(classes, oaa, "s-", color=COLOURS[1], label="one-against-all")
    left.set(xlabel="classes", ylabel="microseconds an answer")
    left.legend()
    right.plot(np.log2(classes), np.log2(oaa / lom), "o-", color=COLOURS[0])
    right.set(xlabel="log2 of the classes", ylabel="log2 of the ratio of times")
    for axis in (left.xaxis, left.yaxis):
        readable_log_ticks(axis)
    finish(figure, arguments.out)
    print(f"wrote {arguments.out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "figure1", "figure3"])
    parser.add_argument("--data", type=Path, nargs="+", default=[], help="folders that hold the sets")
    parser.add_argument("--sets", nargs="+", default=list(sets.SETS))
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 5])
    systems = ["lomtree", "filter-tree", "random-tree", "online-random-tree", "oaa", *(f"vw:{peer}" for peer in PEERS)]
    parser.add_argument("--systems", nargs="+", default=systems)
    parser.add_argument("--orders", type=int, default=1, help="table: random orders of the rows to average over")
    parser.add_argument("--quick", action="store_true", help="three step sizes instead of five")
    parser.add_argument("--bounded", action="store_true", help="figure1: LOMtree has k - 1 nodes")
    parser.add_argument(
        "--most-seconds",
        type=float,
        default=60,
        help="CPU seconds of a peer's run, and of figure 1's whole one-against-all",
    )
    parser.add_argument("--classes", type=int, nargs="+", default=[26, 100, 1000, 10_000, 100_000])
    parser.add_argument("--out", type=Path, default=WORK / "lomtree-figure3.svg")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    {"table": table, "figure1": figure1, "figure3": figure3}[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())
