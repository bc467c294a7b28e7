"""The memory tree's core: what holds after any sequence of rows, and that its arithmetic is that of a plain twin."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from shared.memory_trees import N_LABELS, check_invariants, stream
from twins.memory_tree import SETTINGS, MemoryTwin, core_tree, learn

OPTIONS = st.fixed_dictionaries(
    {
        "leaf_multiplier": st.sampled_from([0.3, 1.0, 4.0]),
        "alpha": st.sampled_from([0.2, 0.6, 1.0]),
        "reroutes": st.integers(0, 3),
        "n_leaves": st.integers(1, 4),
        "n_neighbours": st.sampled_from([0, 1, 5]),
        "is_multiclass": st.booleans(),
        "has_one_against_rest": st.booleans(),
        "normalize": st.booleans(),
        "max_examples": st.sampled_from([0, 1, 17]),
        "forget": st.sampled_from(["oldest", "least_useful"]),
        "seed": st.integers(0, 2**64 - 1),
    }
)
ACTIONS = st.lists(st.one_of(st.integers(1, 30), st.just("revisit"), st.just("resume"), st.just("ask")), max_size=6)


@given(OPTIONS, ACTIONS, st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_invariants_hold_after_any_sequence_of_rows_passes_and_resumptions(options, actions, seed):
    core = core_tree(**options)
    for step, action in enumerate(actions):
        n = core.n_examples
        if action == "revisit":
            core.revisit(np.random.default_rng(step).permutation(n), None)
            assert core.n_examples == n
        elif action == "resume":
            core, before = core_tree(**options), core
            if before.n_learned:
                core.restore(before.state(), N_LABELS)
        elif action == "ask":
            X, _ = stream(seed, 3, options["is_multiclass"])
            before = core.state()
            core.query(X, N_LABELS, 3, 0.0, None, 1)
            assert all(np.array_equal(values, before[name]) for name, values in core.state().items())
        else:
            learned = core.n_learned
            learn(core, *stream(seed + step, action, options["is_multiclass"]))
            assert core.n_learned == learned + action
            bound = options["max_examples"] or math.inf
            assert min(1, bound) <= core.n_examples <= min(n + action, bound)
        check_invariants(core)


@pytest.mark.parametrize("is_multiclass", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"n_leaves": 1, "n_neighbours": 1, "reroutes": 0},
        {"leaf_multiplier": 3.0, "n_neighbours": 0, "alpha": 0.2, "reroutes": 3},
        {"has_one_against_rest": False, "max_examples": 30, "normalize": False},
        {"max_examples": 25, "forget": "least_useful", "scorer_rate": 0.0},
    ],
)
def test_the_core_is_its_plain_twin(is_multiclass, changes):
    changes = {**changes, "is_multiclass": is_multiclass}
    X, Y = stream(5, 140, is_multiclass)
    weight = np.random.default_rng(1).integers(0, 3, X.shape[0]).astype(np.float32)
    core, twin = learn(core_tree(**changes), X, Y, weight), MemoryTwin(**changes)
    for i in range(X.shape[0]):
        twin.learn(X[[i]], Y[[i]].indices.tolist(), float(weight[i]))
    state, shape = check_invariants(core)
    assert core.n_examples == len(twin.store) > 20
    assert state["counts"][:2].tolist() == [twin.n_learned, twin.n_drawn]
    # The same tree, breadth first, with the same examples in its leaves and the same weights at its routers.
    nodes = [twin.root]
    for node in nodes:
        nodes += [node.left, node.right] if node.router else []
    assert [node.n for node in nodes] == shape.n.tolist()
    number = {id(node): i for i, node in enumerate(nodes)}
    assert [number[id(e.leaf)] for e in twin.store] == state["leaf"].tolist()
    assert [e.arrival for e in twin.store] == state["arrival"].tolist()
    np.testing.assert_allclose([e.use for e in twin.store], state["use"], rtol=1e-6, atol=1e-6)
    routers = [node.router for node in nodes if node.router]
    for place, (start, stop) in enumerate(itertools.pairwise(state["router_begin"])):
        features = state["feature"][state["router_feature"][start:stop]]
        known = {int(f): float(w) for f, w in zip(features, state["router_weight"][start:stop], strict=True)}
        assert known.keys() == routers[place].weight.keys()
        np.testing.assert_allclose(
            [known[f] for f in known], [routers[place].weight[f].value for f in known], rtol=1e-5
        )
    assert core.sharpness == pytest.approx(math.exp(twin.log_sharpness.value), rel=1e-6)
    # The same answers.
    asked, _ = stream(6, 20, is_multiclass)
    indptr, labels, probabilities, *_ = core.query(asked, N_LABELS, None, 0.0, None, 1)
    answer = sparse.csr_array((probabilities, labels, indptr), shape=(20, N_LABELS)).toarray()
    for i in range(20):
        expected = np.zeros(N_LABELS)
        for label, _, p in twin.query(twin.prepare(asked[[i]]))[1]:
            expected[label] = p
        np.testing.assert_allclose(answer[i], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("changes", [{}, {"max_examples": 40}, {"max_examples": 40, "forget": "least_useful"}])
@pytest.mark.parametrize("is_multiclass", [True, False])
def test_a_resumed_tree_goes_on_bit_for_bit(is_multiclass, changes):
    changes = {**changes, "is_multiclass": is_multiclass}
    X, Y = stream(2, 120, is_multiclass)
    whole, first = learn(core_tree(**changes), X, Y), learn(core_tree(**changes), X[:70], Y[:70])
    second = core_tree(**changes)
    second.restore(first.state(), N_LABELS)
    learn(second, X[70:], Y[70:])
    for name, values in whole.state().items():
        np.testing.assert_array_equal(second.state()[name], values, err_msg=name)


def test_one_leaf_finds_every_stored_example_by_its_own_key():
    X, _ = stream(3, 60, True)
    X = sparse.csr_array(np.unique(X.toarray(), axis=0))
    Y = sparse.csr_array(np.eye(X.shape[0], dtype=np.float32))
    core = learn(
        core_tree(leaf_multiplier=1000.0, is_multiclass=True, has_one_against_rest=False, scorer_rate=0.0), X, Y
    )
    _, shape = check_invariants(core)
    assert shape.n_nodes == 1
    _, found, _, _, n_examples = core.query(X, X.shape[0], 1, 0.0, None, 1)
    has_features = np.diff(X.indptr) > 0
    np.testing.assert_array_equal(found[has_features], np.arange(X.shape[0])[has_features])
    assert n_examples == X.shape[0] ** 2  # it looked at all of them


def test_most_examples_are_found_by_their_own_key_in_a_deep_tree():
    generator = np.random.default_rng(0)
    X = sparse.csr_array(sparse.random(1500, 400, density=0.03, random_state=generator, dtype=np.float32))
    Y = sparse.csr_array(np.eye(1500, dtype=np.float32))
    settings_ = {"leaf_multiplier": 2.0, "n_leaves": 1, "is_multiclass": True, "has_one_against_rest": False}
    core = learn(core_tree(**settings_), X, Y)
    _, shape = check_invariants(core)
    assert shape.depth.max() >= 6
    _, found, *_ = core.query(X, 1500, 1, 0.0, None, 1)
    assert (found == np.arange(1500)).mean() > 0.75  # chance: one leaf of about a hundred


def test_a_query_touches_logarithmically_many_nodes_and_examples():
    generator = np.random.default_rng(0)
    touched = []
    for n in (500, 4000):
        X, Y = stream(generator.integers(100), n, True, n_labels=50, n_features=60)
        core = learn(core_tree(is_multiclass=True, has_one_against_rest=False, n_leaves=2, leaf_multiplier=2.0), X, Y)
        *_, n_nodes, n_examples = core.query(X[:200], 50, 1, 0.0, None, 1)
        _, shape = check_invariants(core)
        # Per leaf at most a path of nodes and a full leaf; one side at most exp((1 - alpha) / alpha) times the other.
        assert n_nodes <= 200 * 2 * (shape.depth.max() + 1)
        assert n_examples <= 200 * 2 * 2.0 * math.log2(n)
        worst_share = math.e / (1 + math.e)
        assert shape.depth.max() <= 1 + math.log(n) / -math.log(worst_share)
        touched.append((n_nodes / 200, n_examples / 200))
    # Eight times the examples: three more levels of a balanced tree on each of two paths, leaves larger by a third.
    assert touched[1][0] - touched[0][0] < 2 * 3 * 2.5
    assert touched[1][1] < 2 * touched[0][1]


def test_balance_keeps_a_stream_of_one_label_and_one_row_logarithmic():
    """Equal keys cannot be separated; the tree still halves them."""
    X = sparse.csr_array(np.ones((400, 1), dtype=np.float32) * np.arange(1, 401, dtype=np.float32)[:, None])
    Y = sparse.csr_array(np.ones((400, 1), dtype=np.float32))
    core = learn(core_tree(normalize=False, leaf_multiplier=0.5, is_multiclass=True), X, Y)
    _, shape = check_invariants(core)
    assert core.n_examples == 400
    assert shape.depth.max() <= 1 + math.log(400) / -math.log(math.e / (1 + math.e))


def test_a_row_given_again_adds_weight_and_no_example():
    X = sparse.csr_array(np.eye(3, dtype=np.float32))
    core = learn(core_tree(), X, X)
    learn(core, X[[1]], X[[1]], np.array([2.5], np.float32))
    state = core.state()
    assert core.n_examples == 3
    assert state["weight"][state["arrival"] == 4].tolist() == [3.5]
    learn(core, X[[1]], X[[2]])  # the same key with another value is another memory
    assert core.n_examples == 4


def test_the_oldest_leave_a_bounded_memory_and_labels_leave_with_them():
    X = sparse.csr_array(np.eye(20, dtype=np.float32))
    core = learn(core_tree(max_examples=5, is_multiclass=True, has_one_against_rest=False, leaf_multiplier=0.5), X, X)
    assert (core.n_examples, core.n_forgotten) == (5, 15)
    assert sorted(core.state()["arrival"].tolist()) == [16, 17, 18, 19, 20]
    answer = core.named(X, 20, np.arange(20, dtype=np.int32), 1)
    assert (answer[:, :15] == 0).all()
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


def test_the_least_useful_leave_and_what_is_asked_for_stays():
    useful, noise = np.eye(40, dtype=np.float32)[:4], np.eye(40, dtype=np.float32)[4:]
    rows, labels = [], []
    for k in range(36):
        # Each useful row comes back in a slightly other form again and again, each noisy one once.
        rows += [useful[k % 4] * 2 + 0.01 * (k + 1) * np.eye(40, dtype=np.float32)[(k + 1) % 4], noise[k]]
        labels += [k % 4, 4 + k]
    Y = np.zeros((72, 40), dtype=np.float32)
    Y[np.arange(72), labels] = 1
    X, Y = sparse.csr_array(np.array(rows)), sparse.csr_array(Y)
    core = learn(core_tree(max_examples=12, forget="least_useful", is_multiclass=True, leaf_multiplier=10.0), X, Y)
    kept = core.state()["y_label"]
    assert (kept < 4).sum() >= 6
    _, found, *_ = core.query(sparse.csr_array(useful), 40, 1, 0.0, None, 1)
    assert found.tolist() == [0, 1, 2, 3]


def test_huge_and_tiny_values_leave_finite_weights():
    X, Y = stream(0, 80, False)
    for scale in (1e37, 1e-37):
        scaled = sparse.csr_array((X.data * np.float32(scale), X.indices, X.indptr), shape=X.shape)
        check_invariants(learn(core_tree(normalize=False), scaled, Y))


def test_answers_do_not_depend_on_the_number_of_threads():
    X, Y = stream(0, 300, False)
    core = learn(core_tree(), X, Y)
    one, three = (core.query(X, N_LABELS, 4, 0.01, None, n) for n in (1, 3))
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)
    assert SETTINGS["n_leaves"] == 2
