"""Extreme multi-label and multi-class classification with trees."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "FastXMLClassifier",
    "FilterTreeClassifier",
    "LOMTreeClassifier",
    "MemoryTreeClassifier",
    "OnlinePLTClassifier",
    "PLTClassifier",
    "SpectralTreeClassifier",
    "ThresholdClassifier",
    "TreeSoftmaxClassifier",
    "data",
    "decide",
    "load",
    "metrics",
    "plots",
    "progressive",
    "trees",
]

if TYPE_CHECKING:
    from ramify import data, decide, metrics, plots, progressive, trees
    from ramify.models.fastxml import FastXMLClassifier
    from ramify.models.filter_tree import FilterTreeClassifier
    from ramify.models.lomtree import LOMTreeClassifier
    from ramify.models.memory_tree import MemoryTreeClassifier
    from ramify.models.online_plt import OnlinePLTClassifier
    from ramify.models.plt import PLTClassifier
    from ramify.models.spectral import SpectralTreeClassifier
    from ramify.models.threshold import ThresholdClassifier
    from ramify.models.tree_softmax import TreeSoftmaxClassifier
    from ramify.persist import load

_HOMES = {
    "FastXMLClassifier": "ramify.models.fastxml",
    "FilterTreeClassifier": "ramify.models.filter_tree",
    "LOMTreeClassifier": "ramify.models.lomtree",
    "MemoryTreeClassifier": "ramify.models.memory_tree",
    "OnlinePLTClassifier": "ramify.models.online_plt",
    "PLTClassifier": "ramify.models.plt",
    "SpectralTreeClassifier": "ramify.models.spectral",
    "ThresholdClassifier": "ramify.models.threshold",
    "TreeSoftmaxClassifier": "ramify.models.tree_softmax",
    "load": "ramify.persist",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"ramify.{name}")
    raise AttributeError(f"module 'ramify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


# A program pays for scikit-learn when it imports ramify, not at the first question to a loaded model. Only the command
# line imports as it needs: `ramify --help` should not wait.
if os.path.basename(next(iter(sys.argv), "")) not in ("ramify", "ramify.exe"):
    globals().update({name: __getattr__(name) for name in __all__})
