"""Nearest rows beside scipy's sparse product with argpartition, and the default mixture beside three trees.

python -m benchmarks.nearest_rows.run --data ../shared/data
python -m benchmarks.nearest_rows.run --data ../shared/data --mixture --train-rows 20000
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Problem, load, prepare
from ramify import MixtureClassifier, NearestRowsClassifier, PLTClassifier, metrics

SPEED_SETS = ("wordnet-parent", "icd10cm-parent", "debian-depends", "eurlex57k")
MIXTURE_SETS = ("wordnet-parent", "icd10cm-parent", "stackexchange-cooking", "debian-depends")
BLOCK = 200  # rows of scipy's product at once: the whole one would not fit into memory


def unit_rows(X: sp.csr_matrix) -> sp.csr_array:
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    length[length == 0] = 1
    return sp.csr_array(sp.diags_array((1 / length).astype(np.float32)) @ sp.csr_array(X))


def scipy_nearest(train: sp.csr_array, queries: sp.csr_array, k: int) -> list[np.ndarray]:
    """Similarities of the k nearest rows of each query, largest first."""
    transposed = sp.csr_array(train.T)
    found = []
    for start in range(0, queries.shape[0], BLOCK):
        product = sp.csr_array(queries[start : start + BLOCK] @ transposed)
        for first, last in zip(product.indptr[:-1], product.indptr[1:], strict=True):
            values = product.data[first:last]
            best = np.argpartition(-values, k)[:k] if len(values) > k else np.arange(len(values))
            found.append(-np.sort(-values[best]))
    return found


def compare_speed(name: str, train: Problem, test: Problem, n_queries: int, k: int) -> str:
    chosen = np.sort(np.random.default_rng(0).permutation(test.X.shape[0])[:n_queries])
    rows, queries = unit_rows(train.X), unit_rows(test.X[chosen])
    start = time.process_time()
    expected = scipy_nearest(rows, queries, k)
    scipy_s = time.process_time() - start
    model = NearestRowsClassifier().fit(train.X, train.Y).model_
    start = time.process_time()
    _ = model.core  # builds the index
    index_s = time.process_time() - start
    start = time.process_time()
    indptr, _, similarity = model.nearest(sp.csr_array(test.X[chosen]), k)
    ours_s = time.process_time() - start
    for i, values in enumerate(expected):
        mine = similarity[indptr[i] : indptr[i + 1]]
        np.testing.assert_allclose(mine, values[values > 0][: len(mine)], rtol=1e-5, atol=1e-6)
    scipy_us, ours_us = (1e6 * seconds / len(chosen) for seconds in (scipy_s, ours_s))
    times = f"{scipy_us:.0f} | {ours_us:.0f} | {scipy_us / ours_us:.1f} | {index_s:.2f}"
    return f"| {name} | {len(chosen):,} | {times} |"


def compare_mixture(name: str, train: Problem, test: Problem, n_train: int, n_test: int) -> str:
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(train.X.shape[0])[:n_train])
    asked = np.sort(rng.permutation(test.X.shape[0])[:n_test])
    cells, weights = [], ""
    for clf in (PLTClassifier(n_trees=3, random_state=0), MixtureClassifier(random_state=0)):
        clf.fit(sp.csr_array(train.X[rows]), sp.csr_array(train.Y[rows]))
        P, truth = clf.predict_proba(sp.csr_array(test.X[asked]), top_k=5), sp.csr_array(test.Y[asked])
        cells.append("/".join(f"{100 * metrics.precision_at_k(truth, P, k=k):.2f}" for k in (1, 3, 5)))
        learned = getattr(clf, "weights_", {})
        weights = ", ".join(f"{learned.get(part, 0):.2f}" for part in ("nearest-rows", "centroids"))
    return f"| {name} | {len(rows):,} | {len(asked):,} | {cells[0]} | {cells[1]} | {weights} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder with one folder per set")
    parser.add_argument("--work", type=Path, default=Path("benchmarks/work"), help="where unpacked sets are kept")
    parser.add_argument("--sets", help="names, separated by commas")
    parser.add_argument("--mixture", action="store_true", help="P@1/3/5 of the mixture instead of speed")
    parser.add_argument("--queries", type=int, default=1000, help="test rows")
    parser.add_argument("--train-rows", type=int, default=10**9, help="training rows of the mixture")
    parser.add_argument("--k", type=int, default=20)
    given = parser.parse_args()
    names = given.sets.split(",") if given.sets else MIXTURE_SETS if given.mixture else SPEED_SETS
    if given.mixture:
        print("| set | rows | test rows | three trees, P@1/3/5 | mixture | weight of nearest rows, centroids |")
        print("|---|---|---|---|---|---|")
    else:
        print("| set | queries | scipy, us a row | nearest rows, us a row | times faster | index, s |")
        print("|---|---|---|---|---|---|")
    for name in names:
        folder = prepare(name, given.data, given.work / "data")
        train, test = load(folder, "train"), load(folder, "test")
        if given.mixture:
            print(compare_mixture(name, train, test, given.train_rows, given.queries), flush=True)
        else:
            print(compare_speed(name, train, test, given.queries, given.k), flush=True)


if __name__ == "__main__":
    main()
