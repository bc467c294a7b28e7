"""What an online model hands on: its settings to the core, and what it has learned to a serving model."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ramify.models.plt.calibration import IDENTITY
from ramify.models.plt.classifier import PLTClassifier
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from ramify.models.online_plt.classifier import OnlinePLTClassifier

# Features of rows that wait to be learned; with a budget fewer of them, as it is looked at when they are learned.
BUFFER_ENTRIES = 2**22
LEAST_BUFFER = 1024
BUDGET_SHARE = 4096


def learner_settings(model: OnlinePLTClassifier) -> dict[str, Any]:
    """Arguments of `_core.OnlineLearner`; a model keeps those that its learner was made with."""
    arity, pre_leaf_arity = model._arities()
    budget = model.memory_budget or 0
    return {
        "rule": model.learner,
        "learning_rate": float(model.learning_rate),
        "eps": float(model.eps),
        "decay": float(model.decay),
        "l2": float(model.l2),
        "normalize": model.normalize,
        "bias": float(model.bias),
        "one_of": model.is_multiclass_,
        "buffer_entries": min(BUFFER_ENTRIES, max(LEAST_BUFFER, budget // BUDGET_SHARE)) if budget else BUFFER_ENTRIES,
        "memory_budget": budget,
        "policy": "none" if model.policy is None else model.policy if isinstance(model.policy, str) else "callable",
        "alpha": float(model._alpha()),
        "fair_share": float(model.fair_share),
        "arity": arity,
        "pre_leaf_arity": pre_leaf_arity,
        "seed": model.seed_,
    }


def frozen_model(model: OnlinePLTClassifier, prune: float) -> PLTClassifier:
    """A batch model with the online model's tree and weights, as if it had been trained."""
    settings = model.learner_settings_
    blocks = model.learner_.freeze(model.n_features_in_, prune, model._n_threads())
    tree = LabelTree(blocks.pop("parent"), blocks.pop("label"), n_labels=model.n_labels_)
    frozen = PLTClassifier(
        tree=tree,
        loss="logistic",
        prune=prune,
        calibrate=False,
        normalize=settings["normalize"],
        bias=settings["bias"],
        vectorizer=model.vectorizer,
        n_jobs=model.n_jobs,
        random_state=model.random_state,
    )
    own = {"learner_", "learner_settings_", "is_over_budget_", "feature_columns_", "source_format_", "_settled"}
    for name in set(model.__dict__) - own - set(model.get_params(deep=False)):
        frozen.__dict__[name] = copy.deepcopy(model.__dict__[name])
    names = model._feature_name_table()
    if names is not None:
        frozen.feature_column_names_ = names
    frozen.trees_ = [
        TrainedTree(
            tree=tree,
            blocks=blocks,
            link=IDENTITY,
            n_features=model.n_features_in_,
            normalize=settings["normalize"],
            bias=settings["bias"],
            is_multiclass=model.is_multiclass_,
        )
    ]
    return frozen
