"""The search of nearest rows against a comparison with every row, and arrays made to break it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import _core
from shared.damages import damages
from shared.rows import row_arrays
from twins import nearest_rows as twin

N_FEATURES, N_LABELS = 60, 7


def random_data(seed, n_rows=400, n_features=N_FEATURES, *, density=0.1, signed=False, levels=None):
    """Rows whose features fall off in frequency as words do; with `levels` few distinct values, so that many tie."""
    generator = np.random.default_rng(seed)
    rate = np.minimum(1, 4 * density / np.sqrt(1 + np.arange(n_features)))
    shape = (n_rows, n_features)
    values = generator.random(shape) if levels is None else generator.integers(1, levels + 1, shape)
    X = (generator.random(shape) < rate) * values
    if signed:
        X = X * generator.choice([-1, 1], X.shape)
    Y = generator.random((n_rows, N_LABELS)) < 0.2
    return sparse.csr_array(X.astype(np.float32)), sparse.csr_array(Y.astype(np.float32))


def stored(X, Y, weight=None):
    return _core.NearestRows(_core.store_rows(X, Y, X.shape[1], Y.shape[1], weight), Y.shape[1], X.shape[1])


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"signed": True},
        {"levels": 1},
        {"levels": 2, "signed": True},
        {"density": 1.0},
        {"density": 0.02, "n_features": 500},
        {"n_rows": 1000, "n_features": 2000, "density": 0.1},
    ],
)
@pytest.mark.parametrize("k", [1, 5, 20, 1000])
def test_the_search_finds_the_very_rows_that_a_comparison_with_all_finds(kind, k):
    X, Y = random_data(1, **kind)
    queries, _ = random_data(2, **{**kind, "n_rows": 5})
    indptr, rows, similarities = stored(X, Y).nearest(queries, k, 1)
    plain = twin.rows_of_csr(X)
    for i, x in enumerate(twin.rows_of_csr(queries)):
        expected = twin.nearest(plain, x, k)
        assert rows[indptr[i] : indptr[i + 1]].tolist() == [row for row, _, _ in expected]
        np.testing.assert_array_equal(similarities[indptr[i] : indptr[i + 1]], np.float32([s for _, s, _ in expected]))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans(), st.sampled_from([None, 1, 3]))
def test_random_rows_are_ranked_exactly(seed, k, signed, levels):
    X, Y = random_data(seed, 150, signed=signed, levels=levels)
    queries, _ = random_data(seed + 1, 5, signed=signed, levels=levels)
    indptr, rows, _ = stored(X, Y).nearest(queries, k, 1)
    plain = twin.rows_of_csr(X)
    for i, x in enumerate(twin.rows_of_csr(queries)):
        assert rows[indptr[i] : indptr[i + 1]].tolist() == [row for row, _, _ in twin.nearest(plain, x, k)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_the_vote_is_the_twins(weighted, power):
    X, Y = random_data(3, 200)
    weight = np.random.default_rng(0).integers(1, 8, 200).astype(np.float32) / 2 if weighted else None
    queries, _ = random_data(4, 10)
    queries = sparse.csr_array(sparse.vstack([queries, sparse.csr_array((1, N_FEATURES), dtype=np.float32)]))
    core = stored(X, Y, weight)
    indptr, labels, p, _ = core.predict(queries, 6, power, None, 0.0, None, 1)
    found = sparse.csr_array((p, labels, indptr), shape=(11, N_LABELS)).toarray()
    plain = twin.rows_of_csr(X)
    expected = [twin.probabilities(plain, Y, x, 6, power, weight) for x in twin.rows_of_csr(queries)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    every_label = sparse.csr_array(np.ones((11, N_LABELS), np.float32))
    np.testing.assert_array_equal(core.named(queries, every_label, 6, power, 1).reshape(11, N_LABELS), found)
    for i in range(11):
        columns, one = core.predict_row(*row_arrays(queries[[i]]), 6, power, N_LABELS, 0.0)
        np.testing.assert_array_equal(one, found[i][columns])
        assert (np.diff(one) <= 0).all()


def test_few_rows_are_compared_in_full():
    X, Y = random_data(5, 4000, 3000, density=0.5)
    queries, _ = random_data(6, 50, 3000, density=0.5)
    *_, n_compared = stored(X, Y).predict(queries, 5, 3.0, 5, 0.0, None, 1)
    assert 5 * 50 <= n_compared < 0.05 * 4000 * 50


@pytest.mark.parametrize("signed", [False, True])
def test_rows_of_several_blocks_are_ranked_exactly(signed):
    """More rows than are searched at once; features from rare ones to some that every row has."""
    generator = np.random.default_rng(0)
    X = sparse.random_array((20_000, 300), density=0.02, rng=generator, format="csr", dtype=np.float32)
    common = generator.random((20_000, 5)).astype(np.float32) - (0.5 if signed else 0.0)
    X = sparse.csr_array(sparse.hstack([X, 0.3 * common], format="csr", dtype=np.float32))
    queries = sparse.csr_array(X[generator.integers(0, 20_000, 30)] + X[generator.integers(0, 20_000, 30)])
    Y = sparse.csr_array((np.ones(20_000, np.float32), np.zeros(20_000, np.int32), np.arange(20_001)), (20_000, 1))
    indptr, rows, similarities = stored(X, Y).nearest(queries, 40, 2)
    unit = [twin_unit(matrix.toarray().astype(np.float64)) for matrix in (queries, X)]
    expected = unit[0] @ unit[1].T
    for i in range(30):
        found = slice(indptr[i], indptr[i + 1])
        np.testing.assert_allclose(similarities[found], -np.sort(-expected[i])[:40], rtol=1e-5)
        np.testing.assert_allclose(expected[i][rows[found]], similarities[found], rtol=1e-5)


def twin_unit(dense):
    return dense / np.linalg.norm(dense, axis=1, keepdims=True)


@pytest.mark.parametrize("n_features", [500, 40_000])  # the second has too many for sums in 16 bits
def test_dense_rows_with_many_features_are_ranked_exactly(n_features):
    generator = np.random.default_rng(1)
    dense = generator.normal(size=(40, n_features)).astype(np.float32)
    X, Y = sparse.csr_array(dense), sparse.csr_array(np.ones((40, 1), np.float32))
    indptr, rows, similarities = stored(X, Y).nearest(X[:6], 7, 1)
    expected = twin_unit(dense[:6].astype(np.float64)) @ twin_unit(dense.astype(np.float64)).T
    for i in range(6):
        found = slice(indptr[i], indptr[i + 1])
        n_positive = min(7, int((expected[i] > 0).sum()))
        assert rows[found].tolist() == np.argsort(-expected[i])[:n_positive].tolist()
        np.testing.assert_allclose(similarities[found], -np.sort(-expected[i])[:n_positive], rtol=1e-4)


def test_rows_of_little_weight_are_all_found():
    """The weights of the nearest must sum up to k, which may take many rows."""
    X, Y = random_data(11, 300)
    weight = np.random.default_rng(0).choice([0.01, 1.0, 3.0], 300).astype(np.float32)
    queries, _ = random_data(12, 6)
    core, plain = stored(X, Y, weight), twin.rows_of_csr(X)
    indptr, rows, _ = core.nearest(queries, 8, 1)
    for i, x in enumerate(twin.rows_of_csr(queries)):
        assert rows[indptr[i] : indptr[i + 1]].tolist() == [row for row, _, _ in twin.nearest(plain, x, 8, weight)]


def test_the_number_of_threads_changes_nothing():
    X, Y = random_data(7, 1000)
    core = stored(X, Y)
    one, three = (core.predict(X, 5, 3.0, 3, 0.0, None, n_threads) for n_threads in (1, 3))
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a, b)


def test_neighbours_name_the_features_in_common_and_what_they_add():
    X, Y = random_data(8, 300)
    indices, values = row_arrays(X[[17]])
    found = stored(X, Y).neighbours(indices, values, 4, 2.0)
    assert found[0][0] == 17
    assert sum(share for _, _, share, *_ in found) == pytest.approx(1)
    for row, _, _, labels, features, added in found:
        assert labels.tolist() == Y[[row]].indices.tolist()
        assert set(features.tolist()) == set(indices.tolist()) & set(X[[row]].indices.tolist())
        assert (added > 0).all()


DAMAGED = random_data(9, 30)
ARRAYS = ["row_begin", "feature", "value", "weight", "label_begin", "label", "frequency"]


@settings(max_examples=200, deadline=None)
@given(damages(ARRAYS))
def test_damaged_arrays_are_refused_or_answered(damaged):
    X, Y = DAMAGED
    arrays = dict(_core.store_rows(X, Y, N_FEATURES, N_LABELS, None))
    assert sorted(arrays) == sorted(ARRAYS)
    name, damage = damaged
    arrays[name] = damage(arrays[name])
    try:
        core = _core.NearestRows(arrays, N_LABELS, N_FEATURES)
    except ValueError:
        return
    _, labels, p, _ = core.predict(X, 5, 3.0, None, 0.0, None, 1)
    assert ((labels >= 0) & (labels < N_LABELS)).all()
    assert ((p >= 0) & (p <= 1)).all()
    core.neighbours(*row_arrays(X[[0]]), 5, 3.0)


@pytest.mark.parametrize(
    ("k", "power", "said"), [(0, 1.0, "k is out of range"), (1, -1.0, "power"), (1, float("nan"), "power")]
)
def test_senseless_settings_are_refused(k, power, said):
    X, Y = random_data(10, 20)
    with pytest.raises(ValueError, match=said):
        stored(X, Y).predict(X, k, power, 3, 0.0, None, 1)
