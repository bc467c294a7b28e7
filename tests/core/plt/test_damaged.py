"""Damaged model arrays: refused or answered, never a crash (run under the sanitizers too)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.damages import ODD_NUMBERS, damages
from shared.rows import label_rows, row_arrays
from twins.blocks import DTYPES, PANEL_FIELDS
from twins.model_arrays import ARRAYS, N_LABELS, ROWS, TREE_ARRAYS, build


def ask_everything(model):
    """Every search of the model; the answers must make sense, whatever the arrays held."""
    for arguments in ((5, 0.0, None, 0, 1), (None, 0.01, None, 0, 2), (None, 0.0, None, 3, 1)):
        indptr, labels, probabilities, _ = model.search(ROWS, *arguments)
        assert indptr[-1] == len(labels) == len(probabilities)
        assert ((labels >= 0) & (labels < N_LABELS)).all()
        assert ((probabilities > 0) & (probabilities <= 1)).all()
        for start, stop in itertools.pairwise(indptr):
            assert (np.diff(labels[start:stop]) > 0).all()
    every = np.tile(np.arange(N_LABELS, dtype=np.int32), 6)
    p = model.named(ROWS, label_rows(np.arange(7) * N_LABELS, every), 1)
    assert ((p >= 0) & (p <= 1)).all()
    indices, values = row_arrays(ROWS[[0]])
    model.search_row(indices, values, 5, 0.0)
    for label in (0, N_LABELS - 1):
        model.explain(indices, values, label)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(ARRAYS)),
    st.lists(damages([*DTYPES, "link", "link_slopes", "claims"]), min_size=1, max_size=2),
    st.booleans(),
)
def test_damaged_blocks_are_refused_or_answer(index, changes, is_multiclass):
    arrays = dict(ARRAYS[index])
    for name, damage in changes:
        arrays[name] = damage(arrays[name])
    try:
        model = build(arrays, is_multiclass=is_multiclass)
    except (ValueError, TypeError):  # TypeError: the link is an argument of its own
        return
    ask_everything(model)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(ARRAYS)), st.lists(damages(TREE_ARRAYS), min_size=1, max_size=2))
def test_damaged_trees_are_refused_or_answer(index, changes):
    arrays = dict(ARRAYS[index])
    for name, damage in changes:
        arrays[name] = damage(arrays[name])
    try:
        model = build(arrays)
    except (ValueError, TypeError):
        return
    ask_everything(model)


@settings(max_examples=150)
@given(
    st.sampled_from(["bitmap", "bucket", "hashed"]),
    st.sampled_from(PANEL_FIELDS),
    st.sampled_from([*ODD_NUMBERS, 3, 8, 9, 30, 31, 63, 64, -2, -3]),
    st.integers(0, 2**32 - 1),
)
def test_every_field_of_a_panel_is_checked(index, field, value, seed):
    arrays = dict(ARRAYS[index])
    arrays["panels"] = arrays["panels"].copy()
    arrays["panels"][seed % len(arrays["panels"]), PANEL_FIELDS.index(field)] = value
    try:
        model = build(arrays)
    except ValueError:
        return
    ask_everything(model)


def test_undamaged_arrays_are_accepted():
    for arrays in ARRAYS.values():
        ask_everything(build(arrays))


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_a_missing_or_mistyped_array_is_named(name):
    whole = ARRAYS["bitmap"]
    with pytest.raises(ValueError, match=f"no array named {name}"):
        build({key: array for key, array in whole.items() if key != name})
    for wrong in (whole[name].astype(np.float64), None, [1, 2, 3], "bytes", whole[name][None]):
        with pytest.raises(ValueError, match=f"{name} has a wrong type or shape"):
            build({**whole, name: wrong})


def test_a_label_has_no_two_leaves():
    arrays = dict(ARRAYS["bitmap"])
    arrays["label"] = arrays["label"].copy()
    leaves = np.flatnonzero(arrays["label"] >= 0)
    arrays["label"][leaves[0]] = arrays["label"][leaves[1]]
    with pytest.raises(ValueError, match="two leaves"):
        build(arrays)


def test_a_child_is_no_column_twice():
    arrays = dict(ARRAYS["bitmap"])
    panel = next(p for p in arrays["panels"].tolist() if p[2] > 1)
    arrays["column_child"] = arrays["column_child"].copy()
    arrays["column_child"][panel[1] : panel[1] + 2] = 0
    with pytest.raises(ValueError, match="column_child"):
        build(arrays)


@pytest.mark.parametrize(
    "changes", [{"low": np.nan}, {"low": np.inf}, {"step": 0.0}, {"step": -1.0}, {"step": np.nan}, {"step": np.inf}]
)
def test_link_maps_need_a_sound_grid(changes):
    with pytest.raises(ValueError, match="link map"):
        build(ARRAYS["bitmap"], **changes)


def test_the_model_keeps_its_arrays_alive():
    arrays = {name: array.copy() for name, array in ARRAYS["bucket"].items()}
    model = build(arrays)
    expected = model.search(ROWS, 5, 0.0, None, 0, 1)
    del arrays
    junk = [np.full(array.shape, 77, array.dtype) for array in ARRAYS["bucket"].values() for _ in range(20)]
    for one, other in zip(model.search(ROWS, 5, 0.0, None, 0, 1), expected, strict=True):
        assert np.array_equal(one, other)
    assert len(junk)
