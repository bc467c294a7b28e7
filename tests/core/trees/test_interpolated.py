"""Calls of the interpolated trees' core with arguments that do not fit: refused, never a crash; and hostile numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ramify import _core
from shared.rows import label_rows, rows_of

VECTORS = rows_of([0, 2, 3, 4], [0, 2, 1, 2], [0.6, 0.8, 1, 1])
SETTINGS = {"similarity": 0.5, "frequency": 0.1, "eps": 1e-4, "max_iterations": 5, "seed": 1}


def split(
    vectors=VECTORS,
    n_features=3,
    order=(0, 1, 2),
    weight=(1.0, 2.0, 3.0),
    starts=(0,),
    stops=(3,),
    n_threads=1,
    **changed,
):
    order = np.array(order, np.int32)
    cuts = _core.split_by_objective(
        vectors,
        n_features,
        order,
        np.array(weight, dtype=np.float64),
        np.array(starts, dtype=np.int64),
        np.array(stops, dtype=np.int64),
        n_threads=n_threads,
        **(SETTINGS | changed),
    )
    return order, cuts


def test_a_part_is_cut_inside():
    order, cuts = split()
    assert sorted(order) == [0, 1, 2]
    assert 0 < cuts[0] < 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": (0, 1, 3)},
        {"order": (0, -1, 2)},
        {"weight": (1.0, 2.0)},
        {"weight": (1.0, -2.0, 1.0)},
        {"weight": (1.0, np.nan, 1.0)},
        {"weight": (1.0, np.inf, 1.0)},
        {"starts": (0, 1), "stops": (3,)},
        {"starts": (0, 1), "stops": (2, 3)},
        {"starts": (2,), "stops": (3,)},
        {"starts": (-1,)},
        {"stops": (4,)},
        {"n_threads": 0},
        {"similarity": -1.0},
        {"similarity": np.nan},
        {"frequency": np.inf},
        {"eps": -1.0},
        {"max_iterations": 0},
        {"n_features": 2},
        {"vectors": VECTORS._replace(indptr=VECTORS.indptr[:-1])},
        {"vectors": VECTORS._replace(data=VECTORS.data[:-1])},
        {"vectors": VECTORS._replace(indptr=VECTORS.indptr[::-1].copy())},
    ],
)
def test_arguments_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ValueError):
        split(**wrong)


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38, 1e-45, 0.0])
@pytest.mark.parametrize("mass", [0.0, 1e-300, 1e30])
@pytest.mark.parametrize("similarity", [0.0, 0.5])
def test_hostile_vectors_and_masses_are_split_all_the_same(value, mass, similarity):
    n = 300
    values = np.where(np.arange(n) % 3 == 0, value, 0.5)
    weight = np.where(np.arange(n) % 5 == 0, mass, 1e-3)
    vectors = rows_of(np.arange(n + 1), np.arange(n) % 7, values)
    whole = {"vectors": vectors, "n_features": 7, "order": np.arange(n), "weight": weight, "stops": (n,)}
    order, cuts = split(**whole, similarity=similarity)
    assert sorted(order) == list(range(n))
    assert 0 < cuts[0] < n
    assert np.array_equal(split(**whole, similarity=similarity, n_threads=3)[0], order)


def test_one_part_of_all_labels_is_refused_when_it_does_not_fit():
    def alternate(vectors, weight):
        return _core.alternating_maximisation(vectors, 3, np.array(weight, dtype=np.float64), rounds=False, **SETTINGS)

    assert len(alternate(VECTORS, [1, 1, 1])[0]) == 3
    for weight in ([1, 1], [1, 1, -1], [1, 1, np.nan]):
        with pytest.raises(ValueError):
            alternate(VECTORS, weight)
    with pytest.raises(ValueError, match="at least two"):
        alternate(rows_of([0, 1], VECTORS.indices[:1], VECTORS.data[:1]), [1])


def test_greedy_frequencies_reject_arrays_that_do_not_fit():
    rows = label_rows([0, 2, 3], [0, 1, 1])
    columns = label_rows([0, 1, 3], [0, 0, 1])
    assert _core.greedy_frequency(rows, columns, np.ones(2)).tolist() == [0, 2]
    for wrong in (np.ones(3), np.array([1.0, np.nan]), np.array([1.0, -1.0])):
        with pytest.raises(ValueError):
            _core.greedy_frequency(rows, columns, wrong)
    with pytest.raises(ValueError):
        _core.greedy_frequency(rows, columns._replace(indices=np.array([0, 0, 2], np.int32)), np.ones(2))
    with pytest.raises(ValueError):
        _core.greedy_frequency(rows._replace(indices=np.array([0, 1, 2], np.int32)), columns, np.ones(2))
    other = np.array([1, 1, 1], np.int32)  # by columns it is another array: an answer, if a meaningless one
    assert len(_core.greedy_frequency(rows, columns._replace(indices=other), np.ones(2))) == 2


def test_collapsing_refuses_what_is_no_tree():
    arrays = {
        "parent": np.array([-1, 0, 0, 1, 1], np.int32),
        "first_child": np.array([1, 3, -1, -1, -1], np.int32),
        "n_children": np.array([2, 2, 0, 0, 0], np.int32),
        "label": np.array([-1, -1, 2, 0, 1], np.int32),
    }
    tree = SimpleNamespace(**arrays, n_labels=3)
    assert _core.collapse_levels(tree, np.array([3.0, 2, 1, 1, 1]), 3).tolist() == [1, 0, 1, 1, 1]
    assert _core.collapse_levels(tree, np.array([3.0, 2, 1, 1, 1]), 2).tolist() == [1, 1, 1, 1, 1]
    for mass, arity in ((np.ones(4), 3), (np.full(5, np.nan), 3), (np.ones(5), 1)):
        with pytest.raises(ValueError):
            _core.collapse_levels(tree, mass, arity)
    for name, bad in (
        ("parent", [-1, 0, 0, 1, 9]),
        ("first_child", [1, 4, -1, -1, -1]),
        ("n_children", [2, 9, 0, 0, 0]),
        ("label", [-1, -1, 7, 0, 1]),
    ):
        wrong = SimpleNamespace(**{**arrays, name: np.array(bad, np.int32)}, n_labels=3)
        with pytest.raises(ValueError):
            _core.collapse_levels(wrong, np.ones(5), 3)


def test_rows_that_are_not_plain_are_detected():
    def is_plain(indices, values, n_features=10):
        return _core.is_plain_row(np.array(indices, np.int32), np.array(values, np.float32), n_features)

    assert is_plain([], [])
    assert is_plain([0, 9], [1, 2])
    assert not is_plain([0, 10], [1, 2])
    assert not is_plain([1, 1], [1, 2])
    assert not is_plain([3, 1], [1, 2])
    assert not is_plain([-1, 1], [1, 2])
    assert not is_plain([0, 1], [1, np.nan])
    assert not is_plain([0, 1], [1, np.inf])
    assert not is_plain([0, 1], [1])
