"""The spectral kernels against dense numpy: eigen-split, conjugate gradients, median, and calls made to break them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from ramify import _core
from ramify.data.synthetic import make_dense, make_multilabel
from ramify.models.spectral import TreeSettings, eigen_split, grow_candidate_tree, purity
from shared.rows import arrays_of, label_rows, rows_of
from twins.spectral import exact_split, label_least_squares, plain_leaf, plain_tree

EXACT = {"max_iterations": 500, "tol": 0.0, "cg_iterations": 300}


def dense_problem(n_labels_a_row, seed=0, n=60, d=12, m=7):
    generator = np.random.default_rng(seed)
    Y = np.zeros((n, m))
    for row in Y:
        row[generator.choice(m, n_labels_a_row if n_labels_a_row < 3 else generator.integers(0, 4), replace=False)] = 1
    X = Y @ generator.normal(size=(m, d)) + 0.3 * generator.normal(size=(n, d)) + 0.5
    return X.astype(np.float32), Y, generator.random(n) + 0.1


@pytest.mark.parametrize("solver", ["randomised", "power"])
@pytest.mark.parametrize("n_labels_a_row", [1, 2, 3])
def test_the_split_is_that_of_the_exact_dense_eigenproblem(solver, n_labels_a_row):
    for seed in range(3):
        X, Y, importance = dense_problem(n_labels_a_row, seed)
        direction, value = exact_split(X, Y, importance)
        found = eigen_split(sparse.csr_array(X), sparse.csr_array(Y), importance, solver=solver, **EXACT)
        assert found.eigenvalue == pytest.approx(value, rel=1e-4)
        assert abs(found.direction @ direction) == pytest.approx(1, abs=1e-4)
        assert np.linalg.norm(found.direction) == pytest.approx(1, abs=1e-5)
        assert importance @ X @ found.direction == pytest.approx(0, abs=1e-3)  # balance
        assert found.sigma == pytest.approx(value / importance.sum(), rel=1e-4)


def test_one_label_a_row_is_the_same_problem_by_sums_and_by_conjugate_gradients():
    X, Y, importance = dense_problem(1)
    # A row with a second label of its own and without features asks for conjugate gradients, and changes nothing.
    Y2 = np.zeros((len(Y) + 1, Y.shape[1] + 2))
    Y2[:-1, : Y.shape[1]], Y2[-1, -2:] = Y, 1
    X2 = np.vstack([X, np.zeros(X.shape[1], np.float32)])
    by_sums = eigen_split(X, sparse.csr_array(Y), importance, **EXACT)
    by_solve = eigen_split(X2, sparse.csr_array(Y2), np.append(importance, 1.0), **EXACT)
    assert by_solve.eigenvalue == pytest.approx(by_sums.eigenvalue, rel=1e-4)
    assert abs(by_solve.direction @ by_sums.direction) == pytest.approx(1, abs=1e-4)


def test_importance_counts_like_repetition():
    X, Y, _ = dense_problem(2)
    times = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = eigen_split(X, sparse.csr_array(Y), times, **EXACT)
    repeated = eigen_split(np.repeat(X, times, 0), sparse.csr_array(np.repeat(Y, times, 0)), **EXACT)
    np.testing.assert_allclose(weighted.direction, repeated.direction, atol=1e-4)
    assert weighted.bias == pytest.approx(repeated.bias, abs=1e-4)


def test_conjugate_gradients_are_the_direct_solve():
    _, Y, importance = dense_problem(3)
    target = np.random.default_rng(1).normal(size=len(Y)).astype(np.float32)
    expected = label_least_squares(Y, target, importance)
    labels = sparse.csr_array(Y)
    found = _core.least_squares_labels(labels, Y.shape[1], importance, target, 100)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    few = _core.least_squares_labels(labels, Y.shape[1], importance, target, 2)
    assert 0 < np.abs(few - expected).max() < 1  # a few steps are on the way there


def test_the_diagonal_takes_the_frequencies_out_of_the_solve():
    """Labels of very different frequency that hardly overlap: nearly solved after three steps, as with equal ones."""
    label = np.repeat(np.arange(8), 4 ** np.arange(8) // 8 + 2)
    Y = np.eye(8)[label]
    Y[:4, 7] = 1
    target = np.random.default_rng(1).normal(size=len(Y)).astype(np.float32)
    found = _core.least_squares_labels(sparse.csr_array(Y), 8, np.ones(len(Y)), target, 3)
    np.testing.assert_allclose(found, label_least_squares(Y, target, np.ones(len(Y))), atol=1e-3)


def test_labels_that_always_come_together_do_not_upset_the_solve():
    Y = np.zeros((20, 4))
    Y[:10, [0, 1]], Y[10:, [2]] = 1, 1
    labels = sparse.csr_array(Y)
    target = np.linspace(-1, 1, 20).astype(np.float32)
    found = _core.least_squares_labels(labels, 4, np.ones(20), target, 50)
    np.testing.assert_allclose(
        Y @ found, np.where(np.arange(20) < 10, target[:10].mean(), target[10:].mean()), atol=1e-5
    )
    assert found[3] == 0


@pytest.mark.parametrize(
    ("values", "importance", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], 2.5),
        ([4.0, 1.0, 3.0, 2.0], [1, 1, 1, 1], 2.5),
        ([1.0, 2.0, 3.0], [1, 1, 1], 2.5),
        ([1.0, 2.0, 3.0], [10, 1, 1], 1.5),
        ([1.0, 2.0, 3.0], [1, 1, 10], 2.5),  # below the largest: both sides have rows
        ([1.0, 1.0, 1.0, 2.0], [1, 1, 1, 1], 1.5),
        ([5.0, 5.0], [1, 1], 5.0),
        ([7.0], [1], 7.0),
    ],
)
def test_the_median_parts_the_importance_and_no_row_lies_on_it(values, importance, expected):
    assert _core.weighted_median(np.array(values), np.array(importance, dtype=float)) == expected


def test_purity_beats_random_directions():
    data = make_dense(3000, 50, 32, random_state=0)
    X = data.X.toarray()
    split = eigen_split(data.X, data.Y)
    found = purity(X @ split.direction > split.bias, data.Y)
    directions = np.random.default_rng(0).normal(size=(32, 200))
    projected = X @ directions
    by_chance = [purity(column > np.median(column), data.Y) for column in projected.T]
    assert found > np.mean(by_chance) + 0.1
    assert found > np.max(by_chance)


def test_equation_1_counts_classes_by_the_square_of_their_frequency():
    """The top eigenvector of the sum over classes of E[x y] E[x y]^T, orthogonal to the mean; equation 2 has 1/n_c."""
    generator = np.random.default_rng(4)
    y = generator.choice(6, 800, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    X = (generator.normal(size=(6, 9))[y] + 0.3 * generator.normal(size=(800, 9))).astype(np.float32)
    balance = X.sum(axis=0) / np.linalg.norm(X.sum(axis=0))
    away = np.eye(9) - np.outer(balance, balance)
    directions = {}
    for squares in (True, False):
        sums = np.stack([X[y == c].sum(axis=0) for c in range(6)]).astype(np.float64)
        scale = np.full(6, 800.0) if squares else np.bincount(y).astype(float)
        values, vectors = np.linalg.eigh(away @ (sums.T / scale) @ sums @ away)
        split = eigen_split(X, y, squares_frequency=squares, max_iterations=200, tol=0.0)
        assert abs(split.direction @ vectors[:, -1]) == pytest.approx(1, abs=1e-3)
        assert split.eigenvalue == pytest.approx(values[-1], rel=1e-3)
        directions[squares] = split.direction
    assert abs(directions[True] @ directions[False]) < 0.999  # otherwise the test would not tell them apart


# --- growing ---------------------------------------------------------------------------------------------------------


def small_data(multilabel):
    made = make_multilabel(400, 40, 120, random_state=3) if multilabel else make_dense(400, 30, 16, random_state=3)
    return made.X, made.Y


SETTINGS = TreeSettings(depth=5, n_candidates=4, recall=0.95)


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_tree_is_that_of_the_plain_twin(multilabel, noise):
    X, Y = small_data(multilabel)
    settings = TreeSettings(depth=3, n_candidates=4, recall=0.95, noise=noise, max_iterations=60, tol=0.0)
    settings = TreeSettings(**{**settings.__dict__, "cg_iterations": 60})
    tree = grow_candidate_tree(X, Y, settings, seed=1)
    twin = plain_tree(X.toarray(), Y.toarray(), settings)
    arrays = tree.arrays
    assert arrays["child"].tolist() == [node.child for node in twin]
    np.testing.assert_allclose(arrays["mass"], [node.mass for node in twin], rtol=0.02)
    np.testing.assert_allclose(arrays["sigma"], [node.sigma for node in twin], rtol=0.02, atol=1e-4)
    candidates = tree.candidates()
    for number, node in enumerate(twin):
        if node.child < 0:
            own = set(candidates[[number]].indices.tolist())
            assert len(own & set(node.candidates)) >= 0.75 * len(own)  # ties at the end may fall either way


def test_every_row_stays_whole_on_its_ways_through_the_tree():
    X, Y = small_data(True)
    tree = grow_candidate_tree(X, Y, SETTINGS, seed=1)
    leaf = tree.is_leaf
    child = tree.arrays["child"]
    inner = np.flatnonzero(~leaf)
    mass = tree.arrays["mass"]
    assert mass[0] == 400
    np.testing.assert_allclose(mass[child[inner]] + mass[child[inner] + 1], mass[inner], rtol=1e-5)
    assert mass[leaf].sum() == pytest.approx(400, rel=1e-5)
    assert tree.arrays["depth"].max() <= 5
    assert (np.diff(tree.candidates().indptr)[leaf] <= 4).all()


def test_sides_are_balanced_and_small_paths_are_cut():
    X, Y = small_data(False)
    whole = grow_candidate_tree(X, Y, TreeSettings(depth=1, n_candidates=4, noise=0.0))
    np.testing.assert_allclose(whole.arrays["mass"][1:], 200, atol=1)
    cut = grow_candidate_tree(X, Y, TreeSettings(depth=6, n_candidates=4, min_path=1.0))
    hard = grow_candidate_tree(X, Y, TreeSettings(depth=6, n_candidates=4, noise=0.0))
    np.testing.assert_array_equal(cut.arrays["mass"], hard.arrays["mass"])  # no row goes both ways


def test_the_deviation_may_be_that_of_rows_around_what_their_labels_predict():
    X, Y = small_data(True)
    exact = {"depth": 1, "n_candidates": 4, "max_iterations": 200, "tol": 0.0, "cg_iterations": 300}
    tree = grow_candidate_tree(X, Y, TreeSettings(**exact, deviation="within"))
    unit = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    direction, _ = exact_split(unit, Y.toarray(), np.ones(400))
    z = unit @ direction
    unexplained = z - Y @ label_least_squares(Y.toarray(), z, np.ones(400))
    assert tree.arrays["sigma"][0] == pytest.approx(np.sqrt(np.mean(unexplained**2)), rel=1e-3)
    doubled = grow_candidate_tree(X, Y, TreeSettings(**exact, deviation="within", noise=2.0))
    assert doubled.arrays["sigma"][0] == pytest.approx(2 * tree.arrays["sigma"][0], rel=1e-5)


def test_a_node_that_covers_its_labels_is_a_leaf():
    X, Y = small_data(True)
    assert grow_candidate_tree(X, Y, TreeSettings(depth=5, n_candidates=40)).n_leaves == 1
    assert grow_candidate_tree(X, Y, TreeSettings(depth=5, n_candidates=4, recall=0.0)).n_leaves == 1
    assert grow_candidate_tree(X, Y, TreeSettings(depth=0, n_candidates=4)).n_leaves == 1
    easy, hard = (
        grow_candidate_tree(X, Y, TreeSettings(depth=8, n_candidates=4, recall=recall)) for recall in (0.5, 0.99)
    )
    assert easy.n_leaves < hard.n_leaves
    assert easy.training_recall() < hard.training_recall()


@pytest.mark.parametrize("multilabel", [False, True])
def test_the_number_of_threads_changes_no_bit(multilabel):
    X, Y = small_data(multilabel)
    one, three = (grow_candidate_tree(X, Y, SETTINGS, seed=5, n_threads=n).arrays for n in (1, 3))
    for name in one:
        np.testing.assert_array_equal(one[name], three[name])


def test_head_labels_are_candidates_everywhere_and_leave_the_splits_alone():
    X, Y = small_data(True)
    head = np.array([3, 7], dtype=np.int32)
    tree = grow_candidate_tree(X, Y, SETTINGS, head=head, seed=1)
    rest = Y.tolil()
    rest[:, head] = 0
    without = grow_candidate_tree(X, sparse.csr_array(rest), SETTINGS, seed=1)
    for name in ("child", "weight", "sigma", "count", "count_label"):
        np.testing.assert_array_equal(tree.arrays[name], without.arrays[name])
    candidates = tree.candidates()[np.flatnonzero(tree.is_leaf)]
    assert (candidates[:, head].toarray() > 0).all()
    assert tree.arrays["head_count"].reshape(-1, 2)[tree.is_leaf].sum() == pytest.approx(Y[:, head].sum(), rel=1e-4)


# --- routing ---------------------------------------------------------------------------------------------------------


def core_of(tree, X, Y):
    from ramify.models.spectral import BaseClassifier

    arrays = tree.core_arrays()
    base = BaseClassifier.none(X.shape[1], Y.shape[1], len(arrays["label"]))
    return base.core(arrays, Y.shape[1], SETTINGS.n_candidates, True, False), arrays


def test_rows_go_where_the_signs_send_them_and_by_chance_as_the_normal_cdf_says():
    X, Y = small_data(True)
    tree = grow_candidate_tree(X, Y, SETTINGS, seed=1)
    core, arrays = core_of(tree, X, Y)
    leaves = core.leaves(X, None, 2)
    scaled = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    assert leaves.tolist() == [plain_leaf(arrays, row) for row in scaled]
    row = X[[0]]
    went_right = np.mean([arrays_leaf_is_right(tree, core.leaves(row, s, 1)[0]) for s in range(2000)])
    weights = slice(arrays["weight_begin"][0], arrays["weight_begin"][1])
    score = np.append(scaled[0], 1.0)[arrays["weight_feature"][weights]] @ arrays["weight"][weights]
    assert went_right == pytest.approx(stats.norm.cdf(score / arrays["sigma"][0]), abs=0.04)


def arrays_leaf_is_right(tree, leaf):
    child = tree.arrays["child"]
    parent = {int(c) + side: v for v, c in enumerate(child) if c >= 0 for side in (0, 1)}
    while parent[int(leaf)] != 0:
        leaf = parent[int(leaf)]
    return int(leaf) == child[0] + 1


def test_fractions_are_those_that_the_tree_was_grown_with():
    X, Y = small_data(True)
    tree = grow_candidate_tree(X, Y, SETTINGS, seed=1)
    core, _ = core_of(tree, X, Y)
    begin, leaf, share = core.fractions(X, SETTINGS.min_path, 2)
    np.testing.assert_allclose(np.add.reduceat(share, begin[:-1]), 1, atol=1e-5)
    mass = np.bincount(leaf, share, minlength=len(tree.arrays["child"]))
    np.testing.assert_allclose(mass[tree.is_leaf], tree.arrays["mass"][tree.is_leaf], rtol=0.01, atol=0.05)
    assert share.min() >= SETTINGS.min_path * (1 - 1e-6)


# --- calls made to break -------------------------------------------------------------------------------------


def arguments():
    X, Y = small_data(True)
    return [
        arrays_of(X), arrays_of(Y), Y.shape[1], np.zeros(0, np.int32), None,
        _core.FeatureSettings(X.shape[1], True, 1.0), np.zeros(0, np.float32), SETTINGS.core(False), 0, 1,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("position", "spoil", "said"),
    [
        (0, lambda a: a._replace(indices=a.indices + 1000), "column"),
        (0, lambda a: a._replace(indptr=a.indptr[:-1]), "row pointers"),
        (1, lambda a: a._replace(indptr=a.indptr[:-1]), "row pointers|number of rows"),
        (1, lambda a: a._replace(indices=a.indices * 0), "strictly increasing"),
        (1, lambda a: a._replace(indices=-a.indices - 1), "column"),
        (2, lambda a: 3, "column"),
        (2, lambda a: -1, "out of range"),
        (3, lambda a: np.array([99], np.int32), "head label"),
        (4, lambda a: np.zeros(400, np.float32), "above 0"),
        (4, lambda a: np.ones(3, np.float32), "wrong length"),
        (5, lambda a: _core.FeatureSettings(120, True, 0.5), "bias"),
        (5, lambda a: _core.FeatureSettings(7, True, 1.0), "column"),
        (6, lambda a: np.ones(121, np.float32), "multiple of n_features"),
        (6, lambda a: np.full(240, np.nan, np.float32), "finite"),
    ],
)
def test_broken_calls_are_refused(position, spoil, said):
    given = arguments()
    given[position] = spoil(given[position])
    with pytest.raises(ValueError, match=said):
        _core.grow_candidate_tree(*given)


def test_no_rows_are_refused_and_rows_of_nothing_make_a_leaf():
    given = arguments()
    with pytest.raises(ValueError, match="at least one row"):
        _core.grow_candidate_tree(rows_of([0], [], []), label_rows([0], []), *given[2:])
    X, Y = small_data(True)
    assert grow_candidate_tree(sparse.csr_array(X.shape, dtype=np.float32), Y, SETTINGS).n_leaves == 1
    assert grow_candidate_tree(X, sparse.csr_array(Y.shape, dtype=np.float32), SETTINGS).n_leaves == 1


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("sigma", lambda a: a[:-1], "sigma"),
        ("sigma", lambda a: -a - 1, "sigma"),
        ("label", lambda a: a + 1000, "label"),
        ("child", lambda a: np.where(a >= 0, 0, a).astype(np.int32), "child"),
        ("weight", lambda a: np.full_like(a, np.nan), "weight"),
        ("weight", lambda a: a.astype(np.float64), "wrong type"),
        ("probability", lambda a: a * 0, "probability"),
        ("head", lambda a: np.array([99], np.int32), "head"),
        ("space", lambda a: np.ones(7, np.float32), "space"),
    ],
)
def test_damaged_trees_are_refused(name, spoil, said):
    from ramify.models.spectral import BaseClassifier

    X, Y = small_data(True)
    arrays = grow_candidate_tree(X, Y, SETTINGS, seed=1).core_arrays()
    base = BaseClassifier.none(X.shape[1], Y.shape[1], len(arrays["label"]))
    with pytest.raises(ValueError, match=said):
        base.core(
            {**arrays, name: np.ascontiguousarray(spoil(arrays[name]))}, Y.shape[1], SETTINGS.n_candidates, True, False
        )
    with pytest.raises(ValueError, match="no array named"):
        base.core({n: a for n, a in arrays.items() if n != name}, Y.shape[1], SETTINGS.n_candidates, True, False)


@pytest.mark.parametrize("name", ["input", "output", "label_bias", "slot_bias"])
def test_a_base_classifier_that_does_not_fit_is_refused(name):
    from ramify.models.spectral import BaseClassifier

    X, Y = small_data(True)
    arrays = grow_candidate_tree(X, Y, SETTINGS, seed=1).core_arrays()
    sizes = {"n_features": X.shape[1], "n_labels": Y.shape[1], "n_slots": len(arrays["label"])}
    base = BaseClassifier.begin(weights="low_rank", rank=5, hash_bits=4, has_slot_weights=False, **sizes, seed=0)
    base.arrays[name] = base.arrays[name][:-1]
    with pytest.raises(ValueError, match=name):
        base.core(arrays, Y.shape[1], SETTINGS.n_candidates, True, False)


@pytest.mark.parametrize("kind", ["spread", "ties", "outlier", "one value and one more"])
def test_the_median_of_many_values_is_that_of_sorting_all_of_them(kind):
    rng = np.random.default_rng(0)
    z, importance = rng.normal(size=40_000), rng.uniform(0.1, 1.0, 40_000)
    z = {
        "spread": z,
        "ties": np.round(z, 1),
        "outlier": np.append(z[:-1], 1e30),
        "one value and one more": np.append(np.zeros(len(z) - 1), 1.0),
    }[kind]
    order = np.argsort(z, kind="stable")
    reached, total = np.cumsum(importance[order]), importance.sum()
    below = next(
        (z[order[k]] + z[order[k + 1]]) / 2
        for k in range(len(z) - 1)
        if z[order[k]] < z[order[k + 1]] and (reached[k] >= total / 2 or z[order[k + 1]] == z.max())
    )
    assert _core.weighted_median(z, importance) == pytest.approx(below, rel=1e-9)


@pytest.mark.parametrize("labels_a_row", [1, 2])
def test_threads_change_no_bit_of_a_root_whose_rows_and_features_fill_several_chunks(labels_a_row):
    rng = np.random.default_rng(0)
    n, n_features, n_labels = 70_000, 20_000, 300
    X = sparse.csr_array(sparse.random_array((n, n_features), density=3e-4, format="csr", rng=rng, dtype=np.float32))
    labels = (rng.integers(0, n_labels, n)[:, None] + np.arange(labels_a_row)) % n_labels
    Y = sparse.csr_array(
        (np.ones(labels.size, np.float32), np.sort(labels, axis=1).ravel(), np.arange(n + 1) * labels_a_row),
        shape=(n, n_labels),
    )
    trees = [grow_candidate_tree(X, Y, TreeSettings(depth=2, n_candidates=20), n_threads=n) for n in (1, 3)]
    assert len(trees[0].arrays["child"]) == 7
    for name, array in trees[0].arrays.items():
        np.testing.assert_array_equal(array, trees[1].arrays[name], err_msg=name)
