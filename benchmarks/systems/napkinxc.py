"""napkinXC: label trees and hierarchical softmax; `fit` writes the model as it trains, so its time includes saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, scoring
from benchmarks.measure import Stopwatch
from benchmarks.systems import Setting

PACKAGE = "napkinxc"
IMPORT = "napkinxc.models"
READS_TEXT = False
INSTALL = [["napkinxc", "scipy"]]
HINGE = {"loss": "l2", "liblinear_c": 1}
SETTINGS = {
    "default": Setting(main=True),
    "default-beam": Setting(predict={"tree_search_type": "beam"}),
    "default-sparse": Setting(predict={"load_as": "sparse"}),
    "default-dense": Setting(predict={"load_as": "dense"}),
    "hinge": Setting(HINGE, main=True),
    "log-c5": Setting({"liblinear_c": 5}),
    "log-c30": Setting({"liblinear_c": 30}),
    "wide": Setting({"arity": 16, "max_leaves": 200}),
    "hinge-wide": Setting(HINGE | {"arity": 16, "max_leaves": 200}),
    "three-trees": Setting({"ensemble": 3}, main=True),
    "hinge-three-trees": Setting(HINGE | {"ensemble": 3}),
    "hsm": Setting({"model": "hsm"}, main=True, kind="multiclass"),
    "hsm-three-trees": Setting({"model": "hsm", "ensemble": 3}, kind="multiclass"),
}


def build(folder: Path, parameters: dict[str, Any], threads: int) -> Any:
    from napkinxc.models import HSM, PLT

    rest = dict(parameters)
    kind = HSM if rest.pop("model", "plt") == "hsm" else PLT
    return kind(output=str(folder), threads=threads, seed=1, **rest)


def train(problem: datasets.Problem, folder: Path, parameters: dict[str, Any], threads: int) -> dict[str, Stopwatch]:
    model = build(folder, parameters, threads)
    # label lists are the form its documentation uses; hierarchical softmax wants one label a row
    labels = np.split(problem.Y.indices, problem.Y.indptr[1:-1])
    one_label = parameters.get("model") == "hsm"
    target = [int(row[0]) for row in labels] if one_label else [row.tolist() for row in labels]
    with Stopwatch() as training:
        model.fit(problem.X, target)
    return {"train": training}


class Model:
    def __init__(self, folder: Path, parameters: dict[str, Any], threads: int) -> None:
        self.model = build(folder, parameters, threads)
        self.model.load()

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return X

    prepare_one = prepare

    def batch(self, rows: sp.csr_matrix, k: int) -> list[list[tuple[int, float]]]:
        answer: list[list[tuple[int, float]]] = self.model.predict_proba(rows, top_k=k)
        return answer

    one = batch

    def unpack(self, answer: list[list[tuple[int, float]]], k: int) -> tuple[np.ndarray, np.ndarray]:
        return scoring.answer_from_pairs(answer, k)
