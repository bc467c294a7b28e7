"""Findings of "A Hierarchical Spectral Method for Extreme Classification": purity, recall, accuracy, time, throughput.

    python -m benchmarks.spectral.run purity --data ../shared/data
    python -m benchmarks.spectral.run findings --data ../shared/data --sets isolet-1560,wordnet-parent,eurlex57k
    python -m benchmarks.spectral.run sweep --data ../shared/data --sets aloi-like,eurlex57k
    python -m benchmarks.spectral.run root
    python -m benchmarks.spectral.run root --depth 12             # the whole tree
    python -m benchmarks.spectral.run hashed                      # features hashed to 2^15, 105,000 classes
    python -m benchmarks.spectral.run nodes --data ../shared/data --sets wordnet-parent
    python -m benchmarks.spectral.run throughput

`aloi-like` is generated: `make_dense`, 1,000 classes, 128 dense features, 100,000 rows. Times are CPU seconds unless
stated otherwise. `--only` takes the names of variants, to continue an interrupted table.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, measure
from ramify import SpectralTreeClassifier, metrics
from ramify.data import FeatureHashing, load_xmc
from ramify.data.synthetic import make_dense, make_multiclass
from ramify.models.spectral import BaseClassifier, CandidateScorer, TreeSettings, eigen_split, grow_candidate_tree

# The filter at the paper's settings (25 candidates, depth 12) then has about the recall that it has on ALOI, 96.5 %.
ALOI_NOISE = 0.6
SETTINGS: dict[str, dict[str, Any]] = {
    "isolet-1560": {"n_candidates": 3, "rank": 24, "n_epochs": 20, "depth": 6},
    "wordnet-parent": {"n_candidates": 1000, "rank": 64, "n_epochs": 5, "depth": 8},
    "aloi-like": {"n_candidates": 100, "rank": 50, "n_epochs": 4, "depth": 12, "noise": 3.0},
    "eurlex57k": {"n_candidates": 400, "rank": 96, "n_epochs": 5, "depth": 8},
}
LEARNED: dict[str, Any] = {"space": "learned", "deviation": "within", "noise": 1.0}
# Settings of the tree and of the classifier behind it; the others are parameters of the classifier itself.
OF_THE_TREE = ("noise", "deviation", "min_path")
OF_THE_SCORER = ("rank", "n_epochs", "sampled_paths", "output_weights", "leaf_bias")
# Chosen on a tenth of the training rows, held out.
LEARNED_HERE: dict[str, dict[str, Any]] = {"wordnet-parent": {"depth": 10, "min_path": 0.02}}
# Small settings for the generated sets of `benchmarks.reproduce --quick`.
QUICK: dict[str, Any] = {"n_candidates": 20, "rank": 16, "n_epochs": 3, "depth": 5}
HEADERS = {
    "purity": "set | rows | eigen-split | average | best",
    "findings": "set | variant | k | mean depth | training recall | test recall | k most frequent | accuracy | scored "
    "| products | train CPU s",
    "root": "rows x features | features a row | labels | threads | wall s | CPU s | tree",
    "hashed": "rows x features | labels | threads | wall s | CPU s | tree",
    "throughput": "labels | scored | mean depth | tree | tree, 4 leaves | flat, same code | flat, BLAS",
}
SWEEP = {
    "isolet-1560": (2, 3, 5),
    "wordnet-parent": (500, 1000),
    "aloi-like": (25, 50, 100),
    "eurlex57k": (100, 200, 400),
}


class Set(NamedTuple):
    """Training and test rows of a set; `is_multiclass`: one label each."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any
    is_multiclass: bool

    @property
    def y(self) -> Any:
        return self.Y.indices if self.is_multiclass else self.Y


def load_set(name: str, data: list[Path]) -> Set:
    if name == "aloi-like":
        train, test = (
            make_dense(n, 1000, 128, noise=ALOI_NOISE, split=split, random_state=0)
            for n, split in ((100_000, "train"), (10_000, "test"))
        )
        return Set(train.X, train.Y, test.X, test.Y, True)
    source = datasets.find(name, data)
    files = [source / f"{split}.txt.gz" for split in datasets.SPLITS]
    if missing := [str(file) for file in files if not file.exists()]:
        raise SystemExit(f"error: missing {', '.join(missing)}")
    train, test = (load_xmc(file) for file in files)
    is_multiclass = bool((np.diff(train.Y.indptr) == 1).all())
    return Set(train.X, train.Y, test.X, test.Y, is_multiclass)


def unit_rows(X: Any) -> Any:
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    return sp.csr_array(sp.diags_array(1 / np.where(norms > 0, norms, 1)) @ X).astype(np.float32)


# --- purity ----------------------------------------------------------------------------------------------------------


