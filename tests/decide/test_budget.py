"""Decisions with a budget: the ascent never falls, ends at a local optimum, and equals brute force on tiny data."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from ramify import decide, metrics
from ramify.decide.budget import BUDGET_OBJECTIVES


def plain_value(P, D, objective):
    """Evaluate the definition on expected counts, with dense arrays."""
    tp, predicted, positive, n = (P * D).sum(axis=0), D.sum(axis=0), P.sum(axis=0), P.shape[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "macro_f1": lambda: 2 * tp / (predicted + positive),
            "macro_recall": lambda: tp / positive,
            "macro_jaccard": lambda: tp / (predicted + positive - tp),
            "macro_balanced_accuracy": lambda: (
                (np.nan_to_num(tp / positive) + np.nan_to_num((n - positive - predicted + tp) / (n - positive))) / 2
            ),
            "coverage": lambda: 1 - np.prod(np.where(D > 0, np.maximum(1 - P, 1e-9), 1), axis=0),
        }[objective]()
    return np.nan_to_num(values).mean()


@st.composite
def estimates(draw, max_rows=6, max_labels=5):
    shape = (draw(st.integers(1, max_rows)), draw(st.integers(1, max_labels)))
    P = draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])))
    return np.asarray(P, dtype=np.float64)


@settings(max_examples=150, deadline=None)
@given(estimates(), st.integers(1, 3), st.sampled_from(BUDGET_OBJECTIVES))
def test_the_value_never_falls_and_no_single_row_can_improve_it(P, k, objective):
    found = decide.decide_budget(P, k, objective=objective, tol=0.0, n_epochs=200)
    D = found.decisions.toarray()
    np.testing.assert_array_equal(D.sum(axis=1), np.minimum(k, (P > 0).sum(axis=1)))
    assert (P[D > 0] > 0).all()
    assert all(later >= earlier - 1e-9 for earlier, later in zip(found.values, found.values[1:], strict=False))
    assert found.value == pytest.approx(plain_value(P, D, objective), abs=1e-9)
    assert decide.expected_value(P, D, objective=objective) == pytest.approx(found.value, abs=1e-9)
    for row in range(P.shape[0]):
        stored = np.flatnonzero(P[row])
        for labels in combinations(stored, min(k, len(stored))):
            other = D.copy()
            other[row] = 0
            other[row, list(labels)] = 1
            assert plain_value(P, other, objective) <= found.value + 1e-7


@settings(max_examples=40, deadline=None)
@given(estimates(max_rows=3, max_labels=4), st.sampled_from(["macro_recall", "macro_balanced_accuracy"]))
def test_additive_objectives_are_solved_exactly(P, objective):
    found = decide.decide_budget(P, 1, objective=objective)
    choices = [list(np.flatnonzero(row)) or [None] for row in P]
    best = max(
        plain_value(P, np.array([[float(j == label) for j in range(P.shape[1])] for label in labels]), objective)
        for labels in product(*choices)
    )
    assert found.value == pytest.approx(best, abs=1e-9)


def sparse_estimates(n=3000, m=200, per_row=20, seed=0):
    generator = np.random.default_rng(seed)
    label = (m * generator.random((n, per_row)) ** 2).astype(int)
    P = sparse.lil_array((n, m), dtype=np.float32)
    P[np.repeat(np.arange(n), per_row), label.ravel()] = generator.beta(0.4, 2, n * per_row)
    return sparse.csr_array(P)


@pytest.mark.parametrize("objective", BUDGET_OBJECTIVES)
def test_budget_decisions_beat_the_most_probable_labels(objective):
    P = sparse_estimates()
    best = decide.decide_budget(P, 3, objective=objective)
    probable = decide.decide_budget(P, 3, objective="macro_recall", positive=np.full(200, 1.0)).decisions
    assert best.value > decide.expected_value(P, probable, objective=objective)
    online = decide.OnlineBudget(200, 3, objective=objective)
    pieces = [online.decide(P[start : start + 700]) for start in range(0, 3000, 700)]
    decided = sparse.csr_array(sparse.vstack(pieces))
    assert online.value == pytest.approx(decide.expected_value(P, decided, objective=objective), rel=1e-9)
    assert decide.expected_value(P, probable, objective=objective) < online.value <= best.value + 1e-6


def test_the_expected_value_equals_the_value_on_sampled_labels():
    P = sparse_estimates(n=20_000)
    generator = np.random.default_rng(1)
    true = generator.random(P.nnz) < P.data
    Y = sparse.csr_array((true.astype(float), P.indices, P.indptr), shape=P.shape, copy=True)
    Y.eliminate_zeros()
    found = decide.decide_budget(P, 2)
    assert metrics.macro_f1(Y, found.decisions, empty=0.0) == pytest.approx(found.value, abs=0.01)


def test_the_same_seed_gives_the_same_decisions_and_bad_input_is_rejected():
    P = sparse_estimates(300)
    one, other = (decide.decide_budget(P, 2, random_state=3).decisions for _ in range(2))
    assert (one != other).nnz == 0
    everything = decide.decide_budget(P, 2**70).decisions
    assert everything.nnz == P.nnz
    for call, message in [
        (lambda: decide.decide_budget(P, 0), "k must be"),
        (lambda: decide.decide_budget(P, 2, objective="accuracy"), "objective must be"),
        (lambda: decide.decide_budget(P * 3, 2), r"P must contain probabilities in \[0, 1\], but row \d+, column"),
        (lambda: decide.decide_budget(P, 2, positive=[1.0]), r"positive must have shape \(200,\)"),
        (lambda: decide.OnlineBudget(3, 2).decide(P), r"P must have 3 labels \(columns\), got 200"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
