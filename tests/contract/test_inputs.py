"""What every classifier takes as X and Y, and what it refuses before anything changes."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from contract.classifiers import takes_any_width
from contract.small_data import N_FEATURES, N_LABELS, once_per_path, same

ROW_FORMS = {
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "coo_array": sparse.coo_array,
    "lil_array": sparse.lil_array,
    "dok_array": sparse.dok_array,
    "dense": lambda X: X.toarray(),
    "dense float64": lambda X: X.toarray().astype(np.float64),
    "fortran": lambda X: np.asfortranarray(X.toarray()),
    "list": lambda X: X.toarray().tolist(),
    "int64 indices": lambda X: with_wide_indices(X),
    "unsorted": lambda X: reversed_rows(X),
    "repeated": lambda X: repeated_entries(X),
    "stored zeros": lambda X: with_stored_zeros(X),
    "read-only": lambda X: read_only(X),
}


def with_wide_indices(X):
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return wide


def reversed_rows(X):
    parts = [np.arange(X.indptr[row], X.indptr[row + 1])[::-1] for row in range(X.shape[0])]
    order = np.concatenate(parts)
    return sparse.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def repeated_entries(X):
    return sparse.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape
    )  # halves add up exactly


def with_stored_zeros(X):
    dense = X.toarray()
    indices = np.tile(np.arange(X.shape[1]), X.shape[0])
    return sparse.csr_array((dense.ravel(), indices, np.arange(X.shape[0] + 1) * X.shape[1]), shape=X.shape)


def read_only(X):
    X = X.copy()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


@once_per_path
@pytest.mark.parametrize("form", ROW_FORMS)
def test_rows_in_any_form_give_the_same_model_and_stay_as_they_were(make, fitted, data, form):
    expected = fitted().predict_proba(data.X, top_k=3)
    X = ROW_FORMS[form](data.X)
    before = (
        [np.array(part) for part in (X.data, X.indices)] if form in ("unsorted", "repeated", "stored zeros") else []
    )
    clf = make().fit(X, data.Y)
    assert clf.n_features_in_ == N_FEATURES
    assert same(clf.predict_proba(X, top_k=3), expected)
    assert same(clf.predict_proba(data.X, top_k=3), expected)
    for part, now in zip(before, (getattr(X, "data", None), getattr(X, "indices", None)), strict=False):
        np.testing.assert_array_equal(part, now)


def test_one_untidy_row_is_answered_as_its_tidy_twin(fitted, data):
    row = data.X[[5]]
    for form in ("unsorted", "repeated", "stored zeros", "int64 indices"):
        assert fitted().predict_labels(ROW_FORMS[form](row)) == fitted().predict_labels(row), form


@once_per_path
def test_multi_label_indicators_in_any_form_give_the_same_model(make, fitted, data):
    expected = fitted().predict_proba(data.X, top_k=3)
    dense = data.Y.toarray()
    forms = (dense, dense.astype(bool), dense.astype(float), dense.tolist(), list(dense), sparse.csc_matrix(data.Y))
    for Y in (*forms, pd.DataFrame(dense)):
        clf = make().fit(data.X, Y)
        assert same(clf.predict_proba(data.X, top_k=3), expected)
        np.testing.assert_array_equal(clf.classes_, np.arange(N_LABELS))


@once_per_path
@pytest.mark.parametrize("wrap", [list, tuple, set, np.array])
def test_label_collections_keep_names_with_commas_and_umlauts(make, data, wrap):
    rows = [wrap(labels) for labels in data.collections]
    clf = make().fit(data.X, rows)
    assert set(clf.classes_) == set(data.names)
    answer = clf.predict_labels(data.X, top_k=2)
    assert all(label in data.names for pairs in answer for label, _ in pairs)
    in_order = [data.names.tolist().index(name) for name in clf.classes_]
    by_column = make().fit(data.X, data.Y[:, in_order]).predict_proba(data.X, top_k=2)
    assert same(clf.predict_proba(data.X, top_k=2), by_column)


def test_pandas_in_names_known(make, fitted, data):
    columns = [f"feature {column}" for column in range(N_FEATURES)]
    X = pd.DataFrame(data.X.toarray(), columns=columns, index=np.arange(N_FEATURES, N_FEATURES + data.X.shape[0]))
    clf = make().fit(X, pd.Series(data.collections, index=X.index))
    assert clf.feature_names_in_.tolist() == columns
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(clf.predict_proba(X), fitted("collections").predict_proba(data.X))
        row = data.X[[3]]
        by_name = {columns[index]: value for index, value in zip(row.indices, row.data, strict=True)}
        assert clf.predict_one({**by_name, "never seen": 3.0}) == clf.predict_labels(X.iloc[[3]])[0]
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict_labels(data.X[[3]])
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(X[columns[::-1]])
    with pytest.raises(ValueError, match="given twice"):
        clf.predict_one({columns[0]: 1.0, 0: 1.0})
    assert not hasattr(clf.fit(data.X, data.Y), "feature_names_in_")


def fit_texts(make, texts, data):
    vectorizer = TfidfVectorizer() if takes_any_width(make()) else None
    return make(vectorizer=vectorizer).fit(texts, data.collections)


def test_texts_are_taken_as_they_are(make, data):
    clf = fit_texts(make, data.texts, data)
    assert clf.n_features_in_ == len(clf.vectorizer_.vocabulary_)
    answer = clf.predict_proba(data.texts, top_k=3)
    assert same(clf.predict_proba(clf.vectorizer_.transform(data.texts), top_k=3), answer)
    assert clf.predict_one(data.texts[2], top_k=3) == clf.predict_labels(data.texts, top_k=3)[2]
    assert len(clf.predict_one({"wort3": 0.5, "unheard": 1.0})) == 5
    assert clf.predict_labels(["", "unheard of"])[0] == clf.predict_labels(["unheard of"])[0]


@once_per_path
def test_texts_in_any_form_give_the_same_model(make, data):
    expected = fit_texts(make, data.texts, data).predict_proba(data.texts, top_k=3)
    for wrap in (tuple, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)):
        texts = wrap(data.texts)
        assert same(fit_texts(make, texts, data).predict_proba(texts, top_k=3), expected)


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer(min_df=2), HashingVectorizer(n_features=64)])
def test_the_vectorizer_is_the_users_choice_and_stays_unfitted(make, data, vectorizer):
    clf = make(vectorizer=vectorizer).fit(data.texts, data.Y)
    assert type(clf.vectorizer_) is type(vectorizer)
    assert clf.vectorizer_ is not vectorizer
    assert not hasattr(vectorizer, "vocabulary_")
    assert clf.predict_proba(data.texts).shape == (len(data.texts), N_LABELS)


def changed(array, row, column, value):
    array = np.array(array.toarray(), dtype=np.float64)
    array[row, column] = value
    return array


def spoiled(X, value):
    X = sparse.csr_array(X, dtype=np.float64, copy=True)
    X.data[3] = value
    return X


def out_of_range(X):
    X = X.copy()
    X.indices[-1] = X.shape[1]
    return X


REFUSED_ROWS = {
    "NaN": (lambda X: changed(X, 2, 3, np.nan), "NaN"),
    "infinity": (lambda X: changed(X, 2, 3, np.inf), "infinity"),
    "beyond float32": (lambda X: changed(X, 2, 3, 1e39), "too large"),
    "sparse NaN": (lambda X: spoiled(X, np.nan), "NaN"),
    "sparse infinity": (lambda X: spoiled(X, -np.inf), "infinity"),
    "sparse beyond float32": (lambda X: spoiled(X, 1e39), "too large"),
    "one dimension": (lambda X: X.toarray().ravel(), "Reshape your data"),
    "three dimensions": (lambda X: np.zeros((2, 2, 2)), "dim 3|3 dimensions"),
    "complex": (lambda X: X.toarray() + 1j, "Complex data not supported"),
    "a single text": (lambda X: "chest pain", r"wrap it in a list"),
    "texts and none": (lambda X: ["chest pain", None], "row 1 is None"),
    "texts and numbers": (lambda X: ["chest pain", 3], "row 1 is 3"),
    "words in a table": (lambda X: np.array([["a", "b"]]), "row 0, column 0 is 'a'"),
    "feature out of range": (out_of_range, "broken sparse matrix|indices"),
}


@once_per_path
@pytest.mark.parametrize("case", REFUSED_ROWS)
def test_refused_rows_leave_a_fitted_model_as_it_was(fitted, data, case):
    spoil, said = REFUSED_ROWS[case]
    clf = copy.deepcopy(fitted("collections"))
    before = clf.predict_proba(data.X, top_k=3)
    parts = [(part, dict(part.__dict__)) for part in (clf, clf.fitted_, clf.schema_)]
    bad = spoil(data.X)
    n_rows = bad.shape[0] if hasattr(bad, "shape") else len(bad)
    with pytest.raises((ValueError, TypeError), match=said):
        clf.fit(bad, data.Y[:n_rows])
    with pytest.raises((ValueError, TypeError), match=said):
        clf.predict_proba(bad)
    assert clf.fitted_ is parts[1][0]
    for part, attributes in parts:
        assert part.__dict__.keys() == attributes.keys()
        assert all(part.__dict__[name] is value for name, value in attributes.items())
    assert same(clf.predict_proba(data.X, top_k=3), before)


@once_per_path
@pytest.mark.parametrize(
    ("Y", "said"),
    [
        (lambda data: None, "requires y"),
        (lambda data: data.Y[:-1], "X has 120 rows, but Y has 119"),
        (lambda data: data.collections[:-1], "120 rows, but Y has 119"),
        (lambda data: data.y[:-1], "120 rows, but Y has 119"),
        (lambda data: -data.Y, "only 0 and 1, got -1"),
        (lambda data: data.Y * 2, "only 0 and 1, got 2"),
        (lambda data: data.Y[:, :0], "no labels"),
        (lambda data: [[]] * 120, "no labels"),
        (lambda data: [[-1]] * 120, "must be between 0 and .*, got -1 in row 0"),
        (lambda data: [*data.collections[:-1], None], "row 119 of Y is None"),
        (lambda data: [*data.collections[:-1], "abc"], "row 119 of Y is 'abc'"),
        (lambda data: [*data.collections[:-1], [float("nan")]], "NaN in row 119"),
        (lambda data: np.where(np.arange(120) == 5, np.nan, 1.0), "NaN in row 5"),
        (lambda data: np.linspace(0, 1, 120), "Unknown label type: "),
        (lambda data: np.zeros((120, 2, 2)), "Unknown label type: "),
    ],
)
def test_refused_labels_leave_a_fitted_model_as_it_was(fitted, data, Y, said):
    clf = copy.deepcopy(fitted("y"))
    before = clf.predict_proba(data.X)
    with pytest.raises(ValueError, match=said):
        clf.fit(data.X[:, :5], Y(data))
    assert clf.n_features_in_ == N_FEATURES
    assert same(clf.predict_proba(data.X), before)


@once_per_path
@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (np.ones(119), "sample_weight"),
        (np.ones((120, 2)), "1D|sample_weight|1d"),
        (np.full(120, -1.0), "[Nn]egative"),
        (np.full(120, np.nan), "NaN"),
        (np.zeros(120), "zero"),
    ],
)
def test_refused_weights_leave_a_fitted_model_as_it_was(fitted, data, weight, said):
    clf = copy.deepcopy(fitted())
    before = clf.predict_proba(data.X)
    with pytest.raises(ValueError, match=said):
        clf.fit(data.X, data.Y, sample_weight=weight)
    assert same(clf.predict_proba(data.X), before)


@once_per_path
def test_empty_data_are_refused(make, data):
    with pytest.raises(ValueError, match=r"0 sample"):
        make().fit(data.X[:0], data.Y[:0])
    with pytest.raises(ValueError, match=r"0 feature"):
        make().fit(np.zeros((3, 0)), [1, 2, 3])
    with pytest.raises(ValueError):
        make().fit([], [])


def test_a_model_that_is_not_fitted_says_so(make, data):
    for ask in ("predict", "predict_proba", "predict_labels"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(make(), ask)(data.X)
    for x in ({0: 1.0}, data.X[[0]]):
        with pytest.raises(NotFittedError, match="not fitted"):
            make().predict_one(x)
    with pytest.raises(NotFittedError):
        make().save("nowhere")
    assert not hasattr(make(), "classes_")


def test_a_wrong_number_of_features_is_refused(fitted, data):
    clf = fitted()
    for width in (N_FEATURES - 1, N_FEATURES + 1):
        X = data.X.copy()
        X.resize(X.shape[0], width)
        if takes_any_width(clf):
            expected = data.X[:, : min(width, N_FEATURES)].copy()
            expected.resize(data.X.shape)
            assert clf.predict_labels(X) == clf.predict_labels(X.toarray()) == clf.predict_labels(expected)
            continue
        for rows in (X, X[[0]], X.toarray()):
            with pytest.raises(ValueError, match=f"X has {width} features.*expecting {N_FEATURES}"):
                clf.predict_labels(rows)


def test_texts_are_refused_by_a_model_of_numbers(fitted):
    with pytest.raises(ValueError, match="was trained on numbers"):
        fitted().predict(["chest pain"])


REFUSED_QUESTIONS = [
    ({"top_k": 0}, "top_k must be an integer of at least 1, got 0"),
    ({"top_k": 2.5}, "top_k must be an integer"),
    ({"top_k": True}, "top_k must be an integer"),
    ({"threshold": -0.1}, "threshold must be a number between 0 and 1, got -0.1"),
    ({"threshold": 1.5}, "threshold must be"),
    ({"threshold": float("nan")}, "threshold must be"),
    ({"threshold": "high"}, "threshold must be"),
    ({"threshold": np.zeros(3)}, r"one number or one per label \(12\), got shape \(3,\)"),
    ({"threshold": np.full(N_LABELS, -1.0)}, "negative or NaN"),
    ({"labels": [N_LABELS]}, "columns are 0 to 11"),
    ({"labels": [-1]}, "columns are 0 to 11"),
    ({"labels": 3}, r"write \[3\]"),
]


def test_refused_questions_name_the_argument(fitted, data):
    clf = fitted()
    for question, said in REFUSED_QUESTIONS:
        with pytest.raises(ValueError, match=said):
            clf.predict_proba(data.X, **question)
        if "labels" not in question:
            for rows in (data.X, data.X[[0]]):
                with pytest.raises(ValueError, match=said):
                    clf.predict_labels(rows, **question)


REFUSED_SINGLE_ROWS = [
    ({-1: 1.0}, "begin at 0"),
    ({1: float("nan")}, "feature 1 is nan"),
    ({1: 1e39}, "feature 1 is 1e\\+39"),
    ({1: "2"}, "feature 1 is '2'"),
    ({1: None}, "feature 1 is None"),
    ({"word": 1.0}, "without feature names"),
    ({1.5: 1.0}, "column number or a name"),
    ({True: 1.0}, "column number or a name"),
    (np.zeros((2, N_FEATURES)), "one row, got 2"),
    (np.zeros(N_FEATURES + 1), "features"),
]


def test_refused_single_rows_name_the_feature(fitted):
    clf = fitted()
    for x, said in REFUSED_SINGLE_ROWS:
        if said == "features" and takes_any_width(clf):
            assert clf.predict_one(x) == clf.predict_one({})
        else:
            with pytest.raises(ValueError, match=said):
                clf.predict_one(x)


@once_per_path
@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_a_bad_number_of_jobs_is_refused_at_fit(make, data, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        make(n_jobs=n_jobs).fit(data.X, data.Y)


def test_every_classifier_takes_untidy_input_and_refuses_bad_input(make, fitted, data):
    """Each goes through the shared code, which the tests above look at closely once for each path."""
    clf = copy.deepcopy(fitted())
    expected = clf.predict_proba(data.X, top_k=3)
    tidy, untidy = (data.X.toarray(), data.Y.toarray().astype(bool)), (repeated_entries(reversed_rows(data.X)), data.Y)
    for X, Y in (tidy, untidy):
        assert same(make().fit(X, Y).predict_proba(X, top_k=3), expected)
    attributes = dict(clf.__dict__)
    for arguments, said in (
        ((changed(data.X, 2, 3, np.nan), data.Y), "NaN"),
        ((spoiled(data.X, np.inf), data.Y), "infinity"),
        ((None, data.Y), "X must be an array, .* got None"),
        ((["chest pain", None], data.Y[:2]), "row 1 is None"),
        ((data.X[:0], data.Y[:0]), "0 sample"),
        ((data.X, None), "requires y"),
        ((data.X, data.Y[:-1]), "X has 120 rows, but Y has 119"),
        ((data.X, data.Y * 2), "only 0 and 1, got 2"),
        ((data.X, (labels for labels in data.collections)), "got a generator"),
        ((data.X, data.Y, np.full(120, -1.0)), "[Nn]egative"),
    ):
        with pytest.raises(ValueError, match=said):
            clf.fit(*arguments)
    for X, said in ((changed(data.X, 2, 3, np.nan), "NaN"), ({0: 1.0}, "X is a dict")):
        with pytest.raises(ValueError, match=said):
            clf.predict_proba(X)
    assert clf.__dict__.keys() == attributes.keys()
    assert all(clf.__dict__[name] is value for name, value in attributes.items())
    assert same(clf.predict_proba(data.X, top_k=3), expected)
    for settings in ({"n_jobs": 0}, {"random_state": -1}, {"vectorizer": "tfidf"}):
        with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
            make(**settings).fit(data.texts, data.collections)
