"""Exponents of levels: what held-out rows show at the end of their paths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from ramify import PLTClassifier, _core
from ramify.data.synthetic import make_multilabel
from ramify.metrics import log_loss
from ramify.models.plt.calibration import KNOTS, RateCurves, fit_link, knot_shares
from ramify.models.plt.held_out_paths import INNER, LAST, HeldOutPaths, fit_exponents


def test_exponents_stay_within_their_ranges_and_at_one_without_data():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, (5000, 3))

    def found(*powers):
        is_true = rng.random(5000) < np.exp(np.log(p) @ powers)
        return fit_exponents(np.log(p), is_true, np.ones(5000))

    np.testing.assert_allclose(found(0.6, 1.0, 1.2), (0.6, 1.0, 1.2), atol=0.1)
    assert found(0.1, 1.0, 1.0)[0] == INNER[0]
    assert found(1.6, 1.0, 1.0)[0] == INNER[1] == 1.0
    assert found(1.0, 1.0, 3.0)[2] == LAST[1]
    assert fit_exponents(np.zeros((0, 3)), np.zeros(0, bool), np.zeros(0)).tolist() == [1, 1, 1]
    certain = fit_exponents(np.zeros((9, 2)), np.arange(9) < 5, np.ones(9))  # even labels that are certain and wrong
    assert np.isfinite(certain).all()


def test_weights_count_as_repetitions():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, (300, 2))
    is_true, times = rng.random(300) < p[:, 0] ** 0.5 * p[:, 1], rng.integers(0, 4, 300)
    repeated = [np.repeat(array, times, axis=0) for array in (np.log(p), is_true, np.ones(300))]
    np.testing.assert_allclose(fit_exponents(np.log(p), is_true, times.astype(float)), fit_exponents(*repeated))


def test_a_map_is_raised_to_a_power_and_still_rises():
    rng = np.random.default_rng(2)
    rare, common = np.cumsum(rng.uniform(0, 1, (2, 3, len(KNOTS))), axis=2) - 12
    curves = RateCurves(np.tile([-6.0, -0.5], (3, 1)), rare, common)
    raised = curves.raised(np.array([1.0, 0.6, 1.4]))
    for before, after in ((curves.rare, raised.rare), (curves.common, raised.common)):
        np.testing.assert_allclose(expit(after), expit(before) ** np.array([[1.0], [0.6], [1.4]]), rtol=1e-6)
        assert (np.diff(after, axis=1) > 0).all()
    extreme = RateCurves(curves.rates, np.full_like(rare, -300.0), np.full_like(common, 300.0))
    assert np.isfinite(extreme.raised(np.full(3, 0.5)).link().logits).all()


def test_a_gate_that_nearly_all_rows_pass_says_so():
    """With fewer than ten rows of one kind it borrowed the map of all levels, and all answers came out too low."""
    scores = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(512) + 0.5)
    seen = 20.0 * (np.abs(scores) < 1)
    other = np.stack([seen * expit(3 * scores), seen * expit(-3 * scores)])
    passed = 40.0 * (np.abs(scores - 1) < 0.5)
    failed = np.where(np.arange(512) == 256, 2.0, 0.0)
    positive, negative = np.stack([passed, other[0]]), np.stack([failed, other[1]])
    link = fit_link(positive, negative)
    p = expit(knot_shares(np.arange(512)) @ link.logits[0].astype(float))
    total = passed + failed
    assert total @ p / total.sum() == pytest.approx((passed.sum() + 0.5) / (total.sum() + 1), abs=1e-4)
    three = np.where(np.arange(512) == 300, 3.0, 0.0)  # too few to tell
    few = fit_link(np.stack([three, other[0]]), np.stack([0 * three, other[1]])).logits
    np.testing.assert_allclose(*few[:, np.abs(KNOTS) < 1], atol=0.1)


def test_a_likely_child_makes_its_parent_likelier(monkeypatch):
    sizes = {"labels_per_row": 2.0, "exponent": 0.6, "random_state": 0}
    train, test = (make_multilabel(2000, 800, 3000, split=split, **sizes) for split in ("train", "test"))

    def loss():
        model = PLTClassifier(arity=16, max_leaf=40, random_state=0).fit(train.X, train.Y)
        return log_loss(test.Y, model.predict_proba(test.X, threshold=0.0))

    with_exponents, found, exponents = loss(), [], HeldOutPaths.exponents

    def ones(*given):
        found.append(exponents(*given))
        return np.ones(len(found[0]))

    monkeypatch.setattr(HeldOutPaths, "exponents", ones)
    assert with_exponents < 0.985 * loss()
    assert found[0][0] == 1.0  # there is no gate
    assert found[0][1] < 0.9


def test_rows_without_weight_decide_nothing():
    data = make_multilabel(900, 200, 500, labels_per_row=2.0, random_state=0)
    weight = np.where(np.arange(900) < 700, 1.0, 0.0)
    other = sparse.vstack([data.Y[:700], data.Y[700:][::-1]]).tocsr()

    def links(Y):
        model = PLTClassifier(tree="random", arity=16, max_leaf=16, random_state=0)
        return model.fit(data.X, sparse.csr_array(Y), sample_weight=weight).trees_[0].link.logits

    np.testing.assert_array_equal(links(data.Y), links(other))
