"""How far the defaults are from the best setting, on many sets made from few.

Defaults that were chosen on a handful of sets fit those sets. This script makes dozens: from each given set, its
frequent and its rare labels, few rows, few rows per label, half of the features, one label per row; and synthetic sets.
On each it trains the default and every setting of a wide grid, and prints by how many points of P@1 the default misses
the best. Judge a change of the defaults by the mean and the worst of these distances, never by a single set.

Real sets are split anew: rows of the given training file are trained on and asked, so that no choice is ever made by
the test rows that the tables of benchmarks/plt report. The best of a grid is chosen with hindsight: with few rows
asked, a part of the distance is luck. The standard error of each difference is printed beside it.

    python -m benchmarks.robustness --data ../shared/data
    python -m benchmarks.robustness --quick                       # synthetic sets only
    python -m benchmarks.robustness --data ../shared/data --only icd10cm-parent,wordnet-parent --grid-cache grid.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Problem, load, prepare
from benchmarks.scoring import answer_from_sparse, hits
from ramify import PLTClassifier
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.models.plt import PLTSolver

SETS = (
    *("bibtex", "delicious", "eurlex57k", "debian-depends", "yso-finna-en", "wordnet-parent", "icd10cm-parent"),
    *("letter", "isolet-1560", "stackexchange-cooking"),
)
MAX_ROWS, MAX_ASKED = 15_000, 4_000
SIZES = ((6_000, "train"), (2_000, "test"))  # of synthetic sets
WORK = Path(__file__).parent / "work" / "data"


class Split(NamedTuple):
    """A part of a set: rows, labels, and their test rows."""

    X: sp.csr_array
    Y: sp.csr_array
    X_test: sp.csr_array
    Y_test: sp.csr_array

    @property
    def shape(self) -> str:
        rows_per_label = self.Y.sum() / max(int((self.Y.sum(axis=0) > 0).sum()), 1)
        return f"{self.X.shape[0]:6,} x {self.Y.shape[1]:6,}, {rows_per_label:6.1f} rows a label"

    def labels(self, keep: np.ndarray) -> Split:
        """Only these labels, and the rows that have one."""
        Y, Y_test = self.Y[:, keep], self.Y_test[:, keep]
        has, has_test = np.diff(Y.indptr) > 0, np.diff(Y_test.indptr) > 0
        return Split(self.X[has], Y[has], self.X_test[has_test], Y_test[has_test])

    def rows(self, keep: np.ndarray) -> Split:
        return self._replace(X=self.X[keep], Y=self.Y[keep])


def frequent(part: Split, rng: np.random.Generator) -> Split:
    count = part.Y.sum(axis=0)
    return part.labels(np.sort(np.argsort(-count, kind="stable")[: max(2, (count > 0).sum() // 10)]))


def rare(part: Split, rng: np.random.Generator) -> Split:
    count = part.Y.sum(axis=0)
    return part.labels(np.flatnonzero((count > 0) & (count <= max(5, np.median(count[count > 0])))))


def few_rows(part: Split, rng: np.random.Generator) -> Split:
    n = part.X.shape[0]
    return part.rows(np.sort(rng.choice(n, max(50, n // 10), replace=False)))


def few_shot(part: Split, rng: np.random.Generator) -> Split:
    """Rows in random order until each label has five; a row that brings no such label is left out."""
    count, kept = np.zeros(part.Y.shape[1], int), []
    for i in rng.permutation(part.Y.shape[0]):
        named = part.Y.indices[part.Y.indptr[i] : part.Y.indptr[i + 1]]
        if len(named) and count[named].min() < 5:
            count[named] += 1
            kept.append(i)
    return part.rows(np.sort(kept))


def half_of_the_features(part: Split, rng: np.random.Generator) -> Split:
    n = part.X.shape[1]
    keep = np.sort(rng.choice(n, max(1, n // 2), replace=False))
    return part._replace(X=part.X[:, keep], X_test=part.X_test[:, keep])


def one_label(part: Split, rng: np.random.Generator) -> Split:
    """One label of each row, drawn at random: multi-class."""

    def draw(X: sp.csr_array, Y: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
        rows = np.flatnonzero(np.diff(Y.indptr) > 0)
        at = Y.indptr[rows] + (rng.random(len(rows)) * np.diff(Y.indptr)[rows]).astype(int)
        one = sp.csr_array(
            (np.ones(len(rows), np.float32), Y.indices[at], np.arange(len(rows) + 1)), shape=(len(rows), Y.shape[1])
        )
        return X[rows], one

    return Split(*draw(part.X, part.Y), *draw(part.X_test, part.Y_test))


PARTS: dict[str, Callable[[Split, np.random.Generator], Split]] = {
    "whole": lambda part, rng: part,
    "frequent": frequent,
    "rare": rare,
    "few rows": few_rows,
    "few-shot": few_shot,
    "half features": half_of_the_features,
    "one label": one_label,
}


def real_set(train: Problem, rng: np.random.Generator, max_rows: int) -> Split:
    """Rows to be asked, at most a quarter, and others to train on."""
    X, Y, order = sp.csr_array(train.X), sp.csr_array(train.Y), rng.permutation(train.X.shape[0])
    n_asked = min(MAX_ASKED, len(order) // 4)
    asked, trained = np.sort(order[:n_asked]), np.sort(order[n_asked:][:max_rows])
    return Split(X[trained], Y[trained], X[asked], Y[asked])


def synthetic_sets() -> Iterator[tuple[str, Split]]:
    for exponent, labels_per_row, words in itertools.product((0.5, 1.2), (1.5, 8.0), (10.0, 80.0)):
        given = {"labels_per_row": labels_per_row, "features_per_row": words, "exponent": exponent}
        train, test = (
            make_multilabel(n, 2_000, 5_000, split=s, **given) for n, s in ((6_000, "train"), (2_000, "test"))
        )
        yield f"power {exponent}, {labels_per_row:g} labels, {words:g} words", Split(train.X, train.Y, test.X, test.Y)
    for n_classes in (100, 2_000):
        train, test = (make_multiclass(n, n_classes, 5_000, split=s) for n, s in SIZES)
        yield f"{n_classes} classes", Split(train.X, train.Y, test.X, test.Y)
    for spread, name in ((3.0, "clustered"), (0.0, "unclustered")):
        yield f"dense, {name}", dense_mixture(spread)


def dense_mixture(spread: float, n_classes: int = 500, dim: int = 128) -> Split:
    """Normal classes around centres, which lie around 20 centres of their own if they are clustered."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(n_classes, dim)) + spread * rng.normal(size=(20, dim))[rng.integers(20, size=n_classes)]

    def draw(n: int) -> tuple[sp.csr_array, sp.csr_array]:
        y = rng.integers(n_classes, size=n)
        X = (centre[y] + 2.5 * rng.normal(size=(n, dim))).astype(np.float32)
        return sp.csr_array(X), sp.csr_array(np.eye(n_classes, dtype=np.float32)[y])

    return Split(*draw(6_000), *draw(2_000))


