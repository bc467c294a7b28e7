"""The tree softmax in the core against its plain Python twin, and arrays and calls made to break it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import TreeSoftmaxClassifier, _core
from ramify.trees import LabelTree
from shared.damages import damages
from shared.rows import arrays_of
from shared.warm_python import run
from twins.tree_softmax import Twin, row_of

N_FEATURES, N_LABELS, DIM = 9, 7, 5
# Arities one, two, three and four, leaves beside inner nodes.
TREE = LabelTree.from_nested([[0, [1, [2]]], [3, 4, 5], 6, [7]])
BINARY = LabelTree.from_nested([0, [[1, 2], [3, [4, [5, [6, 7]]]]]])
TREES = {"mixed": TREE, "binary": BINARY, "one level": LabelTree.from_nested(list(range(8)))}
TABLES = {"column": np.int32, "embedding": np.float32, "output": np.float32}


def random_data(seed, *, is_plt, n_rows=12):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n_rows, N_FEATURES), density=0.4, rng=rng, dtype=np.float32, format="csr")
    X.data -= 0.2
    X.sort_indices()
    Y = (rng.random((n_rows, N_LABELS + 1)) < 0.25).astype(np.float32)
    if not is_plt:
        Y[np.arange(n_rows), rng.integers(0, N_LABELS + 1, n_rows)] = 1
    return sparse.csr_array(X), sparse.csr_array(Y)


def softmax_settings(**changes):
    given = {"dim": DIM, "epochs": 3, "learning_rate": 0.7, "batch": 4, "shuffle": True, "hogwild": False}
    return _core.SoftmaxSettings(**{**given, **changes})


def train(X, Y, tree, *, is_plt, seed=3, weight=None, n_threads=1, bias=1.0, normalize=True, **changes):
    features = _core.FeatureSettings(X.shape[1], normalize, bias)
    given = softmax_settings(**changes)
    return _core.train_softmax(X, Y, tree, is_plt, weight, features, given, seed, n_threads)


def build(arrays, tree, *, is_plt, n_features=N_FEATURES, bias=1.0, normalize=True, dim=DIM):
    features = _core.FeatureSettings(n_features, normalize, bias)
    return _core.TreeSoftmax(arrays, tree, is_plt, features, dim)


def twin_of(X, Y, tree, *, is_plt, seed=3, weight=None, bias=1.0, normalize=True, **changes):
    steps = {"epochs": 3, "learning_rate": 0.7, "batch": 4, "shuffle": True, **changes}
    twin = Twin(tree, is_plt=is_plt, dim=DIM, bias=bias, normalize=normalize)
    return twin.train(X, Y, seed=seed, sample_weight=weight, **steps)


def without_padding(table, dim=DIM):
    rows = table.reshape(-1, (dim + 7) // 8 * 8)
    assert not rows[:, dim:].any()
    return rows[:, :dim]


# --- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_plt", [False, True])
@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"batch": 1, "shuffle": False},
        {"batch": 64, "learning_rate": 0.1},
        {"bias": 0.0, "normalize": False},
        {"learning_rate": 8.0, "batch": 1},  # steps that are too long are held back
    ],
    ids=["batch", "one by one", "all at once", "plain sums", "long steps"],
)
def test_training_takes_the_steps_of_its_twin(name, is_plt, changes):
    X, Y = random_data(1, is_plt=is_plt)
    arrays = train(X, Y, TREES[name], is_plt=is_plt, **changes)
    twin = twin_of(X, Y, TREES[name], is_plt=is_plt, **changes)
    tolerance = {"rtol": 1e-3, "atol": 2e-5}
    np.testing.assert_allclose(without_padding(arrays["output"]), twin.output_rows(), **tolerance)
    features = [None if c == len(arrays["column"]) else int(arrays["column"][c]) for c in range(len(twin.embedding))]
    expected = np.array([twin.embedding[f] for f in features])
    np.testing.assert_allclose(without_padding(arrays["embedding"]), expected, **tolerance)
    assert np.abs(without_padding(arrays["output"])).max() > 1e-3


def test_a_weight_makes_a_step_longer():
    X, Y = random_data(2, is_plt=True)
    weight = np.random.default_rng(0).random(X.shape[0]).astype(np.float32) + 0.1
    arrays = train(X, Y, TREE, is_plt=True, weight=weight)
    twin = twin_of(X, Y, TREE, is_plt=True, weight=weight)
    np.testing.assert_allclose(without_padding(arrays["output"]), twin.output_rows(), rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("is_plt", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_a_step_goes_down_the_gradient_of_the_loss(name, is_plt):
    """The twin's updates against differences of its loss."""
    X, Y = random_data(4, is_plt=is_plt)
    twin = twin_of(X, Y, TREES[name], is_plt=is_plt, epochs=2)
    eps = 1e-5
    for i in range(4):
        labels = row_of(Y, i)[0].tolist() if is_plt else row_of(Y, i)[0].tolist()[:1]
        bag = twin.bag(*row_of(X, i))
        of_rows, of_features = twin.updates(bag, labels, 1e-3)  # so small that nothing is held back
        for tables, changes in ((twin.output, of_rows), (twin.embedding, of_features)):
            for key, change in changes:
                for c in range(DIM):
                    kept = tables[key]
                    losses = []
                    for sign in (1, -1):
                        tables[key] = [v + sign * eps * (place == c) for place, v in enumerate(kept)]
                        losses.append(twin.loss(bag, labels))
                    tables[key] = kept
                    slope = (losses[0] - losses[1]) / (2 * eps)
                    assert change[c] / 1e-3 == pytest.approx(-slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("is_plt", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 5, 16, 32, 50, 128])
