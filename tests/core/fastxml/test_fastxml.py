"""FastXML's kernels against plain Python and scikit-learn, and arrays and calls made to break them."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from ramify import _core
from shared.bad_rows import bad_rows
from shared.damages import damages
from shared.rows import label_rows, row_arrays, rows_of
from twins import fastxml as twin
from twins.fastxml import DTYPES, N_FEATURES, N_LABELS, N_TREES, build, forest_settings, grow, random_data

BAD_ROWS = bad_rows(N_FEATURES)
X, Y = random_data(0)
ARRAYS = grow(X, Y)


# --- the separator ---------------------------------------------------------------------------------------------------


def l1_objective(X, positive, cost, w):
    margin = np.where(positive, 1, -1) * (X @ w)
    return np.abs(w).sum() + (cost * np.logaddexp(0, -margin)).sum()


@pytest.mark.parametrize("C", [0.3, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_separator_reaches_the_optimum_of_scikit_learn(seed, C):
    X, _ = random_data(seed, n_rows=60)
    rng = np.random.default_rng(seed)
    positive = rng.random(60) < expit_of(X)
    weight = rng.integers(1, 4, 60).astype(np.float32)
    w = _core.l1_logistic(X, N_FEATURES, positive.astype(np.int8), C * weight, 1e-8, 1000, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(penalty="l1", solver="liblinear", C=C, fit_intercept=False, tol=1e-8, max_iter=10_000)
        expected = peer.fit(X, positive, sample_weight=weight).coef_[0]
    assert l1_objective(X, positive, C * weight, w) <= l1_objective(X, positive, C * weight, expected) + 1e-5
    np.testing.assert_allclose(w, expected, atol=2e-3)
    np.testing.assert_array_equal(w != 0, np.abs(expected) > 1e-6)


def expit_of(X):
    return 1 / (1 + np.exp(-5 * (X.toarray()[:, 0] - X.toarray()[:, 1])))


def test_the_separator_needs_no_more_than_a_few_steps():
    X, _ = random_data(3, n_rows=300)
    positive = X.toarray()[:, 2] > 0
    cost = np.ones(300, np.float32)
    few, many = (
        _core.l1_logistic(X, N_FEATURES, positive.astype(np.int8), cost, eps, steps, 0)
        for eps, steps in ((0.01, 20), (1e-10, 1000))
    )
    best = l1_objective(X, positive, cost, many)
    assert best <= l1_objective(X, positive, cost, few) <= 1.001 * best


def test_features_that_are_left_out_beforehand_have_no_weight_at_the_optimum():
    # The forest of one split against the solver on all features: the same separator.
    for seed in range(5):
        X, Y = random_data(seed)
        arrays = grow(X, Y, n_trees=1, eps=1e-9, max_newton=1000, C=0.3, max_leaf=79)
        if arrays["child"][0] < 0:
            continue
        goes_right = (X @ dense_weights(arrays, 0)[:-1] + dense_weights(arrays, 0)[-1]) > 0
        assert goes_right.sum() == arrays["mass"][arrays["child"][0] + 1]


def dense_weights(arrays, v):
    w = np.zeros(N_FEATURES + 1)
    part = slice(arrays["weight_begin"][v], arrays["weight_begin"][v + 1])
    w[arrays["weight_feature"][part]] = arrays["weight"][part]
    return w


# --- the split by ranking --------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_the_alternation_is_that_of_the_paper_and_never_falls(seed, with_gain, with_weight):
    rng = np.random.default_rng(seed)
    Y = sparse.csr_array((rng.random((40, 9)) < rng.uniform(0.05, 0.5)).astype(np.float32))
    start = rng.integers(0, 2, 40).astype(np.int8)
    # Powers of two: ties are ties in the twin, too, however it adds up.
    gain = 2.0 ** rng.integers(0, 3, 9) if with_gain else np.ones(9)
    weight = rng.integers(1, 4, 40).astype(np.float64) if with_weight else np.ones(40)
    side, objectives = _core.split_by_ranking(
        Y,
        9,
        gain.astype(np.float32) if with_gain else None,
        weight.astype(np.float32) if with_weight else None,
        start,
        100,
    )
    assert (np.diff(objectives) >= -1e-9 * objectives[:-1]).all()
    assert len(objectives) < 100
    expected_side, expected = twin.split_by_ranking(Y.toarray(), start, gain, weight)
    np.testing.assert_allclose(objectives, expected, rtol=1e-12)
    np.testing.assert_array_equal(side, expected_side)


def test_rows_without_labels_and_rows_that_are_all_alike_stay_where_they_are():
    start = np.array([0, 1] * 10, np.int8)
    for Y in (sparse.csr_array((20, 3), dtype=np.float32), sparse.csr_array(np.ones((20, 3), np.float32))):
        side, _ = _core.split_by_ranking(Y, 3, None, None, start, 100)
        np.testing.assert_array_equal(side, start)


def test_two_topics_are_separated():
    Y = np.zeros((40, 6), np.float32)
    Y[:20, :3] = Y[20:, 3:] = 1
    start = (np.arange(40) % 3 == 0).astype(np.int8)
    start[:20] = 1 - start[:20]
    side, _ = _core.split_by_ranking(sparse.csr_array(Y), 6, None, None, start, 100)
    assert len(set(side[:20])) == len(set(side[20:])) == 1
    assert side[0] != side[20]


# --- the forest ------------------------------------------------------------------------------------------------------


def test_answers_are_those_of_a_walk_through_the_arrays():
    questions, _ = random_data(1)
    forest, expected = build(ARRAYS), twin.probabilities(ARRAYS, questions)
    named = forest.named(questions, np.arange(N_LABELS, dtype=np.int32), 2)
    np.testing.assert_array_equal(named, expected)
    indptr, labels, found, n_products = forest.predict(questions, None, 0.25, None, 1)
    answer = sparse.csr_array((found, labels, indptr), shape=expected.shape).toarray()
    np.testing.assert_array_equal(answer, np.where(expected >= 0.25, expected, 0))
    dense = np.hstack([questions.toarray(), np.ones((80, 1), np.float32)])
    routes = [[twin.route(ARRAYS, x, tree) for tree in range(N_TREES)] for x in dense]
    leaves = forest.leaves(questions, 1)
    np.testing.assert_array_equal(leaves, [[route[-1] for route in row] for row in routes])
    assert n_products == sum(len(route) - 1 for row in routes for route in row)


def test_training_rows_come_back_to_the_leaves_that_they_made():
    leaves = build(ARRAYS).leaves(X, 1)
    for leaf in np.unique(leaves):
        rows = np.flatnonzero((leaves == leaf).any(axis=1))
        assert ARRAYS["mass"][leaf] == len(rows)
        part = slice(ARRAYS["label_begin"][leaf], ARRAYS["label_begin"][leaf + 1])
        mean = Y[rows].mean(axis=0)
        np.testing.assert_allclose(ARRAYS["probability"][part], mean[ARRAYS["label"][part]], rtol=1e-6)
        assert len(ARRAYS["label"][part]) == (mean > 0).sum()


def test_a_leaf_keeps_its_most_probable_labels():
    arrays = grow(X, Y, labels_per_leaf=2)
    assert (np.diff(arrays["label_begin"]) <= 2).all()
    full = dict(zip(zip(*leaf_entries(ARRAYS), strict=True), ARRAYS["probability"], strict=True))
    np.testing.assert_array_equal(arrays["child"], ARRAYS["child"])
    for leaf in np.flatnonzero(arrays["child"] < 0):
        part = slice(arrays["label_begin"][leaf], arrays["label_begin"][leaf + 1])
        of_leaf = sorted((p for (v, _), p in full.items() if v == leaf), reverse=True)
        assert sorted(arrays["probability"][part], reverse=True) == of_leaf[:2]


def leaf_entries(arrays):
    return np.repeat(np.arange(len(arrays["child"])), np.diff(arrays["label_begin"])), arrays["label"]


@pytest.mark.parametrize("threads", [-(2**31), 0, 2, 3, 1000])
def test_any_number_of_threads_grows_the_same_forest(threads):
    for name, array in grow(X, Y, n_threads=threads).items():
        np.testing.assert_array_equal(array, ARRAYS[name])


def test_the_order_of_rows_changes_no_split():
    order = np.random.default_rng(0).permutation(80)
    shuffled = grow(X[order], Y[order])
    np.testing.assert_array_equal(shuffled["child"], ARRAYS["child"])
    np.testing.assert_array_equal(shuffled["mass"], ARRAYS["mass"])


def test_gains_and_seeds_change_the_forest():
    gain = np.linspace(1, 9, N_LABELS).astype(np.float32)
    for other in (grow(X, Y, gain=gain), grow(X, Y, seed=1)):
        assert not np.array_equal(other["weight"], ARRAYS["weight"])


# --- bad calls -------------------------------------------------------------------------------------------------------


def ask_everything(forest):
    """Every question; the answers must make sense, whatever the arrays held."""
    rows = X[:6]
    thresholds = np.linspace(-0.1, 0.5, N_LABELS).astype(np.float32)
    for arguments in ((5, 0.0, None), (None, 0.01, None), (None, 0.0, None), (3, 0.0, thresholds)):
        indptr, labels, probabilities, _ = forest.predict(rows, *arguments, 2)
        assert indptr[-1] == len(labels) == len(probabilities)
        assert ((labels >= 0) & (labels < N_LABELS)).all()
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        for start, stop in itertools.pairwise(indptr):
            assert (np.diff(labels[start:stop]) > 0).all()
    forest.named(rows, np.arange(N_LABELS, dtype=np.int32), 1)
    trees = forest.leaves(rows, 1).shape[1]
    indices, values = row_arrays(X[[0]])
    forest.predict_row(indices, values, 5, 0.0)
    for tree in range(trees):
        forest.route(indices, values, tree)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(damages(sorted(DTYPES)), min_size=1, max_size=2))
def test_damaged_forests_are_refused_or_answer(changes):
    arrays = dict(ARRAYS)
    for name, damage in changes:
        arrays[name] = damage(arrays[name])
    try:
        forest = build(arrays)
    except ValueError:
        return
    ask_everything(forest)


def test_undamaged_forests_are_accepted():
    ask_everything(build(ARRAYS))


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_a_missing_or_mistyped_array_is_named(name):
    assert ARRAYS[name].dtype == DTYPES[name]
    with pytest.raises(ValueError, match=f"no array named {name}"):
        build({key: array for key, array in ARRAYS.items() if key != name})
    for wrong in (ARRAYS[name].astype(np.float64), None, [1, 2, 3], "bytes", ARRAYS[name][None]):
        with pytest.raises(ValueError, match=f"{name} has a wrong type or shape"):
            build({**ARRAYS, name: wrong})


@pytest.mark.parametrize(("n_labels", "n_features"), [(-1, 30), (3, 30), (2**40, 30), (12, 3)])
def test_a_forest_of_other_labels_or_features_is_refused(n_labels, n_features):
    with pytest.raises(ValueError):
        build(ARRAYS, n_labels=n_labels, n_features=n_features)


def test_a_tree_that_leads_back_is_refused():
    inner = np.flatnonzero(ARRAYS["child"] >= 0)
    for target in (0, inner[1]):
        child = ARRAYS["child"].copy()
        child[inner[1]] = target
        with pytest.raises(ValueError, match="child"):
            build({**ARRAYS, "child": child})


@pytest.mark.parametrize("case", sorted(BAD_ROWS))
def test_bad_rows_are_refused_everywhere(case):
    rows, forest = rows_of(*BAD_ROWS[case]), build(ARRAYS)
    labels = label_rows(np.zeros(max(1, len(rows.indptr))), [])
    features = _core.FeatureSettings(N_FEATURES, False, 1.0)
    no_rows = rows_of([0] * len(labels.indptr), [], [])
    calls = [
        lambda: forest.predict(rows, 5, 0.0, None, 1),
        lambda: forest.named(rows, np.zeros(1, np.int32), 1),
        lambda: forest.leaves(rows, 1),
        lambda: _core.grow_forest(rows, labels, 3, None, None, features, forest_settings(), 0, 1),
        lambda: _core.l1_logistic(rows, N_FEATURES, np.zeros(1, np.int8), np.ones(1, np.float32), 0.1, 5, 0),
    ]
    if "values" not in case:
        calls += [
            lambda: _core.grow_forest(no_rows, rows, N_FEATURES, None, None, features, forest_settings(), 0, 1),
            lambda: _core.split_by_ranking(rows, N_FEATURES, None, None, np.zeros(1, np.int8), 5),
        ]  # fmt: skip
    if "indptr" not in case:
        calls += [
            lambda: forest.predict_row(rows.indices, rows.data, 5, 0.0),
            lambda: forest.route(rows.indices, rows.data, 0),
        ]
    for call in calls:
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("top_k", [-(2**63), -1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, 2.0, float("nan"), float("inf")])
def test_extreme_questions_are_answered(top_k, threshold):
    indptr, _, probabilities, _ = build(ARRAYS).predict(X, top_k, threshold, None, 1)
    assert (np.diff(indptr) <= max(top_k, 0)).all()
    assert len(probabilities) == 0 or (probabilities >= threshold).all()
    build(ARRAYS).predict_row(*row_arrays(X[[0]]), top_k, threshold)


def test_questions_about_nothing_and_about_what_is_not_there():
    forest = build(ARRAYS)
    assert forest.predict(rows_of([0], [], []), 5, 0.0, None, 2)[0].tolist() == [0]
    assert forest.leaves(rows_of([0], [], []), 2).shape == (0, N_TREES)
    assert len(forest.predict_row(np.zeros(0, np.int32), np.zeros(0, np.float32), 3, 0.0)[0]) == 3
    for label in (-1, N_LABELS, 2**31 - 1):
        with pytest.raises(ValueError, match="outside"):
            forest.named(X, np.array([label], np.int32), 1)
    for length in (0, 1, N_LABELS + 1):
        with pytest.raises(ValueError, match="each label"):
            forest.predict(X, 5, 0.0, np.zeros(length, np.float32), 1)
    for tree in (-1, N_TREES, 2**62):
        with pytest.raises(ValueError, match="tree is out of range"):
            forest.route(np.zeros(0, np.int32), np.zeros(0, np.float32), tree)


@pytest.mark.parametrize(
    "changes",
    [
        {"n_trees": 0}, {"n_trees": 2**40}, {"max_leaf": 0}, {"max_leaf": np.nan}, {"labels_per_leaf": 0},
        {"max_iterations": 0}, {"C": 0.0}, {"C": np.nan}, {"C": np.inf}, {"eps": -1.0}, {"eps": np.nan},
        {"max_newton": 0},
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(changes):
    with pytest.raises(ValueError):
        forest_settings(**changes)


@pytest.mark.parametrize("values", [[1.0], [], [0.0] * 80, [-1.0] * 80, [np.nan] * 80, [np.inf] * 80])
def test_invalid_weights_and_gains_are_refused(values):
    values = np.array(values, np.float32)
    with pytest.raises(ValueError, match="sample_weight"):
        grow(X, Y, weight=values)
    with pytest.raises(ValueError, match="label_gain"):
        grow(X, Y, gain=values[:N_LABELS])
    with pytest.raises(ValueError):
        _core.split_by_ranking(Y, N_LABELS, None, values, np.zeros(80, np.int8), 5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_nan_and_infinite_values_are_harmless(value):
    odd = X.copy()
    odd.data[::3] = value
    for normalize in (False, True):
        try:
            ask_everything(build(grow(odd, Y, normalize=normalize), normalize=normalize))
        except ValueError as refused:
            assert "weight" in str(refused)  # noqa: PT017
    forest = build(ARRAYS)
    forest.predict(odd, 5, 0.0, None, 1)
    forest.route(*row_arrays(odd[[0]]), 0)
    _core.l1_logistic(odd, N_FEATURES, np.ones(80, np.int8), np.ones(80, np.float32), 0.01, 20, 0)


@pytest.mark.parametrize("weight", [3e38, 1e-38])
def test_weights_of_any_size_are_taken(weight):
    ask_everything(build(grow(X, Y, weight=np.full(80, weight, np.float32), max_leaf=5 * weight)))


def test_no_rows_are_refused_and_one_is_enough():
    with pytest.raises(ValueError, match="at least one row"):
        grow(X[:0], Y[:0])
    assert grow(X[:1], Y[:1])["child"].tolist() == [-1] * N_TREES


def test_the_forest_keeps_its_arrays_alive():
    arrays = {name: array.copy() for name, array in ARRAYS.items()}
    forest = build(arrays)
    expected = forest.predict(X, 5, 0.0, None, 1)
    del arrays
    junk = [np.full(array.shape, 77, array.dtype) for array in ARRAYS.values() for _ in range(20)]
    for one, other in zip(forest.predict(X, 5, 0.0, None, 1), expected, strict=True):
        assert np.array_equal(one, other)
    assert len(junk)
