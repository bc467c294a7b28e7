"""Trees between similarity and frequency: precision, expected depth, blocks and time for every lambda.

    python -m benchmarks.trees.run --data ../shared/data              # the three sets, lambda from 0 to 2
    python -m benchmarks.trees.run --data ../shared/data --variants   # the four curves of the paper's figure 3
    python -m benchmarks.trees.run --data ../shared/data --lam figure3 --parabel --beams 10    # as its authors ran it
    python -m benchmarks.trees.run --data ../shared/data --lam figure3 --untimed --figure figure3.svg
    python -m benchmarks.trees.run --data ../shared/data --arity 32 --max-leaf 200 --lam 0,1,1.5
    python -m benchmarks.trees.run --data ../shared/data --lam 0,1.5 --slacks 0,0.2,0.5 --beams 0,10
    python -m benchmarks.trees.run --data ../shared/data --sets debian-depends --max-leaf 1 --lam 0,1.5 --by-depth
    python -m benchmarks.trees.run --million                          # a tree for 1,000,000 labels on 2 cores

Models take turns while they are timed, row by row the fastest of twenty calls counts, and the median over rows is
shown: the machine's speed drifts. Depth counts the edges from the root to a label's leaf: the blocks on its path.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import WORK
from benchmarks.datasets import Problem, load, prepare
from benchmarks.measure import Stopwatch, forget_peak, peak_megabytes, resident_megabytes
from benchmarks.precision_depth import Point, draw, lambda_prime
from ramify import PLTClassifier, metrics

# The paper's lambda' (section 5.4), lambda being 2 lambda' / (1 + lambda').
GRIDS = {
    "figure3": (0, 0.5, 1, 2, 6, 10, 30, 100, 300, 1000, 100_000),
    "figure4": (0, 0.25, 0.5, 0.75, 1, 2, 4, 16, 64, 256, 100_000),
}
SETS = ("debian-depends", "eurlex57k", "wordnet-parent")
VARIANTS: dict[str, dict[str, Any]] = {
    "marginal": {},
    "greedy": {"frequency": "greedy"},
    "direct, marginal": {"direct": True},
    "direct, greedy": {"direct": True, "frequency": "greedy"},
}
COLUMNS = (
    "set",
    "tree",
    "fit CPU s",
    "P@1/3/5",
    "depth at 1",
    "at 5",
    "blocks k = 1",
    "one row µs",
    "batch CPU µs",
    "blocks k = 5",
    "one row µs",
    "batch CPU µs",
)
TIMED_ROWS, ROUNDS, BATCHES = 500, 20, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--lam", default="0,0.5,1,1.5,1.8,2", help="numbers, or the paper's grid: figure3, figure4")
    parser.add_argument("--parabel", action="store_true", help="Parabel's node classifiers, and literal trees")
    parser.add_argument("--arity", type=int, default=2)
    parser.add_argument("--max-leaf", type=int, default=100)
    parser.add_argument("--gamma", type=float, default=0.1)
    parser.add_argument("--frequency", default="marginal")
    parser.add_argument("--variants", action="store_true", help="all four ways to interpolate, for the lambdas above 0")
    parser.add_argument("--slacks", default="0", help="slack of the search: 0 is exact")
    parser.add_argument("--beams", default="0", help="width of the beam; 0: best first")
    parser.add_argument("--rows", type=int, default=20_000, help="test rows at most")
    parser.add_argument("--work", type=Path, default=WORK / "data")
    parser.add_argument("--untimed", action="store_true", help="without times of prediction")
    parser.add_argument("--figure", type=Path, help="draw precision against expected depth: the paper's figure 3")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--by-depth", action="store_true", help="time of one row by the depth of its first label")
    given = parser.parse_args()
    if given.million:
        return build_for_a_million(given)
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    for name in given.sets.split(","):
        folder = prepare(name, given.data, given.work)
        measure_set(name, load(folder, "train"), load(folder, "test"), given)


def lambdas(given: str) -> list[float]:
    if given in GRIDS:
        return [2 * prime / (1 + prime) for prime in GRIDS[given]]
    return [float(part) for part in given.split(",")]


def measure_set(name: str, train: Problem, test: Problem, given: argparse.Namespace) -> None:
    y = train.Y.indices if train.is_multiclass else train.Y
    X, Y = sp.csr_array(test.X[: given.rows]), test.Y[: given.rows]
    models: dict[str, tuple[Any, float]] = {}
    for lam in lambdas(given.lam):
        for words, options in (VARIANTS if given.variants and lam > 0 else {"": {}}).items():
            frequency = given.frequency if given.frequency in ("marginal", "greedy") else float(given.frequency)
            options = {"frequency": frequency, "gamma": given.gamma, "lam": lam} | options
            shape = {"arity": given.arity, "max_leaf": given.max_leaf}
            if given.parabel:
                options |= {"literal": True, "prune": 0.0}
                model = PLTClassifier.from_paper("parabel-interpolated", **shape, random_state=0, n_jobs=1)
                model.set_params(tree_options=options, beam=None)  # the beam is that of --beams
            else:
                model = PLTClassifier(tree="interpolated", tree_options=options, **shape, random_state=0, n_jobs=1)
            with Stopwatch() as watch:
                model.fit(train.X, y)
            for slack in (float(part) for part in given.slacks.split(",")):
                for beam in (int(part) for part in given.beams.split(",")):
                    title = f"lam {lam:g}" + (f", {words}" if words else "")
                    title += (f", slack {slack:g}" if slack else "") + (f", beam {beam}" if beam else "")
                    models[title] = (Search(model, slack, beam), watch.cpu)
    if given.by_depth:
        return print_by_depth(name, {title: search for title, (search, _) in models.items()}, X)
    searches = [search for search, _ in models.values()]
    times = {k: None if given.untimed else timed(searches, X, k) for k in (1, 5)}
    curves: dict[int, list[Point]] = {1: [], 5: []}
    for place, (title, (search, took)) in enumerate(models.items()):
        model = search.model()
        reports = {k: model.search_report(X, top_k=k) for k in (1, 5)}
        answer = in_columns_of(Y, model, reports[5].answer)
        precision = [100 * metrics.precision_at_k(Y, answer, k) for k in (1, 3, 5)]
        depth = model.tree_.label_depth
        depths = [metrics.expected_depth_at_k(reports[k].answer, depth, k) for k in (1, 5)]
        point = lambda_prime(model.tree_options["lam"])
        for k, at in ((1, 0), (5, 1)):
            curves[k].append(Point(depths[at], precision[2 * at], point))
        cells = [name, title, f"{took:.1f}", "/".join(f"{value:.2f}" for value in precision)]
        cells += [f"{value:.2f}" for value in depths]
        for k in (1, 5):
            exact = "" if reports[k].exact_rows == 1 else f" ({100 * reports[k].exact_rows:.1f} % exact)"
            cells.append(f"{reports[k].mean_blocks:.1f}{exact}")
            cells += [f"{part[place]:.1f}" for part in times[k]] if times[k] else ["", ""]
        print("| " + " | ".join(cells) + " |", flush=True)
    if given.figure:
        draw(name, curves, given.figure.with_name(f"{given.figure.stem}-{name}{given.figure.suffix}"))


def in_columns_of(Y: sp.csr_matrix, model: Any, answer: sp.csr_array) -> sp.csr_array:
    """A model of classes has a column only for those that it has seen."""
    columns = model.classes_[answer.indices]
    return sp.csr_array((answer.data, columns, answer.indptr), shape=(answer.shape[0], Y.shape[1]))


class Search:
    """One trained model, searched in one of several ways."""

    def __init__(self, model: Any, slack: float, beam: int) -> None:
        self._model, self._settings = model, {"slack": slack, "beam": beam or None}

    def model(self) -> Any:
        return self._model.set_params(**self._settings)


def print_by_depth(name: str, searches: dict[str, Search], X: sp.csr_array) -> None:
    """Whether shallow labels come back sooner: one row at a time and in batches of rows of like depth, k = 1."""
    fastest, _ = time_rows(list(searches.values()), X, 1, batches=0)
    print(f"\n| {name} | first label's depth | rows | blocks | one row µs | batch CPU µs |\n" + "|---" * 6 + "|")
    for place, (title, search) in enumerate(searches.items()):
        model = search.model()
        report = model.search_report(X, top_k=1)
        depth = model.tree_.label_depth[report.answer.indices]
        for low, high in ((1, 3), (4, 6), (7, 9), (10, 12), (13, 99)):
            here = np.flatnonzero((depth >= low) & (depth <= high))
            timed_here = here[here < fastest.shape[1]]
            if len(timed_here) < 20:
                continue
            batch = min(1e6 * cpu_of(model, X[here]) / len(here) for _ in range(BATCHES))
            cells = [title, f"{low} to {high}" if high < 99 else f"{low} and more", f"{len(here):,}"]
            cells += [
                f"{report.blocks[here].mean():.1f}",
                f"{np.median(fastest[place, timed_here]):.1f}",
                f"{batch:.1f}",
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


def cpu_of(model: Any, X: sp.csr_array) -> float:
    with Stopwatch() as watch:
        model.predict_proba(X, top_k=1)
    return watch.cpu


def timed(searches: list[Search], X: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds a row: median of one row at a time (wall), and CPU in a batch."""
    fastest, batch = time_rows(searches, X, k, BATCHES)
    return np.median(fastest, axis=1), batch


