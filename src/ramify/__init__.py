"""Extreme multi-label and multi-class classification with trees."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ramify import registry

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
    "load_fitted",
    "metrics",
    "optimizers",
    "plots",
    "progressive",
    "trees",
]

if TYPE_CHECKING:
    from ramify import data, decide, metrics, optimizers, plots, progressive, trees
    from ramify.files.save_load import load, load_fitted
    from ramify.models.fastxml.classifier import FastXMLClassifier
    from ramify.models.filter_tree.classifier import FilterTreeClassifier
    from ramify.models.lomtree.classifier import LOMTreeClassifier
    from ramify.models.memory_tree.classifier import MemoryTreeClassifier
    from ramify.models.online_plt.classifier import OnlinePLTClassifier
    from ramify.models.plt.classifier import PLTClassifier
    from ramify.models.softmax.classifier import TreeSoftmaxClassifier
    from ramify.models.spectral.classifier import SpectralTreeClassifier
    from ramify.models.threshold.classifier import ThresholdClassifier


def __getattr__(name: str) -> Any:
    if name in registry.CLASSIFIERS:
        return registry.load_class(name)
    if name in ("load", "load_fitted"):
        return getattr(import_module("ramify.files.save_load"), name)
    if name in __all__:
        return import_module(f"ramify.{name}")
    raise AttributeError(f"module 'ramify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