GRID = {
    f"C={C:g} w={weight:g} n={epochs}": {"solver": PLTSolver(C=C, positive_weight=weight, n_epochs=epochs)}
    for C, weight, epochs in itertools.product((0.1, 0.3, 1.0, 4.0, 16.0), (0.7, 2.0), (5, 20))
}


def score(part: Split, **settings: object) -> tuple[list[int], float]:
    """Whether the best label of each row asked is true, and the CPU seconds of training."""
    began = time.process_time()
    is_multiclass = (np.diff(part.Y.indptr) == 1).all()
    y = part.Y.indices if is_multiclass else part.Y
    model = PLTClassifier(random_state=0, n_jobs=1, **settings).fit(part.X, y)
    seconds = time.process_time() - began
    found = sp.csr_matrix(model.predict_proba(part.X_test, top_k=1))
    labels, _ = answer_from_sparse(found, 1)
    if is_multiclass:  # the model numbers the classes that it has seen
        labels = np.where(labels >= 0, model.classes_[labels], -1)
    return hits(labels, sp.csr_matrix(part.Y_test))[:, 0].astype(int).tolist(), seconds


def without_hindsight(own: list[int], grid: dict[str, list[int]]) -> float:
    """Points of P@1 by which settings that are the best on a half of the rows beat the default on the other half."""
    gains = []
    for chosen_on, measured_on in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        best = max(grid.values(), key=lambda hit: sum(hit[chosen_on]))
        gains += [b - o for b, o in zip(best[measured_on], own[measured_on], strict=True)]
    return 100 * float(np.mean(gains))


def all_parts(data: list[Path], names: list[str], max_rows: int) -> Iterator[tuple[str, Split]]:
    for name in names:
        rng = np.random.default_rng(0)
        folder = prepare(name, data, WORK)
        whole = real_set(load(folder, "train"), rng, max_rows)
        for kind, make in PARTS.items():
            part = make(whole, rng)
            if kind == "one label" and (np.diff(whole.Y.indptr) == 1).all():
                continue  # it is one already
            if min(part.X.shape[0], part.X_test.shape[0]) >= 50 and part.Y.shape[1] >= 2:
                yield f"{name}: {kind}", part
    yield from synthetic_sets()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder with a folder per set")
    parser.add_argument("--only", help=f"sets, separated by commas (default: {','.join(SETS)})")
    parser.add_argument("--quick", action="store_true", help="synthetic sets only: a few minutes, no data needed")
    parser.add_argument("--max-rows", type=int, default=MAX_ROWS, help="rows to train on, of each real set")
    parser.add_argument("--grid-cache", type=Path, help="keep the grid's results in this file, and use those in it")
    args = parser.parse_args()
    if not args.data and not args.quick:
        parser.error("--data FOLDER is needed, or --quick for synthetic sets only")
    names = [] if args.quick else args.only.split(",") if args.only else SETS
    cache: dict[str, dict[str, list[int]]] = {}
    if args.grid_cache and args.grid_cache.exists():
        cache = json.loads(args.grid_cache.read_text())
    distances, fair = [], []
    print(f"{'set':45} {'rows x labels':38} default  best  short +- error, without hindsight  (P@1, percent)")
    for name, part in all_parts(args.data, names, args.max_rows):
        known = cache.setdefault(name, {})
        for setting, given in GRID.items():
            if setting not in known:
                known[setting] = score(part, **given)[0]
        if args.grid_cache:
            args.grid_cache.write_text(json.dumps(cache))
        own, seconds = score(part)
        best = max(known, key=lambda setting: sum(known[setting]))
        gain = 100 * (np.array(known[best]) - own)
        distances.append(gain.mean())
        fair.append(without_hindsight(own, known))
        print(
            f"{name:45} {part.shape:38} {100 * np.mean(own):6.2f} {100 * np.mean(known[best]):6.2f} "
            f"{gain.mean():6.2f} {gain.std() / np.sqrt(len(gain)):6.2f} {fair[-1]:6.2f}  "
            f"{best}, default trained in {seconds:.1f} s",
            flush=True,
        )
    mean, worst = np.mean(distances), np.max(distances)
    print(f"\n{len(distances)} sets: mean {mean:.2f}, worst {worst:.2f} points short of the best")
    print(f"without hindsight: mean {np.mean(fair):.2f}, worst {np.max(fair):.2f}")


if __name__ == "__main__":
    main()
