"""Rows of few weights in large panels: twelve bits a weight, found by a bitmap of 128 features."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logit

import ramify
from ramify import PLTClassifier, PLTSolver
from ramify.models.plt.calibration import IDENTITY
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees import one_level_tree
from shared.rows import label_rows, row_arrays
from twins.blocks import BLOCK_FEATURES, PACKED, PACKED_PADDING, PACKED_VALUES, PANEL_FIELDS, thaw
from twins.models import block_trainer, random_rows, solver_settings
from twins.search import label_probabilities, prepared

KIND, ROW_BEGIN, N_BYTES = (PANEL_FIELDS.index(name) for name in ("bucket_bits", "row_begin", "n_bytes"))
N_FEATURES, N_LABELS = 8000, 250
HEADER, ENTRY = 4 + 2 * PACKED_VALUES, 4 + BLOCK_FEATURES // 8


@cache
def rows_and_labels():
    rng = np.random.default_rng(0)
    X = random_rows(rng, 2500, N_FEATURES, density=0.0025)
    X = sparse.csr_array(sparse.hstack([X, rng.random((2500, 1)) + 0.1], format="csr", dtype=np.float32))
    labels = rng.integers(0, N_LABELS, 2500)
    Y = sparse.csr_array((np.ones(2500, np.float32), labels, np.arange(2501)), shape=(2500, N_LABELS))
    return X, Y


@cache
def packed_blocks():
    X, Y = rows_and_labels()
    blocks = block_trainer(X, Y, one_level(Y)).train(solver_settings(prune=0.05, packs=True))
    assert (blocks["panels"][:, KIND] >= PACKED - 1).all()
    return blocks


def one_level(Y):
    return one_level_tree(None, Y)


def trained_tree(blocks):
    X, Y = rows_and_labels()
    return TrainedTree(one_level(Y), blocks, IDENTITY, X.shape[1], True, 0.5, False)


def damaged(change):
    rows = packed_blocks()["rows"].copy()
    change(rows)
    return trained_tree(packed_blocks() | {"rows": rows})


def ask_everything(trained):
    X, _ = rows_and_labels()
    for how in ({"top_k": 5}, {"top_k": None}, {"top_k": 5, "n_threads": 2}):
        assert (trained.search(X[:40], threshold=0.01, **how).data <= 1).all()
    every = label_rows(np.arange(4) * N_LABELS, np.tile(np.arange(N_LABELS, dtype=np.int32), 3))
    p = trained.core.named(X[:3], every, 1)
    assert ((p >= 0) & (p <= 1)).all()
    indices, values = row_arrays(X[[0]])
    trained.core.explain(indices, values, 3)


def test_rows_are_packed_only_if_that_is_wanted():
    X, Y = rows_and_labels()
    blocks = block_trainer(X, Y, one_level(Y)).train(solver_settings(prune=0.05))
    assert (blocks["panels"][:, KIND] < PACKED - 1).all()
    with pytest.raises(ValueError, match="packed"):
        PLTClassifier(solver=PLTSolver(packed=1)).fit(X, Y)


def test_packed_rows_score_as_the_arrays_say():
    X, Y = rows_and_labels()
    nodes = thaw(packed_blocks(), X.shape[1] + 1)
    x = prepared(X[:20].toarray(), True, 0.5)
    expected = [label_probabilities(one_level(Y), nodes, row, IDENTITY, False) for row in x]
    every = sparse.csr_array(np.ones((20, N_LABELS), np.float32))
    found = trained_tree(packed_blocks()).named(X[:20], every).reshape(20, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)


def test_packed_weights_answer_as_bytes_do():
    X, Y = rows_and_labels()
    blocks = block_trainer(X, Y, one_level(Y)).train(solver_settings(prune=0.05))
    whole = TrainedTree(one_level(Y), blocks, IDENTITY, X.shape[1], True, 0.5, False)
    assert len(packed_blocks()["rows"]) < 0.9 * len(blocks["rows"])
    every = sparse.csr_array(np.ones((300, N_LABELS), np.float32))
    expected, found = (logit(of.named(X[:300], every)) for of in (whole, trained_tree(packed_blocks())))
    error = found - expected
    assert abs(error.mean()) < 0.002
    assert np.sqrt((error**2).mean()) < 0.05
    assert np.corrcoef(found, expected)[0, 1] > 0.98


def test_an_index_of_more_features_than_weights_is_not_worth_it():
    X, Y = rows_and_labels()
    wide = sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], 2**18))
    blocks = block_trainer(wide, Y, one_level(Y)).train(solver_settings(prune=0.05, packs=True))
    assert (blocks["panels"][:, KIND] < PACKED - 1).all()


@pytest.mark.parametrize("size", [0, 1, HEADER, 2**16, 2**31, 2**32 - 1])
def test_a_wrong_size_is_refused(size):
    def change(rows):
        rows[:4] = np.array([size], "<u4").view(np.uint8)

    with pytest.raises(ValueError, match="rows"):
        _ = damaged(change).core


def test_a_chunk_with_other_rows_than_its_bitmap_is_refused():
    def one_row_more(rows):
        rows[HEADER + 4] ^= 1

    def one_weight_more(rows):
        chunk = HEADER + ENTRY * -(-(N_FEATURES + 2) // BLOCK_FEATURES)
        rows[chunk] += 1

    def no_row_ends(rows):
        chunk = HEADER + ENTRY * -(-(N_FEATURES + 2) // BLOCK_FEATURES)
        rows[chunk + 2 : chunk + 12] = 0

    for change in (one_row_more, one_weight_more, no_row_ends):
        with pytest.raises(ValueError, match="rows"):
            _ = damaged(change).core


@pytest.mark.parametrize("seed", range(40))
def test_damaged_packed_rows_are_refused_or_answer(seed):
    rng = np.random.default_rng(seed)
    n_index = HEADER + ENTRY * -(-(N_FEATURES + 2) // BLOCK_FEATURES)

    def change(rows):
        size = int(rows[:4].view("<u4")[0])
        end = [n_index, size, size - PACKED_PADDING + 4][seed % 3]
        for at in rng.integers(0, end, rng.integers(1, 4)):
            rows[at] = rng.integers(0, 256)

    try:
        trained = damaged(change)
        _ = trained.core
    except ValueError:
        return
    ask_everything(trained)


def test_cut_packed_rows_are_refused():
    blocks = packed_blocks()
    size = int(blocks["rows"][:4].view("<u4")[0])
    for n in (0, 3, HEADER, size - 1):
        panels = blocks["panels"].copy()
        panels[0, N_BYTES] = n
        with pytest.raises(ValueError, match="rows"):
            _ = trained_tree(blocks | {"panels": panels[:1], "rows": blocks["rows"][:n]}).core


def test_one_row_a_batch_and_a_loaded_model_agree_to_the_bit(tmp_path):
    X, Y = rows_and_labels()
    clf = PLTClassifier(tree="one_level", solver=PLTSolver(C=1.0, prune=0.05, packed=True), random_state=0).fit(X, Y)
    assert (clf.trees_[0].blocks["panels"][:, KIND] >= PACKED - 1).any()
    answers = clf.predict_labels(X[:50], top_k=5)
    assert answers == [clf.predict_one(X[[i]], top_k=5) for i in range(50)]
    assert answers == clf.set_params(n_jobs=2).predict_labels(X[:50], top_k=5)
    clf.save(tmp_path / "model")
    loaded = ramify.load(tmp_path / "model")
    assert answers == loaded.predict_labels(X[:50], top_k=5)
    for label, probability in answers[0]:
        path = loaded.explain(X[[0]], label)
        assert path.probability == probability
