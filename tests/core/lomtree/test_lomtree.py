"""The core of LOMtree: beside its twin, its invariants after every example, and arrays made to break it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from scipy import sparse

from ramify import _core
from shared.rows import rows_of
from twins.lomtree import PlainLomTree

N_FEATURES = 6


def regressor(**given):
    defaults = {"is_logistic": False, "is_adaptive": True, "learning_rate": 0.5, "eps": 0.001, "normalize": True}
    return _core.RegressorSettings(**{**defaults, "bias": 0.3, **given})


def lom_tree(max_nodes=8, swap_resistance=4.0, forgetting=0.0, nodes_per_class=4.0, **given):
    return _core.LomTree(
        regressor=regressor(**given),
        max_nodes=max_nodes,
        nodes_per_class=nodes_per_class,
        swap_resistance=swap_resistance,
        forgetting=forgetting,
    )


def sparse_rows(X):
    return sparse.csr_array(np.atleast_2d(np.asarray(X, dtype=np.float32)))


def learn(tree, X, y):
    tree.learn(sparse_rows(X), np.asarray(y, dtype=np.int32))


def class_rows(y, n_features=N_FEATURES, seed=0, noise=0.3):
    generator = np.random.default_rng(seed)
    means = np.random.default_rng(99).normal(size=(200, n_features))
    return (means[y] + generator.normal(0, noise, (len(y), n_features))).astype(np.float32)


# --- beside the twin -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forgetting", [0.0, 0.05])
@pytest.mark.parametrize(("max_nodes", "swap_resistance"), [(0, 4), (3, 4), (12, 4), (6, 0), (6, 1), (1000, 4)])
def test_the_tree_is_that_of_algorithm_1(max_nodes, swap_resistance, forgetting):
    y = np.random.default_rng(max_nodes).integers(0, 9, 500)
    y[300:] += 7  # classes go and others come, which is when nodes are recycled
    X = class_rows(y)
    tree = lom_tree(max_nodes, swap_resistance, forgetting, is_adaptive=False, learning_rate=0.1, normalize=False)
    twin = PlainLomTree(
        max_nodes=max_nodes, swap_resistance=swap_resistance, learning_rate=0.1, bias=0.3, forgetting=forgetting
    )
    learn(tree, X, y)
    for row, label in zip(X, y.tolist(), strict=True):
        twin.learn(row, label)
    state = tree.state()
    for name in ("parent", "left", "right", "size"):
        np.testing.assert_array_equal(state[name], twin.array(name), err_msg=name)
    np.testing.assert_array_equal(state["n_recycled"], twin.array("recycled"))
    np.testing.assert_allclose(state["score"], twin.array("score"), atol=1e-2)
    assert tree.n_swaps == twin.n_swaps
    if max_nodes in (6, 12):
        assert tree.n_swaps > 0
    for v, node in enumerate(twin.nodes):
        begin, end = state["class_begin"][v : v + 2]
        assert (
            dict(zip(state["class_label"][begin:end], state["class_reached"][begin:end], strict=True)) == node.reached
        )


@pytest.mark.parametrize("is_logistic", [False, True])
def test_a_step_of_adagrad_is_what_it_says(is_logistic):
    tree = lom_tree(max_nodes=1, is_logistic=is_logistic, normalize=False, eps=0.01, bias=1.0)
    x, y = np.array([[0.5, 0.0, 2.0]]), [0, 1]
    learn(tree, x, y[:1])
    learn(tree, x, y[1:])  # the second class splits the root, whose regressor learns +1: its score is 0
    state = tree.state()
    values = np.array([1.0, 0.5, 0.0, 2.0])
    gradient = -0.5 if is_logistic else -1.0
    factor = 0.5 / (np.abs(gradient * values) + 0.01)
    reach = (values**2 * factor).sum()
    share = 1.0 if is_logistic else -math.expm1(-reach) / reach
    expected = -share * gradient * values * factor
    np.testing.assert_allclose(state["dense_weight"][:4], expected, rtol=2e-3)
    np.testing.assert_allclose(state["dense_sum"][:4], (gradient * values) ** 2, rtol=1e-5)


def test_full_rows_and_rows_with_gaps_are_learned_alike():
    """Weights lie in an array for full rows, in a table for others: far apart features are the same problem."""
    y = np.random.default_rng(0).integers(0, 6, 400)
    X = class_rows(y)
    spread = np.zeros((len(y), 1000), dtype=np.float32)
    spread[:, 7:967:160] = X
    answers = []
    for rows in (X, spread):
        tree = lom_tree(max_nodes=20)
        learn(tree, rows, y)
        answers.append(tree)
    dense, hashed = (tree.state() for tree in answers)
    assert dense["dense_width"].max() > 0
    assert hashed["dense_width"].max() == 0
    np.testing.assert_array_equal(dense["parent"], hashed["parent"])
    np.testing.assert_array_equal(dense["class_reached"], hashed["class_reached"])
    np.testing.assert_array_equal(answers[0].leaves(sparse_rows(X), 1), answers[1].leaves(sparse_rows(spread), 1))


def test_wide_features_that_come_late_join_a_dense_regressor():
    y = np.random.default_rng(0).integers(0, 4, 200)
    X = class_rows(y, 3)
    tree = lom_tree(max_nodes=10)
    learn(tree, X, y)
    wide = sparse.csr_array(
        (np.ones(200, np.float32), y * 10 + 2_000_000_000, np.arange(201)), shape=(200, 2_000_000_100)
    )
    tree.learn(wide, y.astype(np.int32))
    assert (tree.state()["slot_column"] > 2_000_000_000).any()
    _, found, _ = tree.predict(wide, 4, 1, 0.0, None, 2)
    assert (found == y).mean() > 0.9


# --- invariants ------------------------------------------------------------------------------------------------------


def check_invariants(tree, max_nodes):
    state = tree.state()
    parent, left, right, size = (state[name] for name in ("parent", "left", "right", "size"))
    n = len(parent)
    inner = left >= 0
    assert n == 2 * inner.sum() + 1
    assert inner.sum() == tree.n_inner <= max_nodes
    assert (inner == (right >= 0)).all()
    assert parent[0] == -1
    children = np.concatenate([left[inner], right[inner]])
    assert sorted(children.tolist()) == list(range(1, n))
    np.testing.assert_array_equal(parent[left[inner]], np.flatnonzero(inner))
    np.testing.assert_array_equal(parent[right[inner]], np.flatnonzero(inner))
    # C: the smallest leaf below, so that a swap always finds a leaf as small as the root says.
    np.testing.assert_array_equal(size[inner], np.minimum(size[left[inner]], size[right[inner]]))
    assert size[0] == size[~inner].min()
    assert state["reached"][0] == tree.n_examples
    assert state["n_recycled"].sum() == 2 * tree.n_swaps
    for v in np.flatnonzero(inner):
        assert state["class_begin"][v + 1] - state["class_begin"][v] >= 2  # only mixed leaves split
    begin = state["class_begin"]
    totals = [state["class_reached"][begin[v] : begin[v + 1]].sum() for v in range(n)]
    np.testing.assert_array_equal(state["reached"], totals)
    return state


class GrowingLomTree(RuleBasedStateMachine):
    """Examples of classes that come, go and come again, in any order; nodes are recycled all the time."""

    @initialize(max_nodes=st.integers(0, 9), resistance=st.sampled_from([0.0, 0.5, 1.0, 4.0]), forget=st.booleans())
    def begin(self, max_nodes, resistance, forget):
        self.max_nodes = max_nodes
        self.tree = lom_tree(max_nodes, resistance, 0.1 if forget else 0.0)
        self.n_learned = 0

    @rule(label=st.integers(0, 11), seed=st.integers(0, 3))
    def one(self, label, seed):
        learn(self.tree, class_rows(np.array([label]), seed=seed), [label])
        self.n_learned += 1

    @rule(first=st.integers(0, 11), second=st.integers(0, 11), count=st.integers(2, 25), seed=st.integers(0, 3))
    def many_of_two(self, first, second, count, seed):
        y = np.random.default_rng(seed).choice([first, second], count)
        X = class_rows(y, seed=seed)
        for row, label in zip(X, y, strict=True):
            before = self.tree.n_swaps
            learn(self.tree, row, [label])
            if self.tree.n_swaps > before:
                check_invariants(self.tree, self.max_nodes)
        self.n_learned += count

    @rule()
    def save_and_go_on(self):
        state = self.tree.state()
        again = lom_tree(self.max_nodes)  # what else it is made of does not matter here
        again.restore(state, 12)
        for name, array in again.state().items():
            np.testing.assert_array_equal(array, state[name], err_msg=name)

    @invariant()
    def holds(self):
        if hasattr(self, "tree"):
            check_invariants(self.tree, self.max_nodes)
            assert self.tree.n_examples == self.n_learned


TestGrowingLomTree = GrowingLomTree.TestCase
TestGrowingLomTree.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)


def drifting(n_phases, n, seed):
    """Classes that are replaced phase by phase, each phase longer than the last: old leaves keep falling behind."""
    generator = np.random.default_rng(seed)
    y = [generator.integers(4 * phase, 4 * phase + 4, int(n * 1.4**phase)) for phase in range(n_phases)]
    return np.concatenate(y)


@pytest.mark.parametrize("swap_resistance", [4.0, 8.0])
@pytest.mark.parametrize("max_nodes", [2, 3, 7, 20])
def test_no_node_is_recycled_more_often_than_the_logarithm_of_the_examples(max_nodes, swap_resistance):
    most = 0
    for seed in range(3):
        y = drifting(14, 40, seed)
        X = class_rows(y, seed=seed, noise=1.0)
        tree = lom_tree(max_nodes, swap_resistance)
        for start in range(0, len(y), 500):
            learn(tree, X[start : start + 500], y[start : start + 500])
            recycled = tree.state()["n_recycled"].max()
            assert recycled <= math.log2(tree.n_examples)
        most = max(most, recycled)
    assert most >= 1  # the stream does force swaps


def test_lemma_4_on_any_stream():
    """Any runs of classes, and then ones that keep being replaced, which forces swaps in nearly every tree."""
    most = []

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), min_size=1, max_size=40), st.integers(2, 6))
    def is_bounded(runs, max_nodes):
        y = np.concatenate([*(np.full(count, label) for label, count in runs), 10 + drifting(12, 40, len(runs))])
        tree = lom_tree(max_nodes, 4.0)
        learn(tree, class_rows(y, noise=1.0), y)
        most.append(tree.state()["n_recycled"].max())
        assert most[-1] <= math.log2(len(y))

    is_bounded()
    assert np.mean(np.array(most) >= 1) > 0.5


# --- bad calls -------------------------------------------------------------------------------------------------------


def learned():
    y = drifting(5, 40, 0)
    tree = lom_tree(6)
    learn(tree, class_rows(y), y)
    wide = np.zeros((40, 500), dtype=np.float32)
    wide[np.arange(40), np.arange(40) * 12] = 1
    learn(tree, wide, y[:40])
    return tree


STATE = learned().state()
CHANGES = {
    "cut": lambda a: a[:-1],
    "longer": lambda a: np.concatenate([a, a[-1:]]),
    "empty": lambda a: a[:0],
    "negative": lambda a: np.where(np.arange(len(a)) == len(a) // 2, np.int64(-7), a).astype(a.dtype),
    "huge": lambda a: np.where(np.arange(len(a)) == len(a) // 2, 2**31 - 1, a).astype(a.dtype),
    "not a number": lambda a: np.where(np.arange(len(a)) == len(a) // 2, np.nan, a),
    "two dimensions": lambda a: np.stack([a, a]),
    "another type": lambda a: a.astype(np.int16),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", sorted(STATE))
def test_damaged_arrays_are_refused_or_harmless(name, change):
    if change == "not a number" and STATE[name].dtype.kind != "f":
        change = "negative"
    damaged = {**STATE, name: np.ascontiguousarray(CHANGES[change](STATE[name]))}
    tree = lom_tree(6)
    try:
        tree.restore(damaged, 60)
    except ValueError:
        assert tree.n_examples == 0
        return
    assert change in ("negative", "huge")  # another number, and still a tree
    y = drifting(5, 40, 1)
    learn(tree, class_rows(y), y)
    tree.leaves(sparse_rows(class_rows(y)), 2)


def test_a_tree_with_a_circle_is_refused():
    state = {name: array.copy() for name, array in STATE.items()}
    inner = np.flatnonzero(state["left"] > 0)
    below = next(v for v in inner if v != 0)
    above = state["parent"][below]
    (state["left"] if state["left"][above] == below else state["right"])[above] = above
    with pytest.raises(ValueError, match="are inconsistent"):
        lom_tree(6).restore(state, 60)


GOOD = rows_of([0, 2], [0, 3], [1, 1])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"labels": np.array([-1], np.int32)}, "class -1"),
        ({"labels": np.array([0, 1], np.int32)}, "number of rows"),
        ({"X": GOOD._replace(indices=np.array([1, 1], np.int32))}, "strictly increasing"),
        ({"X": GOOD._replace(indices=np.array([-1, 1], np.int32))}, "column -1"),
        ({"X": GOOD._replace(indptr=np.array([0, 3]))}, "row pointers"),
        ({"X": GOOD._replace(data=np.ones(1, np.float32))}, "differ in length"),
        ({"sample_weight": np.array([np.nan], np.float32)}, "above 0"),
        ({"sample_weight": np.zeros(1, np.float32)}, "above 0"),
        ({"sample_weight": np.ones(2, np.float32)}, "wrong length"),
        ({"order": np.array([1])}, "a row that X does not have"),
        ({"order": np.array([-1])}, "a row that X does not have"),
    ],
)
def test_bad_rows_are_refused(wrong, said):
    tree = lom_tree()
    with pytest.raises(ValueError, match=said):
        tree.learn(**{"X": GOOD, "labels": np.array([0], np.int32), **wrong})
    assert tree.n_examples == 0


@pytest.mark.parametrize(
    "wrong",
    [
        *({"learning_rate": bad} for bad in (0.0, np.nan)),
        *({"eps": bad} for bad in (0.0, np.inf)),
        *({"bias": bad} for bad in (-1.0, np.nan)),
        *({"swap_resistance": bad} for bad in (-1.0, np.nan)),
        *({"forgetting": bad} for bad in (-0.1, 1.0)),
        *({"nodes_per_class": bad} for bad in (0.0, np.nan)),
        {"max_nodes": -2},
    ],
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(ValueError):
        lom_tree(**wrong)


def test_bad_questions_are_refused():
    tree = learned()
    X = sparse_rows(class_rows(np.array([0])))
    with pytest.raises(ValueError, match="n_labels"):
        tree.predict(X, 1, 1, 0.0, None, 1)
    with pytest.raises(ValueError, match="for each label"):
        tree.predict(X, 60, 1, 0.0, np.zeros(2, np.float32), 1)
    with pytest.raises(ValueError, match="strictly increasing"):
        tree.predict_row(np.array([3, 2], np.int32), np.ones(2, np.float32), 60, 1, 0.0)
    with pytest.raises(ValueError, match="differ"):
        tree.predict_row(np.array([3], np.int32), np.ones(2, np.float32), 60, 1, 0.0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("size", [1e-38, 1e-20, 1e20, 3e38])
def test_values_of_absurd_size_leave_a_model_that_can_be_saved(size, normalize):
    y = np.random.default_rng(0).integers(0, 5, 200)
    tree = lom_tree(8, normalize=normalize)
    learn(tree, class_rows(y) * np.float32(size / 10), y)
    lom_tree(8).restore(tree.state(), 5)


# --- the filter tree -------------------------------------------------------------------------------------------------


def test_a_tournament_learns_only_from_those_who_came_that_far():
    """Four classes in order: the final is untouched by a class that lost its first match."""
    tree = _core.FilterTree(regressor(is_adaptive=False), np.arange(4, dtype=np.int32))
    x = sparse_rows([[1.0]])
    # A score of 0 goes left: class 1 loses its first match, learns, and wins that and the final the second time.
    for won, touched in ((0.0, {0}), (1.0, {1})):  # matches 0 (classes 0 and 1) and 1 (the final) get their weights
        before = tree.state()
        assert tree.learn(x, np.array([1], np.int32), None, None, None) == won
        after = tree.state()
        changed = np.flatnonzero(np.diff(after["slot_begin"]) != np.diff(before["slot_begin"]))
        dense = np.flatnonzero(after["dense_width"] != before["dense_width"])
        assert {*changed.tolist(), *dense.tolist()} == touched


def test_plain_steps_overshoot_where_importance_invariant_ones_cannot():
    """Squared error to +1 from a score of 0: plain, the score becomes rate * |x|^2; invariant, it stays below 1."""
    x = sparse_rows([[2.0]])
    for is_invariant, after in ((False, 0.4 * 4.0), (True, -math.expm1(-0.4 * 4.0))):
        settings = regressor(is_adaptive=False, learning_rate=0.4, normalize=False, bias=0.0, is_invariant=is_invariant)
        tree = _core.FilterTree(settings, np.arange(2, dtype=np.int32))
        tree.learn(x, np.array([1], np.int32), None, None, None)
        state = tree.state()
        weights = state["dense_weight"]
        assert 2.0 * weights[weights != 0].item() == pytest.approx(after, rel=1e-5)


def test_damaged_tournaments_are_refused():
    for order in ([0, 0], [1], [-1, 0], []):
        with pytest.raises(ValueError):
            _core.FilterTree(regressor(), np.array(order, np.int32))
    tree = _core.FilterTree(regressor(), np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match=r"outside 0\.\.2"):
        tree.learn(sparse_rows([[1.0]]), np.array([3], np.int32), None, None, None)
    state = tree.state()
    for name in state:
        with pytest.raises(ValueError):
            tree.restore({**state, name: np.concatenate([state[name], state[name], np.ones(1, state[name].dtype)])})
    with pytest.raises(ValueError, match="no array named"):
        tree.restore({})
