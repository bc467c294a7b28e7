"""Algorithm 8 of "Online probabilistic label trees": every extension of the tree is the one that a plain twin makes."""

from __future__ import annotations

import numpy as np
import pytest

from ramify import OnlinePLTClassifier
from shared.online_models import N_FEATURES
from twins.policy import extend, plain_tree

SETTINGS = {
    "best": {"policy": "best", "arity": 2, "max_leaf": 3, "alpha": 0.5},
    "best, mostly fit": {"policy": "best", "arity": 3, "max_leaf": 5, "alpha": 0.1},
    "best, mostly balance": {"policy": "best", "arity": 2, "max_leaf": 4, "alpha": 0.95},
    "balanced": {"policy": "balanced", "arity": 3, "max_leaf": 4, "alpha": 0.3},
    "fair": {"policy": "fair", "arity": 3, "max_leaf": 4, "alpha": 0.2},
    "cpt": {"policy": "cpt", "alpha": 0.3},
}


def rows_of_new_labels(seed, several, n_rows=120):
    """Rows of a few features; each has a label that was seen before and, mostly, one or more new ones."""
    generator = np.random.default_rng(seed)
    X = generator.random((n_rows, N_FEATURES)) * (generator.random((n_rows, N_FEATURES)) < 0.4)
    labels, n_seen = [], 0
    for _ in range(n_rows):
        n_new = int(generator.integers(0, 4 if several else 2)) or n_seen == 0
        known = generator.integers(0, n_seen, 1).tolist() if n_seen and (several or not n_new) else []
        labels.append([*known, *range(n_seen, n_seen + n_new)])
        n_seen += n_new
    return X, labels


@pytest.mark.parametrize(
    ("name", "several"),
    # Conditional probability trees are for one class a row.
    [(name, several) for name in SETTINGS for several in (False, True) if name != "cpt" or not several],
)
def test_every_extension_is_that_of_algorithm_8(name, several):
    settings = SETTINGS[name]
    X, labels = rows_of_new_labels(3, several)
    clf = OnlinePLTClassifier(**settings, normalize_siblings=False, random_state=0)
    n_decisions, variants = 0, np.zeros(3, dtype=int)
    for k, (x, own) in enumerate(zip(X, labels, strict=True)):
        if k:
            learner = clf.model_.learner
            root = plain_tree(learner, clf.tree_)
            new = [label for label in own if label not in root.labels()]
            (at,) = np.nonzero(x)
            given = at.astype(np.int32), x[at].astype(np.float32)
            if new:
                used, n = extend(
                    root,
                    new,
                    settings["policy"],
                    settings["alpha"],
                    settings.get("arity", 2),
                    settings.get("max_leaf", 2),
                    clf.fair_share,
                    lambda number, learner=learner, given=given: learner.probabilities(number, *given),
                )
                variants, n_decisions = variants + used, n_decisions + n
        # Labels are numbered in order of their first appearance, which is the order of the columns.
        clf.partial_fit(x[None], [own])
        if k:
            assert root.label_sets() == plain_tree(clf.model_.learner, clf.tree_).label_sets()
    assert n_decisions > 100
    assert (variants > 0).tolist() == ([False, False, True] if name == "cpt" else [True, True, True])
