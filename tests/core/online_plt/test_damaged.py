"""Damaged states and senseless calls of the online core: refused or answered, never a crash (sanitized, too)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import OnlinePLTClassifier
from ramify.base import save_load as persist
from ramify.base.model import State
from ramify.base.stream_schema import StreamSchema
from ramify.files.directory import ModelFileError
from ramify.models.online_plt.model import OnlinePLTModel
from ramify.trees import LabelTree
from shared.damages import damages
from shared.online_core import POLICIES, stream
from shared.rows import label_rows, row_arrays, rows_of
from twins.models import random_rows
from twins.online import SETTINGS, learn, learner

N_LABELS, N_FEATURES = 14, 7
LONG, INT, FLOAT = np.int64, np.int32, np.float32


def first_fit(label, indices, values):
    return 0, False


def make_state(policy, rule, is_multiclass):
    X, Y = stream(np.random.default_rng(0), 40, N_LABELS, is_multiclass)
    rare = sparse.diags_array(np.full(40, 0.5, FLOAT), format="csr")[np.arange(40) // 2]  # rows kept as one step or two
    X = sparse.csr_array(sparse.hstack([X, rare]).astype(FLOAT))
    changes = {"policy": policy, "rule": rule, "is_multiclass": is_multiclass}
    if policy == "none":
        core = learner(**changes)
        core.adopt(LabelTree.from_nested(list(range(14))))
        return changes, learn(core, X, Y).state(1)
    return changes, learn(learner(**changes), X, Y).state(1)


STATES = {
    f"{policy}, {rule}, {is_multiclass}": make_state(policy, rule, is_multiclass)
    for policy in [*POLICIES, "none"]
    for rule in ("adagrad", "fobos")
    for is_multiclass in (False, True)
}
ROWS = random_rows(np.random.default_rng(2), 6, N_FEATURES, density=0.5)


def ask_everything(core):
    """Every question, whatever the arrays held; the answers must make sense."""
    own = np.full(N_LABELS, 0.1, FLOAT)
    for arguments in ((5, 0.0, None, 1), (None, 0.01, None, 2), (None, 0.0, own, 1)):
        indptr, labels, probabilities, _ = core.search(ROWS, *arguments)
        assert indptr[-1] == len(labels) == len(probabilities)
        assert ((labels >= 0) & (labels < N_LABELS)).all()
        assert ((probabilities > 0) & (probabilities <= 1)).all()
        for start, stop in itertools.pairwise(indptr):
            assert (np.diff(labels[start:stop]) > 0).all()
    core.named(ROWS, label_rows(np.arange(7) * N_LABELS, np.tile(np.arange(N_LABELS), 6)), 1)
    indices, values = row_arrays(ROWS[[0]])
    core.search_row(indices, values, 5, 0.0)
    for label in range(N_LABELS):
        if core.first_without_leaf(np.array([label], INT)) < 0:
            core.explain(indices, values, label)
    if core.has_labels:
        core.tree()
        core.freeze(2**31 - 3, 0.0, 1)
    for node in range(3):
        try:
            core.probabilities(node, indices, values)
        except IndexError:
            assert node > 0
    assert core.memory > 0


def go_on(core, changes):
    """A model that was taken back learns on, with labels old and new, or says what it has lost."""
    is_multiclass = changes["is_multiclass"]
    X, Y = stream(np.random.default_rng(9), 20, N_LABELS + (0 if changes["policy"] == "none" else 6), is_multiclass)
    try:
        learn(core, X, Y, n_threads=2)
    except ValueError as error:
        if "no leaf" not in str(error) and "cannot be extended" not in str(error):
            raise
    core.search(ROWS, 5, 0.0, None, 2)
    core.state(1)


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(STATES)),
    st.lists(damages(sorted(STATES["fair, adagrad, False"][1])), min_size=1, max_size=2),
)
def test_damaged_states_are_refused_or_answer(which, hurt):
    changes, state = STATES[which]
    state = dict(state)
    for name, damage in hurt:
        state[name] = damage(state[name])
    core = learner(**changes)
    try:
        core.restore(state, N_LABELS)
    except ValueError:
        assert not core.has_labels  # as it was
        ask_everything(core)
        if changes["policy"] != "none":
            go_on(core, changes)
        return
    ask_everything(core)
    go_on(core, changes)


@pytest.mark.parametrize("which", sorted(STATES))
def test_a_state_of_another_policy_or_rule_is_refused_or_learns_on(which):
    changes, state = STATES[which]
    for other in sorted(STATES):
        core = learner(**STATES[other][0])
        try:
            core.restore(state, N_LABELS)
        except ValueError:
            continue
        ask_everything(core)
        go_on(core, STATES[other][0])
    same = learner(**changes)
    same.restore(state, N_LABELS)
    assert {k: v.tobytes() for k, v in same.state(1).items()} == {k: v.tobytes() for k, v in state.items()}


@pytest.mark.parametrize("name", sorted(STATES["fair, adagrad, False"][1]))
def test_a_missing_or_mistyped_array_is_named(name):
    changes, state = STATES["fair, adagrad, False"]
    for wrong in (state[name].astype(np.complex64), None, [1, 2, 3], "bytes", state[name][None]):
        with pytest.raises(ValueError, match=f"array {name} is missing or has a wrong type or shape"):
            learner(**changes).restore({**state, name: wrong}, N_LABELS)
    with pytest.raises(ValueError, match=f"array {name} is missing"):
        learner(**changes).restore({key: array for key, array in state.items() if key != name}, N_LABELS)


def changed(name, place, value):
    changes, state = STATES["fair, adagrad, False"]
    state = {key: array.copy() for key, array in state.items()}
    state[name][place] = value
    core = learner(**changes)
    core.restore(state, N_LABELS)
    return core


def test_what_is_wrong_with_a_state_is_said():
    _, state = STATES["fair, adagrad, False"]
    leaves = np.flatnonzero(state["label"] >= 0)
    for name, place, value, said in (
        ("label", leaves[0], N_LABELS, "label"),
        ("label", leaves[0], 2**31 - 1, "label"),
        ("label", leaves[0], -2, "label"),
        ("label", leaves[0], state["label"][leaves[1]], "two leaves"),
        ("parent", 0, 0, "no root"),
        ("parent", 1, 1, "cycle|no parent"),
        ("parent", leaves[-1], leaves[0], "no parent"),
        ("feature", 0, 2**31, "feature"),
        ("feature", 0, state["feature"][1], "listed twice"),
        ("weight", 3, np.nan, "finite"),
        ("sum", 3, -1.0, "finite"),
        ("sum", 3, np.inf, "finite"),
        ("block_scale", 0, 0.0, "block_scale"),
        ("block_node", 0, 10**6, "block_node"),
        ("block_node", 1, state["block_node"][0], "block_node"),
        ("column_child", -1, -3, "column_child"),
        ("replayed_feature", 0, 2**31, "feature"),
        ("replayed_feature", 0, state["replayed_feature"][1], "listed twice"),
        ("replayed_steps", 0, 0, "replayed_steps"),
        ("replayed_steps", 0, 7, "replayed_steps"),
        ("replayed_steps", -1, 6, "replayed_steps"),
        ("step_gradient", 0, 1, "step_gradient"),
        ("step_gradient", -1, 2**32 - 1, "step_gradient"),
        ("step_value", 0, np.nan, "step_value"),
        ("gradient", 0, np.inf, "gradient"),
        ("block_replayed", 0, -1, "block_replayed"),
        ("block_gradients", 0, 2**62, "block_gradients"),
    ):
        with pytest.raises(ValueError, match=said):
            changed(name, place, value)
    changes, _ = STATES["fair, adagrad, False"]
    with pytest.raises(ValueError, match="counts"):
        learner(**changes).restore({**state, "counts": state["counts"][:3]}, N_LABELS)


def test_a_very_deep_tree_is_taken_back_at_once():
    """Counting leaves path by path would take hours."""
    n = 200_000
    parent = np.arange(2 * n + 1, dtype=INT)
    parent[1::2], parent[2::2] = np.arange(0, 2 * n, 2), np.arange(0, 2 * n, 2)  # a leaf and an inner node at each
    parent[0] = -1
    label = np.full(2 * n + 1, -1, INT)
    label[1::2], label[-1] = np.arange(n), n
    inner = np.arange(0, 2 * n, 2, dtype=INT)
    state = {
        "parent": parent, "label": label, "block_node": inner, "block_columns": np.full(n, 2, LONG),
        "block_rows": np.zeros(n, LONG), "block_updates": np.zeros(n, LONG), "block_scale": np.ones(n, FLOAT),
        "column_child": np.arange(1, 2 * n + 1, dtype=INT), "feature": np.zeros(0, np.uint32),
        "weight": np.zeros(0, FLOAT), "sum": np.zeros(0, FLOAT), "counts": np.zeros(4, np.uint64),
    }  # fmt: skip
    core = learner(policy="none", is_multiclass=True)
    core.restore(state, n + 1)
    assert core.n_leaves(0) == n + 1
    assert core.n_leaves(2) == n


def test_only_a_fresh_learner_takes_back_a_state():
    changes, state = STATES["fair, adagrad, False"]
    core = learner(**changes)
    core.restore(state, N_LABELS)
    with pytest.raises(ValueError, match="only a new learner"):
        core.restore(state, N_LABELS)
    ask_everything(core)


# --- senseless calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": "sgd"}, {"policy": "worst"}, {"learning_rate": 0.0}, {"learning_rate": np.nan}, {"eps": -1.0},
        {"decay": -1.0}, {"decay": np.nan},
        {"learning_rate": np.inf}, {"eps": np.nan}, {"l2": -1.0}, {"l2": np.inf}, {"bias": np.nan}, {"alpha": np.nan},
        {"fair_share": 0.5}, {"fair_share": np.nan}, {"arity": 1}, {"arity": 5, "pre_leaf_arity": 4}, {"arity": -1},
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(changes):
    with pytest.raises(ValueError):
        learner(**changes)


BAD_ROWS = {
    "no indptr": ([], [], []),
    "indptr ends too late": ([0, 2], [0], [1.0]),
    "indptr falls": ([0, 2, 1, 2], [0, 1], [1.0, 1.0]),
    "indptr is huge": ([0, 2**62, 1], [0], [1.0]),
    "a negative feature": ([0, 1], [-1], [1.0]),
    "the largest feature": ([0, 1], [2**31 - 1], [1.0]),
    "too few values": ([0, 1], [0], []),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_are_refused_everywhere(case):
    changes, state = STATES["fair, adagrad, False"]
    core = learner(**changes)
    core.restore(state, N_LABELS)
    before = {name: array.tobytes() for name, array in core.state(1).items()}
    X = rows_of(*BAD_ROWS[case])
    labels = label_rows(np.zeros(max(1, len(X.indptr))), [])
    good = rows_of(labels.indptr, [], [])
    calls = [
        lambda: core.learn(X, labels, None, None, 1, None, None),
        lambda: core.test_then_learn(X, labels, 5, 1, None),
        lambda: core.search(X, 5, 0.0, None, 1),
        lambda: core.named(X, labels, 1),
    ]
    if case not in ("too few values", "the largest feature"):
        calls.append(lambda: core.learn(good, X, None, None, 1, None, None))
    if "indptr" not in case and case != "the largest feature":
        calls += [lambda: core.search_row(X.indices, X.data, 5, 0.0), lambda: core.explain(X.indices, X.data, 0)]
        calls.append(lambda: core.probabilities(0, X.indices, X.data))
    for call in calls:
        with pytest.raises(ValueError):
            call()
    assert {name: array.tobytes() for name, array in core.state(1).items()} == before


def test_extreme_questions_are_answered():
    for changes, state in (STATES["fair, adagrad, False"], STATES["cpt, fobos, True"]):
        core = learner(**changes)
        core.restore(state, N_LABELS)
        for top_k in (0, 1, 2**63 - 1, None):
            for threshold in (-1.0, 0.0, 1.0, 2.0, float("nan"), float("inf")):
                indptr, labels, _, _ = core.search(ROWS, top_k, threshold, None, 3)
                assert (np.diff(indptr) <= (N_LABELS if top_k is None else top_k)).all()
                assert len(labels) == 0 or threshold <= 1.0
        with pytest.raises(ValueError, match="top_k"):
            core.search(ROWS, -1, 0.0, None, 1)
        thresholds = np.array([np.nan, -1.0, np.inf], FLOAT)
        core.search(ROWS, None, 0.0, thresholds, 1)
        for node in (-1, 10**6, -(2**31)):
            for ask in (core.children, core.is_leaf, core.n_leaves):
                with pytest.raises(IndexError):
                    ask(node)
        for label in (-1, N_LABELS, 2**31 - 1, -(2**31)):
            with pytest.raises(ValueError, match="no leaf"):
                core.explain(np.zeros(0, INT), np.zeros(0, FLOAT), label)
        for n_features, prune in ((N_FEATURES - 1, 0.0), (-1, 0.0), (2**31, 0.0), (N_FEATURES, np.nan), (10, -1.0)):
            with pytest.raises(ValueError):
                core.freeze(n_features, prune, 1)


def test_invalid_learning_is_refused():
    core = learner()
    labels = label_rows(np.arange(7), np.zeros(6))
    for weight in ([1.0], [1.0] * 5 + [-1.0], [1.0] * 5 + [np.nan], [1.0] * 5 + [np.inf]):
        with pytest.raises(ValueError, match="sample_weight"):
            core.learn(ROWS, labels, np.array(weight, FLOAT), None, 1, None, None)
    for order in ([6], [-1], [2**62]):
        with pytest.raises(ValueError, match="order"):
            core.learn(ROWS, labels, None, np.array(order, LONG), 1, None, None)
    for label in (-1, 2**31 - 1):
        with pytest.raises(ValueError, match="outside"):
            core.learn(ROWS, labels._replace(indices=np.full(6, label, INT)), None, None, 1, None, None)
    assert core.n_examples == 0
    own = learner(policy="callable")
    learn(own, ROWS[:1], sparse.csr_array(np.eye(1, 2, dtype=FLOAT)))  # the first label needs no policy
    with pytest.raises(TypeError):
        learn(own, ROWS[:1], sparse.csr_array(np.ones((1, 2), dtype=FLOAT)), own=None)
    with pytest.raises(ValueError, match="cannot take another tree"):
        own.adopt(LabelTree.from_nested(0))
    learn(own, ROWS[:1], sparse.csr_array(np.ones((1, 2), dtype=FLOAT)), own=lambda *_: (0, True), n_threads=2**31 - 1)
    assert own.n_examples == 2


def test_nan_and_infinite_values_are_harmless():
    for changes, state in STATES.values():
        core = learner(**changes)
        core.restore(state, N_LABELS)
        X = ROWS.copy()
        X.data[::3] = np.nan
        X.data[1::3] = np.inf
        core.search(X, 3, 0.0, None, 1)
        if changes["policy"] != "none":  # poisoned, but nothing worse
            learn(core, X, sparse.csr_array(np.eye(6, N_LABELS + 6, 10, dtype=FLOAT)))
            _, _, probabilities, _ = core.search(ROWS, 3, 0.0, None, 1)
            assert ((probabilities > 0) & (probabilities <= 1)).all()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rule", ["adagrad", "fobos"])
def test_huge_steps_break_nothing(policy, rule):
    X, Y = stream(np.random.default_rng(0), 60, N_LABELS, False)
    core = learn(learner(policy=policy, rule=rule, learning_rate=3e38, l2=3e38, normalize=False), X * 1e30, Y)
    core.search(X, 3, 0.0, None, 1)
    core.state(1)


@pytest.mark.parametrize("field", ["settings", "is_over_budget", "n_labels", "n_features", "is_multiclass"])
def test_a_model_file_without_a_field_is_refused(field, tmp_path, monkeypatch):
    clf = OnlinePLTClassifier().partial_fit(np.eye(3), [["a"], ["b"], ["c"]])
    values, arrays = clf.model_.state()
    del values[field]
    monkeypatch.setattr(OnlinePLTModel, "state", lambda self: State(values, arrays))
    clf.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="sound OnlinePLTClassifier"):
        persist.load(tmp_path / "model")


@pytest.mark.parametrize("path", [["n_features"], ["labels"], ["named_columns", "names"], ["named_columns", "columns"]])
def test_a_schema_without_a_field_is_refused(path, tmp_path, monkeypatch):
    clf = OnlinePLTClassifier().learn_one({"red": 1.0}, ["a"]).learn_one({"green": 1.0}, ["b"])
    schema = clf.schema_.state()
    *outer, field = path
    del (schema[outer[0]] if outer else schema)[field]
    monkeypatch.setattr(StreamSchema, "state", lambda self: schema)
    clf.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="sound OnlinePLTClassifier"):
        persist.load(tmp_path / "model")


@pytest.mark.parametrize(
    "settings",
    [{}, {"rule": "sgd"}, {**SETTINGS, "arity": 10**20}, {**SETTINGS, "unknown": 1}, {**SETTINGS, "eps": "x"}, 3],
)
def test_invalid_settings_in_a_model_file_are_refused(settings, tmp_path, monkeypatch):
    clf = OnlinePLTClassifier().partial_fit(np.eye(3), [["a"], ["b"], ["c"]])
    values, arrays = clf.model_.state()
    monkeypatch.setattr(OnlinePLTModel, "state", lambda self: State({**values, "settings": settings}, arrays))
    clf.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="sound OnlinePLTClassifier"):
        persist.load(tmp_path / "model")
