"""Damaged model arrays and senseless calls: refused or answered, never a crash (run under the sanitizers too)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import _core
from ramify.models.trained_tree import csr_parts
from twins.blocks import DTYPES, PANEL_FIELDS
from twins.models import block_trainer, random_labels, random_model, random_rows, random_tree, solver_settings

N_LABELS, N_FEATURES = 40, 70
TREE_ARRAYS = ("parent", "first_child", "n_children", "label")


def make_arrays(index):
    """Everything that LabelTreeModel is built from, by name."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, N_LABELS)
    model = random_model(rng, tree, n_features=N_FEATURES, gate=True, calibrated=True, absent=0.0)
    blocks = model.trained.blocks
    if index != "bitmap":
        X, Y = random_rows(rng, 40, N_FEATURES, density=0.1), random_labels(rng, 40, N_LABELS, some_for_every_row=False)
        trainer = block_trainer(X, Y, tree)
        blocks = (
            trainer.train(solver_settings(prune=0.6))
            if index == "bucket"
            else trainer.train_hashed(solver_settings(), 9)
        )
        if index == "bucket":
            assert (blocks["panels"][:, PANEL_FIELDS.index("bucket_bits")] >= 0).any()
    return dict(blocks) | {name: getattr(tree, name) for name in TREE_ARRAYS} | {"link": model.link.logits}


ARRAYS = {index: make_arrays(index) for index in ("bitmap", "bucket", "hashed")}
ROWS = random_rows(np.random.default_rng(2), 6, N_FEATURES, density=0.5)


def build(arrays, *, n_labels=N_LABELS, low=-1.0, step=0.5, one_of=False, n_features=N_FEATURES, bias=0.5):
    return _core.LabelTreeModel(
        {name: arrays[name] for name in DTYPES if name in arrays},
        *(arrays[name] for name in TREE_ARRAYS),
        n_labels,
        _core.FeatureSettings(n_features, True, bias),
        arrays["link"],
        low,
        step,
        one_of,
    )


def ask_everything(model):
    """Every search of the model; the answers must make sense, whatever the arrays held."""
    X = csr_parts(ROWS)
    for arguments in ((5, 0.0, None, 0, 1), (None, 0.01, None, 0, 2), (None, 0.0, None, 3, 1)):
        indptr, labels, probabilities, _ = model.search(*X, *arguments)
        assert indptr[-1] == len(labels) == len(probabilities)
        assert ((labels >= 0) & (labels < N_LABELS)).all()
        assert ((probabilities > 0) & (probabilities <= 1)).all()
        for start, stop in itertools.pairwise(indptr):
            assert (np.diff(labels[start:stop]) > 0).all()
    every = np.tile(np.arange(N_LABELS, dtype=np.int32), 6)
    p = model.named(*X, np.arange(7) * N_LABELS, every, 1)
    assert ((p >= 0) & (p <= 1)).all()
    _, indices, values = csr_parts(ROWS[[0]])
    model.search_row(indices, values, 5, 0.0)
    for label in (0, N_LABELS - 1):
        model.explain(indices, values, label)


ODD_NUMBERS = [0, 1, -1, 2, 7, 255, 256, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63)]


@st.composite
def damages(draw, names):
    """A function that damages an array: some of its values, its length, type, shape or order in memory."""
    name = draw(st.sampled_from(names))
    kind = draw(
        st.sampled_from(["value", "value", "value", "values", "shorter", "longer", "empty", "type", "shape", "strided"])
    )
    seed = draw(st.integers(0, 2**32 - 1))
    odd = draw(st.sampled_from(ODD_NUMBERS))

    def damage(array):
        rng = np.random.default_rng(seed)
        array = np.array(array)
        flat = array.reshape(-1)
        if kind in ("value", "values") and len(flat):
            for _ in range(1 if kind == "value" else 5):
                place = rng.integers(len(flat))
                if array.dtype.kind not in "iu":
                    flat[place] = rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0])
                elif rng.random() < 0.5:
                    with np.errstate(over="ignore"):
                        flat[place] += array.dtype.type(rng.choice([1, 2]))  # off by a little is the harder case
                else:
                    information = np.iinfo(array.dtype)
                    flat[place] = min(max(odd, information.min), information.max)
        elif kind == "shorter":
            array = array[: int(rng.integers(0, len(array) + 1))]
        elif kind == "longer":
            array = np.concatenate([array, array[: int(rng.integers(0, len(array) + 1))]])
        elif kind == "empty":
            array = array[:0]
        elif kind == "type":
            array = array.astype(rng.choice([np.float64, np.int16, np.uint64, np.complex128, np.bool_]))
        elif kind == "shape":
            array = array[None]
        elif kind == "strided":
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        return array

    return name, damage


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(ARRAYS)), st.lists(damages([*DTYPES, "link"]), min_size=1, max_size=2), st.booleans())
def test_damaged_blocks_are_refused_or_answer(index, changes, one_of):
    arrays = dict(ARRAYS[index])
    for name, damage in changes:
        arrays[name] = damage(arrays[name])
    try:
        model = build(arrays, one_of=one_of)
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
    expected = model.search(*csr_parts(ROWS), 5, 0.0, None, 0, 1)
    del arrays
    junk = [np.full(array.shape, 77, array.dtype) for array in ARRAYS["bucket"].values() for _ in range(20)]
    for one, other in zip(model.search(*csr_parts(ROWS), 5, 0.0, None, 0, 1), expected, strict=True):
        assert np.array_equal(one, other)
    assert len(junk)