def test_threads_change_no_bit(is_plt, batch):
    X, Y = random_data(5, is_plt=is_plt, n_rows=101)
    one, *others = (train(X, Y, TREE, is_plt=is_plt, n_threads=n, batch=batch, dim=20, epochs=4) for n in (1, 2, 3, 8))
    for other in others:
        for name in TABLES:
            np.testing.assert_array_equal(one[name], other[name])


SCRIPT = """
import sys
import numpy as np
from ramify import TreeSoftmaxClassifier, _core
from ramify.data.synthetic import make_multilabel

data = make_multilabel(300, 40, 200, random_state=3)
answers = {"set": np.array(_core.instruction_set())}
for storage in ("float32", "int8"):
    for loss in ("softmax", "plt"):
        clf = TreeSoftmaxClassifier(dim=20, n_epochs=5, storage=storage, loss=loss, random_state=0).fit(data.X, data.Y)
        answers[f"{storage}, {loss}"] = clf.predict_proba(data.X, threshold=0.0).toarray()
np.savez(sys.argv[1], **answers)
"""


def test_instruction_sets_agree(tmp_path):
    found = {}
    for name in ("baseline", "avx2", "avx512"):
        run(SCRIPT, tmp_path / f"{name}.npz", RAMIFY_INSTRUCTION_SET=name)
        found[name] = dict(np.load(tmp_path / f"{name}.npz"))
    assert found["baseline"].pop("set") == "baseline"
    for key, expected in found["baseline"].items():
        for name in ("avx2", "avx512"):
            # Of bytes, a number that lies between two may be rounded to either.
            np.testing.assert_allclose(found[name][key], expected, atol=2e-3 if "int8" in key else 2e-5, err_msg=key)


def test_hogwild_by_one_thread_is_the_same_descent():
    X, Y = random_data(6, is_plt=False, n_rows=200)
    alone = train(X, Y, TREE, is_plt=False, batch=1, epochs=10)
    lonely = train(X, Y, TREE, is_plt=False, n_threads=1, hogwild=True, epochs=10)
    np.testing.assert_allclose(lonely["output"], alone["output"], atol=0.2)


