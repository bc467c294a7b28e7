"""Classifiers by name: every model, and the baselines of the papers that are settings of one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ramify.common.validation import check_choice
from ramify.files.save_load import MODELS

# Class, and what the name settles. A random tree answers by greedy descent, which is what makes it logarithmic; trees
# of the lomtree paper's comparison have two children a node and one class a leaf.
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "plt": ("PLTClassifier", {}),
    "online-plt": ("OnlinePLTClassifier", {}),
    "lomtree": ("LOMTreeClassifier", {}),
    "filter-tree": ("FilterTreeClassifier", {}),
    "random-tree": ("PLTClassifier", {"tree": "random", "arity": 2, "max_leaf": 1, "beam": 1}),
    "oaa": ("PLTClassifier", {"tree": "one_level"}),
    "online-random-tree": ("OnlinePLTClassifier", {"tree": "random", "policy": None, "b": 2, "b_max": 2}),
    "online-oaa": ("OnlinePLTClassifier", {"tree": "one_level"}),
    "memory-tree": ("MemoryTreeClassifier", {}),
    "tree-softmax": ("TreeSoftmaxClassifier", {}),
    "fastxml": ("FastXMLClassifier", {}),
    "spectral": ("SpectralTreeClassifier", {}),
}


def preset_class(name: str) -> Callable[..., Any]:
    """The class behind a name."""
    check_choice("the classifier", name, sorted(PRESETS))
    class_name = PRESETS[name][0]
    found: Callable[..., Any] = getattr(import_module(MODELS[class_name]), class_name)
    return found


def make_classifier(name: str, **settings: Any) -> Any:
    """A classifier by name; settings are added to what the name stands for, or replace it.

    "random-tree" is the lomtree paper's Rtree, "oaa" one-against-all. Paper: lomtree, section 4.

    >>> make_classifier("random-tree", random_state=0).beam
    1
    """
    return preset_class(name)(**{**PRESETS[name][1], **settings})
