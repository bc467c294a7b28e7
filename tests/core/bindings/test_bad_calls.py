"""Senseless calls of the compiled module: refused or answered, never a crash (run under the sanitizers too)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import _core
from ramify.data.csr import RowArrays
from shared.bad_rows import bad_rows
from shared.rows import label_rows, row_arrays, rows_of
from twins.model_arrays import ARRAYS, N_FEATURES, N_LABELS, ROWS, build
from twins.models import block_trainer, random_labels, random_rows, random_tree, solver_settings

LONG, INT, FLOAT = np.int64, np.int32, np.float32
BAD_ROWS = bad_rows(N_FEATURES)


@pytest.fixture(params=sorted(ARRAYS))
def model(request):
    return build(ARRAYS[request.param])


@pytest.mark.parametrize("case", sorted(BAD_ROWS))
def test_bad_rows_are_refused_everywhere(model, case):
    X = rows_of(*BAD_ROWS[case])
    labels = label_rows(np.zeros(max(1, len(X.indptr))), [])
    with pytest.raises(ValueError):
        model.search(X, 5, 0.0, None, 0, 1)
    with pytest.raises(ValueError):
        model.named(X, labels, 1)
    if "indptr" not in case:
        with pytest.raises(ValueError):
            model.search_row(X.indices, X.data, 5, 0.0)
        with pytest.raises(ValueError):
            model.explain(X.indices, X.data, 0)
    tree = random_tree(np.random.default_rng(0), 3)
    features = _core.FeatureSettings(N_FEATURES, True, 0.5)
    with pytest.raises(ValueError):
        _core.BlockTrainer(X, labels, tree, None, features, 0, 1)
    if "values" not in case:  # labels have none
        with pytest.raises(ValueError):
            _core.BlockTrainer(rows_of([0] * len(labels.indptr), [], []), X, tree, None, features, 0, 1)


@pytest.mark.parametrize("threads", [-(2**31), -1, 0, 1, 2, 1000, 2**31 - 1])
def test_any_number_of_threads_gives_the_same_answer(model, threads):
    expected = model.search(ROWS, 5, 0.0, None, 0, 1)
    for one, other in zip(model.search(ROWS, 5, 0.0, None, 0, threads), expected, strict=True):
        assert np.array_equal(one, other)
    labels = label_rows(np.arange(7) * 2, [0, 3] * 6)
    assert np.array_equal(model.named(ROWS, labels, threads), model.named(ROWS, labels, 1))
    rng = np.random.default_rng(0)
    trainer = block_trainer(random_rows(rng, 9, 3), random_labels(rng, 9, 3), random_tree(rng, 3), n_threads=threads)
    trainer.train(solver_settings())


@pytest.mark.parametrize("top_k", [-(2**63), -1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("beam", [-(2**63), -1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, 2.0, float("nan"), float("inf")])
def test_extreme_questions_are_answered(model, top_k, beam, threshold):
    indptr, labels, probabilities, _ = model.search(ROWS, top_k, threshold, None, beam, 1)
    assert (np.diff(indptr) <= max(top_k, 0)).all()
    if not threshold <= 1.0:
        assert len(labels) == 0
    assert (probabilities >= (threshold if threshold > 0 else 0)).all()


def test_no_rows_and_empty_rows_are_answered(model):
    indptr, labels, probabilities, n_blocks = model.search(rows_of([0], [], []), 5, 0.0, None, 0, 2)
    assert (indptr.tolist(), len(labels), len(probabilities), n_blocks) == ([0], 0, 0, 0)
    assert len(model.named(rows_of([0], [], []), label_rows([0], []), 1)) == 0
    indptr, *_ = model.search(rows_of([0, 0, 0], [], []), 5, 0.0, None, 0, 1)
    assert indptr.tolist() == [0, indptr[1], 2 * indptr[1]]  # the bias still speaks
    model.search_row(np.zeros(0, INT), np.zeros(0, FLOAT), 3, 0.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("is_multiclass", [False, True])
def test_nan_and_infinite_values_are_harmless(value, is_multiclass):
    X = ROWS.copy()
    X.data[::3] = value
    for arrays in ARRAYS.values():
        model = build(arrays, is_multiclass=is_multiclass)
        _, _, probabilities, _ = model.search(X, None, 0.0, None, 0, 1)
        assert ((probabilities > 0) & (probabilities <= 1)).all()
        indices, values = row_arrays(X[[0]])
        model.explain(indices, values, 0)
        model.search_row(indices, values, 5, 0.0)
    rng = np.random.default_rng(0)
    Y, tree = random_labels(rng, 6, 4), random_tree(rng, 4)
    for loss in ("squared_hinge", "logistic"):
        trainer = block_trainer(X, Y, tree)
        trainer.train(solver_settings(loss=loss))
        trainer.train_hashed(solver_settings(loss=loss), 8)
        trainer.held_out([solver_settings(loss=loss)], 1.0, 100)


def test_named_labels_outside_the_model_are_refused(model):
    for label in (-1, N_LABELS, 2**31 - 1):
        with pytest.raises(ValueError, match="outside"):
            model.named(ROWS, label_rows([0, 1, 1, 1, 1, 1, 1], [label]), 1)
    with pytest.raises(ValueError, match="number of rows"):
        model.named(ROWS, label_rows([0, 1], [0]), 1)
    for label in (-1, N_LABELS, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match="no leaf"):
            model.explain(np.zeros(0, INT), np.zeros(0, FLOAT), label)


def test_thresholds_need_one_number_a_node(model):
    for length in (0, 1, N_LABELS, 10_000):
        with pytest.raises(ValueError, match="each node"):
            model.search(ROWS, 5, 0.0, np.zeros(length, FLOAT), 0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "hinge"}, {"loss": ""}, {"C": 0.0}, {"C": -1.0}, {"C": np.nan}, {"C": np.inf}, {"C": 1e300},
        {"positive_weight": 0.0}, {"positive_weight": np.nan}, {"positive_weight": np.inf}, {"max_epochs": 0},
        {"max_epochs": -5}, {"eps": np.nan}, {"eps": -1.0}, {"prune": np.nan}, {"prune": -0.5}, {"prune": np.inf},
    ],
)  # fmt: skip
def test_invalid_solver_settings_are_refused(changes):
    with pytest.raises(ValueError):
        solver_settings(**changes)


@pytest.mark.parametrize(
    "settings", [(-1, True, 0.5), (2**31 - 1, True, 0.5), (2**62, True, 0.5), (5, True, np.nan), (5, True, np.inf)]
)
def test_invalid_feature_settings_are_refused(settings):
    with pytest.raises(ValueError):
        _core.FeatureSettings(*settings)


@pytest.mark.parametrize("weights", [[1.0], [1.0] * 8, [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], [np.inf, 1.0, 1.0]])
def test_invalid_sample_weights_are_refused(weights):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="sample_weight"):
        block_trainer(
            random_rows(rng, 3, 4),
            random_labels(rng, 3, 2),
            random_tree(rng, 2),
            sample_weight=np.array(weights, FLOAT),
        )


def test_labels_need_leaves():
    tree = random_tree(np.random.default_rng(0), 5, 4)
    missing = int(np.flatnonzero(tree.leaf_of < 0)[0])
    Y = sparse.csr_array((np.ones(1, FLOAT), ([0], [missing])), shape=(1, 5))
    with pytest.raises(ValueError, match=f"label {missing} has no leaf"):
        block_trainer(random_rows(np.random.default_rng(0), 1, 3), Y, tree)


@pytest.mark.parametrize("share", [-1.0, 0.0, 2.0, np.nan, np.inf])
@pytest.mark.parametrize("max_rows", [-(2**63), -1, 0, 1, 2**63 - 1])
def test_any_share_can_be_held_out(share, max_rows):
    rng = np.random.default_rng(0)
    trainer = block_trainer(random_rows(rng, 30, 4), random_labels(rng, 30, 5), random_tree(rng, 5))
    [found], stands_for = trainer.held_out([solver_settings()], share, max_rows)
    assert all(np.isfinite(part).all() for part in (*found, stands_for))
    assert trainer.held_out([], share, max_rows)[0] == []


NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([2**31 - 1, -(2**31)]))
INTS = st.lists(NUMBERS, max_size=8).map(lambda values: np.array(values, INT))
LONGS = st.lists(st.one_of(NUMBERS, st.just(2**62)), max_size=8).map(lambda values: np.array(values, LONG))
FLOATS = st.lists(st.floats(width=32), max_size=8).map(lambda values: np.array(values, FLOAT))
ROW_ARRAYS = st.builds(RowArrays, LONGS, INTS, FLOATS)
DOUBLES = st.lists(st.floats(), max_size=8).map(lambda values: np.array(values, np.float64))


@settings(max_examples=300)
@given(st.data())
def test_functions_of_trees_refuse_or_answer_any_arrays(data):
    calls = {
        "breadth_first": (INTS, NUMBERS),
        "node_depths": (INTS,),
        "subtree_minimum": (INTS, DOUBLES),
        "subtree_sum": (INTS, LONGS),
        "huffman_parents": (DOUBLES, NUMBERS),
        "label_vectors": (
            ROW_ARRAYS, st.integers(0, 12), st.builds(label_rows, LONGS, INTS), st.floats(width=32), st.integers(-1, 4),
            st.integers(-1, 3),
        ),
        "split_labels": (
            ROW_ARRAYS, st.integers(0, 12), INTS, LONGS, LONGS, LONGS,
            st.floats(), st.integers(-1, 5), st.integers(0, 9), st.integers(-1, 3),
        ),
    }  # fmt: skip
    name = data.draw(st.sampled_from(sorted(calls)))
    arguments = [data.draw(strategy) for strategy in calls[name]]
    try:
        getattr(_core, name)(*arguments)
    except (ValueError, TypeError, OverflowError):
        return
