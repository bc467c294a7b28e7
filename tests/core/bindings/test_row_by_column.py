"""The entries of one row in order of column, as the parts of a CSR array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import _core
from ramify.base.answers import row_by_column


@given(st.dictionaries(st.integers(0, 2**31 - 2), st.floats(0, 1, width=32), max_size=40), st.randoms())
def test_entries_come_in_order_of_column_with_their_values(entries, random):
    columns = list(entries)
    random.shuffle(columns)
    values = np.array([entries[column] for column in columns], np.float32)
    indptr, indices, data = _core.row_by_column(np.array(columns, np.int32), values)
    assert (indptr.dtype, indices.dtype, data.dtype) == (np.int32, np.int32, np.float32)
    assert indptr.tolist() == [0, len(entries)]
    assert indices.tolist() == sorted(entries)
    np.testing.assert_array_equal(data, np.array([entries[column] for column in sorted(entries)], np.float32))


def test_columns_and_values_must_be_equally_many():
    with pytest.raises(ValueError, match="indices and data differ in length"):
        _core.row_by_column(np.zeros(2, np.int32), np.zeros(1, np.float32))


def test_rows_are_arrays_of_their_own():
    """They are made from one empty row: what is done to one must not show in the next."""
    first = row_by_column(np.array([2, 0], np.int32), np.array([0.5, 1], np.float32), 3)
    first.data[:] = 7
    first.resize(1, 2)
    second = row_by_column(np.array([1], np.int32), np.ones(1, np.float32), 3)
    assert second.shape == (1, 3)
    np.testing.assert_array_equal(second.toarray(), [[0, 1, 0]])
    assert second.has_sorted_indices
    assert (second + second).toarray()[0, 1] == 2
