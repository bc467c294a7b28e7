"""Definitions 1 and 2 of "Online probabilistic label trees": online classifiers are those of an incremental PLT.

Weights are compared for equality, not closeness: the auxiliary classifiers and the lazy blocks must not change a bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ramify import OnlinePLTClassifier, load
from ramify.optimizers import AdaGrad
from ramify.trees import LabelTree
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
        # Definition 2, time: at most twice the updates.
        assert online.model_.learner.n_updates <= 2 * incremental.model_.learner.n_updates


def n_classifiers(clf, with_auxiliary):
    """Linear classifiers that a model holds: one per column of a block, and of those the auxiliary ones (theta)."""
    child = clf.model_.learner.state(1)["column_child"]
    return int((child >= (-1 if with_auxiliary else 0)).sum())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("n_rows", [60, 600])
def test_definition_2_memory_stays_within_a_constant_factor_of_the_incremental_plt(policy, n_rows):
    """At most two classifiers per node, and bytes within a factor that does not grow with the stream."""
    X, Y = stream(7, n_rows=n_rows, n_labels=n_rows // 3)
    online = OnlinePLTClassifier(**POLICIES[policy], random_state=0).partial_fit(X, Y)
    incremental = OnlinePLTClassifier(policy=None, tree=online.tree_, random_state=0, shuffle=False).fit(X, Y)
    assert n_classifiers(online, False) == n_classifiers(incremental, False)
    assert n_classifiers(online, True) <= 2 * online.tree_.n_nodes
    for clf in (online, incremental):
        clf.predict_proba(X[:1], top_k=1)  # learns what waits
    assert online.memory_ <= 4 * incremental.memory_


def test_the_first_step_is_that_of_the_authors_program():
    """napkinXC: learning_rate * sqrt(1 / (eps + G)) * g, with g = -1/2 for the first example of a class and bias 1."""
    for in_root, factor in ((True, 1 / np.sqrt(0.01 + 0.25)), (False, 1 / (0.5 + 0.01))):
        steps = AdaGrad(learning_rate=1.0, eps=0.01, decay=0.0, eps_in_root=in_root)
        tree = LabelTree([-1, 0, 0], [-1, 0, 1])
        clf = OnlinePLTClassifier(policy=None, tree=tree, optimizer=steps, bias=0.0, shuffle=False)
        clf.fit(np.array([[1.0]]), np.array([[1, 0]]))
        path = clf.model_.learner.explain(np.array([0], np.int32), np.ones(1, np.float32), 0)
        [added] = [contributions for node, _, _, contributions in path if node > 0]
        assert added[0] == pytest.approx(0.5 * factor, rel=1e-3)


def test_plain_siblings_are_those_of_labels_given_as_collections():
    """With `normalize_siblings=False` a class is a collection of one label: same tree, same weights, same answers."""
    X, y = stream(2, n_rows=200, multiclass=True)
    settings = {"policy": "best", "arity": 2, "max_leaf": 3, "random_state": 0}
    plain = OnlinePLTClassifier(normalize_siblings=False, **settings).partial_fit(X, y)
    several = OnlinePLTClassifier(**settings).partial_fit(X, [[label] for label in y.tolist()])
    shared = OnlinePLTClassifier(**settings).partial_fit(X, y)
    order = [plain.classes_.tolist().index(label) for label in several.classes_.tolist()]
    np.testing.assert_array_equal(
        plain.predict_proba(X, top_k=30).toarray()[:, order], several.predict_proba(X, top_k=30).toarray()
    )
    np.testing.assert_allclose(shared.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    assert (plain.predict_proba(X).sum(axis=1) != 1).any()
    frozen = plain.freeze(prune=0.0)
    assert np.abs(frozen.predict_proba(X) - plain.predict_proba(X)).max() < 0.05
    assert not np.allclose(frozen.predict_proba(X).sum(axis=1), 1, rtol=1e-3)


def test_a_beam_of_one_is_greedy_descent():
    """One node per level is opened; leaves met on the way count too."""
    X, y = stream(4, n_rows=300, n_labels=40, multiclass=True)
    exact = OnlinePLTClassifier(policy="random", arity=2, max_leaf=2, random_state=0).partial_fit(X, y)
    greedy = OnlinePLTClassifier(policy="random", arity=2, max_leaf=2, beam=1, random_state=0).partial_fit(X, y)
    learner, tree = greedy.model_.learner, exact.tree_
    assert tree.to_nested() == greedy.tree_.to_nested()
    found = greedy.predict_proba(X[:50], top_k=1)
    probabilities = exact.predict_proba(X[:50])
    differs = 0
    for row in range(50):
        node, (indices,) = 0, np.nonzero(X[row])
        values = X[row, indices].astype(np.float32)
        product, best = 1.0, 0.0
        while node is not None:
            children = learner.children(node)
            p = [product * one for one in learner.probabilities(node, indices.astype(np.int32), values)]
            best = max([best, *(one for one, child in zip(p, children, strict=True) if learner.is_leaf(child))])
            inner = [(one, child) for one, child in zip(p, children, strict=True) if not learner.is_leaf(child)]
            product, node = max(inner, default=(0.0, None))
        assert found.data[row] == pytest.approx(best, rel=1e-5)
        assert found.data[row] == pytest.approx(probabilities[row, int(found.indices[row])], rel=1e-5)
        differs += found.data[row] < probabilities[row].max() - 1e-6
    assert differs > 0  # otherwise the test would not tell it from an exact search


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
    """The tests above need it. The variants differ in the labels that one new label moves down."""
    X, _ = stream(3, n_rows=150)
    clf = OnlinePLTClassifier(policy=policy, arity=2, max_leaf=3, random_state=0).partial_fit(X[:1], [[0]])
    n_moved = []
    for label in range(1, 150):
        before = clf.tree_
        clf.partial_fit(X[[label]], [[label]])
        after = clf.tree_
        deeper = [after.depth_of(other) - before.depth_of(other) for other in range(label)]
        assert set(deeper) <= {0, 1}
        assert after.n_nodes - before.n_nodes == (2 if any(deeper) else 1)
        n_moved.append(sum(deeper))
    assert n_moved.count(0) > 10  # variant 1: a leaf beside others
    assert n_moved.count(1) > 10  # variant 3: a leaf becomes the parent of itself and the new one
    assert sum(n > 1 for n in n_moved) > 10  # variant 2: all that is below a node moves down


@pytest.mark.parametrize("policy", ["fair", "best", "random", "cpt"])
def test_auxiliary_classifiers_are_kept_only_where_the_policy_may_extend_the_tree(policy):
    """Section 4.2: in pre-leaves and lone leaves (and nodes with room); a conditional probability tree: in all leaves.

    The root has its own as long as no row without labels came.
    """
    X, Y = stream(7, n_rows=300, n_labels=100)
    X, Y = X[Y.any(axis=1)], Y[Y.any(axis=1)]
    clf = OnlinePLTClassifier(policy=policy, **({} if policy == "cpt" else {"arity": 2, "max_leaf": 3}), random_state=0)
    state = clf.partial_fit(X, Y).model_.learner.state(1)
    owner = np.repeat(state["block_node"], state["block_columns"])
    parent, is_leaf = state["parent"], state["label"] >= 0
    child = [np.flatnonzero(parent == v) for v in range(len(parent))]
    n_leaves = np.array([is_leaf[own].sum() for own in child])
    if policy == "cpt":
        extended = is_leaf
    else:
        n_children = np.array([len(own) for own in child])
        lone = np.array([p < 0 or n_leaves[p] == 1 for p in parent])
        extended = np.where(is_leaf, lone, (n_leaves == n_children) | (n_children < 2))
    wanted = {0, *np.flatnonzero(extended).tolist()}
    assert set(owner[state["column_child"] < 0].tolist()) == wanted
    assert 1 < len(wanted) < len(parent)


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


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_given_tree_of_one_label_learns_rows_with_and_without_it(learner, tmp_path):
    """Its root is a leaf that is never extended: when its own classifier is made, nothing else is left to learn."""
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(300, 6)), (generator.random((300, 1)) < 0.5).astype(int)
    online = OnlinePLTClassifier(policy="best", **LEARNERS[learner], random_state=0).partial_fit(X, Y)
    given = OnlinePLTClassifier(policy=None, tree=online.tree_, **LEARNERS[learner], random_state=0)
    for start in range(0, 300, 50):
        given.partial_fit(X[start : start + 50], Y[start : start + 50])
    assert weights_by_labels(given) == weights_by_labels(online)
    given.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for clf in (given, again):
        clf.partial_fit(X, Y)
    assert weights_by_labels(again) == weights_by_labels(given)
    np.testing.assert_array_equal(again.predict_proba(X, top_k=1).toarray(), given.predict_proba(X, top_k=1).toarray())
    assert given.freeze().predict_proba(X[:3], top_k=1).shape == (3, 1)
