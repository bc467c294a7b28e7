"""ramify itself, through its public names alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, scoring
from benchmarks.measure import Stopwatch
from benchmarks.systems import Setting

PACKAGE = "ramify"
IMPORT = "ramify"
READS_TEXT = False
INSTALL: list[list[str]] = []  # measured in the environment that runs the benchmark
SETTINGS = {
    "default": Setting(main=True),
    "logistic": Setting({"solver": {"loss": "logistic"}}),
    "three-trees": Setting({"n_trees": 3}, main=True),
    "fixed": Setting({"solver": {"C": 1.0, "positive_weight": 1.0}}),
    "fastxml": Setting({"model": "FastXMLClassifier"}),
    "multiclass": Setting({"one_label": True}, main=True, kind="multiclass"),
    "multiclass-logistic": Setting({"one_label": True, "solver": {"loss": "logistic"}}, kind="multiclass"),
}


def train(problem: datasets.Problem, folder: Path, parameters: dict[str, Any], threads: int) -> dict[str, Stopwatch]:
    import ramify
    from ramify.models.plt import PLTSolver

    rest = dict(parameters)
    if "solver" in rest:
        rest["solver"] = PLTSolver(**rest["solver"])
    target = problem.Y.indices if rest.pop("one_label", False) else problem.Y
    model = getattr(ramify, rest.pop("model", "PLTClassifier"))
    classifier = model(n_jobs=threads, random_state=0, **rest)
    with Stopwatch() as training:
        classifier.fit(problem.X, target)
    with Stopwatch() as saving:
        classifier.save(str(folder / "model"))
    return {"train": training, "save": saving}


class Model:
    def __init__(self, folder: Path, parameters: dict[str, Any], threads: int) -> None:
        import ramify

        self.classifier = ramify.load(str(folder / "model")).set_params(n_jobs=threads)
        # with one label a row the columns are the classes seen in training, not the set's label numbers
        self.columns = np.asarray(self.classifier.classes_) if parameters.get("one_label") else None

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X

    prepare_one = prepare

    def batch(self, rows: sp.csr_matrix, k: int) -> sp.csr_array:
        return self.classifier.predict_proba(rows, top_k=k)

    one = batch

    def unpack(self, answer: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, probabilities = scoring.answer_from_sparse(answer, k)
        if self.columns is not None:
            labels = np.where(labels >= 0, self.columns[labels], -1)
        return labels, probabilities
