"""Sparse arrays and label trees as arguments of the core: any object with the right attributes, converted and kept."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from ramify import _core
from ramify.data.csr import RowArrays
from shared.rows import label_rows, rows_of
from twins.models import (
    block_trainer,
    random_labels,
    random_model,
    random_rows,
    random_tree,
    same_arrays,
    solver_settings,
)

X = random_rows(np.random.default_rng(0), 30, 6)
Y = random_labels(np.random.default_rng(1), 30, 8)
TREE = random_tree(np.random.default_rng(2), 8)
TREE_ATTRIBUTES = ("parent", "first_child", "n_children", "label", "n_labels")
MODEL = random_model(np.random.default_rng(3), TREE).trained


def without(source, attributes, left_out):
    return SimpleNamespace(**{name: getattr(source, name) for name in attributes if name != left_out})


def copy_of(tree):
    """A tree whose arrays nothing else holds."""
    return SimpleNamespace(**{name: np.array(getattr(tree, name)) for name in TREE_ATTRIBUTES[:-1]}, n_labels=8)


def search(rows=X, core=MODEL.core):
    return core.search(rows, 3, 0.0, None, 0, 1)


def trained(rows=X, labels=Y, tree=TREE):
    return block_trainer(rows, labels, tree).train(solver_settings())


def overwrite_freed_memory():
    """Collect garbage and fill small arrays, so that memory read after it was freed changes."""
    gc.collect()
    return [np.full(size, 77, dtype) for size in range(1, 200) for dtype in (np.int32, np.int64, np.float32)]


def assert_same(answer, expected):
    for found, wanted in zip(answer, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def wide(rows):
    """The same array with int64 indices and float64 data; scipy would choose int32 itself."""
    copy = rows.astype(np.float64)
    copy.indices, copy.indptr = copy.indices.astype(np.int64), copy.indptr.astype(np.int64)
    return copy


# --- sparse arrays ---------------------------------------------------------------------------------------------------


def test_a_csr_array_of_other_types_is_converted():
    converted = wide(X)
    assert (converted.indptr.dtype, converted.indices.dtype, converted.data.dtype) == (np.int64, np.int64, np.float64)
    assert_same(search(converted), search())
    assert same_arrays(trained(converted, wide(Y)), trained())


@pytest.mark.parametrize(
    "rows",
    [sparse.csr_matrix(X), RowArrays(X.indptr, X.indices, X.data), without(X, ("indptr", "indices", "data"), None)],
    ids=["csr_matrix", "RowArrays", "namespace"],
)
def test_any_object_with_the_three_arrays_will_do(rows):
    assert_same(search(rows), search())


@pytest.mark.parametrize("name", ["indptr", "indices", "data"])
def test_rows_without_one_of_their_arrays_are_refused(name):
    with pytest.raises(TypeError):
        search(without(X, ("indptr", "indices", "data"), name))


@pytest.mark.parametrize("name", ["indptr", "indices"])
def test_labels_without_one_of_their_arrays_are_refused(name):
    with pytest.raises(TypeError):
        block_trainer(X, without(Y, ("indptr", "indices"), name), TREE)


def test_labels_need_no_values():
    labels = without(Y, ("indptr", "indices"), None)
    assert same_arrays(trained(labels=labels), trained())


@pytest.mark.parametrize("wrong", [None, 3, "rows", (), X.toarray(), X.tocoo()], ids=lambda value: type(value).__name__)
def test_what_is_no_compressed_array_is_refused(wrong):
    with pytest.raises(TypeError):
        search(wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("indptr", None),
        ("indptr", "bytes"),
        ("indices", X.indices[None]),
        ("indices", X.indices.astype(np.complex64)),
        ("data", [None]),
        ("data", X.data[:, None]),
    ],
)
def test_arrays_of_a_wrong_kind_or_shape_are_refused(name, wrong):
    with pytest.raises(TypeError):
        search(RowArrays(X.indptr, X.indices, X.data)._replace(**{name: wrong}))


def test_an_error_in_an_attribute_is_a_refusal_and_leaves_no_error_behind():
    expected = search()

    class Failing:
        @property
        def indptr(self):
            raise RuntimeError("not now")

    with pytest.raises(TypeError):
        search(Failing())
    assert_same(search(), expected)


def test_a_csc_array_is_read_by_columns():
    by_label = sparse.csc_array(Y)
    found = _core.label_vectors(X, 6, by_label, 0.0, 6, 1)
    of_label = [np.flatnonzero(Y.toarray()[:, label]) for label in range(8)]
    columns = label_rows(np.cumsum([0, *map(len, of_label)]), np.concatenate(of_label))
    assert_same(found, _core.label_vectors(X, 6, columns, 0.0, 6, 1))
    sums = Y.toarray().T @ (X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True).clip(1e-9))
    indptr, indices, values = found
    vectors = sparse.csr_array((values, indices, indptr), shape=(8, 6)).toarray()
    np.testing.assert_allclose(vectors, sums / np.linalg.norm(sums, axis=1, keepdims=True), atol=1e-5)
    assert len(_core.greedy_frequency(Y, by_label, np.ones(30))) == 8


# --- label trees -----------------------------------------------------------------------------------------------------


def model_of(tree):
    return _core.LabelTreeModel(
        MODEL.blocks,
        tree,
        _core.FeatureSettings(6, False, 0.5),
        MODEL.link.logits,
        MODEL.link.slope_table(),
        MODEL.link.low,
        MODEL.link.step,
        False,
    )


TAKERS = {
    "BlockTrainer": lambda tree: block_trainer(X, Y, tree),
    "LabelTreeModel": model_of,
    "collapse_levels": lambda tree: _core.collapse_levels(tree, np.ones(TREE.n_nodes), 3),
}


@pytest.mark.parametrize("name", TREE_ATTRIBUTES)
@pytest.mark.parametrize("taker", TAKERS)
def test_a_tree_without_one_of_its_attributes_is_refused(taker, name):
    TAKERS[taker](without(TREE, TREE_ATTRIBUTES, None))
    with pytest.raises(TypeError):
        TAKERS[taker](without(TREE, TREE_ATTRIBUTES, name))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("parent", None), ("label", TREE.label[None]), ("label", "labels"), ("n_labels", "8"), ("n_labels", None)],
)
def test_a_tree_with_an_attribute_of_a_wrong_kind_is_refused(name, wrong):
    tree = copy_of(TREE)
    setattr(tree, name, wrong)
    with pytest.raises(TypeError):
        block_trainer(X, Y, tree)


@pytest.mark.parametrize("n_labels", [-1, 2**31, 2**62])
def test_a_number_of_labels_out_of_range_is_refused(n_labels):
    tree = copy_of(TREE)
    tree.n_labels = n_labels
    with pytest.raises(ValueError, match="n_labels is out of range"):
        block_trainer(X, Y, tree)


def test_a_tree_of_other_types_is_converted():
    tree = SimpleNamespace(
        **{name: getattr(TREE, name).astype(np.int64) for name in TREE_ATTRIBUTES[:-1]}, n_labels=TREE.n_labels
    )
    assert same_arrays(trained(tree=tree), trained())
    assert_same(search(core=model_of(tree)), search(core=model_of(TREE)))


# --- lifetimes -------------------------------------------------------------------------------------------------------


def test_a_trainer_keeps_what_it_reads():
    expected = trained()
    rows, labels, tree = rows_of(X.indptr, X.indices, X.data), label_rows(Y.indptr, Y.indices), copy_of(TREE)
    weight = np.ones(30, np.float32)
    trainer = _core.BlockTrainer(rows, labels, tree, weight, _core.FeatureSettings(6, True, 0.5), 0, 1)
    del rows, labels, tree, weight
    junk = overwrite_freed_memory()
    assert same_arrays(trainer.train(solver_settings()), expected)
    trainer.train_hashed(solver_settings(), 8)
    assert junk


def test_a_trainer_keeps_arrays_that_were_converted_for_it():
    expected = trained()
    tree = copy_of(TREE)
    for name in TREE_ATTRIBUTES[:-1]:
        setattr(tree, name, getattr(tree, name).astype(np.int64))
    trainer = block_trainer(wide(X), wide(Y), tree)
    del tree
    junk = overwrite_freed_memory()
    assert same_arrays(trainer.train(solver_settings()), expected)
    assert junk


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_model_keeps_the_tree_that_it_searches(dtype):
    tree = copy_of(TREE)
    for name in TREE_ATTRIBUTES[:-1]:
        setattr(tree, name, getattr(tree, name).astype(dtype))
    core = model_of(tree)
    expected = search(core=model_of(TREE))
    del tree
    junk = overwrite_freed_memory()
    assert_same(search(core=core), expected)
    assert junk
