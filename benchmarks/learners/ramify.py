"""ramify's online label trees, the batch and incremental ones that the paper sets beside them, and memory trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, scoring
from benchmarks.systems import Setting

PACKAGE = "ramify"
IMPORT = "ramify.models.online_plt.classifier"
INSTALL: list[list[str]] = []
PASSES = 1000
# The authors' steps: napkinXC adds eps inside the root.
PAPERS = {"optimizer": {"learning_rate": 1.0, "eps": 0.01, "decay": 0.0, "eps_in_root": True}, "bias": 1.0}
FEW_SHOT = {"arity": 2, "max_leaf": 10, "one_label": True}
WARM = {"warm_share": 0.1}
SETTINGS = {
    "fair": Setting(),
    "best": Setting({"policy": "best"}),
    "balanced": Setting({"policy": "balanced"}),
    "random": Setting({"policy": "random"}),
    "best-papers-steps": Setting({"policy": "best"} | PAPERS),
    "fair-papers-steps": Setting(PAPERS),
    "balanced-papers-steps": Setting({"policy": "balanced"} | PAPERS),
    "random-papers-steps": Setting({"policy": "random"} | PAPERS),
    "batch": Setting({"kind": "batch"}),
    "incremental": Setting({"policy": None, "tree": "kmeans"}),
    "incremental-wide": Setting({"policy": None, "tree": "kmeans", "arity": 24, "max_leaf": 63}),
    "incremental-papers-steps": Setting({"policy": None, "tree": "kmeans"} | PAPERS),
    "warm-best": Setting({"policy": "best"} | WARM),
    "warm-fair": Setting(WARM),
    "warm-best-papers-steps": Setting({"policy": "best"} | WARM | PAPERS),
    "warm-only": Setting({"policy": None, "tree": "kmeans", "only_share": 0.1}),
    "fair-one-label": Setting({"one_label": True}, kind="multiclass"),
    "best-one-label": Setting({"policy": "best", "one_label": True}, kind="multiclass"),
    "random-one-label": Setting({"policy": "random", "one_label": True}, kind="multiclass"),
    "memory-tree": Setting({"kind": "memory", "one_label": True}, kind="multiclass"),
    "memory-tree-one-leaf": Setting(
        {"kind": "memory", "n_leaves": 1, "n_neighbours": 1, "one_label": True}, kind="multiclass"
    ),
}
SETTINGS |= {f"best-alpha-{alpha}": Setting({"policy": "best", "alpha": alpha}) for alpha in (0.25, 0.5, 0.9, 1.0)}
SETTINGS |= {f"warm-best-{share}": Setting({"policy": "best", "warm_share": share}) for share in (0.05, 0.2, 0.5)}
SETTINGS |= {
    f"warm-only-{share}": Setting({"policy": None, "tree": "kmeans", "only_share": share}) for share in (0.05, 0.2, 0.5)
}
SETTINGS |= {  # the paper's pre-leaf nodes for few-shot classes
    f"{policy}-one-label-max-leaf-10": Setting({"policy": policy} | FEW_SHOT, kind="multiclass")
    for policy in ("fair", "best", "random")
}
SETTINGS |= {  # table 3 as the paper ran it: plain probabilities, the authors' steps
    f"{policy}-few-shot-papers-steps": Setting(
        {"policy": policy, "normalize_siblings": False} | FEW_SHOT | PAPERS, kind="multiclass"
    )
    for policy in ("best", "random")
}


class Learner:
    def __init__(self, parameters: dict[str, Any], threads: int, folder: Path, problem: datasets.Problem) -> None:
        import ramify
        from ramify.optimizers import AdaGrad

        rest = dict(parameters)
        if "optimizer" in rest:
            rest["optimizer"] = AdaGrad(**rest["optimizer"])
        self.threads = threads
        self.one_label = rest.pop("one_label", False)
        self.is_progressive = rest.pop("progressive", False)
        self.warm_share, self.only_share = rest.pop("warm_share", 0.0), rest.pop("only_share", 1.0)
        kinds = {
            "online": ramify.OnlinePLTClassifier,
            "batch": ramify.PLTClassifier,
            "memory": ramify.MemoryTreeClassifier,
        }
        self.model = kinds[rest.pop("kind", "online")](n_jobs=threads, random_state=0, **rest)

    def prepare(self, problem: datasets.Problem) -> tuple[sp.csr_matrix, Any]:
        n_rows = round(self.only_share * problem.X.shape[0])
        X, Y = problem.X[:n_rows], problem.Y[:n_rows]
        return X, Y.indices if self.one_label else Y

    def learn(self, prepared: tuple[sp.csr_matrix, Any]) -> None:
        X, y = prepared
        if not hasattr(self.model, "partial_fit"):
            self.model.fit(X, y)
            return
        n_warm = 0
        if self.is_progressive:
            self._test_and_learn(X, y)
            return
        if self.warm_share and not hasattr(self.model, "model_"):
            n_warm = round(self.warm_share * X.shape[0])
            self.model.warm_start(X[:n_warm], y[:n_warm])
        self.model.partial_fit(X[n_warm:], y[n_warm:])
        learner = self.model.model_.learner
        if hasattr(learner, "apply_all"):
            learner.apply_all(self.threads)  # queued examples count as learning

    def _test_and_learn(self, X: sp.csr_matrix, y: Any) -> None:
        from ramify import progressive

        # As the peers do, with one class a row: the best label alone.
        k = (1,) if self.one_label else (1, 3, 5)
        self.result = progressive.evaluate(self.model, X, y, k=k, window=max(1, X.shape[0] // 100))
        self.is_progressive = False

    def answer(self, X: sp.csr_matrix) -> np.ndarray:
        labels, _ = scoring.answer_from_sparse(self.model.predict_proba(X, top_k=5), 5)
        if self.one_label:
            labels = np.where(labels >= 0, np.asarray(self.model.classes_)[labels], -1)
        return labels

    def details(self) -> dict[str, Any]:
        if not hasattr(self.model, "partial_fit"):
            return {}
        if not hasattr(self.model, "tree_"):
            return {"examples": self.model.n_examples_, "learner_mb": self.model.memory_ / 1e6}
        tree = self.model.tree_
        leaves = tree.leaf_of[tree.leaf_of >= 0]
        return {
            "depth": float(np.mean(tree.depth[leaves])),
            "height": int(tree.height),
            "learner_mb": self.model.memory_ / 1e6,
        }