def purities(X: Any, Y: Any, directions: Any, biases: Any) -> Any:
    """Purity of each direction's split; X (n, d), directions (d, m)."""
    right = (np.asarray(X @ directions) > biases).astype(np.float32)
    of_label = np.asarray(sp.csr_array(Y).T.astype(np.float32) @ right)
    total = np.asarray(Y.sum(axis=0)).ravel()[:, None]
    return np.maximum(of_label, total - of_label).sum(axis=0) / total.sum()


def purity(name: str, data: Set, n_directions: int, n_rows: int) -> None:
    """Table 3: the eigen-split of the root beside random directions, each with its median as bias."""
    rng = np.random.default_rng(0)
    start = time.process_time()
    split = eigen_split(unit_rows(data.X), data.Y)
    took = time.process_time() - start
    some = np.sort(rng.permutation(data.X.shape[0])[:n_rows])
    X, Y = unit_rows(data.X[some]), data.Y[some]
    X_test, Y_test = unit_rows(data.X_test), data.Y_test
    found = [
        purities(rows, labels, split.direction[:, None], split.bias)[0] for rows, labels in ((X, Y), (X_test, Y_test))
    ]
    balance = float((X_test @ split.direction > split.bias).mean())
    by_chance: tuple[list[float], list[float]] = ([], [])
    for _ in range(0, n_directions, 250):
        directions = rng.normal(size=(X.shape[1], 250)).astype(np.float32)
        directions /= np.linalg.norm(directions, axis=0)
        projected = np.asarray(X @ directions)
        middle = projected.shape[0] // 2
        biases = np.partition(projected, middle, axis=0)[middle]
        by_chance[0].extend(purities(X, Y, directions, biases))
        by_chance[1].extend(purities(X_test, Y_test, directions, biases))
    for part, own, chance in (("train", found[0], by_chance[0]), ("test", found[1], by_chance[1])):
        numbers = " | ".join(f"{100 * number:.1f}" for number in (own, np.mean(chance), np.max(chance)))
        print(f"| {name} | {part} | {numbers} |", flush=True)
    print(f"({name}: root in {took:.2f} CPU s; test balance {100 * max(balance, 1 - balance):.1f})", flush=True)


# --- recall and accuracy ---------------------------------------------------------------------------------------------


