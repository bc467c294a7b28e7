"""Stems of English words: Porter's algorithm in the core."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import PLTClassifier
from ramify.data.text import TOKEN_PATTERN, vectorizer_from_state, vectorizer_state
from ramify.text import HashingTextVectorizer, StreamTextVectorizer, TextVectorizer

# The paper's examples of each step, with the stems that all steps together give.
STEMS = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
    caresses:caress ponies:poni ties:ti caress:caress cats:cat feed:feed agreed:agre plastered:plaster
    bled:bled motoring:motor sing:sing sky:sky conflated:conflat troubled:troubl sized:size hopping:hop
    tanned:tan falling:fall hissing:hiss fizzed:fizz failing:fail filing:file happy:happi relational:relat
    conditional:condit rational:ration valenci:valenc digitizer:digit hesitanci:hesit conformabli:conform
    radicalli:radic differentli:differ vileli:vile analogousli:analog vietnamization:vietnam
    predication:predic operator:oper feudalism:feudal decisiveness:decis hopefulness:hope callousness:callous
    formaliti:formal sensitiviti:sensit sensibiliti:sensibl triplicate:triplic formative:form formalize:formal
    electriciti:electr electrical:electr hopeful:hope goodness:good revival:reviv allowance:allow
    inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust defensible:defens irritant:irrit
    replacement:replac adjustment:adjust dependent:depend adoption:adopt homologou:homolog communism:commun
    activate:activ angulariti:angular homologous:homolog effective:effect bowdlerize:bowdler probate:probat
    rate:rate cease:ceas controll:control roll:roll generalizations:gener oscillators:oscil
        """,
    )
)
# What is no English word of three letters or more stays as it is.
LEFT_ALONE = ["is", "b12s", "übungen", "cafés", "y" * 65 + "ing", "x" * 100_000 + "s"]


def with_stems(cls=TextVectorizer, **params):
    return cls(stemmer="english", token_pattern=TOKEN_PATTERN, **params)


def stem(word):
    """The only term of a text of one word."""
    return with_stems().fit([word]).get_feature_names_out()[0]


@pytest.mark.parametrize(("word", "expected"), STEMS.items())
def test_words_have_the_stems_of_the_paper(word, expected):
    assert stem(word) == expected
    assert stem(word.upper()) == expected


@pytest.mark.parametrize("word", LEFT_ALONE, ids=lambda word: word[:10])
def test_what_is_no_english_word_stays_as_it_is(word):
    assert stem(word) == word


WORDS = st.sampled_from([*STEMS, "is", "Übungen", "Ponies", "b12s"])


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=5))
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 3)])
def test_texts_are_read_as_if_their_words_were_stems(ngram_range, texts):
    texts = ["ponies in all other hopping relational words", *texts]
    stemmed = [re.sub(r"\w+", lambda word: stem(word[0].lower()), text) for text in texts]
    plain = TextVectorizer(token_pattern=TOKEN_PATTERN, ngram_range=ngram_range).fit(stemmed)
    vectorizer = with_stems(ngram_range=ngram_range).fit(texts)
    assert vectorizer.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    np.testing.assert_array_equal(vectorizer.transform(texts).toarray(), plain.transform(stemmed).toarray())


def test_stop_words_are_left_out_before_words_become_stems():
    vectorizer = with_stems(stop_words=["ponies", "cat"]).fit(["ponies pony cats cat"])
    assert vectorizer.get_feature_names_out().tolist() == ["cat", "poni"]


@pytest.mark.parametrize("cls", [TextVectorizer, StreamTextVectorizer, HashingTextVectorizer])
def test_other_forms_of_a_word_share_its_column(cls):
    vectorizer = with_stems(cls).fit(["burned hands"])
    rows = [vectorizer.transform([text]).indices.tolist() for text in ("burned hands", "a burn of the hand", "BURNING")]
    assert rows[0] == sorted(set(rows[1]) & set(rows[0]))
    assert len(rows[0]) == 2
    assert len(set(rows[2]) & set(rows[0])) == 1


@pytest.mark.parametrize("cls", [TextVectorizer, StreamTextVectorizer, HashingTextVectorizer])
def test_a_saved_vectorizer_reads_stems_again(cls):
    vectorizer = with_stems(cls).fit(["burned hands"])
    meta, arrays = vectorizer_state(vectorizer)
    again = vectorizer_from_state(json.loads(json.dumps(meta)), arrays)
    assert (again.transform(["a burn of the hand"]) != vectorizer.transform(["a burn of the hand"])).nnz == 0
    del meta["params"]["stemmer"]  # as saved before there were stems
    assert vectorizer_from_state(meta, arrays).stemmer is None


def test_places_are_those_of_whole_words_of_the_text():
    vectorizer = with_stems(StreamTextVectorizer, ngram_range=(1, 2)).fit(["burned hands"])
    text = "Ärzte: Burning, HANDS!"
    found = {(text[first:end], term) for _, first, end, term in vectorizer.occurrences(text)}
    assert found == {("Burning", "burn"), ("HANDS", "hand"), ("Burning, HANDS", "burn hand")}


def test_an_explanation_marks_whole_words():
    clf = PLTClassifier(vectorizer=with_stems(), random_state=0)
    clf.fit(["burned hands", "broken legs"] * 5, ["hand", "leg"] * 5)
    text = "he was burning his hand"
    marked = {text[span.start : span.end] for span in clf.explain(text, "hand").spans}
    assert marked == {"burning", "hand"}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"stemmer": "german"}, "stemmer must be"),
        ({"stemmer": "english", "analyzer": "char"}, "needs words that the core reads"),
        ({"stemmer": "english", "token_pattern": "[a-z]+"}, "needs words that the core reads"),
        ({"stemmer": "english", "tokenizer": str.split}, "needs words that the core reads"),
    ],
)
def test_what_cannot_be_stemmed_is_rejected(params, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer(**params).fit(["burned hands"])
