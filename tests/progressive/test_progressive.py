"""Progressive validation equals a naive test-then-train loop."""

from __future__ import annotations

import gzip
import itertools
import json
import math
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from ramify import OnlinePLTClassifier, metrics, plots, progressive
from ramify.data import save_xmc
from ramify.data.synthetic import make_multiclass, make_multilabel

DATA = make_multilabel(600, 40, 300, random_state=5)


class Minimal:
    """A model with only the required methods: no fast test-then-learn method."""

    def __init__(self, model):
        self.model = model

    def __sklearn_is_fitted__(self):
        return self.model.__sklearn_is_fitted__()

    def partial_fit(self, X, y):
        self.model.partial_fit(X, y)

    def predict_labels(self, X, top_k):
        return self.model.predict_labels(X, top_k=top_k)


def learner(**parameters):
    return OnlinePLTClassifier(random_state=0, **parameters)


def same_state(one, other):
    a, b = one.model_.learner.state(1), other.model_.learner.state(1)
    return all(np.array_equal(a[name], b[name]) for name in a)


def by_hand(X, Y, ks):
    """Count the hits of the model and of the constant predictor with only the public one-row calls."""
    model, counts, best = learner(), Counter(), None
    hits, constant = [], []
    for row in range(X.shape[0]):
        truth = Y[[row]].indices.tolist()
        answer = [] if row == 0 else [label for label, _ in model.predict_labels(X[[row]], top_k=max(ks))[0]]
        hits.append([sum(label in truth for label in answer[:k]) / k for k in ks])
        constant.append(best in truth)
        for label in truth:
            counts[label] += 1
            if best is None or counts[label] > counts[best]:
                best = label
        model.partial_fit(X[[row]], Y[[row]])
    return np.array(hits), np.array(constant), model


def test_scores_equal_a_naive_loop_and_the_model_equals_partial_fit():
    X, Y = DATA.X[:300], DATA.Y[:300]
    ks = (1, 3, 5)
    hits, constant, model = by_hand(X, Y, ks)
    tested = learner()
    result = progressive.evaluate(tested, X, Y, window=70)
    assert [window.examples for window in result.windows] == [70, 140, 210, 280, 300]
    for window, start in zip(result.windows, range(0, 300, 70), strict=True):
        for score, rows in ((window.score, slice(start, window.examples)), (window.so_far, slice(0, window.examples))):
            assert list(score.precision.values()) == pytest.approx(hits[rows].mean(axis=0))
            assert score.constant_accuracy == pytest.approx(constant[rows].mean())
            expected = math.log2(hits[rows, 0].mean()) - math.log2(constant[rows].mean())
            assert score.entropy_reduction == pytest.approx(expected)
    assert result.windows[-1].n_labels == len(set(Y.indices.tolist()))
    assert same_state(tested, model)
    assert same_state(tested, learner().partial_fit(X, Y))


@pytest.mark.parametrize("policy", ["fair", "best", "random"])
def test_the_fast_path_equals_the_required_methods(policy):
    X, Y = DATA.X[:150], DATA.Y[:150]
    fast = progressive.evaluate(learner(policy=policy), X, Y, window=40)
    plain = progressive.evaluate(Minimal(learner(policy=policy)), X, Y, window=40)
    assert [window.so_far for window in fast.windows] == [window.so_far for window in plain.windows]


def test_a_block_is_tested_before_any_of_it_is_learned():
    X, Y = DATA.X[:200], DATA.Y[:200]
    result = progressive.evaluate(learner(), X, Y, block=50, window=50)
    model = learner().partial_fit(X[:50], Y[:50])
    for window, start in zip(result.windows[1:], (50, 100, 150), strict=True):
        P = model.predict_proba(X[start : start + 50], top_k=5)
        assert window.score.precision[5] == pytest.approx(metrics.precision_at_k(Y[start : start + 50], P, 5))
        model.partial_fit(X[start : start + 50], Y[start : start + 50])