def variants(name: str, n_labels: int) -> dict[str, dict[str, Any]]:
    learned = {**LEARNED, **LEARNED_HERE.get(name, {})}
    return {
        "flat": {"depth": 0, "n_candidates": n_labels},
        "tree": {},
        "tree, one path while growing": {"noise": 0.0},
        "tree, one path while training": {"sampled_paths": False},
        "tree, leaf-specific output weights": {"output_weights": "leaf"},
        "tree, no leaf bias": {"leaf_bias": False},
        "tree, 4 leaves": {"n_leaves": 4},
        "learned space": learned,
        "learned space, 4 leaves": {**learned, "n_leaves": 4},
        "learned space, 8 leaves": {**learned, "n_leaves": 8},
        "learned space, 16 leaves": {**learned, "n_leaves": 16},
        "learned space of sampled labels, 8 leaves": {**learned, "n_leaves": 8, "sampled_labels": n_labels // 10},
    }


def quality(clf: Any, data: Set) -> str:
    if data.is_multiclass:
        return f"{100 * clf.score(data.X_test, data.Y_test.indices):.2f}"
    answer = clf.predict_proba(data.X_test, top_k=5)
    return " / ".join(f"{100 * metrics.precision_at_k(data.Y_test, answer, k):.2f}" for k in (1, 3, 5))


def classifier(settings: dict[str, Any]) -> SpectralTreeClassifier:
    own = {name: value for name, value in settings.items() if name not in OF_THE_TREE + OF_THE_SCORER}
    tree = {name: settings[name] for name in OF_THE_TREE if name in settings}
    scorer = CandidateScorer(**{name: settings[name] for name in OF_THE_SCORER if name in settings})
    return SpectralTreeClassifier(tree_options=tree, estimator=scorer, random_state=0, n_jobs=1, **own)


def line(name: str, variant: str, data: Set, settings: dict[str, Any]) -> None:
    start = time.process_time()
    clf = classifier(settings).fit(data.X, data.y)
    took = time.process_time() - start
    report = clf.training_report_
    candidates = clf.candidates(data.X_test)
    if data.is_multiclass:  # the classifier numbers the classes that it has seen
        columns = np.asarray(clf.classes_)[candidates.indices]
        candidates = sp.csr_array((candidates.data, columns, candidates.indptr), shape=data.Y_test.shape)
    recall = metrics.filter_recall(data.Y_test, candidates)
    count = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
    frequent = np.argsort(-count, kind="stable")[: settings["n_candidates"]]
    by_frequency = float(data.Y_test[:, frequent].sum() / data.Y_test.nnz)
    products = clf.n_inner_products(data.X_test, top_k=1) / data.X_test.shape[0]
    mean_candidates = np.diff(candidates.indptr).mean()
    recalls = " | ".join(f"{100 * number:.1f}" for number in (report["training_recall"], recall, by_frequency))
    print(
        f"| {name} | {variant} | {settings['n_candidates']} | {report['mean_depth']:.1f} | {recalls} "
        f"| {quality(clf, data)} | {mean_candidates:.0f} | {products:.0f} | {took:.1f} |",
        flush=True,
    )


def findings(name: str, data: Set, only: list[str]) -> None:
    for variant, changed in variants(name, data.Y.shape[1]).items():
        if not only or variant in only:
            line(name, variant, data, {**SETTINGS.get(name, QUICK), **changed})


def sweep(name: str, data: Set, only: list[str]) -> None:
    """Table 7: accuracy against the number of candidates."""
    settings = SETTINGS.get(name, QUICK)
    learned = variants(name, data.Y.shape[1])["learned space, 8 leaves"]
    for k in SWEEP.get(name, (5, 10, 20)):
        for variant, changed in (("tree", {}), ("learned space, 8 leaves", learned)):
            if not only or variant in only:
                line(name, f"{variant}, k = {k}", data, {**settings, **changed, "n_candidates": k})


# --- time ------------------------------------------------------------------------------------------------------------


def directory_like(n_rows: int, n_features: int, n_labels: int, n_words: int = 50) -> tuple[Any, Any]:
    """Rows in the manner of a web directory, quickly made: a third of the words are the class's own."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, n_labels, n_rows).astype(np.int32)
    words = np.empty((n_rows, n_words), dtype=np.int32)
    for start in range(0, n_rows, 50_000):
        part = slice(start, min(start + 50_000, n_rows))
        own = (
            classes[part, None].astype(np.int64) * 2_654_435_761
            + rng.integers(0, 40, (len(classes[part]), n_words)) * 40_503
        ) % n_features
        rank = n_features ** rng.random((len(classes[part]), n_words), dtype=np.float32)  # Zipf's law
        is_own = rng.random((len(classes[part]), n_words), dtype=np.float32) < 1 / 3
        words[part] = np.sort(np.where(is_own, own, rank.astype(np.int64) % n_features), axis=1)
    values = np.full(words.shape, n_words**-0.5, dtype=np.float32)
    values[:, 1:][words[:, 1:] == words[:, :-1]] = 0  # a word given twice counts once; zeros are dropped
    indptr = np.arange(n_rows + 1) * n_words
    X = sp.csr_array((values.ravel(), words.ravel(), indptr), shape=(n_rows, n_features))
    Y = sp.csr_array((np.ones(n_rows, np.float32), classes, np.arange(n_rows + 1)), shape=(n_rows, n_labels))
    return X, Y


def root(n_rows: int, n_features: int, n_labels: int, n_threads: int, depth: int) -> None:
    """Table 1: rows prepared, labels counted, the root's direction found, all rows sent to its children; or deeper."""
    X, Y = directory_like(n_rows, n_features, n_labels)
    settings = TreeSettings(depth=depth, n_candidates=min(4000, n_labels // 2))
    wall, cpu = time.perf_counter(), time.process_time()
    tree = grow_candidate_tree(X, Y, settings, n_threads=n_threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    size = f"{n_rows:,} x {n_features:,} | {np.count_nonzero(X.data) / n_rows:.0f} | {n_labels:,}"
    grown = "the root alone"
    if depth > 1:
        report = tree.report()
        grown = (
            f"{report['leaves']:,} leaves, mean depth {report['mean_depth']:.1f}, training recall "
            f"{100 * report['training_recall']:.1f} %, peak {measure.peak_megabytes():,.0f} MB"
        )
    print(f"| {size} | {n_threads} | {wall:.1f} | {cpu:.1f} | {grown} |", flush=True)


def hashed(n_labels: int, n_threads: int) -> None:
    """Section 5.3: features hashed to 2^15, here with two rows a class; the tree and the classifier are trained."""
    X, Y = directory_like(2 * n_labels, 500_000, n_labels)
    X.eliminate_zeros()
    scorer = CandidateScorer(rank=16, n_epochs=1)
    clf = SpectralTreeClassifier(
        depth=8, n_candidates=max(10, n_labels // 50), estimator=scorer, random_state=0, n_jobs=n_threads
    )
    wall, cpu = time.perf_counter(), time.process_time()
    rows = FeatureHashing(n_bits=15).fit_transform(X)
    clf.fit(rows, Y.indices)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    report = clf.training_report_
    print(
        f"| {X.shape[0]:,} x 2^15 | {n_labels:,} | {n_threads} | {wall:.1f} | {cpu:.1f} | {report['leaves']:,} leaves, "
        f"training recall {100 * report['training_recall']:.1f} %, peak {measure.peak_megabytes():,.0f} MB |",
        flush=True,
    )


def nodes(name: str, data: Set, folders: list[Path]) -> None:
    """Table 2: the most frequent classes of the nodes of the first levels."""
    names = datasets.find(name, folders) / "labels.txt.gz"
    label = gzip.decompress(names.read_bytes()).decode().splitlines() if names.exists() else None
    tree = grow_candidate_tree(unit_rows(data.X), data.Y, TreeSettings(depth=3, n_candidates=10))
    print(f"{name}\n\n| depth | rows | most frequent classes |\n|---|---|---|")
    for depth, mass, frequent in zip(tree.arrays["depth"], tree.arrays["mass"], tree.most_frequent(6), strict=True):
        shown = ", ".join(label[column] if label else str(column) for column, _ in frequent)
        print(f"| {depth} | {mass:.0f} | {shown} |", flush=True)


def throughput(sizes: list[int]) -> None:
    """Rows a second, top 5 of 1,000 rows, one thread: the tree beside the same weights asked about every label."""
    for n_labels in sizes:
        print(rates(n_labels), flush=True)


def rates(n_labels: int) -> str:
    # What an answer costs depends on the tree's depth, its candidates and the labels, not on how well it was trained.
    data = make_multiclass(10_000, n_labels, 50_000, features_per_row=50)
    scorer, options = CandidateScorer(rank=48, n_epochs=1), {"prune": 0.01}
    clf = SpectralTreeClassifier(n_candidates=100, tree_options=options, estimator=scorer, random_state=0, n_jobs=1)
    clf.partial_fit(data.X, data.y, classes=np.arange(n_labels))
    X = data.X[:1000]
    every_label = sp.csr_array(np.ones((1, n_labels), dtype=np.float32))
    flat_tree = grow_candidate_tree(X[:1], every_label, TreeSettings(depth=0, n_candidates=n_labels))
    base = clf.model_.base
    arrays = {**base.arrays, "slot_bias": np.zeros(n_labels, np.float32)}
    flat = BaseClassifier(arrays, "low_rank", base.rank, False, 50_000)
    asked = flat.core(flat_tree.core_arrays(), n_labels, n_labels, True, True)
    several = copy.copy(clf).set_params(n_leaves=4)
    seconds = (
        best_of(lambda: clf.predict_proba(X, top_k=5)),
        best_of(lambda: several.predict_proba(X, top_k=5)),
        best_of(lambda: asked.predict(X, 5, 0.0, None, 1, 1)),
        best_of(lambda: by_blas(X, base, 5)),
    )
    scored = np.diff(clf.candidates(X).indptr).mean()
    rates = " | ".join(f"{X.shape[0] / s:,.0f}" for s in seconds)
    return f"| {n_labels:,} | {scored:.0f} | {clf.training_report_['mean_depth']:.1f} | {rates} |"


def by_blas(X: Any, base: BaseClassifier, top_k: int) -> Any:
    """What numpy would do: dense products in batches, then the best of each row."""
    V, U = (base.arrays[name].reshape(-1, base.rank) for name in ("input", "output"))
    best = []
    for start in range(0, X.shape[0], 500):
        scores = (X[start : start + 500] @ V) @ U.T + base.arrays["label_bias"]
        best.append(np.argpartition(-scores, top_k, axis=1)[:, :top_k])
    return best


def best_of(work: Any, times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["purity", "findings", "sweep", "root", "throughput", "nodes", "hashed"])
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--sets", default="isolet-1560,wordnet-parent,aloi-like")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--directions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000, help="for purity by chance: a sample of the training rows")
    parser.add_argument("--sizes", default="1000,3000,10000,30000,100000")
    parser.add_argument("--root-rows", type=int, default=1_500_000)
    parser.add_argument("--labels", type=int, help="root and hashed: classes; default: a fifteenth of the rows")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--depth", type=int, default=1, help="root: 1 is the root alone")
    given = parser.parse_args()
    if header := HEADERS.get("findings" if given.what == "sweep" else given.what):
        print(f"| {header} |\n|{'---|' * (header.count('|') + 1)}", flush=True)
    if given.what == "root":
        root(given.root_rows, 500_000, given.labels or given.root_rows // 15, given.threads, given.depth)
    elif given.what == "hashed":
        hashed(given.labels or 105_000, given.threads)
    elif given.what == "throughput":
        throughput([int(size) for size in given.sizes.split(",")])
    else:
        for name in given.sets.split(","):
            data = load_set(name, given.data)
            if given.what == "purity":
                purity(name, data, given.directions, given.rows)
            elif given.what == "nodes":
                nodes(name, data, given.data)
            elif given.what == "findings":
                findings(name, data, given.only)
            else:
                sweep(name, data, given.only)


if __name__ == "__main__":
    main()
