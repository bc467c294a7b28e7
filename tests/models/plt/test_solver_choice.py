"""Which C is chosen, and from what."""

from __future__ import annotations

import numpy as np
import pytest

from ramify import PLTClassifier
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver, solver_choice
from ramify.trees import LabelTree
from twins.models import block_trainer, random_labels, random_rows, solver_settings

DATA = make_multilabel(900, 500, 2000, random_state=0)


def chosen(max_leaf):
    model = PLTClassifier(max_leaf=max_leaf, random_state=0).fit(DATA.X, DATA.Y)
    return model.C_, model.positive_weight_


@pytest.mark.parametrize("max_leaf", [20, 40])
def test_levels_of_which_less_is_sampled_count_no_less(monkeypatch, max_leaf):
    """Near the root, where rows are many, a low C is best; below, with few rows a label, a high one.

    Most of the error lies below, but the root is always in the sample, however small that is.
    """
    from_everything = chosen(max_leaf)
    monkeypatch.setattr(solver_choice, "ENOUGH_WORK", 0)
    monkeypatch.setattr(solver_choice, "LEAST_SHARE", 0.1)
    assert chosen(max_leaf) == from_everything
    monkeypatch.setattr(solver_choice, "held_out_brier", unweighted_brier)
    assert chosen(max_leaf) != from_everything  # or else this data would prove nothing


def unweighted_brier(positive, negative, stands_for, link, brier=solver_choice.held_out_brier):
    return brier(positive, negative, np.ones_like(stands_for), link)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_held_out_example_stands_for_those_of_its_level(is_weighted):
    rng = np.random.default_rng(5)
    X, Y = random_rows(rng, 500, 10), random_labels(rng, 500, 60, share=0.05)
    weight = rng.uniform(0.5, 2, 500).astype(np.float32) if is_weighted else None
    tree = LabelTree.from_nested([list(range(10 * a, 10 * a + 10)) for a in range(6)])
    trainer = block_trainer(X, Y, tree, sample_weight=weight)
    dense, mass = Y.toarray(), np.ones(500) if weight is None else weight.astype(float)
    below_root = mass @ np.stack([dense[:, 10 * a : 10 * a + 10].any(axis=1) for a in range(6)]).sum(axis=0)
    for share, max_rows in ((1.0, 10**6), (0.3, 10**6), (1.0, 100)):
        [(positive, _, _)], stands_for = trainer.held_out([solver_settings()], share, max_rows)
        # Every child has rows enough to be seen in training, so no held-out positive is missing from the counts.
        assert stands_for[0] == 0  # no gate
        assert np.isclose(stands_for[1] * positive[1].sum(), below_root, rtol=1e-6)
        assert np.isclose(stands_for[2] * positive[2].sum(), mass @ dense.sum(axis=1), rtol=1e-6)
    assert trainer.held_out([solver_settings()], 0.0, 10**6)[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("C", "positive_weight"), [(0.5, None), (0.5, 2.0)])
def test_what_is_given_is_used(C, positive_weight):
    solver = PLTSolver(C=C, positive_weight=positive_weight)
    model = PLTClassifier(solver=solver, random_state=0).fit(DATA.X, DATA.Y)
    assert np.float32(C) == model.C_
    assert positive_weight is None or np.float32(positive_weight) == model.positive_weight_
