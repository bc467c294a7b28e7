"""Text vectorizers as parts of scikit-learn and of model files: parameters, copies, states, errors, places in texts."""

from __future__ import annotations

import copy
import json
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from ramify.data.text import is_fitted, vectorizer_from_state, vectorizer_state
from ramify.text import HashingTextVectorizer, StreamTextVectorizer, TextVectorizer
from ramify.text.stream import SETTLES_AT

TEXTS = ["Akute Schmerzen in der Brust", "acute chest pain, chest wall", "Übelkeit und Erbrechen", "vitamin C", "a b c"]
MORE = [*TEXTS, "chest ÜBELKEIT unbekannt", "", "c c c c pain", "\ud800 x"]
FITTED = [
    TextVectorizer(),
    TextVectorizer(use_idf=False, norm=None),
    TextVectorizer(ngram_range=(1, 3), smooth_idf=False, max_df=0.9, max_features=20),
    TextVectorizer(analyzer="char_wb", ngram_range=(2, 4), strip_accents="unicode"),
    TextVectorizer(stop_words=["in", "der"], lowercase=False),
    TextVectorizer(stop_words="english", binary=True, norm="l1"),
    TextVectorizer(vocabulary=["pain", "chest", "Übelkeit"], lowercase=False),
    TextVectorizer(token_pattern="[a-z]+"),
    StreamTextVectorizer(sublinear_tf=True),
    StreamTextVectorizer(use_idf=False, analyzer="char", ngram_range=(2, 3)),
    HashingTextVectorizer(n_features=2**10),
]


def round_trip(vectorizer):
    """Convert the state to JSON and bytes and back, as a file would."""
    meta, arrays = vectorizer_state(vectorizer)
    copies = {name: np.frombuffer(array.tobytes(), array.dtype) for name, array in arrays.items()}
    return vectorizer_from_state(json.loads(json.dumps(meta)), copies)


def assert_same_bits(a, b, texts=MORE):
    A, B = a.transform(texts), b.transform(texts)
    assert A.shape == B.shape
    assert A.indices.tobytes() == B.indices.tobytes()
    assert A.data.tobytes() == B.data.tobytes()


