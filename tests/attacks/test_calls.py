"""Broken and unusual arrays for every public function and classifier: an answer, or a ValueError that says why not."""

from __future__ import annotations

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from attacks.driver import attack, n_inputs, report
from attacks.test_threads import MAKE
from ramify import decide, metrics, trees
from ramify.text import TextVectorizer

N_ROWS, N_LABELS, N_FEATURES = 12, 6, 9
NUMBERS = [-1, -2, 0, 1, 2, 3, 7, 255, 2**30, 2**31 - 1, -(2**31)]
FLOATS = [float("nan"), float("inf"), float("-inf"), -1.0, -0.0, 0.0, 1e-45, 0.5, 2.0, 65504.0, 3e38, -3e38]
DTYPES = ["?", "i1", "u2", ">i4", "u8", "f2", ">f4", "f8", "g", "c8", "O", "U3", "S3", "M8[D]", "m8[s]"]


def sound_matrix(kind, generator, n_rows):
    """A CSR array of features, of 0/1 labels, or of probabilities."""
    chance = np.random.default_rng(generator.randrange(1000))
    values = chance.random((n_rows, N_FEATURES if kind == "X" else N_LABELS))
    values[values < 0.5] = 0
    return sparse.csr_array((values > 0 if kind == "Y" else values).astype(np.float32))


# --- what breaks or changes a sparse array ----------------------------------------------------------------------------


def _number(X, generator):
    """An index or a pointer that points elsewhere."""
    part = generator.choice(["indices", "indptr"])
    values = getattr(X, part).copy()
    if len(values):
        values[generator.randrange(len(values))] = generator.choice(NUMBERS)
    setattr(X, part, values)
    return X


def _value(X, generator):
    X.data = X.data.copy()
    if len(X.data):
        X.data[generator.randrange(len(X.data))] = generator.choice(FLOATS)
    return X


def _length(X, generator):
    part = generator.choice(["indices", "indptr", "data"])
    values = getattr(X, part)
    setattr(X, part, generator.choice([values[:-1], values[:0], np.concatenate([values, values]), values[::2]]))
    return X


def _type(X, generator):
    part = generator.choice(["indices", "indptr", "data"])
    with np.errstate(all="ignore"):
        setattr(X, part, getattr(X, part).astype(generator.choice(DTYPES)))
    return X


def _no_array(X, generator):
    part = generator.choice(["indices", "indptr", "data"])
    setattr(X, part, generator.choice([None, [1, 2], "x", np.zeros((2, 2)), np.float32(1)]))
    return X


def _order(X, generator):
    """Unsorted columns, columns given twice, zeros that are stored: all are allowed."""
    indices, data = X.indices.copy(), X.data.copy()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = list(range(start, stop))
        generator.shuffle(order)
        indices[start:stop], data[start:stop] = indices[order], data[order]
        if stop - start > 1 and generator.random() < 0.5:
            indices[start] = indices[start + 1]
    data[::5] = 0
    return sparse.csr_array((data, indices, X.indptr), shape=X.shape)


def _shape(X, generator):
    rows, columns = X.shape
    X._shape = generator.choice([(rows + 1, columns), (rows, columns - 1), (rows, 2**31), (2**40, columns), (0, 0)])
    return X


def _format(X, generator):
    X = X.asformat(generator.choice(["csc", "coo", "lil", "dok", "bsr", "dia"]))
    if X.format == "coo" and generator.random() < 0.5 and X.nnz:
        X.coords[generator.randrange(2)][0] = generator.choice(NUMBERS)
    return X


def _old_matrix(X, generator):
    return sparse.csr_matrix(X)


def _dense(X, generator):
    dense = X.toarray()
    if dense.size and generator.random() < 0.3:
        dense.reshape(-1)[generator.randrange(dense.size)] = generator.choice(FLOATS)
    return generator.choice(DENSE)(dense, generator)


def _read_only(dense, _):
    dense.flags.writeable = False
    return dense


def _typed(dense, generator):
    with np.errstate(all="ignore"):
        return dense.astype(generator.choice(DTYPES))