def test_rows_before_the_first_label_are_held():
    X = sparse.csr_array(np.eye(6, dtype=np.float32))
    labels = [[], [], ["a"], [], ["b"], ["a"]]
    result = progressive.evaluate(learner(), X, labels, window=3)
    assert result.n_examples == 6
    evaluation = progressive.Evaluation(learner(), window=3)
    for row in range(6):
        evaluation.update(X[[row]], labels[row : row + 1])
    assert [window.so_far for window in evaluation.finish().windows] == [window.so_far for window in result.windows]


def test_a_stream_without_labels_is_rejected():
    with pytest.raises(ValueError, match="no row has a label"):
        progressive.evaluate(learner(), ["a", "b"], [[], []])


def test_an_empty_stream_is_rejected():
    with pytest.raises(ValueError, match="no rows"):
        progressive.evaluate(learner(), iter([]))


def test_multi_class_accuracy_is_precision_at_1():
    data = make_multiclass(400, 20, 100, random_state=2)
    result = progressive.evaluate(learner(), data.X, data.y, window=100)
    assert result.is_multiclass
    assert result.so_far.accuracy == result.so_far.precision[1] > result.so_far.constant_accuracy
    assert result.so_far.precision[3] <= 1 / 3


def pairs(kind):
    labels = np.split(DATA.Y.indices, DATA.Y.indptr[1:-1])
    for row in range(120):
        x = DATA.X[[row]]
        as_dict = dict(zip(x.indices.tolist(), x.data.tolist(), strict=True))
        yield (as_dict if kind == "dict" else x if kind == "sparse" else x.toarray()[0]), labels[row].tolist()


@pytest.mark.parametrize("kind", ["dict", "sparse", "dense"])
def test_pairs_of_any_type_score_like_arrays(kind):
    labels = [row.tolist() for row in np.split(DATA.Y.indices, DATA.Y.indptr[1:-1])][:120]
    wanted = progressive.evaluate(learner(), DATA.X[:120], labels, window=50)
    found = progressive.evaluate(learner(), pairs(kind), window=50)
    assert [window.so_far for window in found.windows] == [window.so_far for window in wanted.windows]


def test_a_pair_whose_labels_are_0_and_1_is_not_a_row_of_a_0_1_array():
    model = learner()
    progressive.evaluate(model, [({1: 1.0}, [0, 1]), ({2: 1.0}, [1, 0])])
    assert model.classes_.tolist() == [0, 1]
    assert model.schema_.labels.kind == "collections"


def test_endless_streams_can_be_cut():
    texts = (("red apple", ["red"]) if n % 2 else ("green pear", ["green"]) for n in itertools.count())
    result = progressive.evaluate(learner(), itertools.islice(texts, 200), window=100)
    assert result.windows[1].score.accuracy == 1.0


@pytest.mark.parametrize("is_packed", [False, True])
def test_files_score_like_their_rows(tmp_path, is_packed):
    path = tmp_path / "train.txt"
    save_xmc(path, DATA.X, DATA.Y)
    if is_packed:
        packed = tmp_path / "train.txt.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    wanted = progressive.evaluate(learner(), DATA.X, DATA.Y, window=200)
    found = progressive.evaluate(learner(), path, window=200)
    assert [window.so_far for window in found.windows] == [window.so_far for window in wanted.windows]


def test_texts_are_read_from_jsonl(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "red apple", "labels": ["red"]}\n{"text": "green pear", "labels": ["green"]}\n' * 30)
    assert progressive.evaluate(learner(), path, window=30, multiclass=True).windows[1].score.accuracy == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0}, "window must be"),
        ({"block": 0}, "block must be"),
        ({"k": (0,)}, "k must be"),
        ({"k": 5}, r"k must be a collection .* k=\(1, 3, 5\), got 5"),
    ],
)
def test_bad_parameters_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        progressive.evaluate(learner(), DATA.X, DATA.Y, **arguments)


@pytest.mark.parametrize("block", [1, 7])
def test_different_numbers_of_rows_and_labels_are_rejected_before_learning(block):
    clf = learner()
    with pytest.raises(ValueError, match=f"X has {DATA.X.shape[0]} rows, but Y has {DATA.X.shape[0] - 1}"):
        progressive.evaluate(clf, DATA.X, DATA.Y[:-1], block=block)
    assert not clf.__sklearn_is_fitted__()


