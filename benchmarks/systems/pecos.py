"""PECOS XR-Linear: squared hinge on k-means trees, beam search; rows are not normalised unless the user does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, scoring
from benchmarks.measure import Stopwatch
from benchmarks.systems import Setting

PACKAGE = "libpecos"
IMPORT = "pecos.xmc.xlinear.model"
READS_TEXT = False
# the whole of libpecos pulls gigabytes that XR-Linear does not use, and it does not run on numpy 2
INSTALL = [["numpy<2", "scipy<1.14", "scikit-learn"], ["--no-deps", "libpecos"]]
UNIT = {"unit_rows": True}
SETTINGS = {
    "as-is": Setting(),
    "default": Setting(UNIT, main=True),
    "sigmoid": Setting(UNIT, {"post_processor": "sigmoid"}),
    "l2-hinge": Setting(UNIT, {"post_processor": "l2-hinge"}),
    "l4-hinge": Setting(UNIT, {"post_processor": "l4-hinge"}),
    "beam-30": Setting(UNIT, {"beam_size": 30}),
    "leaf-200": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200}, main=True),
    "leaf-400": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 400}),
    "leaf-200-dense": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200, "threshold": 0.03}),
    "leaf-200-cp-0.7": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200, "Cp": 0.7}),
    "leaf-200-cp-2": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200, "Cp": 2.0}),
    "leaf-200-c-0.5": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200, "Cp": 0.5, "Cn": 0.5}),
    "leaf-200-c-0.3": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200, "Cp": 0.3, "Cn": 0.3}),
    "leaf-200-bias-0.3": Setting(UNIT | {"nr_splits": 32, "max_leaf_size": 200, "bias": 0.3}),
    "binary": Setting(UNIT | {"nr_splits": 2}),
}
OF_THE_INDEXER = ("nr_splits", "max_leaf_size")


def unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    lengths = np.repeat(np.sqrt(np.maximum(squares, 1e-30)), np.diff(X.indptr))
    return sp.csr_matrix(((X.data / lengths).astype(np.float32), X.indices, X.indptr), shape=X.shape)


def train(problem: datasets.Problem, folder: Path, parameters: dict[str, Any], threads: int) -> dict[str, Stopwatch]:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    indexing = {name: parameters[name] for name in OF_THE_INDEXER if name in parameters}
    solving = {name: value for name, value in parameters.items() if name not in (*OF_THE_INDEXER, "unit_rows")}
    with Stopwatch() as training:
        X = unit_rows(problem.X) if parameters.get("unit_rows") else problem.X
        vectors = LabelEmbeddingFactory.create(problem.Y, X, method="pifa")
        chain = Indexer.gen(vectors, indexer_type="hierarchicalkmeans", threads=threads, **indexing)
        model = XLinearModel.train(X, problem.Y, C=chain, threads=threads, **solving)
    with Stopwatch() as saving:
        model.save(str(folder))
    return {"train": training, "save": saving}


class Model:
    def __init__(self, folder: Path, parameters: dict[str, Any], threads: int) -> None:
        from pecos.xmc.xlinear.model import XLinearModel

        self.model = XLinearModel.load(str(folder), is_predict_only=True)
        self.is_unit = parameters.get("unit_rows", False)
        self.options = {
            "beam_size": parameters.get("beam_size", 10),
            "post_processor": parameters.get("post_processor", "l3-hinge"),
            "threads": threads,
        }

    def prepare(self, X: sp.csr_matrix) -> sp.csr_matrix:
        return unit_rows(X) if self.is_unit else X

    prepare_one = prepare

    def batch(self, rows: sp.csr_matrix, k: int) -> sp.csr_matrix:
        return self.model.predict(rows, only_topk=k, **self.options)

    one = batch

    def unpack(self, answer: sp.csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        return scoring.answer_from_sparse(answer, k)
