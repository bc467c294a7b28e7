"""Regular expressions of model files: fast ones are used, others only if the caller trusts them."""

from __future__ import annotations

import copy
import pickle
import re
import time

import pytest
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

import ramify
from ramify import OnlinePLTClassifier, PLTClassifier, ThresholdClassifier
from ramify.cli.main import run
from ramify.data.patterns import is_fast_pattern
from ramify.files.directory import ModelFileError

FAST = [
    r"(?u)\b\w\w+\b",
    r"(?u)\b\w+\b",
    r"\w+",
    r"(\w+)",
    r"\S+",
    r"[a-z]+",
    r"\w+|[^\w\s]",
    r"[A-Za-z][A-Za-z0-9_-]+",
    r"\b[^\d\W]+\b",
    r"(?u)\b[a-zA-Z]{2,20}\b",
    r"\d{4}|\w+",
    r"(?i)foo|fob|bar",
]
SLOW = {
    "nested": r"(\w+)+!",
    "nested, of several": r"\w+(?:[-']\w+)*",
    "anchored": r"^(\d+)*$",
    "ambiguous alternatives": r"(a|a)*b",
    "optional many times": r"(a?){25}a{25}",
    "neighbours": r"\w+\w+x",
    "what follows may fail": r"\w+x",
    "not at the end of a word": r"[a-c]+\b",
    "lazy": r"a*?b",
    "everything, twice": r"(?s).*.*x",
    "bounded, nested": r"(?:\w{1,60}){1,60}z",
    "long minimum": r"\w{200,}",
    "wide": r"\w{100}\w{100}x",
    "look-ahead and reference": r"(?=(a+))\1*b",
    "look-behind": r"(?<!a)b",
    "no pattern": "[",
    "long": "a" * 1001,
    "deep": "(" * 5000 + "a" + ")" * 5000,
}
TEXTS = ["red apple", "green pear"] * 10
LABELS = [["apple"], ["pear"]] * 10


@pytest.mark.parametrize("pattern", FAST)
def test_common_patterns_are_fast(pattern):
    assert is_fast_pattern(pattern)
    for text in ("a" * 100_000, "a b" * 30_000, "a" * 50_000 + "!", "é-" * 40_000, "1a" * 40_000, "_" * 50_000 + "é"):
        start = time.process_time()
        re.findall(pattern, text)
        assert time.process_time() - start < 5  # a quadratic one takes minutes


@pytest.mark.parametrize("case", SLOW)
def test_other_patterns_are_not_known_to_be_fast(case):
    assert not is_fast_pattern(SLOW[case])


@pytest.fixture(params=["plt", "online", "thresholds"])
def clf(request):
    pattern = r"(\w+)+\b"
    if request.param == "online":
        vectorizer = HashingVectorizer(n_features=64, token_pattern=pattern)
        return OnlinePLTClassifier(vectorizer=vectorizer, random_state=0).partial_fit(TEXTS, LABELS)
    plt = PLTClassifier(vectorizer=TfidfVectorizer(token_pattern=pattern), random_state=0)
    return (plt if request.param == "plt" else ThresholdClassifier(plt, random_state=0)).fit(TEXTS, LABELS)


def test_a_model_with_a_slow_pattern_is_loaded_only_if_it_is_trusted(clf, tmp_path, capsys):
    clf.save(tmp_path / "model")
    for load in (ramify.load, ramify.base.save_load.load_fitted):
        with pytest.raises(ModelFileError, match=r"token_pattern .* may take for ever .*trust_vectorizer=True"):
            load(tmp_path / "model")
        found = load(tmp_path / "model", trust_vectorizer=True)
        assert found.predict_labels(["a red apple"], top_k=1) == clf.predict_labels(["a red apple"], top_k=1)
    (tmp_path / "texts.txt").write_text("a red apple\n")
    command = ["predict", str(tmp_path / "texts.txt"), "--model", str(tmp_path / "model")]
    assert run(command) == 2
    assert "--trust-vectorizer" in capsys.readouterr().err
    assert run(["--trust-vectorizer", *command]) == 0
    assert "apple" in capsys.readouterr().out


def test_copies_and_pickles_of_own_models_need_no_trust(clf):
    for again in (copy.copy(clf), pickle.loads(pickle.dumps(clf))):
        assert again.predict_labels(TEXTS[:2]) == clf.predict_labels(TEXTS[:2])


def test_a_model_with_terms_of_any_length_is_loaded_only_if_it_is_trusted(tmp_path):
    vectorizer = HashingVectorizer(n_features=64, ngram_range=(1, 10**6))
    OnlinePLTClassifier(vectorizer=vectorizer).partial_fit(TEXTS, LABELS).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"ngram_range goes up to 1000000"):
        ramify.load(tmp_path / "model")
    assert ramify.load(tmp_path / "model", trust_vectorizer=True).vectorizer_.ngram_range == (1, 10**6)
