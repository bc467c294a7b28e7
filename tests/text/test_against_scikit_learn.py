"""The core's vectorizers and scikit-learn's: the same vocabulary, columns and values for every Unicode text."""

from __future__ import annotations

import random
import re
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
    strip_accents_ascii,
    strip_accents_unicode,
)

from ramify.text import HashingTextVectorizer, TextVectorizer

PATTERNS = [r"(?u)\b\w\w+\b", r"\w\w+", r"(?u)\b\w+\b", r"\w+", r"\S+", r"[^\s]+"]

# Characters with rules of their own: sigmas, dotted i, ligatures, combining marks, odd white space, NUL, surrogates.
ODD = "ΣσςİıßẞéÉ\u0301\u0345'’\u00adΑ_ \t\n\x1c\x85\xa0\u2003\u3000\x00ﬁ①Ⅷ한\ud800\udfff𐐀🙂"
characters = st.one_of(st.sampled_from(ODD), st.sampled_from("abAB09 -"), st.characters(exclude_categories=()))
texts_of_any_kind = st.lists(st.text(characters, max_size=40), min_size=1, max_size=8)


@st.composite
def analyses(draw):
    """Parameters from text to terms."""
    shortest = draw(st.integers(1, 3))
    params = {
        "lowercase": draw(st.booleans()),
        "strip_accents": draw(st.sampled_from([None, "ascii", "unicode"])),
        "analyzer": draw(st.sampled_from(["word", "char", "char_wb"])),
        "ngram_range": (shortest, shortest + draw(st.integers(0, 2))),
        "binary": draw(st.booleans()),
        "norm": draw(st.sampled_from([None, "l1", "l2"])),
    }
    if params["analyzer"] == "word":
        params["token_pattern"] = draw(st.sampled_from(PATTERNS))
        params["stop_words"] = draw(st.sampled_from([None, ["a", "ab", "é"]]))
    return params


weights = st.fixed_dictionaries(
    {
        "use_idf": st.booleans(),
        "smooth_idf": st.booleans(),
        "sublinear_tf": st.booleans(),
        "max_features": st.sampled_from([None, 1, 3, 10]),
        "min_df": st.sampled_from([1, 2, 0.1]),
        "max_df": st.sampled_from([1.0, 0.5, 3]),
    }
)


def assert_same_rows(ours, theirs):
    theirs = theirs.copy()
    theirs.sort_indices()
    assert ours.shape == theirs.shape
    assert ours.dtype == np.float32
    assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert ours.indices.tolist() == theirs.indices.tolist()
    np.testing.assert_allclose(ours.data, theirs.data.astype(np.float64), rtol=3e-7, atol=1e-30)


@settings(max_examples=200, deadline=None)
@given(texts_of_any_kind, texts_of_any_kind, analyses(), weights, st.integers(1, 3))
def test_tfidf_is_that_of_scikit_learn(texts, others, analysis, weighting, n_jobs):
    theirs = TfidfVectorizer(**analysis, **weighting)
    ours = TextVectorizer(**analysis, **weighting, n_jobs=n_jobs)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(ValueError):
            ours.fit_transform(texts)
        return
    assert_same_rows(ours.fit_transform(texts), expected)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    if weighting["use_idf"]:
        np.testing.assert_allclose(ours.idf_, theirs.idf_)
    rows = ours.transform(others)
    assert_same_rows(rows, theirs.transform(others))
    for row, text in enumerate(others):
        columns, values = ours.transform_one(text)
        assert columns.tolist() == rows[[row]].indices.tolist()
        assert values.tobytes() == rows[[row]].data.tobytes()


@settings(max_examples=100, deadline=None)
@given(texts_of_any_kind, analyses(), st.sampled_from([1, 7, 1000, 2**20, 2**31 - 1]), st.booleans(), st.integers(1, 3))
def test_hashing_is_that_of_scikit_learn(texts, analysis, n_features, alternate_sign, n_jobs):
    how = {**analysis, "n_features": n_features, "alternate_sign": alternate_sign}
    ours = HashingTextVectorizer(**how, n_jobs=n_jobs)
    try:
        expected = HashingVectorizer(**how).transform(texts)
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="lone surrogate"):
            ours.transform(texts)
        return
    assert_same_rows(ours.transform(texts), expected)


@settings(max_examples=50, deadline=None)
@given(texts_of_any_kind, st.sampled_from(PATTERNS))
def test_counts_are_those_of_scikit_learn(texts, pattern):
    ours = TextVectorizer(token_pattern=pattern, use_idf=False, norm=None)
    assert_same_rows(
        ours.fit_transform([*texts, "word"]), CountVectorizer(token_pattern=pattern).fit_transform([*texts, "word"])
    )


