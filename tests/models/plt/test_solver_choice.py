"""Which settings of the solver are chosen, and from what."""

from __future__ import annotations

import numpy as np
import pytest

import ramify
from ramify import PLTClassifier
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver, solver_choice
from ramify.models.plt.fit_report import Setting, Trial
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
    monkeypatch.setattr(solver_choice, "TRIAL_WORK", 0)
    monkeypatch.setattr(solver_choice, "TRIAL_SHARE", 0.1)
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


def test_kept_scores_are_counted_as_if_trained_again():
    rng = np.random.default_rng(7)
    X, Y = random_rows(rng, 400, 10), random_labels(rng, 400, 40, share=0.05)
    tree = LabelTree.from_nested([list(range(10 * a, 10 * a + 10)) for a in range(4)])
    solvers, other = [solver_settings()] * 3, [solver_settings(C=0.01)] * 3

    def counts(trainer, solvers, **options):
        [found], stands_for = trainer.held_out(solvers, 1.0, 300, by_level=True, **options)
        return [*found[:2], stands_for]

    expected, expected_other = (counts(block_trainer(X, Y, tree), these) for these in (solvers, other))
    assert not np.array_equal(expected[0], expected_other[0])
    trainer = block_trainer(X, Y, tree)
    for these, wanted in [(solvers, expected)] * 2 + [(other, expected_other), (solvers, expected)]:
        np.testing.assert_equal(counts(trainer, these, keeps_scores=True), wanted)
    np.testing.assert_equal(counts(trainer, solvers), expected)


@pytest.mark.parametrize(("C", "positive_weight"), [(0.5, None), (0.5, 2.0)])
def test_what_is_given_is_used(C, positive_weight):
    solver = PLTSolver(C=C, positive_weight=positive_weight)
    model = PLTClassifier(solver=solver, random_state=0).fit(DATA.X, DATA.Y)
    assert np.float32(C) == model.C_
    assert positive_weight is None or np.float32(positive_weight) == model.positive_weight_


