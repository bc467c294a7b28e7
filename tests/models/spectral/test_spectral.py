"""SpectralTreeClassifier: its filter and what stands behind it, learning on, explanations, files, the command line."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

import ramify
from ramify import OnlinePLTClassifier, PLTClassifier, SpectralTreeClassifier, ThresholdClassifier, metrics
from ramify.cli.main import run
from ramify.data.synthetic import make_multilabel
from ramify.explain.candidates import CandidateExplanation
from ramify.models.spectral import CandidateScorer, hellinger
from ramify.models.spectral.frequency import frequency_recall, most_frequent_labels
from ramify.optimizers import FOBOS, AdaGrad
from shared.spectral_settings import KINDS, LEARNED, SMALL, spectral


@pytest.fixture(scope="module")
def of_classes(classes):
    return spectral(**SMALL).fit(classes.X[:2000], classes.y[:2000])


def test_candidates_recall_far_more_than_the_most_frequent_labels(data, fitted):
    candidates = fitted.candidates(data.X[1000:])
    assert np.diff(candidates.indptr).max() <= 12
    recall = metrics.filter_recall(data.Y[1000:], candidates)
    count = np.bincount(data.Y[:1000].indices, minlength=80)
    frequent = np.argsort(-count)[:12]
    assert recall > data.Y[1000:][:, frequent].sum() / data.Y[1000:].nnz + 0.1
    report = fitted.training_report_
    assert report["frequency_recall"] == pytest.approx(frequency_recall(data.Y[:1000], 12))
    assert recall < report["training_recall"] <= 1
    assert report["mean_candidates"] <= 12
    assert report["mean_depth"] <= report["depth"] <= 5


def test_it_answers_nothing_but_candidates_and_classes_sum_to_one(data, fitted, classes, of_classes):
    answer = fitted.predict_proba(data.X[1000:], threshold=1e-6)
    named = fitted.candidates(data.X[1000:])
    assert set(zip(*answer.nonzero(), strict=True)) <= set(zip(*named.nonzero(), strict=True))
    np.testing.assert_allclose(of_classes.predict_proba(classes.X[2000:]).sum(axis=1), 1, atol=1e-5)
    assert of_classes.score(classes.X[2000:], classes.y[2000:]) > 0.8


def test_fractions_while_growing_recall_more_of_new_rows(classes):
    rows = slice(0, 2000)
    settings = {**SMALL, "n_candidates": 5, "depth": 8, "n_epochs": 1}
    fractional, hard = (spectral(**settings, noise=noise).fit(classes.X[rows], classes.y[rows]) for noise in (1.0, 0.0))
    of_test = [metrics.filter_recall(classes.Y[2000:], clf.candidates(classes.X[2000:])) for clf in (fractional, hard)]
    assert of_test[0] > of_test[1]
    assert fractional.training_report_["training_recall"] < hard.training_report_["training_recall"]


@pytest.mark.parametrize("weights", ["full", "hashed", "low_rank"])
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_all_kinds_of_weights_learn(data, classes, weights, kind):
    clf = spectral(**{**SMALL, "weights": weights, "hash_bits": 16})
    if kind == "classes":
        clf.fit(classes.X[:2000], classes.y[:2000])
        assert clf.score(classes.X[2000:], classes.y[2000:]) > 0.7
    else:
        clf.fit(data.X[:1000], data.Y[:1000])
        by_frequency = most_frequent_labels(data.Y[:1000], 1)
        found = metrics.precision_at_k(data.Y[1000:], clf.predict_proba(data.X[1000:], top_k=1), 1)
        assert found > data.Y[1000:][:, by_frequency].mean() + 0.1


def test_leaves_may_have_output_weights_of_their_own(classes):
    clf = spectral(**{**SMALL, "output_weights": "leaf"}).fit(classes.X[:2000], classes.y[:2000])
    assert len(clf.model_.base.arrays["output_sum"]) == len(clf.model_.base.arrays["slot_bias"]) > 60
    assert clf.score(classes.X[2000:], classes.y[2000:]) > 0.6
    without = spectral(**SMALL, leaf_bias=False).fit(classes.X[:2000], classes.y[:2000])
    assert not without.model_.base.arrays["slot_bias"].any()


def test_ways_by_chance_while_training_are_another_training_than_those_of_prediction(classes):
    by_chance, fixed = (
        spectral(**SMALL, sampled_paths=sampled).fit(classes.X[:500], classes.y[:500]) for sampled in (True, False)
    )
    np.testing.assert_array_equal(by_chance.filter_.arrays["weight"], fixed.filter_.arrays["weight"])
    assert (by_chance.model_.base.arrays["output"] != fixed.model_.base.arrays["output"]).any()


@pytest.mark.parametrize("n_leaves", [1, 3])
@pytest.mark.parametrize("estimator", [PLTClassifier(arity=4, max_leaf=8), OnlinePLTClassifier()])
def test_any_classifier_may_stand_behind_the_filter(data, estimator, n_leaves, tmp_path):
    clf = spectral(**SMALL, estimator=estimator, n_leaves=n_leaves).fit(data.X[:1000], data.Y[:1000])
    alone = clf.estimator_.predict_proba(data.X[1000:], labels=range(80)).toarray()
    named = clf.candidates(data.X[1000:]).toarray() > 0
    found = clf.predict_proba(data.X[1000:], threshold=0.0).toarray()
    np.testing.assert_allclose(found, np.where(named, alone, 0), rtol=1e-5)
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert (again.predict_proba(data.X, top_k=4) != clf.predict_proba(data.X, top_k=4)).nnz == 0
    assert hasattr(clf, "partial_fit") == hasattr(estimator, "partial_fit")


def test_the_depth_is_chosen_by_the_recall_of_held_out_rows():
    data = make_multilabel(600, 40, 150, random_state=1)
    clf = spectral(**{**SMALL, "n_candidates": 8, "depth": "auto"}).fit(data.X, data.Y)
    recalls = clf.training_report_["held_out_recall_by_depth"]
    assert clf.training_report_["held_out_recall"] == max(recalls)
    assert clf.filter_.height <= int(np.argmax(recalls))
    assert clf.training_report_["held_out_recall"] > recalls[0]
    given = spectral(**{**SMALL, "n_candidates": 8, "depth": int(np.argmax(recalls))})
    given.fit(data.X, data.Y)
    np.testing.assert_array_equal(given.filter_.arrays["weight"], clf.filter_.arrays["weight"])


def test_head_labels_are_everywhere_and_on_top(data):
    clf = spectral(**{**SMALL, "head": 3}).fit(data.X[:1000], data.Y[:1000])
    head = most_frequent_labels(data.Y[:1000], 3)
    assert clf.filter_.arrays["head"].tolist() == head.tolist()
    candidates = clf.candidates(data.X[1000:])
    assert (candidates[:, head].toarray() > 0).all()
    assert np.diff(candidates.indptr).max() == 15


def test_counts_of_words_may_become_roots_of_shares(data):
    X = sparse.csr_array(np.array([[1, 3, 0], [0, 0, 0], [2, 0, 2]], dtype=np.float32))
    np.testing.assert_allclose(hellinger(X).toarray() ** 2, [[0.25, 0.75, 0], [0, 0, 0], [0.5, 0, 0.5]], atol=1e-6)
    by_itself = spectral(**SMALL, normalize="hellinger").fit(data.X, data.Y)
    by_hand = spectral(**SMALL, normalize=False).fit(hellinger(data.X), data.Y)
    found, expected = by_itself.predict_proba(data.X, top_k=3), by_hand.predict_proba(hellinger(data.X), top_k=3)
    assert (found != expected).nnz == 0
    assert by_itself.predict_one(data.X[[4]]) == by_itself.predict_labels(data.X)[4]
    with pytest.raises(ValueError, match="must not be negative"):
        by_itself.predict(-data.X)


# --- learning on -------------------------------------------------------------------------------------------------


def test_new_labels_enter_the_leaves_and_are_learned():
    texts = ["red apple", "green apple", "red cherry", "green pear"] * 10
    tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 10
    clf = spectral(n_candidates=4, rank=8, random_state=0).fit([*texts, "plum grape"], [*tags, ["blue"]])
    clf.set_names(labels=list(clf.classes_))
    before = clf.n_labels_
    for _ in range(30):
        clf.partial_fit(["blue plum", "blue grape"] * 3, [["blue", "plum"], ["blue", "grape"]] * 3)
    assert clf.classes_.tolist()[before:] == ["plum", "grape"]
    assert {label for label, _ in clf.predict_one("blue plum", top_k=2)} == {"blue", "plum"}
    assert clf.predict_one("red cherry", top_k=1)[0][0] in ("red", "cherry")
    assert np.diff(clf.candidates(["blue plum"]).indptr).max() <= 4
    assert clf.training_report_["leaves"] == clf.filter_.n_leaves


def test_counts_and_masses_after_learning_on_are_those_of_all_rows(data, fitted):
    clf = spectral(**SMALL).fit(data.X[:1000], data.Y[:1000])
    clf.partial_fit(data.X[1000:], data.Y[1000:])
    tree = clf.filter_
    assert tree.arrays["mass"][0] == pytest.approx(1500)
    child, mass = tree.arrays["child"], tree.arrays["mass"]
    inner = np.flatnonzero(child >= 0)
    np.testing.assert_allclose(mass[child[inner]] + mass[child[inner] + 1], mass[inner], rtol=1e-4)
    np.testing.assert_array_equal(tree.arrays["weight"], fitted.filter_.arrays["weight"])
    for start, stop in itertools.pairwise(tree.arrays["count_begin"]):
        assert (np.diff(tree.arrays["count"][start:stop]) <= 0).all()


@pytest.mark.parametrize("settings", KINDS)
def test_a_saved_model_goes_on_learning_bit_for_bit(data, settings, tmp_path):
    clf = spectral(**SMALL, **settings).fit(data.X[:700], data.Y[:700, :70])
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    for model in (clf, again):
        model.partial_fit(data.X[700:1000], data.Y[700:1000]).partial_fit(data.X[1000:1200], data.Y[1000:1200])
    for name, array in clf.model_.base.arrays.items():
        np.testing.assert_array_equal(array, again.model_.base.arrays[name])
    assert clf.n_labels_ == again.n_labels_ == 80
    assert (clf.predict_proba(data.X, top_k=5) != again.predict_proba(data.X, top_k=5)).nnz == 0


def test_refused_pieces_leave_the_model_as_it_was(data):
    clf = spectral(**SMALL).fit(data.X[:500], data.Y[:500])
    before = clf.predict_proba(data.X, top_k=3)
    for X, Y in ((data.X[:5], data.Y[:4]), (data.X[:5, :7], data.Y[:5]), (data.X[:5] * np.nan, data.Y[:5])):
        with pytest.raises(ValueError):
            clf.partial_fit(X, Y)
    with pytest.raises(ValueError, match="0 and 1"):
        clf.partial_fit(data.X[:5], sparse.csr_array(np.full((5, 90), 2)))
    assert clf.n_labels_ == 80
    assert (clf.predict_proba(data.X, top_k=3) != before).nnz == 0
    empty = spectral(**SMALL, estimator=PLTClassifier())
    assert not hasattr(empty, "partial_fit")


@pytest.mark.parametrize("settings", [{}, LEARNED])
def test_the_number_of_jobs_changes_no_bit_of_a_model_that_learns_on(data, settings):
    one, two = (
        spectral(**SMALL, **settings, n_jobs=n).fit(data.X[:800], data.Y[:800]).partial_fit(data.X[800:], data.Y[800:])
        for n in (1, 2)
    )
    for name, array in one.model_.base.arrays.items():
        np.testing.assert_array_equal(array, two.model_.base.arrays[name])
    assert (one.predict_proba(data.X, top_k=5) != two.predict_proba(data.X, top_k=5)).nnz == 0


def test_the_first_piece_grows_the_tree_and_classes_may_be_named_in_advance(classes):
    clf = spectral(**SMALL)
    clf.partial_fit(classes.X[:300], classes.y[:300] % 5, classes=np.arange(7))
    assert clf.n_labels_ == 7
    clf.partial_fit(classes.X[300:600], classes.y[300:600] % 7)
    np.testing.assert_allclose(clf.predict_proba(classes.X[:50]).sum(axis=1), 1, atol=1e-5)


def test_thresholds_may_be_learned_while_it_learns_on(data):
    clf = ThresholdClassifier(spectral(**SMALL), random_state=0)
    clf.partial_fit(data.X[:400], data.Y[:400]).partial_fit(data.X[400:600], data.Y[400:600])
    assert clf.thresholds_.shape == (80,)
    assert clf.predict(data.X[600:]).shape == (900, 80)


# --- parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"depth": -1}, "depth must be an integer between 0 and 60"),
        ({"depth": "deep"}, "or 'auto'"),
        ({"n_candidates": 0}, "n_candidates must be"),
        ({"n_leaves": 0}, "n_leaves must be"),
        ({"n_leaves": 2, "output_weights": "leaf"}, "give n_leaves=1"),
        ({"space": "rows"}, "space must be 'features' or 'learned'"),
        ({"sampled_labels": 0}, "sampled_labels must be"),
        ({"recall": 1.5}, "recall must be a number between 0 and 1"),
        ({"noise": -1}, "noise must be"),
        ({"deviation": "none"}, "deviation must be 'eigenvalue' or 'within'"),
        ({"min_path": 0}, "min_path must be a number above 0"),
        ({"prune": 1}, "leave some weights"),
        ({"solver": "exact"}, "solver must be 'randomised' or 'power'"),
        ({"max_iterations": 0}, "max_iterations must be"),
        ({"tol": -1}, "tol must be"),
        ({"cg_iterations": 0}, "cg_iterations must be"),
        ({"head": -1}, "head must be"),
        ({"estimator": "plt"}, "estimator must be None, a CandidateScorer or a classifier of ramify"),
        ({"weights": "sparse"}, "weights must be"),
        ({"rank": 0}, "rank must be"),
        ({"hash_bits": 31}, "hash_bits must be"),
        ({"output_weights": "own"}, "output_weights must be"),
        ({"output_weights": "leaf", "weights": "full"}, "needs weights='low_rank' or 'hashed'"),
        ({"leaf_bias": 1}, "leaf_bias must be True or False"),
        ({"optimizer": AdaGrad(learning_rate=0)}, "learning_rate must be"),
        ({"optimizer": AdaGrad(eps=0)}, "eps must be"),
        ({"optimizer": FOBOS()}, "optimizer must be"),
        ({"tree_options": 3}, "tree_options must be a dict"),
        ({"tree_options": {"depth": 3}}, "tree_options has no 'depth'"),
        ({"n_epochs": 0}, "n_epochs must be"),
        ({"shuffle": "no"}, "shuffle must be"),
        ({"sampled_paths": None}, "sampled_paths must be"),
        ({"normalize": "l1"}, "normalize must be True, False or 'hellinger'"),
        ({"held_out": 1}, "leave rows"),
    ],
)
def test_bad_parameters_are_refused_by_name(data, settings, said):
    with pytest.raises(ValueError, match=said):
        spectral(**settings).fit(data.X, data.Y)


def test_full_weights_larger_than_memory_are_rejected(data):
    wide = sparse.csr_array((2, 2**24), dtype=np.float32)
    with pytest.raises(ValueError, match="use weights='low_rank'"):
        spectral(weights="full").fit(wide, data.Y[:2])


def test_the_recall_of_a_filter_is_checked():
    candidates = sparse.csr_array(np.array([[0.5, 0], [0, 0.5]]))
    assert metrics.filter_recall(np.array([0, 0]), candidates) == 0.5
    assert np.isnan(metrics.filter_recall(np.zeros((2, 2)), candidates))
    with pytest.raises(ValueError, match="shape"):
        metrics.filter_recall(np.zeros((3, 2)), candidates)
    with pytest.raises(ValueError, match="sparse"):
        metrics.filter_recall(np.zeros((2, 2)), np.zeros((2, 2)))


# --- explanations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", KINDS)
def test_the_explained_score_makes_the_predicted_probability(data, settings):
    clf = spectral(**SMALL, **settings).fit(data.X[:1000], data.Y[:1000])
    row = data.X[[1100]]
    for label, probability in clf.predict_one(row, top_k=3):
        explanation = clf.explain(row, label, top=1000)
        assert isinstance(explanation, CandidateExplanation)
        assert explanation.probability == pytest.approx(probability, rel=1e-5)
        total = explanation.score.bias + sum(part.value for part in explanation.score.contributions)
        assert 1 / (1 + np.exp(-total)) == pytest.approx(probability, rel=1e-3)
        assert dict(explanation.candidates)[label] == explanation.probability


def test_the_route_ends_at_the_leaf_of_the_candidates(data, fitted):
    row = data.X[[1100]]
    explanation = fitted.explain(row)
    child = fitted.filter_.arrays["child"]
    for step, following in itertools.pairwise(explanation.path):
        assert following.node == child[step.node] + (step.goes == "right")
        assert step.n_rows > following.n_rows
    assert {label for label, _ in explanation.candidates} == set(fitted.candidates(row).indices.tolist())
    outside = next(label for label in range(80) if label not in dict(explanation.candidates))
    absent = fitted.explain(row, outside)
    assert (absent.probability, absent.score, absent.is_candidate) == (0.0, None, False)
    assert "not among the candidates" in str(absent)


def test_explanations_are_printed_as_text_and_json(data):
    texts = ["red apple", "green apple", "red cherry", "green pear"] * 8
    tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 8
    for estimator in (CandidateScorer(rank=8), PLTClassifier()):
        clf = SpectralTreeClassifier(n_candidates=3, estimator=estimator, random_state=0).fit(texts, tags)
        explanation = clf.explain("red cherry", "cherry")
        shown = str(explanation)
        assert shown.startswith(f"cherry: probability {explanation.probability:.4f}")
        assert "of 32 training rows" in shown
        assert f"leaf {explanation.leaf}" in shown
        assert ("classifier behind" in shown) == isinstance(estimator, PLTClassifier)
        assert json.loads(json.dumps(explanation.to_dict()))["is_candidate"]
        console = Console(file=io.StringIO(), width=120)
        console.print(explanation)
        assert "candidates" in console.file.getvalue()


def test_most_frequent_labels_of_the_root_are_those_of_the_data(data, fitted):
    frequent = fitted.filter_.most_frequent(5)
    count = np.bincount(data.Y[:1000].indices, minlength=80)
    assert frequent[0][0][0] == int(count.argmax())
    assert frequent[0][0][1] == pytest.approx(count.max(), rel=0.05)  # what leaves have forgotten is little
    assert len(frequent) == len(fitted.filter_.arrays["child"])


# --- files and the command line ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "name", "spoil"),
    [
        ("tree", "count_begin", lambda a: a[:-1]),
        ("tree", "count_label", lambda a: a + 100),
        ("tree", "depth", lambda a: a[:-1]),
        ("tree", "head_count", lambda a: np.zeros(7, np.float32)),
        ("base", "slot_bias", lambda a: a[:-1]),
    ],
)
def test_files_whose_arrays_do_not_fit_are_refused(data, tmp_path, part, name, spoil):
    clf = spectral(**SMALL).fit(data.X[:300], data.Y[:300])
    arrays = clf.filter_.arrays if part == "tree" else clf.model_.base.arrays
    arrays[name] = np.ascontiguousarray(spoil(arrays[name]))
    clf.save(tmp_path / "model")
    with pytest.raises(ramify.base.save_load.ModelFileError, match="does not hold a sound SpectralTreeClassifier"):
        ramify.load(tmp_path / "model")


def test_the_command_line_trains_evaluates_and_shows_the_nodes(tmp_path, capsys):
    lines = [
        json.dumps({"text": text, "labels": labels})
        for text, labels in [("red apple", ["apple"]), ("green pear", ["pear"]), ("blue plum", ["plum"])] * 10
    ]
    (tmp_path / "notes.jsonl").write_text("\n".join(lines) + "\n")
    file, model = str(tmp_path / "notes.jsonl"), str(tmp_path / "model")

    def said(*arguments, code=0):
        assert run(list(arguments)) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    train = ("train", file, "--model", model, "--classifier", "spectral")
    shown = said(*train, "--set", "n_candidates=2", "--test", file)
    assert "recall 100.00 % of the training labels" in shown
    assert "recall of the candidates 100.00" in shown
    assert "node 0: 30 rows: apple" in said("tree", "--model", model, "--top", "1")
    nodes = json.loads(said("tree", "--model", model, "--top", "3", "--json"))
    assert len(nodes[0]["most_frequent"]) == 3
    assert "leaf" in said("explain", "--model", model, "--text", "a blue plum")
    assert "held_out_recall_by_depth" in json.loads(said(*train, "--set", "depth=auto", "--json"))
    assert "has no such parameter" in said(*train, "--set", "candidates=2", code=2)
    assert "NAME=VALUE" in said(*train, "--set", "depth", code=2)
    assert "--arity is not for --classifier spectral" in said(*train, "--arity", "2", code=2)
    assert "--set depth: PLTClassifier has no such parameter" in said(
        "train", file, "--model", model, "--set", "depth=3", code=2
    )
    assert "--out and --plot" in said("tree", "--model", model, "--out", "x", code=2)
    said("train", file, "--model", model)
    assert "--top is for" in said("tree", "--model", model, "--top", "3", code=2)
