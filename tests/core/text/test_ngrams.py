"""Words and hashed n-grams against a plain Python twin, and fastText's own hashes."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ramify import _core
from ramify.data import WordNgramVectorizer
from ramify.data.text import vectorizer_from_state, vectorizer_state
from twins import tree_softmax as twin

TEXTS = ["Red apple, red pear", "", "größe ÄPFEL grün", "a_b 1.5 \u2603 x", "red apple"]


def test_hashes_are_fnv_1a_over_signed_bytes():
    # The published values of 32-bit FNV-1a; beyond ASCII fastText extends the sign.
    for word, expected in (("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)):
        assert _core.word_hash(word.encode()) == expected
    assert _core.word_hash("ü".encode()) == twin.word_hash("ü")
    assert twin.word_hash("ü") != 0x811C9DC5


def test_frequent_words_come_first_and_rare_ones_may_be_left_out():
    vectorizer = WordNgramVectorizer().fit(TEXTS)
    assert list(vectorizer.vocabulary_)[:3] == ["red", "apple", "pear"]
    assert set(vectorizer.vocabulary_) == {
        *("red", "apple", "pear", "größe", "äpfel", "grün", "a_b", "1", "5", "\u2603", "x")
    }
    assert set(WordNgramVectorizer(min_count=2).fit(TEXTS).vocabulary_) == {"red", "apple"}
    spaces = WordNgramVectorizer(tokens="whitespace", lowercase=False).fit(TEXTS)
    assert {"Red", "apple,", "1.5"} <= set(spaces.vocabulary_)


words = st.lists(st.text("abcxyzäöü", min_size=1, max_size=4), max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    known=st.lists(words, min_size=1, max_size=4).filter(any),
    asked=words,
    word_ngrams=st.integers(1, 4),
    char_ngrams=st.sampled_from([None, (1, 1), (2, 3), (3, 6)]),
    n_buckets=st.sampled_from([1, 7, 1000, 2_000_000]),
)
def test_columns_are_those_of_the_twin(known, asked, word_ngrams, char_ngrams, n_buckets):
    given = {"word_ngrams": word_ngrams, "char_ngrams": char_ngrams, "n_buckets": n_buckets}
    vectorizer = WordNgramVectorizer(**given).fit([" ".join(row) for row in known])
    rows = vectorizer.transform([" ".join(asked), "  " + "\t".join(asked)])
    expected = Counter(twin.columns_of(asked, vectorizer.vocabulary_, **given))
    for i in range(2):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        assert dict(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)) == expected
    assert rows.has_sorted_indices
    has_buckets = word_ngrams > 1 or char_ngrams is not None
    assert rows.shape[1] == vectorizer.n_columns == len(vectorizer.vocabulary_) + (n_buckets if has_buckets else 0)
    assert set(vectorizer.terms_of(" ".join(asked))) == set(expected)


def test_threads_change_nothing():
    texts = TEXTS * 700
    one, two = (WordNgramVectorizer(word_ngrams=2, n_jobs=n).fit_transform(texts) for n in (1, 2))
    assert (one != two).nnz == 0
    assert one.shape[0] == len(texts)


def test_a_state_or_a_pickle_or_a_copy_reads_the_same():
    vectorizer = WordNgramVectorizer(word_ngrams=2, char_ngrams=(2, 3), n_buckets=50).fit(TEXTS)
    expected = vectorizer.transform(TEXTS)
    for again in (vectorizer_from_state(*vectorizer_state(vectorizer)), pickle.loads(pickle.dumps(vectorizer))):
        assert (again.transform(TEXTS) != expected).nnz == 0
        assert again.get_params() == vectorizer.get_params()
        assert again.vocabulary_ == vectorizer.vocabulary_
    with pytest.raises(NotFittedError):
        clone(vectorizer).transform(TEXTS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"word_ngrams": 0}, "word_ngrams must be an integer between 1 and 20"),
        ({"char_ngrams": 3}, "char_ngrams must be None or two lengths"),
        ({"char_ngrams": (4, 3)}, "char_ngrams' second must be"),
        ({"char_ngrams": (0, 3)}, "char_ngrams' first must be"),
        ({"n_buckets": 0}, "n_buckets must be"),
        ({"min_count": 0}, "min_count must be"),
        ({"tokens": "letters"}, "tokens must be 'words' or 'whitespace'"),
        ({"lowercase": "no"}, "lowercase must be True or False"),
    ],
)
def test_bad_parameters_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        WordNgramVectorizer(**changes).fit(TEXTS)


def test_texts_without_words_are_refused():
    with pytest.raises(ValueError, match="no words"):
        WordNgramVectorizer().fit(["", " ,.; "])
    assert WordNgramVectorizer(word_ngrams=2, n_buckets=5).fit([""]).transform(["new"]).nnz == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda meta, arrays: arrays.pop("term_bytes"),
        lambda meta, arrays: meta["params"].update(min_chars=3),
        lambda meta, arrays: meta["params"].update(n_buckets=-1),
        lambda meta, arrays: arrays.update(term_offsets=arrays["term_offsets"][::-1].copy()),
        lambda meta, arrays: arrays.update(term_bytes=np.zeros_like(arrays["term_bytes"])),
    ],
)
def test_a_damaged_state_is_refused(damage):
    meta, arrays = vectorizer_state(WordNgramVectorizer().fit(["aa bb cc"]))
    damage(meta, arrays)
    with pytest.raises(ValueError):
        vectorizer_from_state(meta, arrays)


@pytest.mark.parametrize("offsets", [[], [1, 2], [0, 5], [0, 2, 1, 3]])
def test_invalid_offsets_are_refused(offsets):
    offsets = np.array(offsets, np.int64)
    reader = _core.NgramReader(
        b"ab", np.array([0, 2]), by_whitespace=True, word_ngrams=1, min_chars=0, max_chars=0, n_buckets=0
    )
    with pytest.raises(ValueError):
        _core.count_words(b"abc", offsets, True)
    with pytest.raises(ValueError):
        reader.transform(b"abc", offsets, 1)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("one text", "texts must be a list .* got 'one text'"),
        (None, "texts must be a list .* got None"),
        (["a", None], "text 1 is None, not a string"),
        ([b"a"], "text 0 is b'a', not a string"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(texts, said):
    with pytest.raises(ValueError, match=said):
        WordNgramVectorizer().fit(texts)
    with pytest.raises(ValueError, match=said):
        WordNgramVectorizer().fit(["a b"]).transform(texts)
