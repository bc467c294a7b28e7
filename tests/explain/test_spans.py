"""Places of a text that support a label: they are in the text, add up to what the model says, and are marked."""

from __future__ import annotations

import html
import re
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from ramify import LOMTreeClassifier, OnlinePLTClassifier, PLTClassifier
from ramify.cli import output
from ramify.text import HashingTextVectorizer, TextVectorizer

TEXTS = ["red apple", "green apple", "red cherry", "green pear", "old car"] * 6
TAGS = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"], []] * 6
TEXT = "An old, RED ca\u0301r and an apple; red!"


@pytest.mark.parametrize(
    "vectorizer",
    [None, TextVectorizer(ngram_range=(1, 2)), HashingTextVectorizer(), TextVectorizer(strip_accents="unicode")],
    ids=str,
)
def test_the_words_of_the_label_are_found_where_they_stand(vectorizer):
    clf = PLTClassifier(vectorizer=vectorizer, random_state=0).fit(TEXTS, TAGS)
    spans = clf.explain(TEXT, "red").spans
    strongest = max(span.weight for span in spans)
    assert {TEXT[span.start : span.end] for span in spans if span.weight == strongest} == {"RED", "red"}
    assert [span.start for span in spans] == sorted(span.start for span in spans)


def test_the_weight_is_the_fall_of_the_log_odds():
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    (weight,) = {span.weight for span in clf.explain("red apple", "red").spans if span.start == 0}
    whole = clf.predict_proba(["red apple"], labels=["red"]).data[0]
    row = clf.vectorizer_.transform(["red apple"])
    row.data[row.indices == clf.vectorizer_.vocabulary_["red"]] = 0
    p = clf.predict_proba(row, labels=["red"]).data[0]
    assert weight == pytest.approx(np.log(whole / (1 - whole)) - np.log(p / (1 - p)), abs=1e-3)


def test_a_tree_whose_path_no_single_word_decides_has_none():
    clf = LOMTreeClassifier(random_state=0).fit(["red apple", "green pear"] * 20, ["apple", "pear"] * 20)
    assert clf.explain("a green pear", "pear").spans == []


def test_online_classifiers_have_spans_too():
    clf = OnlinePLTClassifier(random_state=0).fit(["red apple", "green pear"] * 20, ["apple", "pear"] * 20)
    spans = clf.explain("a green pear", "pear").spans
    assert {"green", "pear"} >= {"a green pear"[span.start : span.end] for span in spans} > set()


def test_numbers_and_unknown_words_have_none():
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    assert clf.explain("nothing known", "red").spans == []
    assert clf.explain({"red": 1.0}, "red").spans == []
    assert "spans" not in clf.explain({"red": 1.0}, "red").to_dict()


def test_spans_are_plain_values():
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    (span,) = clf.explain("red", "red").to_dict()["spans"]
    assert span.keys() == {"start", "end", "weight"}


def test_marks_are_styles_and_leave_the_text_as_it_is():
    spans = PLTClassifier(random_state=0).fit(TEXTS, TAGS).explain("the red\x1b[2J car", "red").spans
    marked = output.marked("the red\x1b[2J car", spans)
    assert marked.plain == "the red\\x1b[2J car"
    (place,) = [(m.start, m.end) for m in marked.spans if "bold" in str(m.style)]
    assert marked.plain[slice(*place)] == "red"


def test_words_against_the_label_have_a_negative_weight_and_are_not_underlined():
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    weight = {"red pear"[span.start : span.end]: span.weight for span in clf.explain("red pear", "red").spans}
    assert weight["red"] > 0 > weight["pear"]
    (underlined,) = output.marked("red pear", clf.explain("red pear", "red").spans).spans
    assert (underlined.start, underlined.end) == (0, 3)


def test_a_very_long_text_takes_little_memory():
    """Rows without each of 20,000 terms at once would take five gigabytes."""
    text = " ".join([*(f"word{k}" for k in range(20_000)), *["red"] * 100])
    clf = PLTClassifier(vectorizer=HashingTextVectorizer(), random_state=0).fit(TEXTS, TAGS)
    tracemalloc.start()
    spans = clf.explain(text, "red").spans
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert {text[span.start : span.end] for span in spans if span.weight > 0.1} == {"red"}
    assert peak < 200e6


def test_all_terms_of_a_usual_text_are_weighed_in_pieces_of_any_size(monkeypatch):
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    text = "a red apple and a green pear"
    whole = clf.explain(text, "red").spans
    monkeypatch.setattr("ramify.explain.spans._ENTRIES_AT_ONCE", 7)
    assert clf.explain(text, "red").spans == whole


def test_a_notebook_shows_what_print_writes():
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    for shown in (clf.explain("red apple", "red"), clf.fit_report_):
        written = []
        shown._repr_pretty_(SimpleNamespace(text=written.append), False)
        assert written == [str(shown)]


def test_a_notebook_shows_the_text_with_its_marks():
    clf = PLTClassifier(random_state=0).fit(TEXTS, TAGS)
    text = "the <b>red</b> pear & car"
    for x in (text, [text]):
        explanation = clf.explain(x, "red")
        shown = explanation._repr_html_()
        assert "&lt;b&gt;" in shown
        assert "pear</mark> &amp; " in shown
        plain = html.unescape(re.sub("<[^>]*>", "", shown))  # nothing is added, nothing is left out
        headline, _, details = str(explanation).partition("\n")
        assert plain == headline + text + details
    strongest, other = (re.search(rf'([\d.]+)\)" title="[^"]*">{word}</mark>', shown)[1] for word in ("red", "pear"))
    assert float(strongest) > float(other) > 0
    assert clf.explain({"red": 1.0}, "red")._repr_html_() is None