# --- senseless calls --------------------------------------------------------------------------------------------------

LONG, INT, FLOAT = np.int64, np.int32, np.float32
BAD_ROWS = {
    "no indptr": ([], [], []),
    "indptr does not begin with 0": ([1, 1], [0], [1.0]),
    "indptr ends too late": ([0, 2], [0], [1.0]),
    "indptr ends too early": ([0, 0], [0], [1.0]),
    "indptr falls": ([0, 2, 1, 2], [0, 1], [1.0, 1.0]),
    "indptr is huge": ([0, 2**62, 1], [0], [1.0]),
    "indptr is negative": ([0, -5, 1], [0], [1.0]),
    "a negative feature": ([0, 1], [-1], [1.0]),
    "a feature too many": ([0, 1], [N_FEATURES], [1.0]),
    "the largest feature": ([0, 1], [2**31 - 1], [1.0]),
    "too few values": ([0, 1], [0], []),
    "too many values": ([0, 1], [0], [1.0, 2.0]),
}


def rows(indptr, indices, values):
    return np.array(indptr, LONG), np.array(indices, INT), np.array(values, FLOAT)


@pytest.fixture(params=sorted(ARRAYS))
def model(request):
    return build(ARRAYS[request.param])


@pytest.mark.parametrize("case", sorted(BAD_ROWS))
def test_bad_rows_are_refused_everywhere(model, case):
    X = rows(*BAD_ROWS[case])
    labels = (np.zeros(max(1, len(X[0])), LONG), np.zeros(0, INT))
    with pytest.raises(ValueError):
        model.search(*X, 5, 0.0, None, 0, 1)
    with pytest.raises(ValueError):
        model.named(*X, *labels, 1)
    if "indptr" not in case:
        with pytest.raises(ValueError):
            model.search_row(X[1], X[2], 5, 0.0)
        with pytest.raises(ValueError):
            model.explain(X[1], X[2], 0)
    tree = random_tree(np.random.default_rng(0), 3)
    arrays = [getattr(tree, name) for name in TREE_ARRAYS]
    features = _core.FeatureSettings(N_FEATURES, True, 0.5)
    with pytest.raises(ValueError):
        _core.BlockTrainer(*X, *labels, *arrays, 3, None, features, 0, 1)
    if "values" not in case:  # labels have none
        with pytest.raises(ValueError):
            _core.BlockTrainer(*rows([0] * len(labels[0]), [], []), *X[:2], *arrays, 3, None, features, 0, 1)


@pytest.mark.parametrize("threads", [-(2**31), -1, 0, 1, 2, 1000, 2**31 - 1])
def test_any_number_of_threads_gives_the_same_answer(model, threads):
    expected = model.search(*csr_parts(ROWS), 5, 0.0, None, 0, 1)
    for one, other in zip(model.search(*csr_parts(ROWS), 5, 0.0, None, 0, threads), expected, strict=True):
        assert np.array_equal(one, other)
    labels = (np.arange(7) * 2, np.tile(np.array([0, 3], INT), 6))
    assert np.array_equal(model.named(*csr_parts(ROWS), *labels, threads), model.named(*csr_parts(ROWS), *labels, 1))
    rng = np.random.default_rng(0)
    trainer = block_trainer(random_rows(rng, 9, 3), random_labels(rng, 9, 3), random_tree(rng, 3), n_threads=threads)
    trainer.train(solver_settings())


@pytest.mark.parametrize("top_k", [-(2**63), -1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("beam", [-(2**63), -1, 0, 1, 2**63 - 1])
@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, 2.0, float("nan"), float("inf")])
def test_extreme_questions_are_answered(model, top_k, beam, threshold):
    indptr, labels, probabilities, _ = model.search(*csr_parts(ROWS), top_k, threshold, None, beam, 1)
    assert (np.diff(indptr) <= max(top_k, 0)).all()
    if not threshold <= 1.0:
        assert len(labels) == 0
    assert (probabilities >= (threshold if threshold > 0 else 0)).all()


