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


class Component(NamedTuple):
    """A parameter that is an object: its class in COMPONENTS or CLASSIFIERS, and its settings."""

    class_name: str
    settings: dict[str, Any]


class Preset(NamedTuple):
    """A name for a classifier with fixed settings; `paper` says who ran the method like this."""

    class_name: str
    settings: dict[str, Any]
    summary: str
    paper: str = ""


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
    "WordNgramVectorizer": "ramify.data.ngrams",
}

ONLINE_PLT = "Jasinska-Kobus et al. 2021, section 5"
MACRO_F = "Jasinska et al. 2016, section 6"
LOMTREE = "Choromanska and Langford 2015, section 4"
INTERPOLATED = "Baharav et al. 2021, section 5"
SPECTRAL = "Mineiro and Karampatziakis 2015, section 5"

# The update of napkinXC, the program of the authors of "Online probabilistic label trees", with the paper's settings.
_OPLT_STEPS = Component("AdaGrad", {"learning_rate": 1.0, "eps": 0.01, "decay": 0.0, "eps_in_root": True})
_OPLT = {"arity": 2, "max_leaf": 100, "optimizer": _OPLT_STEPS, "bias": 1.0, "normalize_siblings": False}
# A random complete b-ary tree; b and the epochs were tuned per set, and the table had 2**30 weights.
_PLT_FOBOS = {
    "tree": "random",
    "arity": 16,
    "max_leaf": 16,
    "hash_bits": 24,
    "solver": Component(
        "PLTSolver", {"loss": "logistic", "n_epochs": 10, "optimizer": Component("FOBOS", {"l2": 1e-6})}
    ),
    "calibrate": False,
}
_PARABEL = {
    "tree": "kmeans",
    "arity": 2,
    "max_leaf": 100,
    "tree_options": {"prune": 0.0},
    "solver": Component("PLTSolver", {"loss": "squared_hinge", "C": 1.0, "positive_weight": 1.0, "n_epochs": 20}),
    "calibrate": False,
    "standardize": False,
    "beam": 10,
}
_FASTTEXT = {
    "dim": 128,
    "n_epochs": 200,
    "learning_rate": 0.5,
    "vectorizer": Component("WordNgramVectorizer", {"word_ngrams": 2, "min_count": 2}),
}

# Methods as their authors ran them, and baselines; what differs from the papers all the same: docs/papers.md. A random
# tree predicts by greedy descent: this makes it logarithmic.
PRESETS = {
    "random-tree": Preset(
        "PLTClassifier", {"tree": "random", "arity": 2, "max_leaf": 1, "beam": 1}, "plt on a random binary tree"
    ),
    "oaa": Preset("PLTClassifier", {"tree": "one_level"}, "one against all"),
    "online-random-tree": Preset(
        "OnlinePLTClassifier",
        {"tree": "random", "policy": None, "arity": 2, "max_leaf": 2, "beam": 1},
        "random-tree, learned online",
    ),
    "online-oaa": Preset("OnlinePLTClassifier", {"tree": "one_level", "max_leaf": 2**31 - 1}, "oaa, learned online"),
    "oplt": Preset(
        "OnlinePLTClassifier", {"policy": "best", "alpha": 0.75, **_OPLT}, "online PLT, best-greedy", ONLINE_PLT
    ),
    "oplt-random": Preset(
        "OnlinePLTClassifier", {"policy": "random", **_OPLT}, "online PLT, random policy", ONLINE_PLT
    ),
    "oplt-few-shot": Preset(
        "OnlinePLTClassifier",
        {"policy": "best", "alpha": 0.75, **_OPLT, "max_leaf": 10, "n_epochs": 3},
        "online PLT for few-shot classes",
        ONLINE_PLT,
    ),
    "iplt": Preset(
        "OnlinePLTClassifier",
        {"policy": None, "tree": "kmeans", **_OPLT},
        "incremental PLT on a 2-means tree",
        ONLINE_PLT,
    ),
    "plt-fobos": Preset("PLTClassifier", _PLT_FOBOS, "plt on a random tree, hashed weights, FOBOS", MACRO_F),
    "ofo": Preset(
        "ThresholdClassifier",
        {
            "estimator": Component("PLTClassifier", _PLT_FOBOS),
            "method": "ofo",
            "a": 1.0,
            "empty": "one",
            "candidates": None,
            "held_out": 0.2,
            "folds": 1,
            "refit": False,
        },
        "thresholds for macro-F by OFO",
        MACRO_F,
    ),
    "lomtree-2015": Preset(
        "LOMTreeClassifier",
        {"forgetting": 0.0, "swap_resistance": 4.0, "nodes_per_class": 4.0, "n_epochs": 20},
        "lomtree with the means of all scores",
        LOMTREE,
    ),
    "parabel": Preset("PLTClassifier", _PARABEL, "plt on balanced 2-means trees, beam 10", INTERPOLATED),
    "parabel-interpolated": Preset(
        "PLTClassifier",
        {**_PARABEL, "tree": "interpolated", "tree_options": {"lam": 1.0, "literal": True, "prune": 0.0}},
        "parabel on an interpolated tree",
        INTERPOLATED,
    ),
    "fasttext-2021": Preset(
        "TreeSoftmaxClassifier",
        {"tree": "huffman", "arity": 2, "max_leaf": 1, "loss": "softmax", **_FASTTEXT},
        "embeddings of 128 dimensions, bigrams",
        INTERPOLATED,
    ),
    "spectral-2015": Preset(
        "SpectralTreeClassifier",
        {
            "depth": 12,
            "n_candidates": 25,
            "estimator": Component("CandidateScorer", {"weights": "low_rank", "rank": 50, "output_weights": "leaf"}),
        },
        "spectral with the settings of its ALOI experiment",
        SPECTRAL,
    ),
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
    """Every name that `ramify train` takes, with a few words about it."""
    by_name = {entry.name: entry.summary for entry in CLASSIFIERS.values() if entry.name}
    return by_name | {
        name: f"{preset.summary} ({preset.paper})" if preset.paper else preset.summary
        for name, preset in PRESETS.items()
        if CLASSIFIERS[preset.class_name].name
    }


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

    What a given component leaves None, such as the rate of `AdaGrad(eps=0.1)`, is as in the preset.

    >>> make_classifier("random-tree", random_state=0).beam
    1
    """
    fixed = PRESETS[name].settings if name in PRESETS else {}
    merged = {key: _completed(value, fixed.get(key)) for key, value in settings.items()}
    return load_class(class_name_of(name))(**{key: _made(value) for key, value in {**fixed, **merged}.items()})


def _made(value: Any) -> Any:
    """A component as an object; anything else as it is."""
    if not isinstance(value, Component):
        return value
    return load_class(value.class_name)(**{name: _made(given) for name, given in value.settings.items()})


def _completed(given: Any, of_preset: Any) -> Any:
    """A given component with the preset's settings where it has none."""
    if not isinstance(of_preset, Component) or type(given).__name__ != of_preset.class_name:
        return given
    own = {name: value for name, value in given.get_params(deep=False).items() if value is not None}
    return Component(of_preset.class_name, {**of_preset.settings, **own})


def presets_of(class_name: str) -> list[str]:
    """The presets that run a class as its authors did.

    >>> presets_of("OnlinePLTClassifier")
    ['oplt', 'oplt-random', 'oplt-few-shot', 'iplt']
    """
    return [name for name, preset in PRESETS.items() if preset.class_name == class_name and preset.paper]
