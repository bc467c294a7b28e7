"""Labels that were probably not meant are pointed out when a model is trained, and only those."""

from __future__ import annotations

import re
import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import PLTClassifier
from ramify.data.doubtful_labels import _BETWEEN, _are_tidy, _is_tidy, doubts_about

TEXTS = ["acute chest pain", "nausea and vomiting"]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["a", ""], "empty text"),
        ([unicodedata.normalize(form, "Übel") for form in ("NFC", "NFD")], r"'\xdcbel' and 'U\u0308bel' differ only"),
        (["a", " a"], "'a' and ' a' differ only"),
        (["x y", "x  y"], "differ only"),
        (["x\u200b", "\u200bx"], "differ only"),
        (["a", "NaN"], "'NaN' looks like a missing value"),
        (["a", "['b' 'c']"], "looks like a list"),
    ],
)
def test_doubtful_labels_are_pointed_out_in_training(labels, said):
    (doubt,) = doubts_about(labels)
    assert said in doubt
    with pytest.warns(UserWarning, match=re.escape(doubt)):
        PLTClassifier().fit(TEXTS, [[label] for label in labels])


def test_labels_that_look_different_are_not():
    labels = ["Bein", "bein", "Übelkeit", "NA", "None", "[a]", "Bein, links", "x²", "x2", "日本", "👩‍🔬", "👩"]
    assert doubts_about(labels) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PLTClassifier().fit([TEXTS[0]] * len(labels), [[label] for label in labels])
        PLTClassifier().fit(TEXTS, [1, 2])


@given(st.sets(st.text(st.sampled_from("ab \u00fcu\u0308\u200b\x1f\n"), max_size=4)))
def test_labels_together_are_tidy_if_each_is(labels):
    together = _BETWEEN.join(["", *labels, ""])
    assert _are_tidy(together, len(labels)) == all(map(_is_tidy, labels))