def test_no_rows_and_empty_rows_are_answered(model):
    indptr, labels, probabilities, n_blocks = model.search(*rows([0], [], []), 5, 0.0, None, 0, 2)
    assert (indptr.tolist(), len(labels), len(probabilities), n_blocks) == ([0], 0, 0, 0)
    assert len(model.named(*rows([0], [], []), np.zeros(1, LONG), np.zeros(0, INT), 1)) == 0
    indptr, *_ = model.search(*rows([0, 0, 0], [], []), 5, 0.0, None, 0, 1)
    assert indptr.tolist() == [0, indptr[1], 2 * indptr[1]]  # the bias still speaks
    model.search_row(np.zeros(0, INT), np.zeros(0, FLOAT), 3, 0.0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("one_of", [False, True])
def test_values_that_are_no_numbers_cannot_lead_astray(value, one_of):
    X = ROWS.copy()
    X.data[::3] = value
    for arrays in ARRAYS.values():
        model = build(arrays, one_of=one_of)
        _, _, probabilities, _ = model.search(*csr_parts(X), None, 0.0, None, 0, 1)
        assert ((probabilities > 0) & (probabilities <= 1)).all()
        _, indices, values = csr_parts(X[[0]])
        model.explain(indices, values, 0)
        model.search_row(indices, values, 5, 0.0)
    rng = np.random.default_rng(0)
    Y, tree = random_labels(rng, 6, 4), random_tree(rng, 4)
    for loss in ("squared_hinge", "logistic"):
        trainer = block_trainer(X, Y, tree)
        trainer.train(solver_settings(loss=loss))
        trainer.train_hashed(solver_settings(loss=loss), 8)
        trainer.held_out(solver_settings(loss=loss), 1.0, 100)


def test_named_labels_outside_the_model_are_refused(model):
    for label in (-1, N_LABELS, 2**31 - 1):
        with pytest.raises(ValueError, match="outside"):
            model.named(*csr_parts(ROWS), np.array([0, 1, 1, 1, 1, 1, 1]), np.array([label], INT), 1)
    with pytest.raises(ValueError, match="number of rows"):
        model.named(*csr_parts(ROWS), np.array([0, 1]), np.array([0], INT), 1)
    for label in (-1, N_LABELS, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match="no leaf"):
            model.explain(np.zeros(0, INT), np.zeros(0, FLOAT), label)


def test_thresholds_need_one_number_a_node(model):
    for length in (0, 1, N_LABELS, 10_000):
        with pytest.raises(ValueError, match="each node"):
            model.search(*csr_parts(ROWS), 5, 0.0, np.zeros(length, FLOAT), 0, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "hinge"}, {"loss": ""}, {"C": 0.0}, {"C": -1.0}, {"C": np.nan}, {"C": np.inf}, {"C": 1e300},
        {"positive_weight": 0.0}, {"positive_weight": np.nan}, {"positive_weight": np.inf}, {"max_epochs": 0},
        {"max_epochs": -5}, {"eps": np.nan}, {"eps": -1.0}, {"prune": np.nan}, {"prune": -0.5}, {"prune": np.inf},
    ],
)  # fmt: skip
def test_senseless_solver_settings_are_refused(changes):
    with pytest.raises(ValueError):
        solver_settings(**changes)


@pytest.mark.parametrize(
    "settings", [(-1, True, 0.5), (2**31 - 1, True, 0.5), (2**62, True, 0.5), (5, True, np.nan), (5, True, np.inf)]
)
def test_senseless_feature_settings_are_refused(settings):
    with pytest.raises(ValueError):
        _core.FeatureSettings(*settings)


@pytest.mark.parametrize("weights", [[1.0], [1.0] * 8, [1.0, -1.0, 1.0], [1.0, np.nan, 1.0], [np.inf, 1.0, 1.0]])
def test_senseless_sample_weights_are_refused(weights):
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
    assert all(np.isfinite(part).all() for part in trainer.held_out(solver_settings(), share, max_rows))


NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([2**31 - 1, -(2**31)]))
INTS = st.lists(NUMBERS, max_size=8).map(lambda values: np.array(values, INT))
LONGS = st.lists(st.one_of(NUMBERS, st.just(2**62)), max_size=8).map(lambda values: np.array(values, LONG))
FLOATS = st.lists(st.floats(width=32), max_size=8).map(lambda values: np.array(values, FLOAT))
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
            LONGS, INTS, FLOATS, st.integers(0, 12), LONGS, INTS, st.floats(width=32), st.integers(-1, 3),
        ),
        "split_labels": (
            LONGS, INTS, FLOATS, st.integers(0, 12), INTS, LONGS, LONGS, LONGS,
            st.floats(), st.integers(-1, 5), st.integers(0, 9), st.integers(-1, 3),
        ),
    }  # fmt: skip
    name = data.draw(st.sampled_from(sorted(calls)))
    arguments = [data.draw(strategy) for strategy in calls[name]]
    try:
        getattr(_core, name)(*arguments)
    except (ValueError, TypeError, OverflowError):
        return
