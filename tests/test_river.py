"""River's own checks, and what a stream of river's may bring beyond them."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
from river import (
    checks,
    compose,
    datasets,
    evaluate,
    feature_extraction,
    linear_model,
    metrics,
    multiclass,
    preprocessing,
)

from models.online_plt.test_life import everything
from ramify import OnlinePLTClassifier
from ramify.optimizers import FOBOS
from ramify.river import MultiLabelOnlinePLT, OnlinePLT

MODELS = [OnlinePLT, MultiLabelOnlinePLT]
SETTINGS = [
    {},
    {"policy": "random", "arity": 2, "max_leaf": 3, "seed": 1},
    {"policy": "best", "optimizer": FOBOS(l2=0.01)},
]


class Moods:
    """As many features and labels as river's Music, which river fetches from the network; made up here."""

    def take(self, n):
        generator = random.Random(0)
        for _ in range(n):
            x = {f"sound {j}": generator.gauss(0, 1) for j in range(72)}
            yield x, {f"mood {k}": x[f"sound {k}"] + x[f"sound {k + 6}"] > 0.5 for k in range(6)}


def all_checks():
    """(model's class, settings, name and number of the check): data sets are streams, so each run makes its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "Music", Moods)
        for model in MODELS:
            for settings in SETTINGS:
                for number, check in enumerate(checks.yield_checks(model(**settings))):
                    policy = settings.get("policy", "fair")
                    yield pytest.param(
                        model, settings, number, id=f"{model.__name__}-{policy}-{check.__name__}-{number}"
                    )


@pytest.mark.parametrize(("model", "settings", "number"), list(all_checks()))
def test_river_approves(model, settings, number, monkeypatch):
    monkeypatch.setattr(datasets, "Music", Moods)
    check = list(checks.yield_checks(model(**settings)))[number]
    check(model(**settings))


@pytest.mark.parametrize("model", MODELS)
def test_no_check_is_left_out(model, monkeypatch):
    monkeypatch.setattr(datasets, "Music", Moods)
    assert model()._unit_test_skips() == set()
    names = {check.__name__ for check in checks.yield_checks(model())}
    assert {"check_learn_one", "check_emerging_features", "check_pickling", "check_seeding_is_idempotent"} <= names


# --- classes ----------------------------------------------------------------------------------------------------------


def fruits(n=60):
    for number in range(n):
        kind = ("cherry", "banana", 7, None)[number % 4]
        yield {f"like {kind}": 1.0, ("bi", "gram"): 0.5, number % 3: 0.2}, kind


def test_features_and_classes_are_any_hashable_things():
    model = OnlinePLT(seed=0)
    for x, y in fruits():
        model.learn_one(x, y)
    assert model.labels == ["cherry", "banana", 7, None]
    assert [model.predict_one(x) for x, _ in fruits(8)] == [y for _, y in fruits(8)]
    assert set(model.features) == {"like cherry", "like banana", "like 7", "like None", ("bi", "gram"), 0, 1, 2}


def test_it_is_the_classifier_on_the_same_rows():
    model, clf = OnlinePLT(seed=3), OnlinePLTClassifier(random_state=3)
    rows = [({f"f{j}": float(j + k) for j in range(4)}, f"class {k % 5}") for k in range(80)]
    for x, y in rows:
        model.learn_one(x, y)
        clf.learn_one(x, y)
    for x, _ in rows[:10]:
        ours, theirs = model.predict_proba_one(x), dict(clf.predict_one(x, top_k=None))
        assert list(ours) == list(theirs)
        assert ours == pytest.approx(theirs, rel=1e-6)
        assert model.predict_one(x) == clf.predict_one(x, top_k=1)[0][0]
        assert model.predict_proba_one(x, top_k=2) == dict(clf.predict_one(x, top_k=2))


def test_before_the_first_example_there_is_no_answer():
    assert OnlinePLT().predict_one({"a": 1.0}) is None
    assert OnlinePLT().predict_proba_one({"a": 1.0}) == {}
    assert MultiLabelOnlinePLT().predict_one({"a": 1.0}) == {}
    assert MultiLabelOnlinePLT().predict_proba_one({"a": 1.0}) == {}


def test_questions_teach_nothing():
    model = OnlinePLT(seed=0)
    for x, y in fruits():
        model.learn_one(x, y)
    before = pickle.dumps(model)
    model.predict_one({"never seen": 1.0})
    model.predict_proba_one({"never seen": 1.0})
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(("model", "y"), [(OnlinePLT(seed=0), "new"), (MultiLabelOnlinePLT(seed=0), {"new": True})])
@pytest.mark.parametrize("value", [np.nan, np.inf, "red", None])
def test_a_refused_example_leaves_no_trace(model, y, value):
    model = model.clone()
    model.learn_one({"a": 1.0}, {"old": True} if isinstance(y, dict) else "old")
    before = everything(model.classifier)
    with pytest.raises(ValueError, match="values must be numbers"):
        model.learn_one({"b": 1.0, "c": value}, y)
    assert everything(model.classifier) == before
    assert (model.features, model.labels) == ({"a": 0}, ["old"])
    model.learn_one({"b": 1.0}, y)
    assert model.features == {"a": 0, "b": 1}
    assert model.labels == ["old", "new"]


def test_a_pickled_model_goes_on_as_if_nothing_had_been():
    rows = list(fruits(80))
    model = OnlinePLT(policy="random", arity=2, max_leaf=2, seed=5)
    for x, y in rows[:40]:
        model.learn_one(x, y)
    again = pickle.loads(pickle.dumps(model))
    for x, y in rows[40:]:
        model.learn_one(x, y)
        again.learn_one(x, y)
    assert [again.predict_proba_one(x) for x, _ in rows] == [model.predict_proba_one(x) for x, _ in rows]


def test_a_clone_knows_the_parameters_and_nothing_else():
    model = OnlinePLT(policy="best", alpha=0.5, seed=5)
    model.learn_one({"a": 1.0}, "x")
    clone = model.clone()
    assert clone._get_params() == model._get_params()
    assert clone.predict_one({"a": 1.0}) is None
    assert clone.clone({"alpha": 0.25}).classifier.alpha == 0.25
    optimizer = clone.clone({"optimizer": FOBOS(l2=0.1)}).clone().classifier.optimizer
    assert (type(optimizer), optimizer.l2) == (FOBOS, 0.1)
    with pytest.raises(ValueError, match="not a mutable attribute"):
        model.mutate({"alpha": 0.1})


def test_the_memory_counts_what_the_core_holds():
    model = OnlinePLT(seed=0)
    for x, y in fruits():
        model.learn_one(x, y)
    assert model._raw_memory_usage > model.classifier.memory_ > 1000


def test_bad_parameters_are_named_at_the_first_example():
    with pytest.raises(ValueError, match="alpha must be a number between 0 and 1, got 2"):
        OnlinePLT(alpha=2).learn_one({"a": 1.0}, "x")


# --- sets of labels ---------------------------------------------------------------------------------------------------


def test_labels_are_learned_whether_or_not_absent_ones_are_named():
    named, unnamed = MultiLabelOnlinePLT(seed=0), MultiLabelOnlinePLT(seed=0)
    for x, y in Moods().take(300):
        named.learn_one(x, y)
        unnamed.learn_one(x, {label: True for label, is_true in y.items() if is_true})
    assert set(named.labels) == set(unnamed.labels)
    for x, _ in Moods().take(20):
        assert named.predict_one(x) == unnamed.predict_one(x)


def test_a_label_that_no_example_had_is_known_and_absent():
    model = MultiLabelOnlinePLT(seed=0)
    model.learn_one({"a": 1.0}, {"x": False, "y": False})
    assert model.predict_one({"a": 1.0}) == {"x": False, "y": False}
    assert model.predict_proba_one({"a": 1.0}) == {"x": {False: 1.0, True: 0.0}, "y": {False: 1.0, True: 0.0}}
    for _ in range(10):
        model.learn_one({"a": 1.0}, {"y": True, "z": np.bool_(True)})
    assert model.predict_one({"a": 1.0}) == {"x": False, "y": True, "z": True}
    assert list(model.predict_proba_one({"a": 1.0}, top_k=1)) in (["y"], ["z"])
    assert set(model.predict_proba_one({"a": 1.0}, threshold=0.5)) == {"y", "z"}


def test_probabilities_are_the_decisions():
    model = MultiLabelOnlinePLT(seed=0)
    for x, y in Moods().take(300):
        model.learn_one(x, y)
    for x, _ in Moods().take(20):
        probabilities = model.predict_proba_one(x)
        assert model.predict_one(x) == {label: p[True] >= 0.5 for label, p in probabilities.items()}
        assert all(sum(p.values()) == pytest.approx(1) for p in probabilities.values())


# --- among river's own ------------------------------------------------------------------------------------------------


def test_it_learns_in_a_pipeline_about_as_well_as_rivers_one_against_all():
    def accuracy(model):
        stream = datasets.ImageSegments().take(1000)
        return evaluate.progressive_val_score(stream, preprocessing.StandardScaler() | model, metrics.Accuracy()).get()

    ours = accuracy(OnlinePLT(seed=0))
    assert ours > accuracy(multiclass.OneVsRestClassifier(linear_model.LogisticRegression())) - 0.02
    assert ours > 0.7


def test_a_bag_of_words_brings_new_features_with_every_text():
    model = compose.Pipeline(feature_extraction.BagOfWords(ngram_range=(1, 2)), OnlinePLT(seed=0))
    texts = [("red apple pie", "apple"), ("yellow banana split", "banana"), ("sour cherry cake", "cherry")]
    for text, label in texts * 5:
        model.learn_one(text, label)
    assert [model.predict_one(text) for text, _ in texts] == ["apple", "banana", "cherry"]
    assert any(isinstance(feature, tuple) for feature in model["OnlinePLT"].features)


def test_progressive_validation_of_many_labels():
    metric = metrics.multioutput.MicroAverage(metrics.F1())
    evaluate.progressive_val_score(Moods().take(400), MultiLabelOnlinePLT(seed=0), metric)
    assert metric.get() > 0.6


def test_without_river_the_message_says_what_to_install():
    program = "import sys; sys.modules['river'] = None; import ramify; import ramify.river"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.strip().endswith(
        "ImportError: ramify.river needs the river package: pip install 'ramify[river]'"
    )


def test_river_is_imported_only_by_those_who_ask():
    program = "import ramify, ramify.cli.main, sys; sys.exit('river' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