@pytest.mark.parametrize("name", ["X", "Y"])
def test_broken_sparse_input_is_rejected_before_learning(name):
    clf, arrays = learner(), {"X": DATA.X.copy(), "Y": DATA.Y.copy()}
    arrays[name].indices[0] = 2**30
    with pytest.raises(ValueError, match=f"{name} is a broken sparse matrix: row 0 has column index 1073741824"):
        progressive.evaluate(clf, **arrays)
    assert not hasattr(clf, "learner_")


@pytest.mark.parametrize("rows", [3, object()], ids=["number", "object"])
def test_objects_without_rows_are_rejected(rows):
    with pytest.raises(ValueError, match="rows must be an array, a sparse matrix, a DataFrame or a list"):
        progressive.evaluate(learner(), rows, DATA.Y)


def test_a_model_without_partial_fit_is_rejected():
    from ramify import PLTClassifier

    with pytest.raises(ValueError, match="partial_fit"):
        progressive.evaluate(PLTClassifier(), DATA.X, DATA.Y)


def test_rows_without_y_are_rejected():
    with pytest.raises(ValueError, match="pass the labels of the rows as Y"):
        progressive.evaluate(learner(), DATA.X)
    with pytest.raises(ValueError, match="must yield pairs"):
        progressive.evaluate(learner(), ["a text"])


def test_a_rejected_row_does_not_change_the_scores():
    evaluation = progressive.Evaluation(learner(), window=10)
    evaluation.update(DATA.X[:10], DATA.Y[:10])
    bad = DATA.X[10:12].copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        evaluation.update(bad, DATA.Y[10:12])
    assert evaluation.n_examples == 10
    evaluation.update(DATA.X[10:20], DATA.Y[10:20])
    assert evaluation.finish().n_examples == 20


def test_results_can_be_saved_as_json():
    result = progressive.evaluate(learner(), DATA.X[:100], DATA.Y[:100], window=30, name="fair")
    again = progressive.ProgressiveResult.from_dict(json.loads(result.to_json()))
    assert again == result
    with pytest.raises(ValueError, match="to_dict"):
        progressive.ProgressiveResult.from_dict({"name": "x"})


def test_a_window_without_correct_predictions_has_no_entropy_reduction():
    score = progressive.Score(5, {1: 0.0}, 0.0)
    assert math.isnan(score.entropy_reduction)
    assert score.to_dict()["entropy_reduction"] is None
    assert progressive.Score(5, {1: 0.5}, 0.0).entropy_reduction == math.inf


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_several_runs_are_drawn_in_one_plot(tmp_path, suffix):
    runs = {
        policy: progressive.evaluate(learner(policy=policy), DATA.X, DATA.Y, window=100)
        for policy in ("fair", "random")
    }
    path = tmp_path / f"runs.{suffix}"
    figure = plots.progressive(runs, path, metric="P@3")
    assert path.stat().st_size > 1000
    lines = figure.axes[0].get_lines()
    assert len(lines) == 2
    assert lines[0].get_xdata().tolist() == [100, 200, 300, 400, 500, 600]
    assert lines[0].get_ydata() == pytest.approx(runs["fair"].curve("P@3")[1])
    assert "fair" in figure.axes[0].get_legend().get_texts()[0].get_text()


def test_an_unknown_metric_is_rejected():
    result = progressive.evaluate(learner(), DATA.X[:50], DATA.Y[:50], k=(1,))
    with pytest.raises(ValueError, match="metric"):
        result.plot(metric="P@7")


def test_the_table_is_shown_on_stderr_and_fits_a_terminal(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    progressive.evaluate(learner(), DATA.X, DATA.Y, window=300, verbose=True)
    output = capfd.readouterr()
    assert output.out == ""
    assert "all P@1" in output.err
    assert "600" in output.err
    assert "…" not in output.err
