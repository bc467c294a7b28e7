"""The core's loops for decisions refuse arrays that do not fit together, and change nothing then."""

from __future__ import annotations

import numpy as np
import pytest

from ramify import _core
from shared.rows import label_rows, rows_of

LONG, INT, FLOAT = np.int64, np.int32, np.float32
P = rows_of([0, 2, 3], [0, 2, 1], [0.5, 0.2, 0.9])
Y = label_rows([0, 1, 2], [2, 1])


def pass_arguments(**changed):
    return {
        "P": P,
        "Y": Y,
        "n_labels": 3,
        "a": np.ones(3),
        "b": np.full(3, 4.0),
        "bound": None,
        "positives": np.zeros(3, LONG),
        "n_seen": 0,
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"P": P._replace(indptr=np.array([0, 2], LONG))}, "must begin with 0 and end with"),
        ({"P": P._replace(indptr=np.array([0, 4, 3], LONG))}, "must not decrease"),
        ({"P": P._replace(indices=np.array([0, 3, 1], INT))}, "column 3 is outside"),
        ({"P": P._replace(indices=np.array([2, 0, 1], INT))}, "P: labels of a row must be sorted"),
        ({"P": P._replace(indices=np.array([0, 0, 1], INT))}, "distinct"),
        ({"P": P._replace(data=np.ones(2, FLOAT))}, "differ in length"),
        ({"Y": Y._replace(indices=np.array([-1, 1], INT))}, "column -1 is outside"),
        ({"Y": Y._replace(indptr=np.array([0, 2], LONG))}, "number of rows"),
        ({"a": np.ones(2)}, "one value, or one a label"),
        ({"b": np.ones(2)}, "differ in length"),
        ({"b": np.zeros(3)}, "above zero"),
        ({"b": np.full(3, np.nan)}, "above zero"),
        ({"bound": np.zeros(2, FLOAT)}, "bound and a"),
        ({"positives": np.zeros(2, LONG)}, "for each label"),
        ({"n_seen": -1}, "negative"),
    ],
)
def test_a_pass_of_ofo_refuses_what_does_not_fit(changed, said):
    arguments = pass_arguments(**changed)
    before = arguments["a"].copy()
    with pytest.raises(ValueError, match=said):
        _core.online_f_pass(**arguments)
    np.testing.assert_array_equal(arguments["a"], before)


def ascent_arguments(**changed):
    return {
        "measure": "macro_f1",
        "k": 1,
        "P": P,
        "order": np.array([1, 0], LONG),
        "hits": np.zeros(3),
        "predicted": np.zeros(3),
        "positive": np.ones(3),
        "n_rows": 2.0,
        "is_chosen": np.zeros(3, np.uint8),
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"measure": "accuracy"}, "unknown measure accuracy"),
        ({"k": 0}, "at least 1"),
        ({"order": np.array([2], LONG)}, "row numbers"),
        ({"order": np.array([-1], LONG)}, "row numbers"),
        ({"predicted": np.zeros(2)}, "differ in length"),
        ({"hits": np.zeros(2)}, "column 2 is outside"),
        ({"is_chosen": np.zeros(2, np.uint8)}, "for each entry"),
        ({"P": P._replace(data=np.array([0.5, np.nan, 0.9], FLOAT))}, "finite"),
    ],
)
def test_an_ascent_refuses_what_does_not_fit(changed, said):
    with pytest.raises(ValueError, match=said):
        _core.ascend_budget(**ascent_arguments(**changed))


def test_arrays_of_other_types_are_refused_rather_than_changed_in_a_copy():
    with pytest.raises(TypeError):
        _core.online_f_pass(**pass_arguments(a=np.ones(3, FLOAT)))
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        _core.online_f_pass(**pass_arguments(a=frozen))


def test_what_fits_is_counted():
    arguments = pass_arguments()
    _core.online_f_pass(**arguments)
    assert arguments["a"].tolist() == [1.0, 2.0, 1.0]
    assert arguments["b"].tolist() == [5.0, 6.0, 5.0]
    assert arguments["positives"].tolist() == [0, 1, 1]
    arguments = ascent_arguments()
    assert _core.ascend_budget(**arguments) == 2
    assert arguments["is_chosen"].tolist() == [1, 0, 1]
