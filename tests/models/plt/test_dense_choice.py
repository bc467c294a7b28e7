"""What is chosen for dense rows: standardised columns, and one level where labels do not cluster."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets

import ramify
from ramify.models.plt.columns import Columns, is_dense, spreads_differ
from ramify.models.plt.dense_choice import compared, one_level_work


def mixture(centres, n_rows, noise, seed):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, len(centres), n_rows)
    return (centres[y] + noise * generator.normal(size=(n_rows, centres.shape[1]))).astype(np.float32), y


@pytest.fixture(scope="module")
def unclustered():
    centres = np.random.default_rng(0).normal(size=(400, 64))
    return *mixture(centres, 4000, 1.6, 1), *mixture(centres, 1000, 1.6, 2)


def test_one_level_is_chosen_where_labels_do_not_cluster(unclustered):
    X, y, X_test, y_test = unclustered
    chosen = ramify.PLTClassifier(max_leaf=40, random_state=0).fit(X, y)
    assert chosen.tree_.n_nodes == 401
    assert chosen.fit_report_.choices[-1].what == "one level"
    assert "one level: used" in str(chosen.fit_report_)
    tree = ramify.PLTClassifier(max_leaf=40, tree="kmeans", random_state=0).fit(X, y)
    assert chosen.score(X_test, y_test) > tree.score(X_test, y_test) + 0.05


def test_the_tree_is_kept_where_labels_cluster():
    generator = np.random.default_rng(0)
    centres = 3 * generator.normal(size=(20, 64))[np.repeat(np.arange(20), 20)] + generator.normal(size=(400, 64))
    X, y = mixture(centres, 4000, 1.0, 1)
    clf = ramify.PLTClassifier(max_leaf=40, random_state=0).fit(X, y)
    assert clf.tree_.n_nodes > 401
    assert not clf.fit_report_.choices[-1].is_taken


def test_columns_of_different_units_are_standardised():
    X, y = datasets.load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:120], order[120:]
    chosen = ramify.PLTClassifier(random_state=0).fit(X[train], y[train])
    as_they_are = ramify.PLTClassifier(random_state=0, standardize=False).fit(X[train], y[train])
    assert chosen.score(X[test], y[test]) > 0.93 > as_they_are.score(X[test], y[test]) + 0.1
    assert chosen.fit_report_.choices[0].is_taken


@pytest.mark.parametrize("normalize", [True, False])
def test_the_unit_of_a_column_does_not_matter_once_columns_are_standardised(normalize):
    X, y = datasets.load_wine(return_X_y=True)
    units = 10.0 ** np.random.default_rng(0).integers(-3, 4, X.shape[1])
    one, other = (
        ramify.PLTClassifier(random_state=0, standardize=True, normalize=normalize).fit(rows, y).predict_proba(rows)
        for rows in (X, X * units)
    )
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_sparse_rows_are_left_as_they_are():
    from ramify.data.synthetic import make_multilabel

    data = make_multilabel(300, 20, 200, random_state=0)
    assert not is_dense(data.X)
    clf = ramify.PLTClassifier(random_state=0).fit(data.X, data.Y)
    same = ramify.PLTClassifier(random_state=0, tree="kmeans", standardize=False).fit(data.X, data.Y)
    assert clf.fit_report_.choices == ()
    assert clf.model_.columns is None
    assert (clf.predict_proba(data.X, top_k=5) != same.predict_proba(data.X, top_k=5)).nnz == 0


def test_sparse_and_dense_columns_side_by_side():
    generator = np.random.default_rng(0)
    dense, y = mixture(3 * generator.normal(size=(6, 10)), 600, 1.0, 1)
    words = sparse.random_array((600, 500), density=0.01, rng=generator, dtype=np.float32)
    X = sparse.csr_array(sparse.hstack([1000 + 50 * dense, words]))
    assert is_dense(X)
    clf = ramify.PLTClassifier(random_state=0, standardize=True).fit(X[:500], y[:500])
    columns = clf.model_.columns
    assert columns.dense.tolist() == list(range(10))
    scaled = columns.rows(X)
    assert scaled.nnz <= X.nnz  # the sparse columns stay sparse
    assert clf.score(X[500:], y[500:]) > 0.9
    one = clf.predict_one(X[[0]], top_k=3)
    assert one == clf.predict_labels(X[:5], top_k=3)[0]


def test_standardised_columns_have_mean_zero_and_deviation_one():
    X = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32) * [1, 100, 0, 3] + [0, 1000, 5, 0]
    rows = sparse.csr_array(X.astype(np.float32))
    scaled = Columns.of(rows, None).rows(rows).toarray()
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0, 1], atol=1e-4)  # a constant column says nothing
    weight = np.repeat([1, 2], 25).astype(np.float32)
    twice = sparse.csr_array(rows[np.repeat(np.arange(50), weight.astype(int))])
    for one, other in zip(Columns.of(rows, weight), Columns.of(twice, None), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_saved_models_keep_the_scaling_and_what_was_tried(tmp_path):
    X, y = datasets.load_wine(return_X_y=True)
    clf = ramify.PLTClassifier(random_state=0).fit(X, y)
    clf.save(tmp_path / "model")
    loaded = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert loaded.fit_report_ == clf.fit_report_
    assert loaded.explain(X[0]).probability == pytest.approx(clf.predict_proba(X[:1]).max(), abs=1e-5)


def test_the_choice_does_not_depend_on_the_number_of_threads(unclustered):
    X, y, X_test, _ = unclustered
    one, two = (ramify.PLTClassifier(max_leaf=40, random_state=0, n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.fit_report_ == two.fit_report_
    np.testing.assert_array_equal(one.predict(X_test), two.predict(X_test))


def test_a_difference_within_the_noise_changes_nothing():
    generator = np.random.default_rng(0)
    before = (generator.random(100) < 0.5).astype(float)
    assert not compared("noise", before, np.roll(before, 1)).is_taken
    assert not compared("none", before, before).is_taken
    assert compared("better", before, np.ones(100)).is_taken


def test_spreads_and_work():
    assert spreads_differ(sparse.csr_array(np.array([[1.0, 100.0], [2.0, 300.0]])))
    assert not spreads_differ(sparse.csr_array(np.array([[1.0, 2.0], [2.0, 3.0]])))
    assert one_level_work(100, 32, 200) == 1
    assert one_level_work(2000, 32, 200) > 10


@pytest.mark.parametrize("given", ["yes", 1, None])
def test_a_bad_standardize_is_refused(given):
    with pytest.raises(ValueError, match="standardize must be"):
        ramify.PLTClassifier(standardize=given).fit(np.eye(4), [0, 1, 0, 1])
