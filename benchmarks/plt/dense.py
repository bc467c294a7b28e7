"""Dense rows: embeddings of many classes, and small tables, beside scikit-learn's linear classifiers.

python -m benchmarks.plt.dense                       # embeddings: 20,000 x 384 floats, 2,000 classes, both kinds
python -m benchmarks.plt.dense --peers               # with scikit-learn's, which takes minutes
python -m benchmarks.plt.dense --tables              # tables of measurements, five folds
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np


def embeddings(kind: str, n_rows: int, n_features: int, n_classes: int, seed: int = 0) -> tuple[Any, ...]:
    """Rows around a centre per class; in the clustered kind, centres lie around fifty others."""
    generator = np.random.default_rng(seed)
    centre = generator.normal(size=(n_classes, n_features))
    noise = 4.2
    if kind == "clustered":
        centre = generator.normal(size=(50, n_features))[generator.integers(0, 50, n_classes)] + 0.6 * centre
        noise = 2.2
    y = generator.integers(0, n_classes, n_rows * 6 // 5)
    X = (centre[y] + noise * generator.normal(size=(len(y), n_features))).astype(np.float32)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def measure(name: str, model: Any, data: tuple[Any, ...]) -> None:
    """Accuracy and CPU seconds of training, of a batch, and of single rows."""
    X, y, X_test, y_test = data
    seconds = []
    for work in (
        lambda: model.fit(X, y),
        lambda: model.predict(X_test),
        lambda: [model.predict(row[None]) for row in X_test[:200]],
    ):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    accuracy = float((model.predict(X_test) == y_test).mean())
    batch, one = 1e6 * seconds[1] / len(X_test), 1e6 * seconds[2] / 200
    print(f"{name:34} {accuracy:.3f}  train {seconds[0]:7.2f} s  batch {batch:7.1f} us/row  one row {one:7.1f} us")
    if hasattr(model, "fit_report_"):
        for choice in model.fit_report_.choices:
            print(f"{'':34} {choice}")


def run_embeddings(arguments: argparse.Namespace) -> None:
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.neighbors import NearestCentroid

    import ramify

    for kind in ("clustered", "unclustered"):
        data = embeddings(kind, arguments.rows, arguments.features, arguments.classes)
        print(f"# {kind}: {arguments.rows:,} x {arguments.features} floats, {arguments.classes:,} classes")
        measure("PLTClassifier()", ramify.PLTClassifier(random_state=0), data)
        measure("PLTClassifier(tree='kmeans')", ramify.PLTClassifier(tree="kmeans", random_state=0), data)
        measure("NearestCentroid", NearestCentroid(), data)
        if arguments.peers:
            measure("SGDClassifier, one against rest", SGDClassifier(loss="log_loss", max_iter=5, tol=None), data)
            measure("LogisticRegression", LogisticRegression(max_iter=20), data)


def run_tables() -> None:
    from sklearn import datasets
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import ramify

    tables = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in ("wine", "breast_cancer", "digits")}
    tables["iris"] = datasets.load_iris(return_X_y=True)
    tables["measurements and flags"] = measurements_and_flags()
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    models = {
        "as they are": ramify.PLTClassifier(random_state=0, standardize=False),
        "default": ramify.PLTClassifier(random_state=0),
        "standardize=True": ramify.PLTClassifier(random_state=0, standardize=True),
        "LogisticRegression, scaled": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    }
    for name, (X, y) in tables.items():
        found = {of: np.mean(cross_val_score(model, X, y, cv=folds)) for of, model in models.items()}
        print(f"{name:24}", *(f"{of} {value:.3f}" for of, value in found.items()), sep="  ")


def measurements_and_flags() -> tuple[Any, Any]:
    """Ten columns of measurements in different units, and 44 of 0 and 1."""
    from sklearn.datasets import make_classification

    X, y = make_classification(4000, 54, n_informative=20, n_classes=7, random_state=0)
    X[:, :10] = X[:, :10] * 10.0 ** np.linspace(0, 3, 10) + 10.0 ** np.linspace(3, 0, 10)
    X[:, 10:] = X[:, 10:] > 1
    return X, y


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plt.dense",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--classes", type=int, default=2_000)
    parser.add_argument("--peers", action="store_true", help="also scikit-learn's linear classifiers")
    parser.add_argument("--tables", action="store_true", help="tables of measurements instead")
    given = parser.parse_args()
    run_tables() if given.tables else run_embeddings(given)


if __name__ == "__main__":
    main()