@pytest.mark.parametrize("vectorizer", FITTED, ids=str)
@pytest.mark.parametrize("again", [round_trip, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_copy_gives_the_same_bits(vectorizer, again):
    vectorizer = clone(vectorizer).fit(TEXTS)
    other = again(vectorizer)
    assert_same_bits(vectorizer, other)
    assert is_fitted(other)
    before, after = vectorizer.get_params(), other.get_params()
    if before.get("vocabulary") is not None:
        assert list(after.pop("vocabulary")) == list(before.pop("vocabulary"))
    assert after == before
    if hasattr(vectorizer, "get_feature_names_out"):
        assert other.get_feature_names_out().tolist() == vectorizer.get_feature_names_out().tolist()


@pytest.mark.parametrize("vectorizer", FITTED, ids=str)
def test_scikit_learn_clones_them_unfitted(vectorizer):
    fitted = clone(vectorizer).fit(TEXTS)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    if not isinstance(vectorizer, HashingTextVectorizer):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            fresh.transform(TEXTS)
        assert not is_fitted(fresh)


def test_they_work_in_pipelines_and_grid_searches():
    texts, y = ["red apple", "green pear"] * 6, [0, 1] * 6
    pipeline = make_pipeline(TextVectorizer(), LogisticRegression())
    search = GridSearchCV(pipeline, {"textvectorizer__ngram_range": [(1, 1), (1, 2)]}, cv=2).fit(texts, y)
    assert search.predict(["a green pear"]).tolist() == [1]
    names = search.best_estimator_[:-1].get_feature_names_out()
    assert "apple" in names.tolist()
    assert make_pipeline(HashingTextVectorizer(), LogisticRegression()).fit(texts, y).score(texts, y) == 1


def test_only_what_differs_from_the_default_is_shown():
    assert repr(TextVectorizer(min_df=2)) == "TextVectorizer(min_df=2)"
    with pytest.raises(ValueError, match="TextVectorizer has no parameter 'mindf'"):
        TextVectorizer().set_params(mindf=2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ngram_range": (2, 1)}, "ngram_range's second must be an integer between 2 and 1000, got 1"),
        ({"ngram_range": 2}, r"ngram_range must be two lengths like \(1, 2\), got 2"),
        ({"analyzer": "words"}, "analyzer must be 'word', 'char' or 'char_wb', got 'words'"),
        ({"strip_accents": "latin"}, "strip_accents must be 'ascii' or 'unicode', got 'latin'"),
        ({"min_df": 0}, "min_df must be an integer of at least 1, got 0"),
        ({"max_df": 1.5}, "max_df must be a number between 0 and 1, got 1.5"),
        ({"max_df": 1, "min_df": 2}, "max_df=1 means at most 1 texts, and min_df=2 at least 2"),
        ({"min_df": 2, "stop_words": ["red"]}, "After pruning, no terms remain"),
        ({"stop_words": "german"}, "stop_words must be None, 'english' or a list of words, got 'german'"),
        ({"vocabulary": ["a", "a"]}, "duplicate term in vocabulary: 'a'"),
        ({"vocabulary": {"a": 1}}, "vocabulary must number its 1 terms from 0"),
        ({"norm": "max"}, "norm must be 'l1' or 'l2', got 'max'"),
        ({"token_pattern": 3}, "token_pattern must be a regular expression, got 3"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer(**params).fit(["red apple", "red pear"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("red", r"texts must be a list or another iterable of strings, got 'red'; wrap it: \[text\]"),
        (["red", 3], "text 1 is 3, not a string; write '' for an empty text"),
        (["red", None], "text 1 is None, not a string"),
        (["", "!"], "empty vocabulary"),
        ([], "empty vocabulary"),
    ],
)
def test_bad_texts_are_named(texts, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer().fit(texts)


def with_param(meta, **params):
    return {**meta, "params": {**meta["params"], **params}}


@pytest.mark.parametrize("vectorizer", [TextVectorizer(), StreamTextVectorizer()], ids=str)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda m, a: (with_param(m, evil=1), a), "unknown parameters: evil"),
        (lambda m, a: (with_param(m, input="filename"), a), "must read text"),
        (lambda m, a: (with_param(m, ngram_range=3), a), "ngram_range"),
        (lambda m, a: (with_param(m, analyzer="own"), a), "analyzer"),
        (lambda m, a: (with_param(m, token_pattern="("), a), "token_pattern"),
        (lambda m, a: (m, {}), "has no array term_bytes"),
        (lambda m, a: (m, {**a, "idf": a["idf"][:-1]}), "idf"),
        (lambda m, a: (m, {**a, "idf": a["idf"] * np.nan}), "idf values"),
        (lambda m, a: (m, {**a, "term_offsets": a["term_offsets"][::-1].copy()}), "offsets"),
        (lambda m, a: (m, {**a, "term_offsets": a["term_offsets"] * 0}), "offsets"),
        (lambda m, a: (m, {**a, "term_bytes": a["term_bytes"] * 0 + 97}), "duplicate terms|no terms"),
    ],
)
def test_a_damaged_state_is_rejected(vectorizer, damage, message):
    meta, arrays = vectorizer_state(clone(vectorizer).fit(["ab", "cd"]))
    with pytest.raises(ValueError, match=message):
        vectorizer_from_state(*damage(meta, arrays))


def test_functions_are_not_saved():
    for params in ({"analyzer": str.split}, {"preprocessor": str.lower}):
        with pytest.raises(ValueError, match="is a function, which cannot be saved"):
            vectorizer_state(TextVectorizer(**params).fit(TEXTS))


# --- places ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "text", "places"),
    [
        ({}, "A Red, red pear", [("red", "Red"), ("red", "red"), ("pear", "pear")]),
        ({"ngram_range": (2, 2)}, "red --  PEAR", [("red pear", "red --  PEAR")]),
        ({"strip_accents": "unicode"}, "réd pe\u0301ar", [("red", "réd"), ("pear", "pe\u0301ar")]),
        ({"token_pattern": r"\S+"}, "İx red", [("red", "red")]),
        ({"analyzer": "char_wb", "ngram_range": (4, 4)}, "RED", [(" red", "RED"), ("red ", "RED")]),
        ({"analyzer": "char", "ngram_range": (5, 5)}, "d \t pear", [("d pea", "d \t pea")]),
    ],
)
def test_occurrences_are_places_of_the_original_text(params, text, places):
    vectorizer = TextVectorizer(**params).fit(["red pear red pear"])
    found = vectorizer.occurrences(text)
    known = [(term, text[start:stop]) for _, start, stop, term in found if (term, text[start:stop]) in places]
    assert known == places
    assert all(vectorizer.vocabulary_[term] == column for column, _, _, term in found)


# --- streams ---------------------------------------------------------------------------------------------------------


def test_a_stream_gives_the_same_columns_and_values_in_pieces_of_any_size():
    texts = [f"{word} of {other}" for word in MORE for other in TEXTS]
    whole = StreamTextVectorizer()
    rows = whole.fit_transform(texts)
    pieces = StreamTextVectorizer()
    learned = [pieces.learn(texts[:7]), pieces.learn(texts[7:8])]
    pieces = round_trip(pieces)
    learned += [pieces.learn(texts[8:])]
    values = np.concatenate([piece.data for piece in learned])
    columns = np.concatenate([piece.indices for piece in learned])
    assert values.tobytes() == rows.data.tobytes()
    assert columns.tobytes() == rows.indices.tobytes()
    assert pieces.vocabulary_ == whole.vocabulary_
    assert pieces.document_frequency_.tolist() == np.bincount(rows.indices).tolist()
    assert pieces.n_texts_ == len(texts)


def test_a_terms_weight_is_fixed_once_it_is_settled():
    vectorizer = StreamTextVectorizer(norm=None).partial_fit(["red", "red pear"] * SETTLES_AT)
    before = vectorizer.transform(["red pear"]).toarray()
    n_texts = 2 * SETTLES_AT
    assert vectorizer.idf_.tolist() == [1.0, np.log((n_texts + 1) / (SETTLES_AT + 1)) + 1]
    vectorizer.partial_fit(["a pear"] * 50 + ["cherry"])
    after = vectorizer.transform(["red pear"]).toarray()
    assert after[:, :2].tolist() == before.tolist()
    assert vectorizer.idf_[vectorizer.vocabulary_["cherry"]] == np.log((n_texts + 52) / 2) + 1


def test_growth_can_be_taken_back():
    vectorizer = StreamTextVectorizer().fit(TEXTS)
    before = pickle.dumps(vectorizer.__getstate__())
    for _ in range(3):
        vectorizer.learn([f"new{i} words{i} in the chest" for i in range(500)])
        vectorizer.forget_last()
        assert pickle.dumps(vectorizer.__getstate__()) == before
        assert vectorizer.transform(["new3"]).nnz == 0
    with pytest.raises(ValueError, match="text 1 is 7, not a string"):
        vectorizer.learn(["fresh", 7])
    assert pickle.dumps(vectorizer.__getstate__()) == before


def test_a_stream_takes_only_what_the_core_reads():
    with pytest.raises(ValueError, match="StreamTextVectorizer cannot use"):
        StreamTextVectorizer(token_pattern="[a-z]+").fit(TEXTS)


def test_texts_are_read_while_others_are_learned():
    vectorizer = StreamTextVectorizer().fit(TEXTS)
    expected = vectorizer.transform_one("acute chest pain")[0].tolist()
    failures = []

    def read():
        for _ in range(300):
            if vectorizer.transform_one("acute chest pain")[0].tolist() != expected:
                failures.append("changed")
            vectorizer.occurrences("acute chest pain")
            assert vectorizer.n_columns_ >= len(expected)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(300):
        vectorizer.learn([f"word{number} pain", f"other{number}"])
    for reader in readers:
        reader.join()
    assert not failures
    assert vectorizer.n_texts_ == len(TEXTS) + 600


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("times", [254, 255, 256, 1000])
def test_words_that_a_text_repeats_hundreds_of_times_are_counted(times, n_jobs):
    # Counts above 254 are kept apart; 128 texts or more are read as a batch.
    texts = [f"{'often ' * (times + k % 3)}{'once' * (k % 2)} rare{k}" for k in range(300)]
    how = {"norm": None, "n_jobs": n_jobs}
    expected = CountVectorizer().fit_transform(texts).toarray()
    counting = TextVectorizer(use_idf=False, **how)
    assert counting.fit_transform(texts).toarray().tolist() == expected.tolist()
    assert counting.transform(texts).toarray().tolist() == expected.tolist()
    hashing = {"n_features": 2**12, "alternate_sign": False, "norm": None}
    ours = HashingTextVectorizer(**hashing, n_jobs=n_jobs).transform(texts)
    assert (ours != HashingVectorizer(**hashing).transform(texts)).nnz == 0


def test_growth_that_is_taken_back_leaves_every_other_term_where_it_was():
    words = [f"word{k}" for k in range(5000)]
    vectorizer = StreamTextVectorizer().fit([" ".join(words[:2000])])
    before = vectorizer.transform(words[:2000])
    for begin in range(2000, 5000, 500):
        vectorizer.learn([" ".join(words[begin : begin + 500])])
        assert vectorizer.transform([" ".join(words)]).nnz == 2500
        vectorizer.forget_last()
        assert vectorizer.transform([" ".join(words)]).nnz == 2000
        assert (vectorizer.transform(words[:2000]) != before).nnz == 0
