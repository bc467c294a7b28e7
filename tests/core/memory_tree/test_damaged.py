"""Damaged states and senseless calls of the memory tree: refused or answered, never a crash (sanitized, too)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ramify import MemoryTreeClassifier
from ramify.base import save_load as persist
from ramify.base.model import State
from ramify.files.directory import ModelFileError
from ramify.models.memory_tree.model import MemoryTreeModel
from shared.damages import damages
from shared.memory_trees import N_LABELS, check_invariants, stream
from shared.rows import label_rows, row_arrays, rows_of
from twins.memory_tree import SETTINGS, core_tree, learn

LONG, INT, FLOAT = np.int64, np.int32, np.float32
OPTIONS = {
    "plain": {},
    "one class": {"is_multiclass": True, "has_one_against_rest": False},
    "bounded": {"max_examples": 30},
    "useful": {"max_examples": 30, "forget": "least_useful", "normalize": False},
}
STATES = {
    name: learn(core_tree(**changes), *stream(0, 60, changes.get("is_multiclass", False))).state()
    for name, changes in OPTIONS.items()
}
ROWS, _ = stream(8, 6, True)


def ask_everything(core):
    """Every question, whatever the arrays held; the answers must make sense."""
    own = np.full(N_LABELS, 0.1, FLOAT)
    for arguments in ((3, 0.0, None, 1), (None, 0.01, None, 2), (None, 0.0, own, 1)):
        indptr, labels, probabilities, _, _ = core.query(ROWS, N_LABELS, *arguments)
        assert indptr[-1] == len(labels) == len(probabilities)
        assert ((labels >= 0) & (labels < N_LABELS)).all()
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        for start, stop in itertools.pairwise(indptr):
            assert (np.diff(labels[start:stop]) > 0).all()
    named = core.named(ROWS, N_LABELS, np.arange(N_LABELS, dtype=INT), 1)
    assert ((named >= 0) & (named <= 1)).all()
    indices, values = row_arrays(ROWS[[0]])
    core.query_row(indices, values, N_LABELS, 5, 0.0)
    for found in core.neighbours(indices, values):
        assert core.route(indices, values, found[0], 0)[0][0] == 0
    assert core.memory > 0


def go_on(core, is_multiclass):
    learn(core, *stream(9, 40, is_multiclass))
    core.revisit(np.arange(core.n_examples), None)
    ask_everything(core)
    core.state()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(STATES)), st.lists(damages(sorted(STATES["plain"])), min_size=1, max_size=2))
def test_damaged_states_are_refused_or_answer(which, hurt):
    state, changes = dict(STATES[which]), OPTIONS[which]
    for name, damage in hurt:
        state[name] = damage(state[name])
    core = core_tree(**changes)
    try:
        core.restore(state, N_LABELS)
    except ValueError:
        assert core.n_examples == core.n_learned == 0  # as it was
    ask_everything(core)
    go_on(core, changes.get("is_multiclass", False))


@pytest.mark.parametrize("name", sorted(STATES["plain"]))
def test_a_missing_or_mistyped_array_is_named(name):
    state = dict(STATES["plain"])
    for bad in (None, state[name].astype(np.complex64), state[name][None]):
        if bad is None:
            state.pop(name)
        else:
            state[name] = bad
        with pytest.raises(ValueError, match=f"the model's array {name} is missing or has a wrong type or shape"):
            core_tree().restore(state, N_LABELS)


@pytest.mark.parametrize("place", [0, 5, -2])
def test_a_feature_that_is_listed_twice_is_refused(place):
    state = dict(STATES["plain"])
    state["feature"] = state["feature"].copy()
    state["feature"][-1] = state["feature"][place]
    with pytest.raises(ValueError, match="listed twice"):
        core_tree().restore(state, N_LABELS)


def test_a_tree_that_has_learned_takes_no_other_state():
    core = learn(core_tree(), *stream(0, 5, False))
    with pytest.raises(ValueError, match="only a new memory tree"):
        core.restore(STATES["plain"], N_LABELS)
    check_invariants(core)


@pytest.mark.parametrize("which", sorted(STATES))
def test_a_state_comes_back_to_the_byte(which):
    core = core_tree(**OPTIONS[which])
    core.restore(STATES[which], N_LABELS)
    assert {k: v.tobytes() for k, v in core.state().items()} == {k: v.tobytes() for k, v in STATES[which].items()}


@pytest.mark.parametrize(
    "change",
    [
        {"leaf_multiplier": 0.0}, {"leaf_multiplier": np.nan}, {"alpha": 0.0}, {"alpha": 1.1}, {"alpha": np.nan},
        {"reroutes": -1}, {"n_leaves": 0}, {"n_neighbours": -1}, {"learning_rate": 0.0}, {"learning_rate": np.inf},
        {"eps": 0.0}, {"scorer_rate": -1.0}, {"scorer_rate": np.nan}, {"forget": "newest"},
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(change):
    with pytest.raises(ValueError):
        core_tree(**change)
    assert set(change) <= set(SETTINGS)


def test_invalid_calls_are_refused_and_change_nothing():
    core = learn(core_tree(), *stream(0, 30, False))
    before = core.state()
    x = rows_of([0, 1], [2], [1.0])
    y = label_rows([0, 1], [1])
    nan = np.array([np.nan], FLOAT)
    for call in (
        lambda: core.learn(x._replace(data=nan), y, None, None, None),
        lambda: core.learn(x, label_rows([0, 2], [2, 1]), None, None, None),
        lambda: core.learn(x, label_rows([0, 2], [1, 1]), None, None, None),
        lambda: core.learn(x, label_rows([0, 1], [-1]), None, None, None),
        lambda: core.learn(x, label_rows([0, 1, 1], [1]), None, None, None),
        lambda: core.learn(x, y, np.array([-1.0], FLOAT), None, None),
        lambda: core.learn(x, y, np.array([np.nan], FLOAT), None, None),
        lambda: core.learn(x, y, None, np.array([1], LONG), None),
        lambda: core.revisit(np.array([30], LONG), None),
        lambda: core.revisit(np.array([-1], LONG), None),
        lambda: core.query(x, -1, 1, 0.0, None, 1),
        lambda: core.query(x, N_LABELS, -1, 0.0, None, 1),
        lambda: core.query(x._replace(data=nan), N_LABELS, 1, 0.0, None, 1),
        lambda: core.query(x, N_LABELS, 1, 0.0, np.zeros(2, FLOAT), 1),
        lambda: core.query_row(np.array([-1], INT), x.data, N_LABELS, 1, 0.0),
        lambda: core.query_row(x.indices, nan, N_LABELS, 1, 0.0),
        lambda: core.neighbours(x.indices, np.zeros(2, FLOAT)),
        lambda: core.route(x.indices, x.data, 10**6, 0),
    ):
        with pytest.raises(ValueError):
            call()
    for name, values in core.state().items():
        np.testing.assert_array_equal(values, before[name])


def test_a_damaged_file_says_what_does_not_fit(tmp_path, monkeypatch):
    X, Y = stream(0, 40, False)
    clf = MemoryTreeClassifier(random_state=0).fit(X, Y)
    inner = MemoryTreeModel.state

    def damaged(self):
        values, arrays = inner(self)
        return State(values, arrays | {"leaf": arrays["leaf"] + 1})

    monkeypatch.setattr(MemoryTreeModel, "state", damaged)
    clf.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"does not hold a sound MemoryTreeClassifier.*an example is in no leaf"):
        persist.load(tmp_path / "model")
