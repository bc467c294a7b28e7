"""The online core against its twins in numpy: steps, searches, named labels, thresholds; on every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from shared.online_core import (
    POLICIES,
    RULES,
    TOLERANCE,
    Grown,
    answer_rows,
    compare_searches,
    compare_steps,
)
from shared.rows import label_rows, row_arrays
from shared.warm_python import run
from twins.online import learn, learner
from twins.search import best


@pytest.mark.parametrize("is_multiclass", [False, True], ids=["multi-label", "multi-class"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", RULES)
def test_steps_are_those_of_the_twin(rule, policy, is_multiclass):
    compare_steps(rule, policy, is_multiclass, TOLERANCE if "adagrad" in rule else 2e-4)


def test_one_step_is_right_to_a_thousandth():
    """Before any error can grow."""
    for rule in RULES:
        compare_steps(rule, "fair", False, 1e-3, n_rows=1)


@pytest.mark.parametrize("name", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_takes_the_same_steps_and_finds_the_same_labels(name):
    """A processor without the wider ones takes the widest that it has."""
    script = """
import shared.online_core as t
for rule in t.RULES:
    for is_multiclass in (False, True):
        t.compare_steps(rule, "fair", is_multiclass, t.TOLERANCE if "adagrad" in rule else 2e-4)
for seed in range(5):
    t.compare_searches(t.Grown(seed, 40, "fair", "adagrad", seed % 2 == 1), 4, 0.05)
"""
    run(script, RAMIFY_INSTRUCTION_SET=name)


@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 3, 9, 40]),
    st.sampled_from(POLICIES),
    st.sampled_from(sorted(RULES)),
    st.booleans(),
    st.integers(1, 45),
    st.sampled_from([0.0, 0.01, 0.2, 0.9]),
)
def test_searches_find_what_enumeration_finds(seed, n_labels, policy, rule, is_multiclass, top_k, threshold):
    compare_searches(Grown(seed, n_labels, policy, rule, is_multiclass), top_k, threshold)


@given(st.integers(0, 10**6), st.sampled_from([2, 9, 40]), st.data())
def test_named_labels_may_come_in_any_order_and_more_than_once(seed, n_labels, data):
    model = Grown(seed, n_labels, "best", "adagrad", False)
    labels = data.draw(st.lists(st.integers(0, n_labels + 5), max_size=12))  # some that the tree does not have
    indptr = np.array([0, len(labels), len(labels), len(labels), len(labels), len(labels)])
    found = model.core.named(model.X, label_rows(indptr, labels), 1)
    assert found.tolist() == [model.all[0, j] if j < n_labels else 0.0 for j in labels]


def test_labels_beyond_the_thresholds_that_are_given_have_none():
    """Another thread may have learned them after the thresholds were made."""
    model = Grown(1, 9, "fair", "adagrad", False)
    *answer, _ = model.core.search(model.X, None, 0.0, np.full(4, 2.0, np.float32), 1)
    assert answer_rows(*answer) == [
        [pair for pair in best(row, None, np.zeros(9)) if pair[0] >= 4] for row in model.all
    ]


def test_explanations_add_up_to_the_scores():
    for is_multiclass in (False, True):
        model = Grown(2, 9, "best", "fobos", is_multiclass)
        indices, values = row_arrays(model.X[[0]])
        parent, label = model.core.tree()
        for j in np.flatnonzero(model.all[0]):
            product = 1.0
            for node, p, features, added in model.core.explain(indices, values, int(j)):
                product *= p
                assert set(features.tolist()) <= {-1, *indices.tolist()}
                if not is_multiclass:
                    assert p == pytest.approx(1 / (1 + np.exp(-added.sum())), rel=1e-4)
                assert label[node] in (-1, j)
            assert product == pytest.approx(model.all[0, j], rel=1e-5)
        assert parent[0] == -1


def test_weights_and_values_of_any_size_leave_finite_weights():
    """Squares of large gradients are beyond float32, and infinity times zero is no number."""
    X = sparse.csr_array(np.array([[1e30, 1.0], [1e-30, 1e20], [3e38, 3e38]], dtype=np.float32))
    Y = sparse.csr_array(np.eye(3, dtype=np.float32))
    for rule in RULES:
        for normalize, weight in ((False, 1.0), (True, 3e38)):
            core = learn(learner(**RULES[rule], normalize=normalize), X, Y, np.full(3, weight, np.float32))
            state = core.state(1)
            assert np.isfinite(state["weight"]).all(), (rule, normalize)
            assert np.isfinite(state["sum"]).all()