def test_hogwild_learns_as_well():
    # Threads that take rows in turns come to other weights, but to answers as good.
    generator = np.random.default_rng(0)
    y = generator.integers(0, 10, 2000)
    X = sparse.csr_array((np.eye(10)[y] + 0.3 * generator.random((2000, 10))).astype(np.float32))
    settings = {"dim": 10, "n_epochs": 10, "random_state": 0}
    alone = TreeSoftmaxClassifier(**settings).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    together = TreeSoftmaxClassifier(hogwild=True, n_jobs=2, **settings).fit(X[:1000], y[:1000])
    assert alone > 0.95
    assert together.score(X[1000:], y[1000:]) > alone - 0.03


def test_a_column_begins_the_same_whatever_other_columns_there_are():
    X, Y = random_data(7, is_plt=True)
    few = sparse.csr_array(X[:, [3, 5]])
    wide = sparse.csr_array(few @ sparse.csr_array(np.eye(N_FEATURES, dtype=np.float32)[[3, 5]]))
    tiny = {"learning_rate": 1e-12, "epochs": 1}
    all_columns, two = (train(rows, Y, TREE, is_plt=True, **tiny) for rows in (X, wide))
    at = np.searchsorted(all_columns["column"], [3, 5])
    np.testing.assert_allclose(
        without_padding(two["embedding"])[:2], without_padding(all_columns["embedding"])[at], atol=1e-9
    )
    assert two["column"].tolist() == [3, 5]


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_plt", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_answers_are_those_of_the_twin_however_they_are_asked(name, is_plt):
    tree = TREES[name]
    X, Y = random_data(8, is_plt=is_plt)
    model = build(train(X, Y, tree, is_plt=is_plt), tree, is_plt=is_plt)
    twin = twin_of(X, Y, tree, is_plt=is_plt)
    bags = [twin.bag(*row_of(X, i)) for i in range(X.shape[0])]
    expected = np.array([[twin.label_probability(bag, label) for label in range(N_LABELS + 1)] for bag in bags])
    if not is_plt:
        np.testing.assert_allclose(expected.sum(axis=1), 1)
    named = model.named(X, np.arange(N_LABELS + 1, dtype=np.int32), 2)
    np.testing.assert_allclose(named, expected, rtol=1e-3, atol=1e-5)
    indptr, labels, probabilities, _ = model.search(X, None, 0.0, None, 1)
    found = sparse.csr_array((probabilities, labels, indptr), shape=expected.shape).toarray()
    np.testing.assert_array_equal(found, named)
    for i in range(X.shape[0]):
        columns, best = model.search_row(*row_of(X, i), 3, 0.0)
        order = np.argsort(-named[i], kind="stable")[:3]
        assert columns.tolist() == order.tolist()
        np.testing.assert_array_equal(best, named[i][order])
    hidden = model.hidden(X, 2)[:, :DIM]
    np.testing.assert_allclose(
        hidden, [twin.hidden(twin.bag(*row_of(X, i))) for i in range(X.shape[0])], rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("is_plt", [False, True])
def test_explanations_add_up_to_the_scores(is_plt):
    X, Y = random_data(9, is_plt=is_plt)
    model = build(train(X, Y, TREE, is_plt=is_plt), TREE, is_plt=is_plt)
    indices, values = row_of(X, 0)
    named = model.named(X[[0]], np.arange(N_LABELS + 1, dtype=np.int32), 1)[0]
    for label in range(N_LABELS + 1):
        steps = model.explain(indices, values, label)
        path = TREE.path(label).tolist()
        assert [node for node, *_ in steps] == (path if is_plt else path[1:])
        product = np.float32(1)
        for node, probability, features, added in steps:
            product *= np.float32(probability)
            assert len(features) == len(added)
            parent = int(TREE.parent[node])
            n_siblings = 0 if parent < 0 else int(TREE.n_children[parent])
            if n_siblings == 1:
                assert probability == 1
                assert len(features) == 0
            elif is_plt or n_siblings == 2:
                assert probability == pytest.approx(1 / (1 + np.exp(-added.sum())), rel=1e-4)
        assert product == named[label]


@pytest.mark.parametrize("is_plt", [False, True])
def test_bytes_answer_nearly_as_floats_do(is_plt):
    X, Y = random_data(10, is_plt=is_plt, n_rows=60)
    arrays = train(X, Y, TREE, is_plt=is_plt, epochs=20)
    small = {"column": arrays["column"]}
    for table in ("embedding", "output"):
        rows = arrays[table].reshape(-1, 8)
        scale = (np.abs(rows).max(axis=1) / 127).astype(np.float32)
        small[table] = np.rint(rows / np.where(scale, scale, 1)[:, None]).astype(np.int8).ravel()
        small[f"{table}_scale"] = scale
    every = np.arange(N_LABELS + 1, dtype=np.int32)
    floats, bytes_ = (build(a, TREE, is_plt=is_plt).named(X, every, 1) for a in (arrays, small))
    np.testing.assert_allclose(bytes_, floats, atol=0.02)
    assert np.abs(bytes_ - floats).max() > 0


# --- made to break it ------------------------------------------------------------------------------------------------

X, Y = random_data(0, is_plt=True)
ARRAYS = {is_plt: train(*random_data(0, is_plt=is_plt), TREE, is_plt=is_plt) for is_plt in (False, True)}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damage=damages(sorted(TABLES)), is_plt=st.booleans())
def test_damaged_arrays_are_refused_or_answered(damage, is_plt):
    name, change = damage
    arrays = {**ARRAYS[is_plt], name: change(ARRAYS[is_plt][name])}
    try:
        model = build(arrays, TREE, is_plt=is_plt)
    except ValueError:
        return
    for top_k, threshold in ((5, 0.0), (None, 0.1)):
        indptr, labels, probabilities, _ = model.search(X, top_k, threshold, None, 2)
        assert indptr[-1] == len(labels) == len(probabilities)
        assert ((labels >= 0) & (labels <= N_LABELS)).all()
    model.named(X, np.arange(N_LABELS + 1, dtype=np.int32), 1)
    model.explain(*row_of(X, 0), 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"dim": 0},
        {"dim": 10**6},
        {"epochs": 0},
        {"learning_rate": 0.0},
        {"learning_rate": np.nan},
        {"learning_rate": np.inf},
        {"batch": 0},
        {"batch": 10**9},
    ],
)
def test_bad_settings_are_refused(changes):
    with pytest.raises(ValueError):
        softmax_settings(**changes)


