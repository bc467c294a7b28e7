"""Label texts: labels with few or no rows are found by their names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ramify import OnlinePLTClassifier, PLTClassifier

TEXTS = ["acute chest pain", "pain in the chest wall", "nausea and vomiting", "vomiting after meals"] * 5
CLASSES = ["heart", "muscle", "stomach", "stomach"] * 5
NAMES = {"kidney": ["kidney stone", "renal colic"], "heart": "heart attack"}


@pytest.mark.parametrize("classifier", [PLTClassifier(random_state=0), OnlinePLTClassifier(random_state=0, n_epochs=5)])
@pytest.mark.parametrize("y", [CLASSES, np.array(CLASSES), [[name] for name in CLASSES]], ids=["list", "array", "sets"])
def test_a_label_without_rows_is_found_by_its_text(classifier, y):
    clf = classifier.fit(TEXTS, y, label_texts=NAMES)
    assert sorted(clf.classes_.tolist()) == ["heart", "kidney", "muscle", "stomach"]
    assert clf.predict_one("a stone in the kidney", top_k=1)[0][0] == "kidney"
    assert clf.predict_one("attack", top_k=1)[0][0] == "heart"


def test_label_texts_are_rows_of_weight_one():
    weight = np.full(len(TEXTS), 2.0)
    given = PLTClassifier(random_state=0).fit(TEXTS, CLASSES, weight, label_texts=NAMES)
    rows = [*TEXTS, "kidney stone", "renal colic", "heart attack"]
    labels = [*CLASSES, "kidney", "kidney", "heart"]
    by_hand = PLTClassifier(random_state=0).fit(rows, labels, [*weight, 1, 1, 1])
    assert given.predict_one("renal pain") == by_hand.predict_one("renal pain")


@pytest.mark.parametrize(
    ("X", "y", "label_texts", "said"),
    [
        (np.eye(20), CLASSES, NAMES, "label_texts needs X as texts"),
        (TEXTS, np.eye(20), NAMES, "not as a 0/1 array"),
        (TEXTS, CLASSES, ["kidney"], "label_texts must be a dict"),
        (TEXTS, CLASSES, {"kidney": 3}, r"label_texts\['kidney'\] must be a text or a list of texts, got 3"),
        (TEXTS, CLASSES, {"kidney": ["a", None]}, r"label_texts\['kidney'\]"),
    ],
)
def test_bad_label_texts_are_refused(X, y, label_texts, said):
    with pytest.raises(ValueError, match=said):
        PLTClassifier().fit(X, y, label_texts=label_texts)


def test_label_texts_may_be_a_series_or_arrays():
    by_dict = PLTClassifier(random_state=0).fit(TEXTS, CLASSES, label_texts={"kidney": ["renal colic"]})
    for given in (pd.Series({"kidney": "renal colic"}), {"kidney": np.array(["renal colic"])}):
        clf = PLTClassifier(random_state=0).fit(TEXTS, CLASSES, label_texts=given)
        assert clf.predict_one("renal pain") == by_dict.predict_one("renal pain")
