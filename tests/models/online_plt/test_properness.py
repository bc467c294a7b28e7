"""Definitions 1 and 2 of the online-plt paper: online classifiers are those of an incremental PLT on the final tree.

Weights are compared for equality, not closeness: the auxiliary classifiers and the lazy blocks must not change a bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify import OnlinePLTClassifier
from shared.online_models import LEARNERS, N_FEATURES, POLICIES, stream, weights_by_labels


def learn_in_pieces(clf, X, Y, sizes):
    start, pieces = 0, iter(sizes)
    while start < len(X):
        stop = start + next(pieces, len(X))
        clf.partial_fit(X[start:stop], Y[start:stop], classes=np.unique(Y))  # so that columns are numbered alike
        start = stop
    return clf


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("multiclass", [False, True], ids=["multi-label", "multi-class"])
def test_online_weights_equal_incremental_weights_on_the_final_tree(policy, learner, multiclass):
    for seed in range(4):
        X, Y = stream(seed, multiclass=multiclass)
        online = learn_in_pieces(
            OnlinePLTClassifier(**POLICIES[policy], **LEARNERS[learner], random_state=seed), X, Y, [7] * 20
        )
        tree = online.tree_
        seen = set(Y.tolist()) if multiclass else set(np.flatnonzero(Y.any(axis=0)).tolist())
        assert set(online.classes_[tree.label[tree.label >= 0]].tolist()) == seen
        incremental = OnlinePLTClassifier(policy=None, tree=tree, **LEARNERS[learner], random_state=seed, shuffle=False)
        incremental.fit(X, Y)
        assert weights_by_labels(online) == weights_by_labels(incremental)
        # Definition 2: at most twice the updates.
        assert online.model_.learner.n_updates <= 2 * incremental.model_.learner.n_updates


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    policy=st.sampled_from(sorted(POLICIES)),
    sizes=st.lists(st.integers(1, 30), max_size=20),
    n_jobs=st.integers(1, 3),
    looks=st.booleans(),
)
def test_batch_sizes_threads_and_questions_in_between_change_no_bit(seed, policy, sizes, n_jobs, looks):
    X, Y = stream(seed)
    plain = OnlinePLTClassifier(**POLICIES[policy], random_state=1).partial_fit(X, Y)
    other = OnlinePLTClassifier(**POLICIES[policy], random_state=1, n_jobs=n_jobs)
    start, pieces = 0, iter(sizes)
    while start < len(X):
        stop = start + next(pieces, len(X))
        other.partial_fit(X[start:stop], Y[start:stop])
        if looks:
            other.predict_one(X[start], top_k=2)
            other.predict_proba(X[:3], top_k=2)
        start = stop
    assert weights_by_labels(plain) == weights_by_labels(other)
    assert plain.tree_.to_nested() == other.tree_.to_nested()


@pytest.mark.parametrize("policy", ["fair", "best", "random"])
def test_every_variant_of_extension_takes_place(policy):
    """Otherwise the tests above would not mean much."""
    X, Y = stream(3, n_rows=200, n_labels=60)
    tree = OnlinePLTClassifier(policy=policy, arity=2, max_leaf=3, random_state=0).partial_fit(X, Y).tree_
    inner = np.flatnonzero(tree.label < 0)
    leaves_below = [sum(tree.is_leaf(c) for c in np.flatnonzero(tree.parent == v)) for v in inner]
    assert tree.height > 3
    assert max(leaves_below) == 3  # variant 1 filled a pre-leaf node
    assert min(leaves_below) == 0  # variants 2 and 3 made room above it


def test_a_fair_tree_is_shallow_where_the_best_greedy_one_is_deep():
    """A strong head: all rows look alike, so that the most probable child is always the heaviest."""
    X = np.ones((3000, 2))
    y = np.arange(3000)
    fair = OnlinePLTClassifier(policy="fair", arity=4, max_leaf=8).partial_fit(X, y).tree_
    best = OnlinePLTClassifier(policy="best", alpha=0.1, max_leaf=8).partial_fit(X, y).tree_
    assert fair.height <= 4 * np.log(3000) / np.log(4)
    assert best.height > 4 * fair.height


def test_balance_as_a_logarithm_of_shares_does_not_fade():
    X = np.random.default_rng(0).random((3000, N_FEATURES))
    best, balanced = (
        OnlinePLTClassifier(policy=policy, max_leaf=8).partial_fit(X, np.arange(3000)).tree_.height
        for policy in ("best", "balanced")
    )
    assert balanced <= 2 * np.log2(3000 / 8)
    assert best > 2 * balanced


@pytest.mark.parametrize("policy", ["fair", "best", "balanced", "random", "cpt"])
def test_saved_arrays_are_the_same_for_any_number_of_threads(policy):
    X, Y = stream(5, n_rows=400, n_labels=90)
    states = [
        OnlinePLTClassifier(**POLICIES[policy], n_jobs=n, random_state=0).partial_fit(X, Y).model_.learner.state(n)
        for n in (1, 2, 4)
    ]
    for other in states[1:]:
        for name, array in states[0].items():
            assert array.tobytes() == other[name].tobytes(), name


def test_the_root_learns_whether_a_row_has_the_only_label():
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 20)
    clf = OnlinePLTClassifier().partial_fit(X, [["a"], []] * 20)
    with_label, without = clf.predict_proba(X[:2], labels=["a"]).toarray().ravel()
    assert with_label > 0.8
    assert without < 0.2
