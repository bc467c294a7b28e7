"""Classes: what the children of a node claim, each for itself, revises the node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import ramify
from ramify import PLTClassifier
from ramify.data.synthetic import make_multilabel
from ramify.models.plt.calibration import TOP_FROM


@pytest.fixture(scope="module")
def few_shot():
    """Rows of one of 600 classes, about five rows a class; as many to ask."""
    data = make_multilabel(7_000, 600, 4_000, labels_per_row=1.0, features_per_row=12, exponent=0.6, random_state=0)
    Y = sparse.csr_array(data.Y)
    rows = np.flatnonzero(np.diff(Y.indptr) == 1)
    X, y = sparse.csr_array(data.X)[rows], Y.indices[Y.indptr[rows]]
    half = len(rows) // 2
    clf = PLTClassifier(random_state=0, arity=16, max_leaf=16).fit(X[:half], y[:half])
    known = half + np.flatnonzero(np.isin(y[half:], clf.classes_))
    return clf, X[known], np.searchsorted(clf.classes_, y[known])


def without_claims(clf, X):
    """All probabilities with a softmax of siblings at every node."""
    tree = replace(clf.trees_[0], claims=None, top_from=1.0)
    return tree.search(sparse.csr_array(X), top_k=None, threshold=0.0).toarray()


def test_claims_rank_classes_better_and_lower_their_log_loss(few_shot):
    clf, X, column = few_shot
    revised, plain = clf.predict_proba(X), without_claims(clf, X)
    rows = np.arange(len(column))
    np.testing.assert_allclose(revised.sum(axis=1), 1.0, rtol=1e-4)
    assert (revised.argmax(axis=1) == column).mean() > (plain.argmax(axis=1) == column).mean() + 0.005
    assert np.log(revised[rows, column]).mean() > np.log(plain[rows, column]).mean() + 0.02


def test_answers_do_not_depend_on_what_is_asked(few_shot):
    clf, X, _ = few_shot
    dense = clf.predict_proba(X[:50])
    for top_k in (1, 3):
        few = clf.predict_proba(X[:50], top_k=top_k).toarray()
        assert (np.count_nonzero(few, axis=1) == top_k).all()
        assert np.array_equal(few[few > 0], dense[few > 0])
        assert np.array_equal(few.max(axis=1), dense.max(axis=1))
    above = clf.predict_proba(X[:50], threshold=0.05).toarray()
    assert np.array_equal(above, np.where(dense >= np.float32(0.05), dense, 0))
    assert np.array_equal(clf.predict_proba(X[7:8])[0], dense[7])


def test_a_model_with_claims_is_stored_and_one_without_answers_as_before(few_shot, tmp_path):
    clf, X, _ = few_shot
    assert clf.trees_[0].top_from == TOP_FROM
    clf.save(tmp_path / "model")
    assert np.array_equal(ramify.load(tmp_path / "model").predict_proba(X[:20]), clf.predict_proba(X[:20]))
    tree = clf.trees_[0]
    values, arrays = tree.state()
    del values["top_from"], arrays["claims"]  # as older files are
    older = type(tree).from_state(values, arrays).search(sparse.csr_array(X[:20]), top_k=None, threshold=0.0)
    assert np.array_equal(older.toarray(), without_claims(clf, X[:20]))


def test_explained_steps_multiply_to_the_probability(few_shot):
    clf, X, _ = few_shot
    for row in range(5):
        for label, probability in clf.predict_labels(X[[row]], top_k=3)[0]:
            steps = [step.probability for step in clf.explain(X[[row]], label).path]
            assert np.prod(steps) == pytest.approx(probability, rel=1e-4)


def test_there_are_no_claims_where_they_have_no_use():
    rng = np.random.default_rng(0)
    X, y = (
        sparse.random_array((300, 50), density=0.2, rng=rng, format="csr", dtype=np.float32),
        rng.integers(0, 40, 300),
    )
    given = {"random_state": 0, "arity": 4, "max_leaf": 4}
    assert PLTClassifier(**given).fit(X, y).trees_[0].claims is not None
    assert PLTClassifier(**given, calibrate=False).fit(X, y).trees_[0].claims is None
    assert PLTClassifier(random_state=0, tree="one_level").fit(X, y).trees_[0].claims is None
    several = sparse.csr_array((rng.random((300, 40)) < 0.1).astype(np.float32))
    assert PLTClassifier(**given).fit(X, several).trees_[0].claims is None
