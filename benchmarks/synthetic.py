"""Generated sets, from ramify's own generator. A set's text is written only when a system asks for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets

SIZES: dict[str, dict[str, Any]] = {
    "synthetic-s": {"n_rows": 15_000, "n_labels": 4_000, "n_features": 5_000, "features_per_row": 198.0},
    "synthetic-m": {"n_rows": 200_000, "n_labels": 30_000, "n_features": 100_000, "features_per_row": 75.0},
}
# From a thousand labels to a million, all else alike: rows of one length, about five examples a label or more.
SCALE = {f"scale-{n_labels}": n_labels for n_labels in (1_000, 10_000, 100_000, 1_000_000)}
SIZES |= {
    name: {"n_rows": max(50_000, n_labels), "n_labels": n_labels, "n_features": 100_000, "features_per_row": 60.0}
    for name, n_labels in SCALE.items()
}
# Multi-class: 10,000 classes with three and with five rows each, and one test row each.
FEW_SHOT = {f"few-shot-{shots}": shots for shots in (3, 5)}
SIZES |= {
    name: {"n_rows": shots * 10_000, "n_classes": 10_000, "n_features": 50_000, "features_per_row": 60.0}
    for name, shots in FEW_SHOT.items()
}
TEST_ROWS = 10_000


def prepare(name: str, cache: Path) -> Path:
    """Generate set `name` into the cache unless it is there."""
    from ramify.data.synthetic import make_multiclass, make_multilabel

    target = cache / name
    if (target / "test.npz").exists():
        return target
    partial = cache / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for split in datasets.SPLITS:
        size = SIZES[name] | ({"n_rows": TEST_ROWS} if split == "test" else {})
        make = make_multiclass if name in FEW_SHOT else make_multilabel
        made = make(**size, split=split, random_state=0)
        np.savez(partial / f"{split}.npz", **datasets.arrays_of(made.X, made.Y))
    partial.rename(target)
    return target
