"""Words and parts of words side by side: the columns of each vectorizer, saved and restored with a model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import ramify
from ramify import PLTClassifier
from ramify.data.text import vectorizer_from_state, vectorizer_state
from ramify.text import TextVectorizer, UnionTextVectorizer

TEXTS = ["acute chest pain", "pain in the chest wall", "nausea and vomiting", "vomiting after meals"]


def union(**settings):
    return UnionTextVectorizer(
        [TextVectorizer(ngram_range=(1, 2)), TextVectorizer(analyzer="char_wb", ngram_range=(3, 4))], **settings
    )


def test_a_union_holds_the_weighted_columns_of_its_vectorizers():
    made = union(weights=[1.0, 0.5])
    rows = made.fit_transform(TEXTS)
    parts = [clone(part).fit_transform(TEXTS) for part in made.vectorizers]
    expected = sparse.hstack([parts[0], 0.5 * parts[1]]).toarray()
    assert np.array_equal(rows.toarray(), expected)
    assert rows.dtype == np.float32
    assert np.array_equal(made.transform(iter(TEXTS)).toarray(), expected)
    names = made.get_feature_names_out()
    assert len(names) == rows.shape[1]
    assert [made.term_at(column) for column in range(rows.shape[1])] == names.tolist()


@pytest.mark.parametrize("text", ["chest pains", "", "zzz"])
def test_one_text_gives_the_same_row_as_a_list(text):
    made = union().fit(TEXTS)
    columns, values = made.transform_one(text)
    row = made.transform([text])
    assert columns.tolist() == row.indices.tolist()
    assert values.tolist() == row.data.tolist()
    for column, start, end, term in made.occurrences("Chest pains"):
        assert made.term_at(column) == term
        assert 0 <= start < end <= len("Chest pains")


def test_a_misspelt_word_finds_its_label_and_the_saved_model_answers_the_same(tmp_path):
    clf = PLTClassifier(vectorizer=union(), random_state=0).fit(TEXTS * 5, ["heart", "heart", "stomach", "stomach"] * 5)
    assert clf.predict_one("vomitting", top_k=1)[0][0] == "stomach"
    assert "vomi" in str(clf.explain("vomitting", "stomach", top=20))
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert again.predict_one("vomitting") == clf.predict_one("vomitting")
    assert clone(clf).fit(TEXTS, ["heart", "heart", "stomach", "stomach"]).n_features_in_ == clf.n_features_in_


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"vectorizers": []}, "vectorizers must be a list of TextVectorizer"),
        ({"vectorizers": ["word"]}, "vectorizers must be a list of TextVectorizer"),
        ({"weights": [1.0]}, "weights must be a list of 2 numbers"),
        ({"weights": [1.0, 0.0]}, "weights must be above 0"),
        ({"weights": [1.0, "x"]}, r"weights\[1\]"),
    ],
)
def test_bad_parts_and_weights_are_refused_by_name(settings, said):
    with pytest.raises(ValueError, match=said):
        union().set_params(**settings).fit(TEXTS)


def test_an_unfitted_union_says_so():
    with pytest.raises(ValueError, match="not fitted yet"):
        union().transform(TEXTS)


@pytest.mark.parametrize(
    "damage",
    [
        lambda meta, arrays: meta.pop("parts"),
        lambda meta, arrays: meta["parts"].append(3),
        lambda meta, arrays: meta["parts"][0].update({"class": "HashingTextVectorizer"}),
        lambda meta, arrays: meta["parts"][0].pop("params"),
        lambda meta, arrays: meta["parts"][0]["params"].update({"ngram_range": "x"}),
        lambda meta, arrays: meta["params"].update({"weights": [1]}),
        lambda meta, arrays: arrays.pop("1_idf"),
    ],
)
def test_a_damaged_state_is_refused(damage):
    meta, arrays = vectorizer_state(union().fit(TEXTS))
    meta = json.loads(json.dumps(meta))
    assert vectorizer_from_state(meta, arrays).transform(TEXTS).nnz
    damage(meta, arrays)
    with pytest.raises(ValueError, match="saved"):
        vectorizer_from_state(meta, arrays)