@pytest.mark.parametrize("weight", [np.ones(3, np.float32), np.zeros(12, np.float32), np.full(12, np.nan, np.float32)])
def test_bad_weights_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        train(X, Y, TREE, is_plt=True, weight=weight)


def test_labels_without_a_leaf_and_rows_that_differ_are_refused():
    lacking = LabelTree.from_nested([[0, 1], [2, 3]])
    with pytest.raises(ValueError, match=r"outside|no leaf"):
        train(X, Y, LabelTree(lacking.parent, lacking.label, N_LABELS + 1), is_plt=True)
    with pytest.raises(ValueError, match="differ in their number of rows"):
        train(X, sparse.csr_array(Y[:5]), TREE, is_plt=True)
    with pytest.raises(ValueError, match="between 1 and"):
        train(sparse.csr_array(X[:0]), sparse.csr_array(Y[:0]), TREE, is_plt=True)


@pytest.mark.parametrize("is_plt", [False, True])
def test_invalid_questions_are_refused(is_plt):
    model = build(ARRAYS[is_plt], TREE, is_plt=is_plt)
    bad_row = (np.array([N_FEATURES], np.int32), np.ones(1, np.float32))
    with pytest.raises(ValueError):
        model.search_row(*bad_row, 3, 0.0)
    with pytest.raises(ValueError):
        model.explain(*bad_row, 0)
    with pytest.raises(ValueError):
        model.explain(*row_of(X, 0), N_LABELS + 1)
    with pytest.raises(ValueError):
        model.named(X, np.array([-1], np.int32), 1)
    with pytest.raises(ValueError):
        model.search(X, 0, 0.0, None, 1)
    with pytest.raises(ValueError):
        model.search(X, 1, 0.0, np.zeros(2, np.float32), 1)
    with pytest.raises(ValueError):
        model.hidden(arrays_of(X[[0]])._replace(indptr=np.array([0, 5], np.int64)), 1)
