"""Calls of the interpolated trees' core with arguments that do not fit: refused, never a crash; and hostile numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ramify import _core

VECTORS = (np.array([0, 2, 3, 4]), np.array([0, 2, 1, 2], np.int32), np.array([0.6, 0.8, 1, 1], np.float32), 3)
SETTINGS = {"similarity": 0.5, "frequency": 0.1, "eps": 1e-4, "max_iterations": 5, "seed": 1}


def split(vectors=VECTORS, order=(0, 1, 2), weight=(1.0, 2.0, 3.0), starts=(0,), stops=(3,), n_threads=1, **changed):
    order = np.array(order, np.int32)
    cuts = _core.split_by_objective(
        *vectors,
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
        {"vectors": (VECTORS[0], VECTORS[1], VECTORS[2], 2)},
        {"vectors": (VECTORS[0][:-1], VECTORS[1], VECTORS[2], 3)},
        {"vectors": (VECTORS[0], VECTORS[1], VECTORS[2][:-1], 3)},
        {"vectors": (VECTORS[0][::-1].copy(), VECTORS[1], VECTORS[2], 3)},
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
    start, column = np.arange(n + 1), (np.arange(n) % 7).astype(np.int32)
    values = np.where(np.arange(n) % 3 == 0, value, 0.5).astype(np.float32)
    weight = np.where(np.arange(n) % 5 == 0, mass, 1e-3)
    whole = {"vectors": (start, column, values, 7), "order": np.arange(n), "weight": weight, "stops": (n,)}
    order, cuts = split(**whole, similarity=similarity)
    assert sorted(order) == list(range(n))
    assert 0 < cuts[0] < n
    assert np.array_equal(split(**whole, similarity=similarity, n_threads=3)[0], order)


def test_one_part_of_all_labels_is_refused_when_it_does_not_fit():
    def alternate(vectors, weight):
        return _core.alternating_maximisation(*vectors, np.array(weight, dtype=np.float64), rounds=False, **SETTINGS)

    assert len(alternate(VECTORS, [1, 1, 1])[0]) == 3
    for weight in ([1, 1], [1, 1, -1], [1, 1, np.nan]):
        with pytest.raises(ValueError):
            alternate(VECTORS, weight)
    with pytest.raises(ValueError, match="at least two"):
        alternate((np.array([0, 1]), VECTORS[1][:1], VECTORS[2][:1], 3), [1])


def test_greedy_frequencies_reject_arrays_that_do_not_fit():
    rows = np.array([0, 2, 3]), np.array([0, 1, 1], np.int32)
    columns = np.array([0, 1, 3]), np.array([0, 0, 1], np.int32)
    assert _core.greedy_frequency(*rows, *columns, np.ones(2)).tolist() == [0, 2]
    for wrong in (np.ones(3), np.array([1.0, np.nan]), np.array([1.0, -1.0])):
        with pytest.raises(ValueError):
            _core.greedy_frequency(*rows, *columns, wrong)
    with pytest.raises(ValueError):
        _core.greedy_frequency(*rows, columns[0], np.array([0, 0, 2], np.int32), np.ones(2))
    with pytest.raises(ValueError):
        _core.greedy_frequency(rows[0], np.array([0, 1, 2], np.int32), *columns, np.ones(2))
    other = np.array([1, 1, 1], np.int32)  # by columns it is another array: an answer, if a meaningless one
    assert len(_core.greedy_frequency(*rows, columns[0], other, np.ones(2))) == 2


def test_collapsing_refuses_what_is_no_tree():
    tree = (
        np.array([-1, 0, 0, 1, 1], np.int32),
        np.array([1, 3, -1, -1, -1], np.int32),
        np.array([2, 2, 0, 0, 0], np.int32),
        np.array([-1, -1, 2, 0, 1], np.int32),
        3,
    )
    assert _core.collapse_levels(*tree, np.array([3.0, 2, 1, 1, 1]), 3).tolist() == [1, 0, 1, 1, 1]
    assert _core.collapse_levels(*tree, np.array([3.0, 2, 1, 1, 1]), 2).tolist() == [1, 1, 1, 1, 1]
    for mass, arity in ((np.ones(4), 3), (np.full(5, np.nan), 3), (np.ones(5), 1)):
        with pytest.raises(ValueError):
            _core.collapse_levels(*tree, mass, arity)
    for place, bad in ((0, [-1, 0, 0, 1, 9]), (1, [1, 4, -1, -1, -1]), (2, [2, 9, 0, 0, 0]), (3, [-1, -1, 7, 0, 1])):
        wrong = list(tree)
        wrong[place] = np.array(bad, np.int32)
        with pytest.raises(ValueError):
            _core.collapse_levels(*wrong, np.ones(5), 3)


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
