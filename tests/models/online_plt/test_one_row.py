"""The short way of one row into an online model: weights and refusals are those of `partial_fit`, and it is quicker."""

from __future__ import annotations

import collections
import itertools
import linecache
import pickle
import sys

import numpy as np
import pytest

from ramify import OnlinePLTClassifier
from ramify.base.stream_schema import DictRow, one_label_row
from ramify.optimizers import AdaGrad
from shared.online_models import LEARNERS, POLICIES, everything, stream

FORMS = {
    "classes": lambda row: f"class {row.argmax()}",
    "numbered classes": lambda row: np.int64(row.argmax()),
    "true and false": lambda row: bool(row[0]),
    "collections": lambda row: [f"label {column}" for column in np.flatnonzero(row)] * 2,
    "sets of numbers": lambda row: set(np.flatnonzero(row).tolist()),
    "0/1 rows": lambda row: row,
}


def examples(form, named, seed=0):
    """Rows as dicts whose features come in any order, more and more of them, with the labels of each."""
    X, Y = stream(seed, n_rows=120)
    generator = np.random.default_rng(seed)
    for number, (row, labels) in enumerate(zip(X, Y, strict=True)):
        features = [int(j) for j in generator.permutation(len(row)) if j <= number and (row[j] != 0 or j == 3)]
        yield {f"word {j}" if named else j: float(row[j]) for j in features}, FORMS[form](labels)


def learn_the_long_way(clf, x, y):
    kind = clf.schema_.labels.kind if clf.__sklearn_is_fitted__() else None
    return clf.partial_fit(DictRow(x), one_label_row(y, kind))


# Forms of a row are read before the core sees it: each is learned by one policy of the core and by a callable one.
@pytest.mark.parametrize(
    ("policy", "form", "named"),
    [
        *itertools.product(("fair", "callable"), FORMS, (True, False)),
        *((policy, "collections", True) for policy in POLICIES if policy not in ("fair", "callable")),
    ],
)
def test_the_short_way_changes_no_bit(policy, form, named):
    short, long = (OnlinePLTClassifier(**POLICIES[policy], random_state=1) for _ in range(2))
    for x, y in examples(form, named):
        short.learn_one(x, y)
        learn_the_long_way(long, x, y)
    assert everything(short) == everything(long)


@pytest.mark.parametrize("learner", LEARNERS)
def test_rows_one_by_one_are_the_rows_of_an_array(learner):
    X, Y = stream(5, n_rows=200)
    labels = [[f"label {column}" for column in np.flatnonzero(row)] for row in Y]
    one_by_one, at_once = (OnlinePLTClassifier(**LEARNERS[learner], random_state=1) for _ in range(2))
    for row, names in zip(X, labels, strict=True):
        one_by_one.learn_one({int(j): row[j] for j in np.flatnonzero(row)}, names)
    at_once.partial_fit(X, labels)
    assert everything(one_by_one) == everything(at_once)


def test_only_surprises_take_the_long_way(monkeypatch):
    """Otherwise the tests above would compare the long way with itself."""
    calls = []
    whole = OnlinePLTClassifier.partial_fit
    monkeypatch.setattr(OnlinePLTClassifier, "partial_fit", lambda self, X, y: calls.append(y) or whole(self, X, y))
    clf = OnlinePLTClassifier()
    for x, y in examples("classes", named=True):
        clf.learn_one(x, y)
    assert len(calls) == clf.n_labels_
    assert len(clf.schema_.named_columns) > len(next(examples("classes", named=True))[0])