DENSE = (
    _read_only,
    _typed,
    lambda dense, _: np.asfortranarray(dense),
    lambda dense, _: np.repeat(dense, 2, axis=1)[:, ::2],
    lambda dense, _: dense[::-1, ::-1],
    lambda dense, _: dense.tolist(),
    lambda dense, _: [*dense.tolist(), [1]],
    lambda dense, _: dense[None],
    lambda dense, _: dense[0] if len(dense) else dense,
    lambda dense, _: dense[:, :0],
    lambda dense, _: np.ma.array(dense, mask=dense > 0.9),
    lambda dense, _: pd.DataFrame(dense),
    lambda dense, _: pd.DataFrame(dense).astype("Float64").mask(pd.DataFrame(dense > 0.9)),
    lambda dense, _: pd.DataFrame(dense).astype("category"),
    lambda dense, _: dense.argmax(axis=1) if dense.size else dense,
    lambda dense, _: dense.argmax(axis=1) - 1 if dense.size else dense,
)
CONVERSIONS = (_order, _order, _format, _old_matrix, _dense, _dense, _dense)
BREAKS = (_number, _number, _number, _value, _value, _length, _type, _no_array, _shape)


def broken(kind, generator, n_rows):
    """A sound array, one of another form, or one that is broken last: scipy itself must meet no broken one here."""
    if generator.random() < 0.02:
        return generator.choice([None, "x", 3.0, [], {}, object()])
    X = sound_matrix(kind, generator, n_rows)
    if generator.random() < 0.5:
        X = generator.choice(CONVERSIONS)(X, generator)
    if sparse.issparse(X) and X.format == "csr" and generator.random() < 0.6:
        X = generator.choice(BREAKS)(X, generator)
    return X


def weights(generator, n=N_LABELS):
    sound = np.random.default_rng(generator.randrange(100)).random(n)
    if generator.random() < 0.5:
        return sound
    changed = sound.copy()
    changed[generator.randrange(n)] = generator.choice(FLOATS)
    with np.errstate(all="ignore"):
        forms = [changed, sound[:-1], sound[:, None], sound.astype(">f4"), sound.tolist(), None, "x", 0.5, sound[::-1]]
        return generator.choice([*forms, sound.astype(object), sound.astype("U4"), _read_only(changed, None)])


def classes(generator, n_rows):
    """One class per row, in one of the forms that labels have."""
    sound = np.arange(n_rows) % N_LABELS
    names = np.array(["a,b", "ü", "line\nbreak", "", "a" * 300, "nan"])[sound]
    lists = [[name] * (k % 3) for k, name in enumerate(names.tolist())]
    forms = [sound, sound, names, lists, sound.astype(">i8"), sound[::-1], sound.astype(float), sound.astype("u8")]
    forms += [names.astype(object), pd.Series(sound, dtype="Int64"), pd.Series(names, dtype="string"), sound - 2**62]
    forms += [
        pd.Series(names, dtype="category"),
        pd.Series([None] * n_rows),
        sound[:-1],
        names.tolist(),
        sound[:, None],
    ]
    forms += [_read_only(sound.copy(), None), [set(row) for row in lists], [*lists[1:], [None]], sound + 0.5]
    return generator.choice(forms)


def number(generator):
    return generator.choice([1, 2, 5, 0, -1, 2**31, 2**63, 2**70, 1.5, float("nan"), True, None, "x", [1]])


# --- functions --------------------------------------------------------------------------------------------------------

