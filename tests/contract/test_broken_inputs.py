"""X, Y, weights and thresholds in every broken or unusual form: read as meant, or rejected with the reason."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import ramify
from contract.small_data import N_FEATURES, N_LABELS, once_per_path, same
from ramify import metrics, trees
from ramify.data.hashing import FeatureHashing
from ramify.models.spectral.eigen_split import eigen_split


def with_part(array, part, value):
    """The array with another index or value array, which scipy does not check."""
    array = array.copy()
    setattr(array, part, value(getattr(array, part)))
    return array


def at(place, value):
    def change(values):
        values = values.copy()
        values[place] = value
        return values

    return change


def table(X, **types):
    frame = pd.DataFrame(X.toarray(), columns=[f"c{column}" for column in range(X.shape[1])])
    return frame.assign(**{name: values(len(frame)) for name, values in types.items()})


def dates(n):
    return pd.date_range("2026-01-01", periods=n)


def masked(X):
    return np.ma.array(X.toarray(), mask=X.toarray() > 0.9)


# --- forms that mean the same ----------------------------------------------------------------------------------------

SAME_ROWS = {
    "foreign byte order": lambda X: X.toarray().astype(">f4"),
    "indices in foreign byte order": lambda X: with_part(X, "indices", lambda v: v.astype(">i4")),
    "indptr in foreign byte order": lambda X: with_part(X, "indptr", lambda v: v.astype(">i8")),
    "values in foreign byte order": lambda X: with_part(X, "data", lambda v: v.astype(">f4")),
    "unsigned indices": lambda X: with_part(X, "indices", lambda v: v.astype(np.uint16)),
    "long double": lambda X: X.toarray().astype(np.longdouble),
    "objects": lambda X: X.toarray().astype(object),
    "masked array without masked values": lambda X: np.ma.array(X.toarray()),
    "polars": lambda X: pl.from_pandas(table(X)),
    "pyarrow": lambda X: pa.Table.from_pandas(table(X)),
}
SAME_LABELS = {
    "half floats": lambda Y: Y.toarray().astype(np.float16),
    "foreign byte order": lambda Y: Y.toarray().astype(">i4"),
    "indices in foreign byte order": lambda Y: with_part(Y, "indices", lambda v: v.astype(">i4")),
    "objects": lambda Y: Y.toarray().astype(object),
    "pandas Int64": lambda Y: pd.DataFrame(Y.toarray()).astype("Int64"),
    "polars": lambda Y: pl.DataFrame(Y.toarray()),
}


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("form", SAME_ROWS)
def test_rows_in_unusual_forms_give_the_same_answers(form):
    X = sparse.random(30, N_FEATURES, density=0.2, format="csr", dtype=np.float32, random_state=0)
    y = np.arange(30) % 4
    for clf in (ramify.PLTClassifier(random_state=0), ramify.OnlinePLTClassifier(random_state=0)):
        expected = clf.fit(X, y).predict_proba(X, top_k=4)
        assert same(clf.predict_proba(SAME_ROWS[form](X), top_k=4), expected)
        assert same(clf.fit(SAME_ROWS[form](X), y).predict_proba(SAME_ROWS[form](X), top_k=4), expected)


@pytest.mark.parametrize("form", SAME_LABELS)
def test_a_label_array_in_unusual_form_gives_the_same_model(form):
    X, Y = (
        np.eye(30, dtype=np.float32),
        sparse.csr_array(np.eye(30, N_LABELS, dtype=int) + np.eye(30, N_LABELS, 1, int)),
    )
    clf = ramify.OnlinePLTClassifier(random_state=0)
    expected = clf.fit(X, Y).predict_proba(X)
    assert same(clf.fit(X, SAME_LABELS[form](Y)).predict_proba(X), expected)


@once_per_path
@pytest.mark.parametrize("dtype", [">U12", np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else "<U12"])
def test_classes_in_any_string_type_can_be_saved_and_loaded(make, data, tmp_path, dtype):
    y = np.array([f"Klasse {k}" for k in data.y], dtype=dtype)
    clf = make().fit(data.X, y)
    clf.save(tmp_path / "model")
    assert ramify.load(tmp_path / "model").predict_labels(data.X[:3]) == clf.predict_labels(data.X[:3])
    assert clf.classes_.tolist() == sorted(set(y.tolist()))


def test_classes_that_end_in_a_zero_byte_stay_apart():
    clf = ramify.OnlinePLTClassifier(random_state=0).fit(np.eye(4), ["a\0", "a", "a\0", "a"])
    assert clf.classes_.tolist() == ["a", "a\0"]


# --- forms that are rejected -----------------------------------------------------------------------------------------

BROKEN = {
    "indices of floats": (lambda A: with_part(A, "indices", lambda v: v.astype(float)), "indices must be .* integers"),
    "indices of bools": (lambda A: with_part(A, "indices", lambda v: v.astype(bool)), "indices must be .* integers"),
    "indices of objects": (
        lambda A: with_part(A, "indices", lambda v: v.astype(object)),
        "indices must be .* integers",
    ),
    "indices in a list": (lambda A: with_part(A, "indices", np.ndarray.tolist), "indices must be .* got list"),
    "indices of two dimensions": (lambda A: with_part(A, "indices", lambda v: v[None]), "indices must be .* 2-D"),
    "indptr of floats": (lambda A: with_part(A, "indptr", lambda v: v.astype(float)), "indptr must be .* integers"),
    "indptr in a list": (lambda A: with_part(A, "indptr", np.ndarray.tolist), "indptr must be .* got list"),
    "a decreasing indptr": (lambda A: with_part(A, "indptr", at(3, 0)), "indptr decreases"),
    "a short indptr": (lambda A: with_part(A, "indptr", lambda v: v[:-1]), "indptr has .* entries"),
    "an indptr beyond 32 bits": (
        lambda A: with_part(A, "indptr", lambda v: at(-1, 2**32 + 3)(v.astype(np.int64))),
        "indptr ends at 4294967299",
    ),
    "an index beyond 32 bits": (
        lambda A: with_part(A, "indices", lambda v: at(3, 2**32 + 1)(v.astype(np.int64))),
        "column index 4294967297",
    ),
    "a negative index": (lambda A: with_part(A, "indices", at(3, -1)), "column index -1"),
    "values of strings": (lambda A: with_part(A, "data", lambda v: v.astype(str)), "numbers|only 0 and 1"),
    "masked values": (masked, "masked values, the first in row"),
}
ODD_ROWS = {
    **BROKEN,
    "dates": (lambda X: np.full(X.shape, np.datetime64("2026-01-01")), "dates or times"),
    "a column of dates": (lambda X: table(X, seen=dates), "column 'seen' of X holds dates or times"),
    "a polars column of dates": (lambda X: pl.from_pandas(table(X, seen=dates)), "column 'seen' of X holds dates"),
    "a polars column of texts": (
        lambda X: pl.from_pandas(table(X, note=lambda n: ["chest pain"] * n)),
        r"column 'note' of X holds texts: .* X\['note'\]",
    ),
    "a polars table to be read": (lambda X: pl.from_pandas(table(X)).lazy(), r"give X.collect\(\)"),
    "columns of one name": (lambda X: pd.DataFrame(X.toarray(), columns=["a"] * X.shape[1]), "two columns named 'a'"),
    "no columns": (lambda X: pd.DataFrame(index=range(X.shape[0])), "X has no columns"),
    "a set": (lambda X: {1.0}, r"X must be an array, .* got \{1.0\}"),
    "a class": (lambda X: int, "X must be an array, .* got <class 'int'>"),
    "rows that are missing": (lambda X: [[1.0] * N_FEATURES, None], "row 1 of X is None"),
    "an integer beyond all floats": (lambda X: [[10**400] * N_FEATURES], "too large for a float"),
    "too many columns": (lambda X: sparse.csr_array((X.shape[0], 2**31 - 1)), "at most 2147483646 features"),
}


@once_per_path
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("case", ODD_ROWS)
def test_broken_rows_are_rejected_with_the_reason(make, fitted, data, case):
    spoil, said = ODD_ROWS[case]
    with pytest.raises(ValueError, match=said):
        make().fit(spoil(data.X), data.Y)
    with pytest.raises(ValueError, match=said):
        fitted().predict_proba(spoil(data.X), top_k=1)


@pytest.mark.parametrize("case", BROKEN)
def test_every_classifier_rejects_broken_arrays(case):
    X, Y = sparse.csr_array(np.eye(30, 12, dtype=np.float32) + 1), sparse.csr_array(np.eye(30, 5) + np.eye(30, 5, -5))
    spoil, said = BROKEN[case]
    for name in filter(lambda name: name.endswith("Classifier"), ramify.__all__):
        clf = getattr(ramify, name)()
        with pytest.raises(ValueError, match=said):
            clf.fit(spoil(X), Y)
        with pytest.raises(ValueError, match=said):
            clf.fit(X, spoil(Y))


FUNCTIONS = {
    "kmeans_tree": trees.kmeans_tree,
    "interpolated_tree": trees.interpolated_tree,
    "eigen_split": eigen_split,
    "hashing": lambda X, Y: FeatureHashing().transform(X),
    "precision": lambda P, Y: metrics.precision_at_k(Y, P, k=1),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_without_a_model_reject_broken_arrays(function):
    X, Y = sparse.csr_array(np.eye(30, 5, dtype=np.float32) + 1), sparse.csr_array(np.eye(30, 5) + np.eye(30, 5, -5))
    foreign = {"a broken csc array": (lambda A: with_part(A.tocsc(), "indices", at(3, 10**6)), "row index 1000000")}
    for spoil, said in (BROKEN | foreign).values():
        with pytest.raises(ValueError, match=f"{said}|real numbers"):
            FUNCTIONS[function](spoil(X), Y)


def test_a_tree_of_no_labels_is_an_error():
    for build in (trees.kmeans_tree, trees.interpolated_tree, trees.huffman_tree, trees.complete_tree):
        with pytest.raises(ValueError, match="at least one label"):
            build(np.eye(3), np.zeros((3, 0)))


def test_metrics_take_half_floats_and_name_what_they_cannot_take():
    Y, P = np.eye(3), np.eye(3) * 0.5
    assert metrics.precision_at_k(Y.astype(">i4"), P.astype(np.float16), k=1) == 1
    with pytest.raises(ValueError, match="Y_true must be an array, got rows of different lengths"):
        metrics.precision_at_k([[0], [1, 2], []], P, k=1)
    with pytest.raises(ValueError, match="Y_true has 2147483649 columns"):
        metrics.precision_at_k(sparse.csr_array((3, 2**31 + 1)), P, k=1)


MISSING_LABELS = {
    "pandas Int64": (lambda Y: pd.DataFrame(Y.toarray()).astype("Int64").mask(Y.toarray() > 0), "missing value in row"),
    "objects": (lambda Y: np.where(Y.toarray() > 0, None, 0), "missing value in row"),
    "masked classes": (lambda Y: np.ma.array(np.arange(Y.shape[0]), mask=np.arange(Y.shape[0]) == 3), "Y has masked"),
    "pandas strings": (
        lambda Y: pd.Series(["a", None] * (Y.shape[0] // 2), dtype="string"),
        "contains NaN in row 1; remove",
    ),
}


@once_per_path
@pytest.mark.parametrize("case", MISSING_LABELS)
def test_missing_labels_are_rejected_with_their_row(make, data, case):
    spoil, said = MISSING_LABELS[case]
    with pytest.raises(ValueError, match=said):
        make().fit(data.X, spoil(data.Y))


@once_per_path
def test_a_single_masked_row_is_rejected(fitted):
    with pytest.raises(ValueError, match="X has masked values"):
        fitted().predict_one(np.ma.array(np.ones(N_FEATURES), mask=True))


@once_per_path
def test_masked_and_negative_weights_and_thresholds_are_rejected(make, fitted, data):
    n = data.X.shape[0]
    hidden = np.ma.array(np.ones(n), mask=np.arange(n) == 5)
    for use in (make().fit, fitted().score):
        with pytest.raises(ValueError, match="sample_weight has masked values, the first in row 5"):
            use(data.X, data.Y, sample_weight=hidden)
        with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
            use(data.X, data.Y, sample_weight=np.where(np.arange(n) == 5, -1.0, 1.0))
    thresholds = np.ma.array(np.full(N_LABELS, 0.5), mask=np.arange(N_LABELS) == 2)
    with pytest.raises(ValueError, match="threshold has masked values"):
        fitted().predict_proba(data.X, threshold=thresholds)
    with pytest.raises(ValueError, match=r"threshold must be one number or one per label \(12\), got array"):
        fitted().predict_proba(data.X, threshold=np.full(N_LABELS, "high"))


def test_masked_arrays_are_rejected_by_metrics():
    Y, hidden = np.eye(3), np.ma.array(np.eye(3), mask=np.eye(3) > 0)
    for one, other, name in ((hidden, Y, "Y_true"), (Y, hidden, "P")):
        with pytest.raises(ValueError, match=f"{name} has masked values"):
            metrics.precision_at_k(one, other, k=1)


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ("abc", "classes must be a list of labels, got 'abc'"),
        (3, "classes must be a list of labels, got 3"),
        ([0, "a"], "classes: Unknown label type: y mixes strings and numbers"),
        ([np.nan], "classes: Input y contains NaN"),
        ([[0], [1]], "classes"),
        (["a", "b"], "labels so far are like 'a'"),
    ],
    ids=str,
)
def test_bad_classes_are_rejected_by_name(classes, said):
    for make in (ramify.OnlinePLTClassifier, ramify.LOMTreeClassifier, ramify.MemoryTreeClassifier):
        with pytest.raises(ValueError, match=said):
            make().partial_fit(np.eye(4), [0, 1, 0, 1], classes=classes)


def test_true_is_no_column():
    clf = ramify.OnlinePLTClassifier(random_state=0).fit(np.eye(4), np.eye(4))
    with pytest.raises(ValueError, match="label True is not a column of Y"):
        clf.predict_proba(np.eye(4), labels=[True])


def test_what_fit_has_learned_is_not_thrown_away_by_partial_fit(data):
    clf = ramify.ThresholdClassifier(ramify.OnlinePLTClassifier(), random_state=0).fit(data.X, data.Y)
    alone = copy.deepcopy(clf.estimator_)
    before = alone.n_examples_
    clf.partial_fit(data.X, data.Y)
    for start in range(0, data.X.shape[0], clf.block):
        alone.partial_fit(data.X[start : start + clf.block], data.Y[start : start + clf.block])
    assert clf.estimator_.n_examples_ == alone.n_examples_ == before + data.X.shape[0]
    assert same(clf.estimator_.predict_proba(data.X), alone.predict_proba(data.X))
    assert clf.thresholds_.shape == (data.Y.shape[1],)
