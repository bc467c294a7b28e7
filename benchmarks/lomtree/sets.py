"""The multi-class sets of the comparison of logarithmic-time learners: rows in random order, and their VW text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets

SETS = ("letter", "isolet-1560", "icd-categories", "aloi-like", "wordnet-parent")


@dataclass(frozen=True)
class Rows:
    """Sparse rows with a class each."""

    X: sp.csr_array
    y: np.ndarray

    def take(self, chosen: np.ndarray) -> Rows:
        return Rows(self.X[chosen], self.y[chosen])

    def shuffled(self, order: int) -> Rows:
        return self.take(np.random.default_rng(order).permutation(len(self.y)))


@dataclass(frozen=True)
class ClassSet:
    """Training and test rows; a tenth of the training rows is for choosing settings, as in the paper."""

    name: str
    train: Rows
    test: Rows
    n_classes: int

    def split(self) -> tuple[Rows, Rows]:
        cut = len(self.train.y) * 9 // 10
        return self.train.take(np.arange(cut)), self.train.take(np.arange(cut, len(self.train.y)))


def load(name: str, sources: list[Path], cache: Path) -> ClassSet:
    if name == "aloi-like":
        from ramify.data.synthetic import make_dense

        parts = [make_dense(n, 1000, 128, split=split) for n, split in ((100_000, "train"), (20_000, "test"))]
        train, test = (Rows(sp.csr_array(part.X), np.asarray(part.y)) for part in parts)
    elif name == "icd-categories":
        train, test = _icd()
    else:
        folder = datasets.prepare(name, sources, cache)
        found = (datasets.load(folder, split) for split in datasets.SPLITS)
        train, test = (Rows(sp.csr_array(part.X), np.asarray(part.Y.indices)) for part in found)
    order = np.random.default_rng(0).permutation(len(train.y))
    return ClassSet(name, train.take(order), test, int(max(train.y.max(), test.y.max())) + 1)


def _icd() -> tuple[Rows, Rows]:
    """Texts of ICD-10-CM whose codes lie in one category of three characters: from the words to that category."""
    from ramify.data.icd10 import load_icd10
    from ramify.data.text import default_vectorizer

    texts: list[list[str]] = []
    categories: list[list[str]] = []
    source = load_icd10()
    for part in (source.train, source.test):
        rows = [
            (text, [x for x in labels if re.fullmatch(r"[A-Z]\d\w", x)]) for text, labels in zip(*part, strict=True)
        ]
        texts.append([text for text, found in rows if len(found) == 1])
        categories.append([found[0] for _, found in rows if len(found) == 1])
    number = {name: place for place, name in enumerate(sorted(set(categories[0]) | set(categories[1])))}
    vectorizer = default_vectorizer()
    X = [sp.csr_array(vectorizer.fit_transform(texts[0])), sp.csr_array(vectorizer.transform(texts[1]))]
    train, test = (
        Rows(rows.astype(np.float32), np.array([number[name] for name in names]))
        for rows, names in zip(X, categories, strict=True)
    )
    return train, test


def write_vw(rows: Rows, path: Path) -> None:
    """VW's text; its classes begin with 1."""
    X = rows.X
    with path.open("w") as out:
        for row, label in enumerate(rows.y.tolist()):
            cells = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[cells].tolist(), X.data[cells].tolist(), strict=True)
            out.write(f"{label + 1} | " + " ".join(f"{f}:{v:.6g}" for f, v in pairs) + "\n")
