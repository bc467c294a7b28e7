"""FastXML and tuned thresholds on the workers of a cluster, run in this process: the bits of one machine."""

import numpy as np
import pytest

from ramify import FastXMLClassifier, PLTClassifier, ThresholdClassifier
from ramify.cluster import fit, fitting
from ramify.cluster.workers import InProcess
from ramify.common import progress
from ramify.data.synthetic import make_multilabel
from shared.same_model import check_same_model


class Several(InProcess):
    """One process that plans for several workers."""

    def __init__(self, n_workers):
        self.n_workers = n_workers


@pytest.fixture(scope="module")
def data():
    return make_multilabel(600, 60, 300, random_state=0)


@pytest.mark.parametrize(
    "parameters",
    [{"n_trees": 1}, {"n_trees": 9}, {"n_trees": 11, "propensity": (0.55, 1.5), "normalize": True}],
    ids=repr,
)
@pytest.mark.parametrize(("n_shards", "n_workers"), [(1, 1), (3, 4)])
def test_a_forest_does_not_depend_on_shards_and_workers(data, parameters, n_shards, n_workers):
    weight = np.random.default_rng(0).random(data.n_rows) + 0.5
    alone = FastXMLClassifier(random_state=3, **parameters).fit(data.X, data.Y, sample_weight=weight)
    shared = FastXMLClassifier(random_state=3, **parameters)
    fit(shared, (data.X, data.Y), sample_weight=weight, n_shards=n_shards, workers=Several(n_workers))
    check_same_model(alone, shared)


TUNINGS = [
    {},
    {"folds": 1, "refit": False},
    {"folds": 3, "empty": "one", "c": (100, 7, 2)},
    {"objective": "micro_f1", "candidates": 9},
]
FURTHER = [{"objective": "macro_f2", "common": True}, {"objective": "example_f1", "c": 20}]  # ofo has no rule for them


@pytest.mark.parametrize(
    ("method", "parameters"),
    [(method, given) for method in ("ofo", "fta", "sto") for given in TUNINGS]
    + [(method, given) for method in ("fta", "sto") for given in FURTHER],
    ids=repr,
)
def test_thresholds_do_not_depend_on_shards_and_workers(data, method, parameters):
    inner = PLTClassifier(arity=4, max_leaf=10)
    alone = ThresholdClassifier(inner, method=method, random_state=1, **parameters).fit(data.X, data.Y)
    shared = ThresholdClassifier(inner, method=method, random_state=1, **parameters)
    fit(shared, (data.X, data.Y), n_shards=3, workers=Several(3))
    check_same_model(alone, shared)
    assert (alone.c_, alone.validation_) == (shared.c_, shared.validation_)
    assert (alone.predict(data.X) != shared.predict(data.X)).nnz == 0


def test_thresholds_around_a_forest_and_texts(data):
    texts = [" ".join(f"word{j}" for j in row.indices) for row in data.X]
    labels = [[f"label{j}" for j in row.indices] for row in data.Y]
    inner = FastXMLClassifier(n_trees=5, max_leaf=20)
    alone = ThresholdClassifier(inner, method="sto", random_state=1).fit(texts, labels)
    shared = fit(ThresholdClassifier(inner, method="sto", random_state=1), (texts, labels), workers=Several(2))
    check_same_model(alone, shared)


@pytest.mark.parametrize(
    "classifier",
    [
        PLTClassifier(n_trees=2, random_state=0),
        FastXMLClassifier(n_trees=9, random_state=0),
        ThresholdClassifier(random_state=0),
        ThresholdClassifier(FastXMLClassifier(n_trees=3), refit=False, random_state=0),
    ],
    ids=lambda given: type(given).__name__,
)
def test_one_bar_covers_everything(data, classifier, monkeypatch):
    made = []
    monkeypatch.setattr(
        fitting, "in_steps", lambda steps: made.append(progress.Steps(steps)) or phases.in_steps(made[0])
    )
    with progress.shown(False) as phases:
        fit(classifier, (data.X, data.Y), n_shards=2, workers=Several(2))
    assert made[0].done == made[0].total
    expected = {name for name, _ in made[0]._steps} - {"reading shards", "vectorising"}
    assert expected <= phases.seconds.keys()


class Breaks(Several):
    """Fails at the n-th task of a kind."""

    def __init__(self, kind, n):
        super().__init__(3)
        self.kind, self.left, self.n_done = kind, n, 0

    def submit(self, function, *arguments, n_returns=1):
        if function.__name__ == self.kind:
            if self.left == 0:
                raise OSError("the power is gone")
            self.left, self.n_done = self.left - 1, self.n_done + 1
        return super().submit(function, *arguments, n_returns=n_returns)


@pytest.mark.parametrize(
    ("classifier", "kind"),
    [
        (FastXMLClassifier(n_trees=12, random_state=0), "grow_trees"),
        (ThresholdClassifier(PLTClassifier(arity=4, max_leaf=10), random_state=0), "validate_labels"),
        (ThresholdClassifier(FastXMLClassifier(n_trees=8), random_state=0), "tune_labels"),
    ],
    ids=["forest", "thresholds", "thresholds of a forest"],
)
def test_a_run_that_failed_resumes(data, tmp_path, classifier, kind):
    alone = type(classifier)(**classifier.get_params(deep=False)).fit(data.X, data.Y)
    with pytest.raises(OSError, match="power"):
        fit(classifier, (data.X, data.Y), checkpoint=tmp_path, n_shards=2, workers=Breaks(kind, 1))
    again = Breaks("train_part" if "PLT" in repr(classifier) else "grow_trees", 10_000)
    fit(classifier, (data.X, data.Y), checkpoint=tmp_path, n_shards=2, workers=again)
    check_same_model(alone, classifier)
    everything = Breaks(again.kind, 10_000)
    fit(type(classifier)(**classifier.get_params(deep=False)), (data.X, data.Y), n_shards=2, workers=everything)
    if kind != "grow_trees":  # the first training is not repeated; InProcess runs tasks before any is written
        assert 0 < again.n_done < everything.n_done
