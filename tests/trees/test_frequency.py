"""Label frequencies: the marginals f and the paper's f-tilde."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ramify.trees import effective_frequency, interpolated_tree, marginal_frequency


def skewed_labels(seed, n_rows=600, n_labels=60):
    """Return a Y whose labels have skewed frequencies; some rows have no label."""
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.random((n_rows, n_labels)) < 0.5 / np.arange(1, n_labels + 1)).astype(np.float32)


def naive_greedy(Y, weight):
    weight, found = weight.copy(), np.zeros(Y.shape[1])
    while (Y.T @ weight).any():
        mass = Y.T @ weight
        best = int(np.argmax(mass))
        found[best] = mass[best]
        weight[Y[:, best] > 0] = 0
    return found


def naive_marginal(Y, weight, softness=0.0):
    f, found = Y.T @ weight, np.zeros(Y.shape[1])
    for row, p in zip(Y, weight, strict=True):
        if row.any():
            first = int(np.argmax(np.where(row > 0, f, -1)))
            found += softness * p * row
            found[first] += (1 - softness) * p
    return found


@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 40), n_labels=st.integers(1, 15), is_weighted=st.booleans())
def test_frequencies_equal_a_direct_translation_of_the_paper(seed, n_rows, n_labels, is_weighted):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < rng.random(n_labels)).astype(np.float64)
    weight = rng.integers(0, 8, n_rows) / 4 if is_weighted else np.ones(n_rows)
    given_weight = weight if is_weighted else None
    np.testing.assert_array_equal(marginal_frequency(Y, given_weight), Y.T @ weight)
    np.testing.assert_array_equal(effective_frequency(Y, "greedy", given_weight), naive_greedy(Y, weight))
    np.testing.assert_array_equal(effective_frequency(Y, "marginal", given_weight), naive_marginal(Y, weight))
    np.testing.assert_allclose(effective_frequency(Y, 0.25, given_weight), naive_marginal(Y, weight, 0.25))
    np.testing.assert_array_equal(effective_frequency(Y, 1.0, given_weight), Y.T @ weight)


def test_each_context_counts_for_one_label():
    Y = skewed_labels(0)
    for frequency in ("marginal", "greedy"):
        assert effective_frequency(Y, frequency).sum() == (np.diff(Y.indptr) > 0).sum()
    assert (effective_frequency(Y) <= marginal_frequency(Y)).all()


def test_an_integer_context_weight_equals_repeating_the_context():
    Y = skewed_labels(3)
    weight = np.random.default_rng(0).integers(1, 4, Y.shape[0])
    repeated = Y[np.repeat(np.arange(Y.shape[0]), weight)]
    for frequency in ("marginal", "greedy", 0.5):
        np.testing.assert_array_equal(
            effective_frequency(Y, frequency, weight), effective_frequency(repeated, frequency)
        )
    weighted = interpolated_tree(None, Y, lam=2, max_leaf=4, context_weight=weight)
    assert weighted == interpolated_tree(None, repeated, lam=2, max_leaf=4)
    assert weighted != interpolated_tree(None, Y, lam=2, max_leaf=4)
