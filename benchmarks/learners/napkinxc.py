"""napkinXC's online label trees: reached through its general model class, since they have none of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, scoring
from benchmarks.systems import Setting

PACKAGE = "napkinxc"
IMPORT = "napkinxc.models"
INSTALL = [["napkinxc", "scipy"]]
PASSES = 1  # a second call of fit starts over
ONLINE = {"model": "oplt", "optimizer": "adagrad", "epochs": 1}
SETTINGS = {
    "best": Setting(ONLINE | {"tree_type": "onlineBestScore"}),
    "random": Setting(ONLINE | {"tree_type": "onlineRandom"}),
}


class Learner:
    """`learn` writes the model as well: the library has no other way, so its time includes that."""

    def __init__(self, parameters: dict[str, Any], threads: int, folder: Path, problem: datasets.Problem) -> None:
        from napkinxc.models import Model

        self.model = Model(output=str(folder), threads=threads, seed=1, **parameters)

    def prepare(self, problem: datasets.Problem) -> tuple[sp.csr_matrix, list[list[int]]]:
        rows = np.split(problem.Y.indices, problem.Y.indptr[1:-1])
        return problem.X, [row.tolist() for row in rows]

    def learn(self, prepared: tuple[sp.csr_matrix, list[list[int]]]) -> None:
        self.model.fit(*prepared)

    def answer(self, X: sp.csr_matrix) -> np.ndarray:
        self.model.load()
        return scoring.answer_from_pairs(self.model.predict_proba(X, top_k=5), 5)[0]

    def details(self) -> dict[str, Any]:
        return {}