REFUSED = {
    "NaN": ({"a": np.nan}, ["x"], "NaN"),
    "infinity": ({"a": 1.0, "new": -np.inf}, ["x"], "feature 'new' is -inf"),
    "beyond float32": ({"a": 1e39}, ["x"], "beyond float32"),
    "far beyond float64": ({"a": 10**400}, ["x"], "beyond float32"),
    "text": ({"a": "1"}, ["x"], "must be numbers"),
    "nothing": ({"a": None}, ["x"], "must be numbers"),
    "numbered features": ({3: 1.0}, ["x"], "numbers its features"),
    "strange features": ({"a": 1.0, 1.5: 2.0}, ["x"], "column number or a name"),
    "a strange label": ({"new": 1.0}, ["x", 2.5], "labels are strings or integers"),
    "true as a label": ({"new": 1.0}, [True], "labels are strings or integers"),
    "another type of label": ({"new": 1.0}, [7], "labels so far are like"),
    "one class": ({"new": 1.0}, "x", "one class per row"),
    "no labels": ({"new": 1.0}, None, "None"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_long_way_refuses_is_refused_and_changes_nothing(case):
    x, y, said = REFUSED[case]
    clf = OnlinePLTClassifier(random_state=0)
    for _ in range(3):
        clf.learn_one({"a": 1.0, "b": 0.5}, ["x", "y"])
    before = everything(clf)
    with pytest.raises(ValueError) as long:
        learn_the_long_way(clf, x, y)
    with pytest.raises(ValueError, match=said) as short:
        clf.learn_one(x, y)
    assert str(short.value) == str(long.value)
    assert everything(clf) == before


@pytest.mark.parametrize("features", [{-1: 1.0}, {2**31: 1.0}, {2**80: 1.0}, {True: 1.0}, {"a": 1.0, 0: 2.0}], ids=str)
def test_features_without_a_place_are_refused(features):
    clf = OnlinePLTClassifier().learn_one({0: 1.0}, "x")
    before = everything(clf)
    with pytest.raises(ValueError, match="feature"):
        clf.learn_one(features, "x")
    assert everything(clf) == before


def test_a_label_without_a_leaf_is_refused_where_no_policy_adds_it():
    clf = OnlinePLTClassifier(policy=None, tree="complete")
    clf.partial_fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    with pytest.raises(ValueError, match="label 'c' has no leaf"):
        clf.learn_one({0: 1.0}, "c")
    assert clf.learn_one({0: 1.0}, "a").n_examples_ == 3


def test_settings_that_change_in_between_are_noticed():
    clf = OnlinePLTClassifier(optimizer=AdaGrad(learning_rate=2.0))
    for _ in range(3):
        clf.learn_one({"a": 1.0}, "x")
    clf.set_params(optimizer__learning_rate=0.5)
    with pytest.raises(ValueError, match=r"learning_rate was 2\.0 when learning began and is 0\.5 now"):
        clf.learn_one({"a": 1.0}, "x")
    clf.optimizer.learning_rate = -1
    with pytest.raises(ValueError, match="learning_rate must be a number above 0"):
        clf.learn_one({"a": 1.0}, "x")
    clf.optimizer.learning_rate = 2.0
    assert clf.learn_one({"a": 1.0}, "x").n_examples_ == 4
    clf.fit(np.eye(2), ["x", "y"])  # another learner, with other settings
    clf.set_params(bias=0.7)
    with pytest.raises(ValueError, match="bias was"):
        clf.learn_one({0: 1.0}, "x")


def test_copies_go_on_by_themselves():
    clf = OnlinePLTClassifier(random_state=0)
    rows = list(examples("collections", named=True))
    for x, y in rows[:60]:
        clf.learn_one(x, y)
    again = pickle.loads(pickle.dumps(clf))
    frozen = pickle.loads(pickle.dumps(clf.freeze()))
    for x, y in rows[60:]:
        clf.learn_one(x, y)
    assert everything(again) != everything(clf)
    for x, y in rows[60:]:
        again.learn_one(x, y)
    assert everything(again) == everything(clf)
    assert len(frozen.predict_one(rows[0][0], top_k=3)) == 3


def test_a_budget_that_is_used_up_is_said_once_and_at_the_callers_line():
    clf = OnlinePLTClassifier(memory_budget=20_000, random_state=0)
    generator = np.random.default_rng(0)
    rows = [{int(j): 1.0 for j in generator.integers(0, 5000, 12)} for _ in range(1000)]

    def learn():
        for number, x in enumerate(rows):
            clf.learn_one(x, number % 9)

    with pytest.warns(UserWarning, match="memory_budget of 20,000 bytes is used up") as said:
        learn()
    assert len(said) == 1
    assert said[0].filename == __file__
    assert linecache.getline(__file__, said[0].lineno).strip() == "clf.learn_one(x, number % 9)"
    assert clf.n_evicted_rows_ > 0


def test_the_short_way_is_much_shorter():
    generator = np.random.default_rng(0)
    rows = [{f"word {j}": 1.0 for j in generator.integers(0, 500, 12)} for _ in range(600)]
    labels = [f"label {label}" for label in generator.integers(0, 20, 600)]
    calls = collections.Counter()
    for learn in (OnlinePLTClassifier.learn_one, learn_the_long_way):
        clf = OnlinePLTClassifier(random_state=0)
        for x, y in zip(rows, labels, strict=True):
            clf.learn_one(x, y)
        sys.setprofile(lambda _frame, event, _, learn=learn: calls.update([learn] if "call" in event else []))
        for x, y in zip(rows, labels, strict=True):
            learn(clf, x, y)
        sys.setprofile(None)
    assert calls[learn_the_long_way] > 3 * calls[OnlinePLTClassifier.learn_one]
