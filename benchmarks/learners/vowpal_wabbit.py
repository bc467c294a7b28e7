"""Vowpal Wabbit: a label tree that is given in advance (`--plt`), and three logarithmic-time multi-class learners.

It reads only text, so its time contains parsing; `parse_cpu_s` tells how much that is, measured apart with `--noop`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets
from benchmarks.measure import Stopwatch
from benchmarks.systems import Setting

PACKAGE = "vowpalwabbit"
IMPORT = "vowpalwabbit"
INSTALL = [["vowpalwabbit", "scipy"]]
PASSES = 1
# {labels}: one more than the largest label; {nodes}: as the authors of memory trees choose them, from the rows.
TREE = "--plt {labels} --loss_function logistic"
MEMORY_TREE = (
    "--memory_tree {nodes} --max_number_of_labels {labels} --leaf_example_multiplier 10 --learn_at_leaf --online "
    "--dream_at_update 0 --dream_repeats 3 --alpha 0.1 -l 0.001 --loss_function squared -b 24"
)
SETTINGS = {
    "plt": Setting({"options": f"{TREE} -b 24"}),
    "plt-b26": Setting({"options": f"{TREE} -b 26"}),
    "plt-wide": Setting({"options": f"{TREE} -b 26 --kary_tree 16"}),
    "plt-rate-2": Setting({"options": f"{TREE} -b 26 --kary_tree 16 -l 2"}),
    "memory-tree": Setting({"options": MEMORY_TREE}, kind="multiclass"),
    "memory-tree-l-0.1": Setting({"options": MEMORY_TREE.replace("-l 0.001", "-l 0.1")}, kind="multiclass"),
    "memory-tree-l-1": Setting({"options": MEMORY_TREE.replace("-l 0.001", "-l 1")}, kind="multiclass"),
    "log-multi": Setting({"options": "--log_multi {labels} -b 24"}, kind="multiclass"),
    "recall-tree": Setting({"options": "--recall_tree {labels} -b 24"}, kind="multiclass"),
}


class Learner:
    """Labels of multi-class learners begin with 1; answers are asked of the learner in memory, before it is closed."""

    def __init__(self, parameters: dict[str, Any], threads: int, folder: Path, problem: datasets.Problem) -> None:
        n_rows, n_labels = problem.Y.shape
        self.is_tree = "--plt" in parameters["options"]
        self.base = 0 if self.is_tree else 1
        nodes = int(2 * n_rows / (10 * math.log2(max(n_rows, 2))))
        self.options = parameters["options"].format(labels=n_labels + self.base, nodes=nodes)
        self.text, self.model, self.said = folder / "stream.txt", folder / "model.vw", folder / "said.txt"
        self.keeps_answers = bool(parameters.get("progressive"))

    def prepare(self, problem: datasets.Problem) -> datasets.Problem:
        X, Y = problem.X, problem.Y
        unlabelled = self.text.with_suffix(".parse")
        with self.text.open("w") as out, unlabelled.open("w") as plain:
            for row in range(X.shape[0]):
                labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]] + self.base
                cells = line(X, row)
                out.write(",".join(map(str, labels.tolist())) + cells)
                plain.write(cells)
        with Stopwatch() as self.parsing:
            run(f"--noop -d {unlabelled} --quiet").finish()
        unlabelled.unlink()
        return problem

    def learn(self, problem: datasets.Problem) -> None:
        said = f" -p {self.said}" if self.keeps_answers else ""
        self.workspace = run(f"{self.options} -d {self.text} -f {self.model} --quiet{said}")
        self.truth = problem.Y.indices
        if self.is_tree:
            self.workspace.finish()

    def answer(self, X: sp.csr_matrix) -> np.ndarray:
        labels = np.full((X.shape[0], 5), -1, dtype=np.int64)
        if self.is_tree:
            # the number of answers is an option of the loaded model
            self.workspace = run(f"-i {self.model} -t --quiet --top_k 5 --loss_function logistic")
        for row in range(X.shape[0]):
            found = self.workspace.predict(line(X, row))
            best = list(found)[:5] if self.is_tree else [found - 1]
            labels[row, : len(best)] = best
        self.workspace.finish()
        return labels

    def progressive(self) -> np.ndarray:
        # answers to test rows are written behind those to the stream's
        said = self.said.read_text().splitlines()[: len(self.truth)]
        return np.array([float(text.split()[0]) for text in said]) - self.base == self.truth

    def details(self) -> dict[str, Any]:
        return {"parse_cpu_s": self.parsing.cpu}


def run(options: str) -> Any:
    from vowpalwabbit import Workspace

    return Workspace(options)


def line(X: sp.csr_matrix, row: int) -> str:
    cells = slice(X.indptr[row], X.indptr[row + 1])
    pairs = zip(X.indices[cells].tolist(), X.data[cells].tolist(), strict=True)
    return " | " + " ".join(f"{feature}:{value:.6g}" for feature, value in pairs) + "\n"
