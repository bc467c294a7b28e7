"""Maps from scores to probabilities that know how frequent a child is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax

from ramify import PLTClassifier, _core
from ramify.data.synthetic import make_multilabel
from ramify.metrics import log_loss
from ramify.models.plt import solver_choice
from ramify.models.plt.block_trainer import with_known_rates
from ramify.models.plt.calibration import (
    KNOTS,
    LOGIT_SHARES,
    N_RATES,
    Link,
    RateCurves,
    best_softening,
    fit_rate_curves,
)

SCORES = _core.HISTOGRAM_LOW + _core.HISTOGRAM_WIDTH * (np.arange(512) + 0.5)
RATES = -(np.arange(N_RATES) + 0.5)


def logits_of(link, level, scores, rate):
    at = [np.interp(scores, KNOTS, table[level]) for table in (link.logits, link.slope_table())]
    return at[0] + rate * at[1]


def test_a_map_learns_where_rates_matter_and_where_they_do_not():
    """Near -1 scores say nothing and the rate decides; from 0 on the rate says nothing more."""
    matters = np.clip(-SCORES, 0, 1)
    truth = 3 * SCORES + matters * (RATES[:, None] + 4)
    seen = 2000.0 * ((np.abs(SCORES) < 1.5) & (RATES[:, None] > -9))
    link = fit_rate_curves((seen * expit(truth))[None], (seen * expit(-truth))[None]).link()
    for rate in (-0.5, -4.5, -8.5):
        for score in (-1.0, -0.5, 0.0, 0.5):
            assert abs(logits_of(link, 0, score, rate) - 3 * score - max(-score, 0) * (rate + 4)) < 0.35


def test_curves_rise_with_the_score_for_every_rate_that_was_seen():
    rng = np.random.default_rng(0)
    positive, negative = rng.poisson(0.3, (2, 3, N_RATES, 512)).astype(float)
    curves = fit_rate_curves(positive, negative)
    link = curves.link()
    for level, (least, highest) in enumerate(curves.rates):
        for rate in np.linspace(least, highest, 5):
            assert (np.diff(logits_of(link, level, KNOTS, rate)) > 0).all()


def test_one_rate_or_hardly_any_data_leave_rates_out():
    positive, negative = np.zeros((2, 2, N_RATES, 512))
    positive[0, 2, 280:300] = negative[0, 2, 200:260] = 5.0
    link = fit_rate_curves(positive, negative).link()
    assert np.array_equal(link.slopes, np.zeros((2, len(KNOTS))))
    assert (link.logits[:, KNOTS < -0.5] < 0).all()  # a level without data borrows from the others
    assert (link.logits[:, KNOTS > 1.5] > 0).all()


@pytest.mark.parametrize("share", LOGIT_SHARES)
@pytest.mark.parametrize("factor", [0.55, 0.85, 1.1])
def test_the_softening_that_made_the_classes_is_found(share, factor):
    rng = np.random.default_rng(1)
    logits = rng.normal(-1, 2.5, (20_000, 6))

    def softened(share, factor):
        return factor * (share * logits - (1 - share) * np.logaddexp(0, -logits))

    chance = log_softmax(softened(share, factor), axis=1)
    y = (np.exp(chance).cumsum(axis=1) < rng.random((len(logits), 1))).sum(axis=1).clip(max=5)
    losses = [
        [-log_softmax(softened(s, f), axis=1)[np.arange(len(y)), y].sum() for f in _core.SOFTMAX_FACTORS]
        for s in LOGIT_SHARES
    ]
    shares, factors = best_softening(np.array([losses, np.zeros_like(losses)]))
    assert shares.tolist() == [share, share]  # a level without rows takes what suits all
    assert np.allclose(factors, factor, atol=0.05)
    curves = RateCurves(np.zeros((1, 2)), KNOTS[None], KNOTS[None]).softened(shares[:1], factors[:1])
    expected = factor * (share * KNOTS - (1 - share) * np.logaddexp(0, -KNOTS))
    assert np.allclose(curves.link().logits[0], expected, atol=0.2)


def test_rates_lower_the_log_loss_of_new_rows(monkeypatch):
    train, test = (make_multilabel(n, 800, 2000, exponent=1.2, split=s) for n, s in ((4000, "train"), (1000, "test")))

    def loss():
        model = PLTClassifier(random_state=0, max_leaf=40).fit(train.X, train.Y)
        return log_loss(test.Y, model.predict_proba(test.X, top_k=400)), model.trees_[0]

    with_rates, tree = loss()
    assert np.abs(tree.link.slopes).max() > 0.1
    monkeypatch.setattr(solver_choice, "N_RATES", 1)
    without_rates, tree = loss()
    assert not tree.link.slopes.any()
    assert with_rates < 0.995 * without_rates


def test_children_outside_the_rates_that_were_seen_count_as_the_nearest():
    data = make_multilabel(600, 100, 300, exponent=1.5, random_state=0)
    fitted = PLTClassifier(random_state=0, max_leaf=30).fit(data.X, data.Y).trees_[0]
    given = {**fitted.blocks, "column_rate": np.linspace(-9, 0, len(fitted.blocks["column_child"]))}
    levels = np.array([[-1.0, 0.0], [-3.0, -1.0], [-8.0, -2.0]])
    found = with_known_rates(given, fitted.tree, levels)["column_rate"]
    begin, n_columns = fitted.blocks["panels"][:, 1:3].T
    for node, first, n in zip(fitted.blocks["panels"][:, 0], begin, n_columns, strict=True):
        level = 0 if node == fitted.tree.n_nodes else fitted.tree.depth[node] + 1
        columns = slice(first, first + n)
        np.testing.assert_allclose(found[columns], np.clip(given["column_rate"][columns], *levels[level]), rtol=1e-6)


def test_a_link_without_slopes_is_one_with_zeros():
    link = Link(np.zeros((2, 3), np.float32))
    assert np.array_equal(link.slope_table(), np.zeros((2, 3)))