# Each takes arrays that may be broken: Y and P (true labels and scores), X, one number per label, and a number.
RANKED = ("precision_at_k", "recall_at_k", "ndcg_at_k", "coverage_at_k")
PAIRS = ("macro_f1", "micro_f1", "example_f1", "accuracy", "entropy_reduction", "log_loss", "brier_score")
BINNED = ("reliability_curve", "expected_calibration_error")
BUILDERS = ("complete_tree", "random_tree", "one_level_tree", "huffman_tree", "fano_tree", "kmeans_tree")
FUNCTIONS = {
    **{name: lambda m, name=name: getattr(metrics, name)(m.Y, m.P, k=m.number) for name in RANKED},
    **{name: lambda m, name=name: getattr(metrics, name)(m.Y, m.P) for name in (*PAIRS, "evaluate", "filter_recall")},
    **{name: lambda m, name=name: getattr(metrics, name)(m.Y, m.P, m.number) for name in BINNED},
    "psp_at_k": lambda m: metrics.psp_at_k(m.Y, m.P, m.per_label, 3),
    "psndcg_at_k": lambda m: metrics.psndcg_at_k(m.Y, m.P, m.per_label, 3),
    "propensities": lambda m: metrics.propensities(m.Y, n_labels=m.number),
    "evaluate at": lambda m: metrics.evaluate(m.Y, m.P, [m.number], m.per_label),
    "expected_depth_at_k": lambda m: metrics.expected_depth_at_k(m.P, m.per_label, 2),
    "labels_needed": lambda m: metrics.labels_needed(m.Y, m.number),
    "partition_quality": lambda m: metrics.partition_quality(m.per_row, m.per_label),
    "leaf_entropy": lambda m: metrics.leaf_entropy(m.per_row, m.per_row),
    "apply_thresholds": lambda m: decide.apply_thresholds(m.P, m.per_label),
    "tune_fta": lambda m: decide.tune_fta(m.P, m.Y),
    "tune_sto": lambda m: decide.tune_sto(m.P, m.Y),
    "tune_ofo": lambda m: decide.tune_ofo(m.P, m.Y),
    "OnlineF": lambda m: decide.OnlineF().update(m.P, m.Y).thresholds,
    "FixedThresholds": lambda m: decide.FixedThresholds(N_LABELS).update(m.P, m.Y).thresholds(),
    "choose_thresholds": lambda m: decide.choose_thresholds(m.P, m.Y),
    "f_measure_curves": lambda m: decide.f_measure_curves(m.P, m.Y, m.P, m.Y),
    "decide_budget": lambda m: decide.decide_budget(m.P, m.number),
    "expected_value": lambda m: decide.expected_value(m.P, m.Y, positive=m.per_label),
    "OnlineBudget": lambda m: decide.OnlineBudget(N_LABELS, 2).decide(m.P),
    **{name: lambda m, name=name: getattr(trees, name)(m.X, m.Y, max_leaf=m.number) for name in BUILDERS},
    "interpolated_tree": lambda m: trees.interpolated_tree(m.X, m.Y, lam=m.number),
    "marginal_frequency": lambda m: trees.marginal_frequency(m.Y, m.per_row),
    "effective_frequency": lambda m: trees.effective_frequency(m.X, m.Y),
    "LabelTree": lambda m: trees.LabelTree(m.per_label, m.per_label),
    "subtree_minimum": lambda m: trees.complete_tree(None, np.eye(N_LABELS)).subtree_minimum(m.per_label),
    "depth_of": lambda m: trees.complete_tree(None, np.eye(N_LABELS)).depth_of(m.number),
}


class Made:
    """Arrays made when a function takes them; all come from one generator."""

    def __init__(self, generator):
        self.generator = generator
        self.n_rows = generator.choice([N_ROWS, N_ROWS, N_ROWS, N_ROWS, 1, 0])

    X = property(lambda self: broken("X", self.generator, self.n_rows))
    Y = property(lambda self: broken("Y", self.generator, self.n_rows))
    P = property(lambda self: broken("P", self.generator, self.n_rows))
    classes = property(lambda self: classes(self.generator, self.n_rows))
    per_label = property(lambda self: weights(self.generator))
    per_row = property(lambda self: weights(self.generator, N_ROWS))
    number = property(lambda self: number(self.generator))


def attack_calls(count, seed):
    """Call the functions of metrics, decide and trees with arrays that may be broken."""
    names = sorted(FUNCTIONS)

    def one_input(generator):
        name = generator.choice(names)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                FUNCTIONS[name](Made(generator))
        except ValueError as error:
            check_words(name, error)
            raise ValueError(str(error)) from error
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
        return "ok"

    return attack(one_input, count, seed, (ValueError,))


def check_words(name, error):
    """Errors of other kinds that are also ValueErrors were not meant for the caller."""
    if isinstance(error, UnicodeError | np.exceptions.AxisError | np.linalg.LinAlgError):
        raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error


def test_functions_answer_broken_arrays_or_reject_them():
    outcomes = attack_calls(n_inputs(3000), 6)
    report("calls", outcomes)
    assert {"ok", "ValueError"} == set(outcomes)


@pytest.mark.parametrize("part", ["data", "indptr"])
def test_a_sparse_array_that_cannot_be_printed_is_no_number(part):
    broken_array = sparse.csr_array(np.eye(3))
    setattr(broken_array, part, "x" if part == "data" else None)
    with pytest.raises(ValueError, match="frequency must be a number between 0 and 1, got a broken csr_array"):
        trees.effective_frequency(np.eye(3), broken_array)


def test_depths_that_are_no_numbers_are_rejected():
    with pytest.raises(ValueError, match="depth must contain real numbers, got dtype"):
        metrics.expected_depth_at_k(np.eye(3), np.array(["1", "2", "3"]), 2)


# --- classifiers ------------------------------------------------------------------------------------------------------


