"""Every classifier and preset by name: the one list that `ramify`, model files and the command line share.

It holds names only and imports nothing of ramify; `load_class` imports a classifier's module on demand. Nothing that is
not listed here is ever imported for a model file.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A classifier: the folder of its `classifier` and `model` modules, the class of its model, its short name.

    The short name is "" if `ramify train` cannot train it.
    """

    folder: str
    model: str
    name: str
    summary: str


class Preset(NamedTuple):
    """A name for a classifier with fixed settings."""

    class_name: str
    settings: dict[str, Any]
    summary: str


CLASSIFIERS = {
    "PLTClassifier": Entry("ramify.models.plt", "PLTModel", "plt", "linear label tree"),
    "OnlinePLTClassifier": Entry(
        "ramify.models.online_plt", "OnlinePLTModel", "online-plt", "label tree that grows online"
    ),
    "TreeSoftmaxClassifier": Entry(
        "ramify.models.softmax", "SoftmaxModel", "tree-softmax", "embeddings, as in fastText"
    ),
    "FastXMLClassifier": Entry("ramify.models.fastxml", "FastXMLModel", "fastxml", "forest that splits the rows"),
    "SpectralTreeClassifier": Entry(
        "ramify.models.spectral", "SpectralModel", "spectral", "a tree selects candidates, a classifier scores them"
    ),
    "LOMTreeClassifier": Entry("ramify.models.lomtree", "LOMTreeModel", "lomtree", "online multi-class tree"),
    "FilterTreeClassifier": Entry(
        "ramify.models.filter_tree", "FilterTreeModel", "filter-tree", "multi-class tournament"
    ),
    "MemoryTreeClassifier": Entry(
        "ramify.models.memory_tree", "MemoryTreeModel", "memory-tree", "stored examples in a tree"
    ),
    "NearestRowsClassifier": Entry(
        "ramify.models.nearest_rows", "NearestRowsModel", "nearest-rows", "the most similar training rows, exactly"
    ),
    "MixtureClassifier": Entry(
        "ramify.models.mixture", "MixtureModel", "mixture", "weighted mean of several classifiers"
    ),
    "ThresholdClassifier": Entry(
        "ramify.models.threshold", "ThresholdModel", "", "tuned decisions of another classifier"
    ),
}

# Objects that are parameters of classifiers, and the modules they live in.
COMPONENTS = {
    "PLTSolver": "ramify.models.plt.solver",
    "CandidateScorer": "ramify.models.spectral.candidate_scorer",
    "AdaGrad": "ramify.optimizers",
    "FOBOS": "ramify.optimizers",
    "SGD": "ramify.optimizers",
}

# Baselines of Choromanska and Langford, "Logarithmic Time Online Multiclass prediction", section 4. A random tree
# predicts by greedy descent: this makes it logarithmic.
PRESETS = {
    "random-tree": Preset(
        "PLTClassifier", {"tree": "random", "arity": 2, "max_leaf": 1, "beam": 1}, "plt on a random binary tree"
    ),
    "oaa": Preset("PLTClassifier", {"tree": "one_level"}, "one against all"),
    "online-random-tree": Preset(
        "OnlinePLTClassifier",
        {"tree": "random", "policy": None, "arity": 2, "max_leaf": 2},
        "random-tree, learned online",
    ),
    "online-oaa": Preset("OnlinePLTClassifier", {"tree": "one_level"}, "oaa, learned online"),
}


def _module_of(class_name: str) -> str:
    if class_name in COMPONENTS:
        return COMPONENTS[class_name]
    return f"{CLASSIFIERS[class_name].folder}.classifier"


def is_registered(cls: type) -> bool:
    """Whether a class is one of the library's classifiers or components, and not another one of the same name."""
    name = cls.__name__
    return (name in CLASSIFIERS or name in COMPONENTS) and _module_of(name) == cls.__module__


def load_class(class_name: str) -> Any:
    """Import a classifier's or a component's class; KeyError if the registry does not have it."""
    return getattr(import_module(_module_of(class_name)), class_name)


def load_model_class(class_name: str) -> Any:
    """Import the model class of a classifier, which needs no scikit-learn."""
    entry = CLASSIFIERS[class_name]
    return getattr(import_module(f"{entry.folder}.model"), entry.model)


def summaries() -> dict[str, str]:
    """Every name that `make_classifier` takes, with a few words about it."""
    by_name = {entry.name: entry.summary for entry in CLASSIFIERS.values() if entry.name}
    return by_name | {name: preset.summary for name, preset in PRESETS.items()}


def class_name_of(name: str) -> str:
    """The class behind a short name or preset.

    >>> class_name_of("plt"), class_name_of("oaa")
    ('PLTClassifier', 'PLTClassifier')
    """
    if name in PRESETS:
        return PRESETS[name].class_name
    for class_name, entry in CLASSIFIERS.items():
        if name and entry.name == name:
            return class_name
    raise ValueError(f"no classifier is called {name!r}: choose one of {', '.join(summaries())}")


def make_classifier(name: str, **settings: Any) -> Any:
    """Create a classifier by its short name or preset; `settings` add to the preset's or replace them.

    >>> make_classifier("random-tree", random_state=0).beam
    1
    """
    fixed = PRESETS[name].settings if name in PRESETS else {}
    return load_class(class_name_of(name))(**{**fixed, **settings})
