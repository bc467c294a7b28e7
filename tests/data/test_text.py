"""The state of vectorizers: the same bits after a round trip, and no code in it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from ramify.data.text import (
    default_vectorizer,
    fit_vectorize,
    is_fitted,
    vectorize,
    vectorizer_from_state,
    vectorizer_state,
)

TEXTS = ["Akute Schmerzen in der Brust", "acute chest pain, chest wall", "Übelkeit und Erbrechen", "vitamin C", "a b c"]
MORE = [*TEXTS, "chest ÜBELKEIT unbekannt", "", "c c c c pain"]


def round_trip(vectorizer):
    """Convert the state to JSON and bytes and back, as a file would."""
    meta, arrays = vectorizer_state(vectorizer)
    copies = {name: np.frombuffer(array.tobytes(), array.dtype) for name, array in arrays.items()}
    return vectorizer_from_state(json.loads(json.dumps(meta)), copies)


def assert_same_bits(a, b, texts):
    A, B = a.transform(texts), b.transform(texts)
    assert A.shape == B.shape
    assert A.dtype == B.dtype
    assert A.indices.tobytes() == B.indices.tobytes()
    assert A.data.tobytes() == B.data.tobytes()


@pytest.mark.parametrize(
    "vectorizer",
    [
        default_vectorizer(),
        TfidfVectorizer(),
        TfidfVectorizer(use_idf=False, norm=None, dtype=np.float32),
        TfidfVectorizer(ngram_range=(1, 3), smooth_idf=False, min_df=1, max_df=0.9, max_features=20),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), strip_accents="unicode"),
        TfidfVectorizer(stop_words=["in", "der"], lowercase=False),
        TfidfVectorizer(stop_words="english", binary=True, norm="l1"),
        TfidfVectorizer(vocabulary=["pain", "chest", "Übelkeit"], lowercase=False),
        TfidfVectorizer(vocabulary={"b": 1, "chest": 0}),
        HashingVectorizer(n_features=2**10, alternate_sign=False, dtype=np.float32),
        HashingVectorizer(),
    ],
    ids=str,
)
def test_a_round_trip_gives_the_same_bits(vectorizer):
    vectorizer.fit(TEXTS)
    again = round_trip(vectorizer)
    assert_same_bits(vectorizer, again, MORE)
    before, after = vectorizer.get_params(), again.get_params()
    if before.get("vocabulary") is not None:  # restored as a dict, whatever it was
        assert after.pop("vocabulary") == vectorizer.vocabulary_
        del before["vocabulary"]
    assert after == before
    if hasattr(vectorizer, "vocabulary_"):
        assert again.get_feature_names_out().tolist() == vectorizer.get_feature_names_out().tolist()
        assert again.fixed_vocabulary_ == vectorizer.fixed_vocabulary_


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1), min_size=1), st.lists(st.text()))
def test_a_round_trip_works_for_any_texts(texts, others):
    vectorizer = default_vectorizer().fit([*texts, "word"])
    assert_same_bits(vectorizer, round_trip(vectorizer), [*texts, *others])


def test_a_loaded_vectorizer_can_be_fitted_again():
    again = round_trip(default_vectorizer().fit(TEXTS)).fit(["new words"])
    assert again.get_feature_names_out().tolist() == ["new", "words"]


def test_the_default_keeps_short_words_and_gives_unit_float32_rows():
    vectorizer = default_vectorizer()
    assert not is_fitted(vectorizer)
    X = fit_vectorize(vectorizer, TEXTS)
    assert is_fitted(vectorizer)
    assert "c" in vectorizer.vocabulary_
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.has_canonical_format
    assert np.allclose((X.toarray() ** 2).sum(axis=1), 1)
    assert (vectorize(vectorizer, TEXTS) != X).nnz == 0


def shout(text):
    return text.upper()


class OwnVectorizer(TfidfVectorizer):
    """A subclass may contain any code."""


@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), "the vectorizer's tokenizer is a function"),
        (TfidfVectorizer(preprocessor=shout), "preprocessor is a function"),
        (TfidfVectorizer(analyzer=str.split), "analyzer is a function"),
        (HashingVectorizer(strip_accents=shout), "strip_accents is a function"),
        (OwnVectorizer(), "a OwnVectorizer cannot be saved"),
        (CountVectorizer(), "a CountVectorizer cannot be saved"),
    ],
    ids=["tokenizer", "preprocessor", "analyzer", "strip_accents", "own class", "counts"],
)
def test_functions_and_other_classes_are_rejected(vectorizer, message):
    with pytest.raises(ValueError, match=message):
        vectorizer_state(vectorizer.fit(TEXTS))


@pytest.mark.parametrize("vectorizer", [default_vectorizer(), TfidfVectorizer()], ids=str)
def test_an_unfitted_vectorizer_is_rejected(vectorizer):
    with pytest.raises(ValueError, match=f"the {type(vectorizer).__name__} is not fitted"):
        vectorizer_state(vectorizer)


def test_a_vectorizer_of_files_is_rejected():
    with pytest.raises(ValueError, match='input must be "content"'):
        vectorizer_state(HashingVectorizer(input="filename"))


def with_param(meta, **params):
    return {**meta, "params": {**meta["params"], **params}}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda m, a: ({}, a), "not the state of a vectorizer"),
        (lambda m, a: ([], a), "not the state of a vectorizer"),
        (lambda m, a: ({**m, "class": "Pipeline"}, a), "not the state of a vectorizer"),
        (lambda m, a: ({**m, "class": ["x"]}, a), "not the state of a vectorizer"),
        (lambda m, a: ({**m, "params": None}, a), "not the state of a vectorizer"),
        (lambda m, a: (with_param(m, evil=1), a), "unknown parameters: evil"),
        (lambda m, a: (with_param(m, dtype="object"), a), "dtype"),
        (lambda m, a: (with_param(m, input="filename"), a), "read text"),
        (lambda m, a: (with_param(m, ngram_range=3), a), "ngram_range"),
        (lambda m, a: (with_param(m, analyzer="own"), a), "analyzer"),
        (lambda m, a: (with_param(m, vocabulary=["a"]), a), "unknown parameters: vocabulary"),
        (lambda m, a: (m, {}), "has no array term_bytes"),
        (lambda m, a: (m, {**a, "idf": a["idf"][:-1]}), "idf values"),
        (lambda m, a: (m, {**a, "idf": a["idf"] * np.nan}), "idf values"),
        (lambda m, a: (m, {**a, "term_offsets": a["term_offsets"][::-1]}), "offsets"),
        (lambda m, a: (m, {**a, "term_offsets": a["term_offsets"] * 0}), "offsets"),
        (lambda m, a: (m, {**a, "term_bytes": a["term_bytes"] * 0 + 255}), "utf-8"),
    ],
)
def test_a_damaged_state_is_rejected(damage, message):
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=r"(?u)\b\w+\b")
    meta, arrays = vectorizer_state(vectorizer.fit(TEXTS))
    with pytest.raises(ValueError, match=message):
        vectorizer_from_state(*damage(meta, arrays))


def test_duplicate_terms_are_rejected():
    meta, arrays = vectorizer_state(TfidfVectorizer(vocabulary=["a", "b"]).fit(TEXTS))
    with pytest.raises(ValueError, match="duplicate terms"):
        vectorizer_from_state(meta, {**arrays, "term_bytes": np.frombuffer(b"aa", np.uint8)})
