"""Answers as lists of (label, probability)."""

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import _core

ROWS = st.lists(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=20, unique_by=lambda e: e[0]
    ),
    max_size=8,
)


def arrays(rows):
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    entries = [entry for row in rows for entry in sorted(row)]
    return indptr, np.array([e[0] for e in entries], np.int32), np.array([e[1] for e in entries], np.float32)


@given(ROWS)
def test_the_order_and_the_pairs_are_those_of_plain_python(rows):
    indptr, indices, data = arrays(rows)
    order = _core.best_first(indptr, indices, data)
    row_of = np.repeat(np.arange(len(rows)), np.diff(indptr))
    np.testing.assert_array_equal(order, np.lexsort((indices, -data, row_of)))
    labels = [f"label {column}" for column in indices[order].tolist()]
    expected = [[(f"label {c}", p) for c, p in sorted(row, key=lambda e: (-e[1], e[0]))] for row in rows]
    assert _core.label_pairs(indptr, labels, data[order]) == expected


def test_entries_that_are_no_number_come_last():
    data = np.array([np.nan, 0.1, np.nan, 0.9], np.float32)
    order = _core.best_first(np.array([0, 4]), np.arange(4, dtype=np.int32), data)
    assert order.tolist() == [3, 1, 0, 2]


def test_labels_of_any_kind_are_kept_and_freed():
    class Label:
        pass

    label, indptr, one = Label(), np.array([0, 1]), np.ones(1, np.float32)
    rows = _core.label_pairs(indptr, [label], one)
    assert rows[0][0][0] is label
    assert gc.is_tracked(rows[0][0])
    assert not gc.is_tracked(_core.label_pairs(indptr, ["plain"], one)[0][0])


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(is_enabled):
    (gc.enable if is_enabled else gc.disable)()
    try:
        _core.label_pairs(np.array([0, 1]), ["a"], np.ones(1, np.float32))
        with pytest.raises(ValueError):
            _core.label_pairs(np.array([0, 2]), ["a"], np.ones(1, np.float32))
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


@pytest.mark.parametrize("indptr", [[], [1, 2], [0, 3], [0, 2, 1, 2], [0, -1, 2]])
def test_rows_outside_of_the_entries_are_refused(indptr):
    indptr = np.array(indptr, np.int64)
    with pytest.raises(ValueError):
        _core.label_pairs(indptr, ["a", "b"], np.ones(2, np.float32))
    with pytest.raises(ValueError):
        _core.best_first(indptr, np.arange(2, dtype=np.int32), np.ones(2, np.float32))