def dense_classes(n_classes=26, rows_per_class=6, n_features=16):
    """Few dense features and few rows per class: five epochs are far from the optimum."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(n_classes, n_features))
    y = np.repeat(np.arange(n_classes), rows_per_class)
    return (centre[y] + 0.5 * rng.normal(size=(len(y), n_features)) + 2).astype(np.float32), y


def test_epochs_go_on_where_that_helps():
    def loss(**given):
        model = PLTClassifier(solver=PLTSolver(C=1.0, positive_weight=2.0, **given), random_state=0)
        return min(trial.loss for trial in model.fit(*dense_classes()).fit_report_.trials)

    assert loss() < 0.7 * loss(n_epochs=5)
    assert loss() < 1.01 * loss(n_epochs=20)


def test_epochs_are_counted_if_they_are_given_or_if_weights_are_shared():
    def chosen(solver, **given):
        return PLTClassifier(solver=solver, random_state=0, **given).fit(DATA.X, DATA.Y).fit_report_

    assert chosen(PLTSolver(n_epochs=7)).setting[2:] == (7, 0.0)
    assert chosen(PLTSolver(n_epochs=7, gap=0.1)).setting[2:] == (7, 0.1)
    assert chosen(PLTSolver(gap=0.1)).setting[2:] == (solver_choice.MOST_EPOCHS, 0.1)
    shared = chosen(None, hash_bits=16)
    assert shared.n_epochs in solver_choice.SHARED_EPOCHS
    assert shared.gap == 0


@pytest.mark.parametrize("gap", [-0.1, 1.0, float("nan"), "0.1"])
def test_a_gap_out_of_range_is_refused(gap):
    with pytest.raises(ValueError, match="gap must be"):
        PLTClassifier(solver=PLTSolver(gap=gap)).fit(DATA.X, DATA.Y)


def test_the_report_holds_every_trial_and_survives_saving(tmp_path):
    model = PLTClassifier(random_state=0).fit(DATA.X, DATA.Y)
    report = model.fit_report_
    tried = [trial.setting for trial in report.trials]
    assert len(tried) == len(set(tried)) >= 4
    assert report.setting in tried
    for C, weight, n_epochs, gap in tried:
        assert C in solver_choice.COSTS["squared_hinge"]
        assert weight in solver_choice.POSITIVE_WEIGHTS["squared_hinge"]
        assert n_epochs == solver_choice.MOST_EPOCHS
        assert gap in solver_choice.GAPS
    assert f"from {len(tried)} settings" in str(report)
    model.save(tmp_path / "model")
    assert ramify.load(tmp_path / "model").fit_report_ == report


def test_no_neighbour_of_the_choice_is_clearly_better():
    report = PLTClassifier(random_state=0).fit(DATA.X, DATA.Y).fit_report_
    loss = {(s.C, s.positive_weight, s.gap): of for s, of in report.trials}
    axes = (solver_choice.COSTS["squared_hinge"], solver_choice.POSITIVE_WEIGHTS["squared_hinge"], solver_choice.GAPS)
    chosen_values = (report.C, report.positive_weight, report.gap)
    for axis, values in enumerate(axes):
        at = values.index(chosen_values[axis])
        for other in values[max(at - 1, 0) : at + 2]:
            neighbour = (*chosen_values[:axis], other, *chosen_values[axis + 1 :])
            assert loss[neighbour] >= loss[chosen_values] * (1 - solver_choice.MARGIN)


def test_a_lower_cost_is_tried_with_a_higher_weight_of_positives():
    """One axis at a time misses it: a lower cost alone, or a higher weight alone, may each be worse."""
    report = PLTClassifier(random_state=0).fit(DATA.X, DATA.Y).fit_report_
    assert {(1.0, 0.7), (0.3, 1.2)} <= {trial.setting[:2] for trial in report.trials}


def test_each_level_takes_the_setting_that_serves_it_best():
    def held_out(*losses, positives=10**6):
        counts = np.full((3, len(losses), 1, 1), float(positives))
        return solver_choice._HeldOut(np.array(losses), *counts)

    common, sharp, noise = Setting(1.0, 0.7, 5), Setting(4.0, 0.7, 5), Setting(0.3, 0.7, 5)
    tried = {common: held_out(0, 10.0, 20.0), sharp: held_out(0, 12.0, 19.0), noise: held_out(0, 9.99, 25.0)}
    assert solver_choice._best_by_level(common, tried) == (common, common, sharp)
    # A twentieth less is no proof where a hundred positive examples were held out.
    tried[common] = held_out(0, 10.0, 20.0, positives=100)
    assert solver_choice._best_by_level(common, tried) == ()
    tried[common] = held_out(0, 10.0, 20.0)
    del tried[sharp]
    assert solver_choice._best_by_level(common, tried) == ()


def levelled(monkeypatch, **given):
    """A model whose levels differ in their settings: any difference counts."""
    monkeypatch.setattr(solver_choice, "LEVEL_MARGIN", (0.0, 0.0))
    return PLTClassifier(max_leaf=20, random_state=0, **given).fit(DATA.X, DATA.Y)


def test_settings_of_levels_are_reported_saved_and_the_same_for_all_trees(monkeypatch, tmp_path):
    model = levelled(monkeypatch, n_trees=2)
    report = model.fit_report_
    assert len(set(report.levels)) > 1
    assert f"level {len(report.levels) - 1}: " in str(report) or report.levels[-1] == report.setting
    assert model.trees_[1].levels in (report.levels, ())
    model.save(tmp_path / "model")
    assert ramify.load(tmp_path / "model").fit_report_ == report


def test_levels_with_settings_of_their_own_do_not_depend_on_the_threads(monkeypatch):
    one, two = (levelled(monkeypatch, n_jobs=n).trees_[0] for n in (1, 2))
    assert one.levels == two.levels
    assert len(set(one.levels)) > 1
    assert all(np.array_equal(one.blocks[name], two.blocks[name]) for name in one.blocks)


def test_solvers_for_another_number_of_levels_are_refused():
    tree = LabelTree.from_nested([[0, 1], [2, 3]])
    rng = np.random.default_rng(0)
    trainer = block_trainer(random_rows(rng, 50, 5), random_labels(rng, 50, 4), tree)
    with pytest.raises(ValueError, match="expected one solver or one for each of 3 levels, got 2"):
        trainer.train_levels([solver_settings()] * 2)


def test_all_trees_of_an_ensemble_use_the_choice_of_the_first():
    model = PLTClassifier(n_trees=3, random_state=0).fit(DATA.X, DATA.Y)
    assert len({tree.setting for tree in model.trees_}) == 1
    first = model.trees_[0]
    for tree in model.trees_[1:]:  # they try only what they use, for their maps to probabilities
        assert tree.levels in (first.levels, ())
        assert {trial.setting for trial in tree.trials} == set(tree.levels or [first.setting])


@pytest.mark.parametrize(
    "stored",
    [
        5,
        [1.0, 1.0, 5],
        [1.0, 1.0, 0, 2.0],
        ["a", 1.0, 5, 2.0],
        [-1.0, 1.0, 5, 2.0],
        [1.0, 1.0, 5, -1.0, 2.0],
    ],
)
def test_a_damaged_trial_in_a_file_is_rejected(stored):
    with pytest.raises(ValueError):
        Trial.checked(stored)


def test_a_single_row_that_was_held_out_decides_nothing():
    """One true label among what was held out once made every label of every row nearly certain."""
    texts = ["cells grow", "bright stars", "nausea", "stars and cells", "heart and pump"]
    labels = [["biology", "tissue"], ["astronomy"], ["medicine", "biology"], [], ["medicine"]]
    clf = PLTClassifier(random_state=0).fit(texts, labels)
    assert (clf.C_, clf.fit_report_.setting.C) == (1.0, 1.0)
    assert clf.predict_proba(["unknown"], top_k=4).sum() < 1
    assert clf.predict_one("cells grow", top_k=2)[0][0] in labels[0]
    assert clf.predict_proba(texts, top_k=4).sum(axis=1).max() < 2
