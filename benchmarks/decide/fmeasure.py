"""Macro-F on test rows for every decision rule.

This is table 2 of "Extreme F-Measure Maximization using Sparse Probability Estimates" (Jasinska et al., 2016).

    python -m benchmarks.decide.fmeasure --data ../shared/data --sets bibtex,delicious,eurlex57k,debian-depends

A model is an entry of MODELS; its inner products are counted if the method counts them. Times are CPU time of one
thread. The fixed decisions use the model trained on all rows, and the k of "best top-k" is chosen on the test rows
themselves, so the comparison does not favour the tuned decisions.
"""

from __future__ import annotations

import argparse
import fnmatch
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from benchmarks import WORK
from benchmarks.datasets import Problem, load, prepare
from ramify import FastXMLClassifier, PLTClassifier, ThresholdClassifier, decide, metrics
from ramify.base.answers import keep_best
from ramify.base.training import TrainingData


class OneFastXML(FastXMLClassifier):
    """Trains a forest on the same rows only once, for all tuners. `saved` are CPU seconds."""

    forests: ClassVar[dict[Any, tuple[Any, float]]] = {}
    saved = 0.0

    def _train(self, data: TrainingData) -> Any:
        rows = (*data.X.shape, float(data.X.sum()), float(data.Y.indices.sum()))
        if rows in self.forests:
            forest, self.saved = self.forests[rows]
            return forest
        began = time.process_time()
        forest = super()._train(data)
        self.forests[rows] = forest, time.process_time() - began
        return forest


SETS = ("bibtex", "delicious", "eurlex57k", "debian-depends")
MODELS: dict[str, Callable[[], Any]] = {
    "PLT": lambda: PLTClassifier(random_state=0, n_jobs=1),
    "FastXML": lambda: OneFastXML(random_state=0, n_jobs=1),
    # Random b-ary tree, FOBOS, weights that all nodes share by hashing.
    "PLT of the paper": lambda: PLTClassifier.from_paper("plt-fobos", random_state=0, n_jobs=1),
}
# The paper counts F = 1 for a label that has neither positives nor predictions, and looks at all labels above the cut.
PAPERS: dict[str, Any] = {"folds": 1, "refit": False, "empty": "one", "candidates": None}
TUNERS: dict[str, dict[str, Any]] = {
    "FTA": {"method": "fta"},
    "FTA, common": {"method": "fta", "common": True},
    "STO": {"method": "sto"},
    "OFO": {"method": "ofo"},
    "FTA, as in the paper": {"method": "fta", "common": True, **PAPERS},
    "STO, as in the paper": {"method": "sto", **PAPERS},
    "OFO, as in the paper": {"method": "ofo", **PAPERS},
}
LARGEST_K = 60


class Line(NamedTuple):
    """One line of the table."""

    name: str
    decision: str
    empty_0: float
    empty_1: float
    labels: float
    milliseconds: float | None = None
    products: float | None = None
    fit: float | None = None
    c: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", default="PLT,FastXML", help=", ".join(MODELS))
    parser.add_argument("--tuners", default="*", help="a pattern, such as '*paper'")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--effect", action="store_true", help="the effect of OFO's a and b instead, on each set")
    parser.add_argument("--precision", action="store_true", help="precision at 1, 3 and 5 instead: the paper's table 1")
    parser.add_argument("--figure", type=Path, help="draw F against 1/c for every tuner instead: the paper's figure 1")
    given = parser.parse_args()
    for name in given.sets.split(","):
        folder = prepare(name, given.data, given.work / "data")
        train, test = load(folder, "train"), load(folder, "test")
        if given.effect:
            print_effect(name, train, test)
            continue
        if given.precision or given.figure:
            for model in given.models.split(","):
                if given.precision:
                    print_precision(name, model, train, test)
                else:
                    draw_curves(name, model, train, test, given.figure)
            continue
        print(f"\n{name}: {test.Y.shape[0]:,} test rows, {test.Y.shape[1]:,} labels, ", end="")
        print(f"{(np.asarray(test.Y.sum(axis=0)) == 0).sum():,} of them without a test row\n")
        print("| model | decision | macro-F, empty 0 | empty 1 | labels a row | test ms | inner products | fit s | c |")
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
        for model in given.models.split(","):
            for line in lines(model, MODELS[model], train, test, given.tuners):
                print_line(line)


def print_precision(name: str, model: str, train: Problem, test: Problem) -> None:
    began = time.process_time()
    clf = MODELS[model]().fit(train.X, train.Y)
    taken = time.process_time() - began
    P = clf.predict_proba(test.X, top_k=5)
    found = "/".join(f"{100 * metrics.precision_at_k(test.Y, P, k):.2f}" for k in (1, 3, 5))
    print(f"| {name} | {model} | P@1/3/5 {found} | fit {taken:.1f} CPU s |", flush=True)