def time_rows(searches: list[Search], X: sp.csr_array, k: int, batches: int) -> tuple[np.ndarray, np.ndarray]:
    rows = [sp.csr_array(X[[i]]) for i in range(min(TIMED_ROWS, X.shape[0]))]
    fastest = np.full((len(searches), len(rows)), np.inf)
    batch = np.full(len(searches), np.inf)
    for round in range(ROUNDS):
        for place, search in enumerate(searches):
            model = search.model()
            for i, row in enumerate(rows):
                start = time.perf_counter_ns()
                model.predict_labels(row, top_k=k)
                fastest[place, i] = min(fastest[place, i], (time.perf_counter_ns() - start) / 1e3)
            if round >= batches:
                continue
            with Stopwatch() as watch:
                model.predict_proba(X, top_k=k)
            batch[place] = min(batch[place], 1e6 * watch.cpu / X.shape[0])
    return fastest, batch


def build_for_a_million(given: argparse.Namespace) -> None:
    from benchmarks import synthetic
    from ramify.trees import interpolated_tree

    train = load(synthetic.prepare("scale-1000000", given.work), "train")
    print(
        f"{train.X.shape[0]:,} rows, {train.X.nnz:,} features, {train.Y.shape[1]:,} labels, {train.Y.nnz:,} positives"
    )
    print("| lam | arity | wall s | CPU s | peak MB above the data | height | inner nodes |\n" + "|---" * 7 + "|")
    for lam in (float(part) for part in given.lam.split(",")):
        forget_peak()
        before = resident_megabytes() or 0.0
        with Stopwatch() as watch:
            tree = interpolated_tree(
                train.X,
                train.Y,
                lam=lam,
                gamma=given.gamma,
                arity=given.arity,
                max_leaf=given.max_leaf,
                n_jobs=2,
                random_state=0,
            )
        cells = [
            f"{lam:g}",
            str(given.arity),
            f"{watch.wall:.0f}",
            f"{watch.cpu:.0f}",
            f"{peak_megabytes() - before:.0f}",
        ]
        cells += [str(tree.height), f"{int((tree.n_children > 0).sum()):,}"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
