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
    from ramify.files.save_load import load
    from ramify.models.fastxml.classifier import FastXMLClassifier
    from ramify.models.filter_tree.classifier import FilterTreeClassifier
    from ramify.models.lomtree.classifier import LOMTreeClassifier
    from ramify.models.memory_tree.classifier import MemoryTreeClassifier
    from ramify.models.online_plt.classifier import OnlinePLTClassifier
    from ramify.models.plt.classifier import PLTClassifier
    from ramify.models.softmax.classifier import TreeSoftmaxClassifier
    from ramify.models.spectral.classifier import SpectralTreeClassifier
    from ramify.models.threshold.classifier import ThresholdClassifier

_HOMES = {
    "FastXMLClassifier": "ramify.models.fastxml.classifier",
    "FilterTreeClassifier": "ramify.models.filter_tree.classifier",
    "LOMTreeClassifier": "ramify.models.lomtree.classifier",
    "MemoryTreeClassifier": "ramify.models.memory_tree.classifier",
    "OnlinePLTClassifier": "ramify.models.online_plt.classifier",
    "PLTClassifier": "ramify.models.plt.classifier",
    "SpectralTreeClassifier": "ramify.models.spectral.classifier",
    "ThresholdClassifier": "ramify.models.threshold.classifier",
    "TreeSoftmaxClassifier": "ramify.models.softmax.classifier",
    "load": "ramify.files.save_load",
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