@functools.cache
def fitted(name):
    X = np.random.default_rng(0).random((30, N_FEATURES), dtype=np.float32)
    return MAKE[name]().fit(X, np.arange(30) % N_LABELS)


def attack_queries(count, seed, name):
    """Ask a model about rows, candidates, thresholds and weights that may be broken."""
    clf = fitted(name)
    questions = {
        "predict_proba": lambda m: clf.predict_proba(m.X, top_k=m.number),
        "threshold": lambda m: clf.predict_proba(m.X, threshold=m.per_label),
        "labels": lambda m: clf.predict_proba(m.X, labels=m.classes),
        "candidates": lambda m: clf.predict_proba(m.X, labels=m.Y),
        "predict": lambda m: clf.predict(m.X),
        "predict_labels": lambda m: clf.predict_labels(m.X, m.number),
        "predict_one": lambda m: clf.predict_one(m.X, m.number),
        "explain": lambda m: clf.explain(m.X, m.number),
        "score": lambda m: clf.score(m.X, m.classes, m.per_row),
    }

    def one_input(generator):
        question = generator.choice(sorted(questions))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                questions[question](Made(generator))
        except ValueError as error:
            check_words(f"{name}, {question}", error)
            raise ValueError(str(error)) from error
        except Exception as error:
            raise AssertionError(f"{name}, {question}: {type(error).__name__}: {error}") from error
        return "ok"

    return attack(one_input, count, seed, (ValueError,))


@pytest.mark.parametrize("name", list(MAKE))
def test_models_answer_broken_arrays_or_reject_them(name):
    outcomes = attack_queries(n_inputs(100), 7, name)
    report(f"queries of {name}", outcomes)
    assert {"ok", "ValueError"} == set(outcomes)


def attack_learning(count, seed, name):
    """Train, from the start or on, with X, Y and weights that may be broken; the model still answers afterwards."""
    clf = fitted(name)

    def one_input(generator):
        made = Made(generator)
        labels = made.Y if generator.random() < 0.4 else made.classes
        learn = MAKE[name]().fit if generator.random() < 0.5 else getattr(clf, "partial_fit", MAKE[name]().fit)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                learn(made.X, labels, sample_weight=None if generator.random() < 0.7 else made.per_row)
        except ValueError as error:
            check_words(name, error)
            raise ValueError(str(error)) from error
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
        finally:
            clf.predict_proba(np.zeros((1, N_FEATURES)), top_k=2)
        return "ok"

    return attack(one_input, count, seed, (ValueError,))


@pytest.mark.parametrize("name", list(MAKE))
def test_models_learn_from_broken_arrays_or_reject_them(name):
    outcomes = attack_learning(n_inputs(40), 8, name)
    report(f"learning of {name}", outcomes)
    assert outcomes["ValueError"]


@pytest.mark.parametrize("name", list(MAKE))
@pytest.mark.parametrize(
    ("parameter", "value", "said"),
    [
        ("vectorizer", 3, "vectorizer must be None, a TextVectorizer"),
        ("vectorizer", TextVectorizer, "vectorizer must be None, a TextVectorizer"),
        ("random_state", "a", "random_state must be None, an integer or a numpy.random.RandomState, got 'a'"),
    ],
)
def test_wrong_parameters_are_rejected_before_they_are_needed(name, parameter, value, said):
    """A wrong vectorizer was no error where X held numbers; of a wrong seed scikit-learn said no name."""
    for learn in ("fit", "partial_fit"):
        clf = MAKE[name]()
        if hasattr(clf, learn) and parameter in clf.get_params():
            clf.set_params(**{parameter: value})
            with pytest.raises(ValueError, match=re.escape(said)):
                getattr(clf, learn)(np.eye(6, dtype=np.float32), np.arange(6))


@pytest.mark.parametrize("name", list(MAKE))
@pytest.mark.parametrize("labels", [object(), 3.0])
def test_labels_without_rows_are_rejected(name, labels):
    for learn in ("fit", "partial_fit"):
        clf = MAKE[name]()
        if hasattr(clf, learn):
            with pytest.raises(ValueError):
                getattr(clf, learn)(np.eye(6, dtype=np.float32), labels)


@pytest.mark.parametrize("name", ["lomtree", "plt"])
def test_one_row_whose_values_are_a_matrix_is_rejected(name):
    row = sparse.csr_array(np.eye(1, N_FEATURES))
    row.data = np.zeros((2, 2))
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        fitted(name).predict_proba(row, top_k=1)
