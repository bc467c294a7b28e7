"""Inputs that users pass by mistake: the message says what was passed and what to pass instead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from contract.small_data import once_per_path

ODD_ROWS = {
    "None": (lambda texts: None, "X must be an array, .* got None"),
    "generator": (lambda texts: (text for text in texts), r"got a generator: give list\(X\)"),
    "dict": (lambda texts: {0: 1.0}, "X is a dict: .* for predict_one"),
    "dicts": (lambda texts: [{0: 1.0} for _ in texts], "X is a list of dicts: .* DictVectorizer"),
    "bytes": (lambda texts: [text.encode() for text in texts], "row 0 of X is b'.*decode"),
    "text column": (lambda texts: pd.DataFrame({"note": texts}), r"column 'note' of X holds texts: .* X\['note'\]"),
    "mixed columns": (
        lambda texts: pd.DataFrame({"age": np.arange(len(texts)), "note": texts}),
        "column 'note' of X holds texts",
    ),
}


@once_per_path
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("kind", ODD_ROWS)
def test_values_that_are_not_rows_are_refused_with_a_hint(make, fitted, data, kind):
    odd, message = ODD_ROWS[kind]
    clf = make()
    with pytest.raises(ValueError, match=message):
        clf.fit(odd(data.texts), data.collections)
    with pytest.raises(NotFittedError):
        clf.predict(data.X)
    with pytest.raises(ValueError, match=message):
        fitted("collections").predict(odd(data.texts))


@once_per_path
def test_labels_from_a_generator_are_refused(make, data):
    with pytest.raises(ValueError, match=r"Y must be .* got a generator; pass list\(Y\)"):
        make().fit(data.X, (labels for labels in data.collections))


@once_per_path
@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_refused_by_name(make, data, seed):
    with pytest.raises(ValueError, match=f"random_state must be .* got {seed}"):
        make(random_state=seed).fit(data.X, data.collections)


@once_per_path
def test_no_texts_are_answered_with_no_rows(fitted, data):
    clf = fitted("collections", "texts")
    for nothing in ([], (), pd.Series([], dtype=object), np.array([], dtype=str)):
        assert clf.predict_proba(nothing, top_k=1).shape == (0, clf.n_labels_)
        assert clf.predict_labels(nothing) == []


@once_per_path
def test_one_text_in_an_array_is_one_row(fitted, data):
    clf = fitted("collections", "texts")
    expected = clf.predict_one(data.texts[0])
    assert clf.predict_one(np.array(data.texts[:1])) == clf.predict_one(pd.Series(data.texts[:1])) == expected


@once_per_path
def test_a_huge_top_k_returns_all_labels(fitted, data):
    clf = fitted("collections")
    row = dict(zip(data.X[[0]].indices.tolist(), data.X[[0]].data.tolist(), strict=True))
    assert clf.predict_one(row, top_k=10**30) == clf.predict_one(row, top_k=clf.n_labels_)
    assert clf.predict_labels(data.X[[0]], top_k=10**30) == clf.predict_labels(data.X[[0]], top_k=clf.n_labels_)


@once_per_path
def test_a_score_of_nothing_is_refused(fitted, data):
    clf = fitted("collections")
    with pytest.raises(ValueError, match="at least one row"):
        clf.score(data.X[:0], [])
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        clf.score(data.X, data.collections, sample_weight=np.zeros(data.X.shape[0]))
    with pytest.raises(ValueError, match=r"sample_weight.*\(1,\)"):
        clf.score(data.X, data.collections, sample_weight=[1.0])


@once_per_path
def test_names_may_come_from_any_iterable_and_nothing_else(make, data):
    clf = make().fit(data.X, data.collections)
    clf.set_names(labels=(f"name of {label}" for label in clf.classes_))
    assert clf.schema_.label_names.tolist() == [f"name of {label}" for label in clf.classes_]
    for odd in (3, "abc"):
        with pytest.raises(ValueError, match=f"expected a list of {clf.n_labels_} label names, got {odd!r}"):
            clf.set_names(labels=odd)


def test_bad_thresholds_are_refused_with_their_value(make_multilabel, data):
    clf = make_multilabel().fit(data.X, data.collections)
    for odd, shown in (("high", "'high'"), (-0.5, "-0.5"), (float("nan"), "nan"), ([0.5], r"shape \(1,\)")):
        with pytest.raises(ValueError, match=f"thresholds must be one number or one for each .* got {shown}"):
            clf.set_thresholds(odd)


@once_per_path
@pytest.mark.parametrize("odd", ["tfidf", TfidfVectorizer, object()], ids=["name", "class", "object"])
def test_an_object_that_is_not_a_vectorizer_is_refused(make, data, odd):
    with pytest.raises(ValueError, match="vectorizer must be None, a TextVectorizer"):
        make(vectorizer=odd).fit(data.texts, data.collections)
