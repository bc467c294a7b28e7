"""Every classifier of the library, and presets: the papers' baselines that are settings of one.

Only names live here, so that a program pays for importing a class when it uses it. Nothing that is not listed here is
ever imported for a model file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """Where a classifier and its model live, and its short name (None: it has no preset)."""

    folder: str
    model: str
    short_name: str | None


CLASSIFIERS = {
    "PLTClassifier": Entry("ramify.models.plt", "PLTModel", "plt"),
    "OnlinePLTClassifier": Entry("ramify.models.online_plt", "OnlinePLTModel", "online-plt"),
    "TreeSoftmaxClassifier": Entry("ramify.models.softmax", "SoftmaxModel", "tree-softmax"),
    "FastXMLClassifier": Entry("ramify.models.fastxml", "FastXMLModel", "fastxml"),
    "SpectralTreeClassifier": Entry("ramify.models.spectral", "SpectralModel", "spectral"),
    "LOMTreeClassifier": Entry("ramify.models.lomtree", "LOMTreeModel", "lomtree"),
    "FilterTreeClassifier": Entry("ramify.models.filter_tree", "FilterTreeModel", "filter-tree"),
    "MemoryTreeClassifier": Entry("ramify.models.memory_tree", "MemoryTreeModel", "memory-tree"),
    "ThresholdClassifier": Entry("ramify.models.threshold", "ThresholdModel", None),
}

# Objects that are parameters of classifiers, and the modules they live in.
COMPONENTS = {
    "PLTSolver": "ramify.models.plt.solver",
    "CandidateScorer": "ramify.models.spectral.candidate_scorer",
    "AdaGrad": "ramify.optimizers",
    "FOBOS": "ramify.optimizers",
    "SGD": "ramify.optimizers",
}

# A random tree answers by greedy descent, which makes it logarithmic; the trees that LOMtree's paper compares with have
# two children per node and one class per leaf.
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    **{entry.short_name: (name, {}) for name, entry in CLASSIFIERS.items() if entry.short_name is not None},
    "random-tree": ("PLTClassifier", {"tree": "random", "arity": 2, "max_leaf": 1, "beam": 1}),
    "oaa": ("PLTClassifier", {"tree": "one_level"}),
    "online-random-tree": ("OnlinePLTClassifier", {"tree": "random", "policy": None, "arity": 2, "max_leaf": 2}),
    "online-oaa": ("OnlinePLTClassifier", {"tree": "one_level"}),
}


def module_of(name: str) -> str:
    """The module that a class of the library lives in; KeyError if there is no such class."""
    return COMPONENTS[name] if name in COMPONENTS else f"{CLASSIFIERS[name].folder}.classifier"


def has_class(cls: type) -> bool:
    """Whether a class is one of the library's own classifiers or components."""
    name = cls.__name__
    return (name in CLASSIFIERS or name in COMPONENTS) and module_of(name) == cls.__module__


def load_class(name: str) -> Callable[..., Any]:
    """A classifier or component by its class name."""
    found: Callable[..., Any] = getattr(import_module(module_of(name)), name)
    return found


def load_model_class(name: str) -> Any:
    """The model class of a classifier, without importing the classifier."""
    entry = CLASSIFIERS[name]
    return getattr(import_module(f"{entry.folder}.model"), entry.model)


def preset_class(name: str) -> Callable[..., Any]:
    """The class behind a preset."""
    if name not in PRESETS:
        raise ValueError(f"the classifier must be one of {', '.join(sorted(PRESETS))}, got {name!r}")
    return load_class(PRESETS[name][0])


def make_classifier(name: str, **settings: Any) -> Any:
    """A classifier by short name; settings are added to those of the preset, or replace them.

    "random-tree" is the baseline Rtree of Choromanska and Langford, "Logarithmic Time Online Multiclass prediction",
    section 4; "oaa" is one-against-all.

    >>> make_classifier("random-tree", random_state=0).beam
    1
    """
    return preset_class(name)(**{**PRESETS[name][1], **settings})