def all_characters():
    return np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def assigned_characters():
    """All characters that Unicode has given a meaning, and some of the million that it has not."""
    meaningless = {"Cn", "Co"}
    return [c for place, c in enumerate(all_characters()) if place % 97 == 0 or category(c) not in meaningless]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"lowercase": True}, str.lower),
        ({"lowercase": False}, str),
        ({"lowercase": True, "strip_accents": "unicode"}, lambda c: strip_accents_unicode(c.lower())),
        ({"lowercase": True, "strip_accents": "ascii"}, lambda c: strip_accents_ascii(c.lower())),
    ],
)
def test_every_character_is_read_as_python_reads_it(params, expected):
    """One text per page of 256 characters, each between letters: what is a word, and what it becomes."""
    characters = all_characters()
    texts = [
        "".join(f"x{c}y {c} " for c in characters[start : start + 256] if not c.isspace())
        for start in range(0, len(characters), 256)
    ]
    ours = TextVectorizer(**params, token_pattern=r"\b\w+\b", use_idf=False, norm=None)
    rows = ours.fit_transform(texts)
    terms = ours.get_feature_names_out()
    for row, text in enumerate(texts):
        found = re.findall(r"\b\w+\b", expected(text))
        start, stop = rows.indptr[row], rows.indptr[row + 1]
        counts = dict(zip(terms[rows.indices[start:stop]], rows.data[start:stop].astype(int), strict=True))
        assert counts == {term: found.count(term) for term in set(found)}, hex(row * 256)


def test_a_capital_sigma_is_final_where_python_says_so():
    """Every character before and after a capital sigma, alone and behind something that is skipped."""
    ours = TextVectorizer(token_pattern=r"\S+", use_idf=False, norm=None)
    for around in ("{c}Σ", "a{c}Σ", "aΣ{c}", "aΣ{c}b", "aΣ'{c}"):
        words = [around.format(c=c) for c in assigned_characters() if not c.isspace()]
        ours.fit([" ".join(words)])
        assert ours.get_feature_names_out().tolist() == sorted({word.lower() for word in words})


def test_long_texts_and_many_terms_have_the_same_rows_for_any_number_of_threads():
    generator = random.Random(0)
    texts = [" ".join(f"w{int(generator.paretovariate(0.7)) % 50_000}" for _ in range(300)) for _ in range(700)]
    texts[5] = "é" * 10_000 + " x" * 10_000
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    expected = theirs.fit_transform(texts)
    rows = {n: TextVectorizer(ngram_range=(1, 2), sublinear_tf=True, n_jobs=n).fit_transform(texts) for n in (1, 2, 5)}
    assert_same_rows(rows[1], expected)
    for n in (2, 5):
        assert rows[n].indices.tobytes() == rows[1].indices.tobytes()
        assert rows[n].data.tobytes() == rows[1].data.tobytes()


@pytest.mark.parametrize("vocabulary", [["pear", "red", "apple"], {"red": 1, "apple": 0}, {"b", "a red"}])
def test_a_given_vocabulary_keeps_its_columns(vocabulary):
    texts = ["red apple", "a red pear", "nothing here"]
    theirs = TfidfVectorizer(vocabulary=vocabulary, ngram_range=(1, 2))
    ours = TextVectorizer(vocabulary=vocabulary, ngram_range=(1, 2))
    assert_same_rows(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.vocabulary_ == theirs.vocabulary_
    assert ours.fixed_vocabulary_


@pytest.mark.parametrize(
    "params",
    [
        {"token_pattern": r"[a-z]+"},
        {"token_pattern": r"(\w)\w*"},
        {"tokenizer": str.split, "token_pattern": None},
        {"preprocessor": str.upper},
        {"analyzer": str.split},
        {"strip_accents": str.swapcase},
    ],
)
def test_functions_and_other_patterns_are_left_to_scikit_learn(params):
    texts = ["Red apple", "a RED pear, and more"]
    theirs = TfidfVectorizer(**params)
    ours = TextVectorizer(**params)
    assert_same_rows(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert_same_rows(ours.transform(["red pear"]), theirs.transform(["red pear"]))
    assert ours.vocabulary_ == theirs.vocabulary_
    assert_same_rows(
        HashingTextVectorizer(**params).transform(texts), HashingVectorizer(**params, dtype=np.float32).transform(texts)
    )


def test_stop_words_of_scikit_learn():
    texts = ["the red apple and a pear", "of the"]
    theirs = TfidfVectorizer(stop_words="english")
    ours = TextVectorizer(stop_words="english")
    assert_same_rows(ours.fit_transform(texts), theirs.fit_transform(texts))


def test_bytes_and_files_are_read_as_scikit_learn_reads_them(tmp_path):
    (tmp_path / "a.txt").write_bytes("grüne Birne".encode("latin-1"))
    theirs = TfidfVectorizer(encoding="latin-1", input="filename")
    ours = TextVectorizer(encoding="latin-1", input="filename")
    assert_same_rows(ours.fit_transform([tmp_path / "a.txt"]), theirs.fit_transform([tmp_path / "a.txt"]))
    assert ours.vocabulary_ == theirs.vocabulary_
    content = TextVectorizer(encoding="latin-1").fit(["grüne Birne".encode("latin-1")])
    assert content.vocabulary_ == theirs.vocabulary_
