"""Dense numpy rows: read without a copy, and never changed or kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import ramify
from ramify.base.rows import canonical_rows, full_row, full_rows
from ramify.data.synthetic import make_multilabel


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)


def test_rows_without_zeros_are_read_without_a_copy(rows):
    read = canonical_rows(rows)
    assert np.shares_memory(read.data, rows)
    assert (read != sparse.csr_array(rows)).nnz == 0
    assert read.indices.dtype == np.int32
    assert read.has_canonical_format
    assert read.has_sorted_indices


def test_rows_with_zeros_or_in_another_order_are_the_same_rows(rows):
    holes = rows.copy()
    holes[3, 2] = 0
    for X in (holes, np.asfortranarray(rows), rows[::2], rows[:, ::-1]):
        assert (canonical_rows(X) != sparse.csr_array(X)).nnz == 0
        assert canonical_rows(X).data.all()


def test_one_dense_row_is_read_as_among_others(rows):
    columns, values = full_row(rows[0], 8)
    assert columns.tolist() == list(range(8))
    np.testing.assert_array_equal(values, rows[0])
    for odd in (np.zeros(8), np.full(8, np.nan), np.full(8, 1e300), np.ones(7), np.ones((2, 8)), np.ones(8, dtype=int)):
        assert full_row(odd, 8) is None
    assert full_rows(rows).shape == rows.shape


MODELS = {
    "plt": lambda: ramify.PLTClassifier(random_state=0),
    "online plt": lambda: ramify.OnlinePLTClassifier(random_state=0),
    "nearest rows": ramify.NearestRowsClassifier,
    "memory tree": lambda: ramify.MemoryTreeClassifier(random_state=0),
    "fastxml": lambda: ramify.FastXMLClassifier(n_trees=3, random_state=0),
    "spectral": lambda: ramify.SpectralTreeClassifier(n_candidates=5, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_neither_changes_nor_keeps_the_callers_rows(name, rows):
    y = np.arange(60) % 3
    X = rows.copy()
    model = MODELS[name]().fit(X, y)
    np.testing.assert_array_equal(X, rows)
    before = model.predict_proba(rows)
    X[:] = 7.0
    np.testing.assert_array_equal(model.predict_proba(rows), before)


@pytest.mark.parametrize("name", MODELS)
def test_one_dense_row_gets_the_answer_it_gets_in_a_batch(name, rows):
    data = make_multilabel(200, 10, 20, random_state=0)
    X = np.random.default_rng(1).normal(size=(200, 20)).astype(np.float32)
    model = MODELS[name]().fit(X, data.Y)
    together = model.predict_labels(X[:10], top_k=3)
    for row in range(10):
        for one in (X[row], X[row : row + 1], X[row].astype(np.float64), sparse.csr_array(X[row : row + 1])):
            assert model.predict_one(one, top_k=3) == together[row]
        assert model.predict_labels(X[row : row + 1], top_k=3) == [together[row]]
        assert (model.predict_proba(X[row : row + 1], top_k=3) != model.predict_proba(X[:10], top_k=3)[[row]]).nnz == 0


def test_bad_dense_rows_are_still_refused(rows):
    model = ramify.PLTClassifier(random_state=0).fit(rows, np.arange(60) % 3)
    for bad, message in ((np.full(8, np.nan), "NaN"), (np.ones(7), "7 features"), (np.full(8, np.inf), "infinity")):
        with pytest.raises(ValueError, match=message):
            model.predict_one(bad)
