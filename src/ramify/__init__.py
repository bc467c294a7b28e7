"""Extreme multi-label and multi-class classification with trees.

Names are imported on first use (PEP 562), so `import ramify` takes no time and a program pays only for what it uses.
"""

from __future__ import annotations

TYPE_CHECKING = False  # instead of typing's, which takes longer to load than all of this file
if TYPE_CHECKING:
    from ramify import data as data
    from ramify import decide as decide
    from ramify import metrics as metrics
    from ramify import optimizers as optimizers
    from ramify import plots as plots
    from ramify import progressive as progressive
    from ramify import text as text
    from ramify import trees as trees
    from ramify.base.save_load import load as load
    from ramify.base.save_load import load_fitted as load_fitted
    from ramify.models.fastxml.classifier import FastXMLClassifier as FastXMLClassifier
    from ramify.models.filter_tree.classifier import FilterTreeClassifier as FilterTreeClassifier
    from ramify.models.lomtree.classifier import LOMTreeClassifier as LOMTreeClassifier
    from ramify.models.memory_tree.classifier import MemoryTreeClassifier as MemoryTreeClassifier
    from ramify.models.mixture.classifier import MixtureClassifier as MixtureClassifier
    from ramify.models.nearest_rows.classifier import NearestRowsClassifier as NearestRowsClassifier
    from ramify.models.online_plt.classifier import OnlinePLTClassifier as OnlinePLTClassifier
    from ramify.models.plt.classifier import PLTClassifier as PLTClassifier
    from ramify.models.plt.solver import PLTSolver as PLTSolver
    from ramify.models.softmax.classifier import TreeSoftmaxClassifier as TreeSoftmaxClassifier
    from ramify.models.spectral.candidate_scorer import CandidateScorer as CandidateScorer
    from ramify.models.spectral.classifier import SpectralTreeClassifier as SpectralTreeClassifier
    from ramify.models.threshold.classifier import ThresholdClassifier as ThresholdClassifier

__version__ = "0.1.0"
_SUBMODULES = ("data", "decide", "metrics", "optimizers", "plots", "progressive", "text", "trees")
_FUNCTIONS = ("load", "load_fitted")
__all__ = [
    "CandidateScorer",
    "FastXMLClassifier",
    "FilterTreeClassifier",
    "LOMTreeClassifier",
    "MemoryTreeClassifier",
    "MixtureClassifier",
    "NearestRowsClassifier",
    "OnlinePLTClassifier",
    "PLTClassifier",
    "PLTSolver",
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
    "text",
    "trees",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ramify' has no attribute {name!r}")
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"ramify.{name}")
    if name in _FUNCTIONS:
        value: object = getattr(import_module("ramify.base.save_load"), name)
    else:
        value = import_module("ramify.registry").load_class(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