def draw_curves(name: str, model: str, train: Problem, test: Problem, path: Path) -> None:
    """Validation and test F of every tuner for every c, empty = 1, trained on four fifths of the rows."""
    from ramify import plots

    order = np.random.default_rng(0).permutation(train.X.shape[0])
    held_out, rest = np.split(order, [len(order) // 5])
    clf = MODELS[model]().fit(train.X[rest], train.Y[rest])
    prior = np.asarray(train.Y.sum(axis=0)).ravel() / train.X.shape[0]
    least = decide.estimates.kappa(1 / max(decide.C), prior)
    P, P_test = (clf.predict_proba(X, threshold=least) for X in (train.X[held_out], test.X))
    curves = decide.f_measure_curves(P, train.Y[held_out], P_test, test.Y, prior=prior, empty="one")
    out = path.with_name(f"{path.stem}-{name}-{model.replace(' ', '-')}{path.suffix or '.png'}")
    plots.f_measure(curves, out)
    for curve in curves:
        best = int(np.argmax(curve.validation))
        print(
            f"| {name} | {model} | {curve.method} | best c {curve.c[best]:g} | validation "
            f"{100 * curve.validation[best]:.2f} | test {100 * curve.test[best]:.2f} |",
            flush=True,
        )
    print(f"wrote {out}")


def lines(name: str, make: Callable[[], Any], train: Problem, test: Problem, tuners: str) -> Any:
    """All decisions of one model on one set."""
    plain = make().fit(train.X, train.Y)
    yield timed(name, "p >= 0.5", plain, test)
    best = keep_best(plain.predict_proba(test.X, top_k=LARGEST_K), None, 0.0)
    tops = [(metrics.macro_f1(test.Y, ones(keep_best(best, k, 0.0)), empty=0.0), k) for k in range(1, LARGEST_K + 1)]
    k = max(tops)[1]
    began = time.process_time()
    decided = ones(plain.predict_proba(test.X, top_k=k))
    taken = time.process_time() - began
    yield line(name, f"best top-k (k = {k})", decided, test, taken, products(plain, test, top_k=k))
    for decision, settings in TUNERS.items():
        if not fnmatch.fnmatch(decision, tuners):
            continue
        began = time.process_time()
        clf = ThresholdClassifier(make(), random_state=0, **settings).fit(train.X, train.Y)
        fitting = time.process_time() - began + getattr(clf.estimator_, "saved", 0.0)
        yield timed(name, decision, clf, test)._replace(c=clf.c_, fit=fitting)


def timed(name: str, decision: str, model: Any, test: Problem) -> Line:
    began = time.process_time()
    decided = model.predict(test.X)
    taken = time.process_time() - began
    threshold = getattr(model, "thresholds_", 0.5)
    return line(name, decision, decided, test, taken, products(model, test, threshold=threshold))


def line(name: str, decision: str, decided: Any, test: Problem, taken: float, n_products: float | None) -> Line:
    empty_0, empty_1 = (100 * metrics.macro_f1(test.Y, decided, empty=empty) for empty in (0.0, 1.0))
    n = test.X.shape[0]
    return Line(name, decision, empty_0, empty_1, decided.nnz / n, 1000 * taken / n, n_products)


def products(model: Any, test: Problem, **query: Any) -> float | None:
    """Inner products per row, if the method counts them."""
    try:
        return float(model.n_inner_products(test.X, **query) / test.X.shape[0])
    except TypeError:
        return None


def ones(answer: Any) -> Any:
    answer = answer.copy()
    answer.data = np.ones(answer.nnz, dtype=np.int64)
    return answer


def print_line(line: Line) -> None:
    numbers = [f"{line.empty_0:.2f}", f"{line.empty_1:.2f}", f"{line.labels:.1f}"]
    for value, form in ((line.milliseconds, ".3f"), (line.products, ".0f"), (line.fit, ".1f"), (line.c, "g")):
        numbers.append("" if value is None else format(value, form))
    print(f"| {line.name} | {line.decision} | {' | '.join(numbers)} |", flush=True)


def print_effect(name: str, train: Problem, test: Problem) -> None:
    """Macro-F (empty 0) on the test rows for OFO's first values a and b = c, all else as in the paper."""
    order = np.random.default_rng(0).permutation(train.X.shape[0])
    held_out, rest = np.split(order, [len(order) // 5])
    model = MODELS["PLT"]().fit(train.X[rest], train.Y[rest])
    prior = np.asarray(train.Y.sum(axis=0)).ravel() / train.X.shape[0]
    least = decide.estimates.kappa(1 / max(decide.C), prior)
    P, P_test = (model.predict_proba(X, top_k=200, threshold=least) for X in (train.X[held_out], test.X))
    print(f"\n{name}\n\n| a / threshold a/b | {' | '.join(f'1/{c}' for c in decide.C[2:])} |")
    print("|---|" + "--:|" * len(decide.C[2:]))
    for a in (1, 2, 5, 10):
        found = []
        for c in decide.C[2:]:
            thresholds = decide.tune_ofo(P, train.Y[held_out], a=a, b=a * c, prior=prior)
            found.append(100 * metrics.macro_f1(test.Y, decide.apply_thresholds(P_test, thresholds), empty=0.0))
        print(f"| {a} | {' | '.join(f'{value:.2f}' for value in found)} |", flush=True)


if __name__ == "__main__":
    main()
