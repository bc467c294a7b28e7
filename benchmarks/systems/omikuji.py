"""omikuji: trains only from a text file, so parsing is timed apart; no batch call, so a batch is a loop over rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, scoring
from benchmarks.measure import Stopwatch
from benchmarks.systems import Setting

PACKAGE = "omikuji"
IMPORT = "omikuji"
READS_TEXT = True
INSTALL = [["omikuji", "scipy"]]
BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
SHALLOW = {"collapse_every_n_layers": 5}
SETTINGS = {
    "one-tree": Setting({"n_trees": 1}, main=True),
    "three-trees": Setting(main=True),
    "one-tree-log": Setting({"n_trees": 1, "linear_loss_type": "LOG"}),
    "shallow-one-tree": Setting({"n_trees": 1} | SHALLOW),
    "shallow-three-trees": Setting(SHALLOW),
    "bonsai-one-tree": Setting({"n_trees": 1} | BONSAI),
    "bonsai-three-trees": Setting(BONSAI),
    "three-trees-c-0.5": Setting({"linear_c": 0.5}),
    "one-tree-dense": Setting({"n_trees": 1}, {"densify": 0.0}),
}


def train(problem: datasets.Problem, folder: Path, parameters: dict[str, Any], threads: int) -> dict[str, Stopwatch]:
    import omikuji

    chosen = omikuji.Model.default_hyper_param()
    for name, value in parameters.items():
        setattr(chosen, name, omikuji.LossType[value].value if name == "linear_loss_type" else value)
    # Model.train_on_data is these two calls; apart, the second can be timed alone
    lib, ffi = omikuji.lib, omikuji.ffi
    pool = ffi.gc(lib.init_omikuji_thread_pool(threads), lib.free_omikuji_thread_pool)
    with Stopwatch() as parsing:
        data = lib.load_omikuji_data_set(ffi.new("char[]", str(problem.text).encode()), pool)
    data = ffi.gc(data, lib.free_omikuji_data_set)
    with Stopwatch() as training:
        model = omikuji.Model(lib.train_omikuji_model(data, chosen, pool))
    with Stopwatch() as saving:
        model.save(str(folder))
    return {"parse": parsing, "train": training, "save": saving}


class Model:
    def __init__(self, folder: Path, parameters: dict[str, Any], threads: int) -> None:
        import omikuji

        self.model = omikuji.Model.load(str(folder))
        self.model.init_prediction_thread_pool(threads)
        if "densify" in parameters:
            self.model.densify_weights(parameters["densify"], n_threads=threads)

    def prepare_one(self, x: sp.csr_matrix) -> list[tuple[int, float]]:
        return list(zip(x.indices.tolist(), x.data.tolist(), strict=True))

    def prepare(self, X: sp.csr_matrix) -> list[list[tuple[int, float]]]:
        return [self.prepare_one(X[row]) for row in range(X.shape[0])]

    def one(self, row: list[tuple[int, float]], k: int) -> list[tuple[int, float]]:
        answer: list[tuple[int, float]] = self.model.predict(row, top_k=k)
        return answer

    def batch(self, rows: list[list[tuple[int, float]]], k: int) -> list[list[tuple[int, float]]]:
        return [self.one(row, k) for row in rows]

    def unpack(self, answer: list[list[tuple[int, float]]], k: int) -> tuple[np.ndarray, np.ndarray]:
        return scoring.answer_from_pairs(answer, k)
