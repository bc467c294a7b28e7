"""`ramify stream` continues every saved model that can learn more, and rejects the others."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest

import ramify
from cli_workspace import fresh_copy
from ramify import OnlinePLTClassifier, PLTClassifier, SpectralTreeClassifier, ThresholdClassifier
from ramify.cli.main import run
from ramify.cli.models import rows_learned
from ramify.data import load_data, save_xmc
from ramify.data.synthetic import make_multiclass

N_TRAIN, N_FEATURES = 120, 50


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The workspace, and train.xmc and more.xmc with one class per row."""
    fresh_copy(tmp_path)
    data = make_multiclass(200, 6, N_FEATURES, random_state=5)
    for name, rows in (("one.xmc", slice(None, N_TRAIN)), ("more.xmc", slice(N_TRAIN, None)), ("all.xmc", slice(None))):
        save_xmc(tmp_path / name, data.X[rows], data.Y[rows])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same(one, other):
    (values, arrays), (other_values, other_arrays) = (ramify.load(path).model_.state() for path in (one, other))
    for one in (values, other_values):
        one.pop("report", None)  # has seconds
    assert json.dumps(values, default=str) == json.dumps(other_values, default=str)
    assert arrays.keys() == other_arrays.keys()
    return all(np.array_equal(arrays[name], other_arrays[name]) for name in arrays)


ONE_CLASS = ("lomtree", "filter-tree")
OTHERS = ("memory-tree", "spectral", "online-plt")


@pytest.mark.parametrize("name", [*ONE_CLASS, *OTHERS])
@pytest.mark.parametrize("test_first", [[], ["--test-first", "--window", "40", "--block", "8"]])
def test_a_saved_model_learns_on_as_partial_fit_does(name, test_first, capsys):
    assert run(["train", "one.xmc", "--model", "saved", "--classifier", name, "--multiclass"]) == 0
    assert run(["train", "one.xmc", "--model", "wanted", "--classifier", name, "--multiclass"]) == 0
    assert run(["stream", "more.xmc", "--model", "saved", *test_first]) == 0
    assert "200 examples" in capsys.readouterr().out
    more = load_data("more.xmc")
    wanted = ramify.load("wanted")
    if test_first and name == "spectral":  # it learns in pieces
        wanted = None
    else:
        wanted.set_params(n_jobs=None).partial_fit(more.X, more.y).save("wanted")
    model = ramify.load("saved")
    assert rows_learned(model) == 200
    assert type(model).__name__ == type(ramify.load("wanted")).__name__
    assert wanted is None or same("saved", "wanted")


@pytest.mark.parametrize("name", [*ONE_CLASS, *OTHERS])
def test_rows_that_it_was_trained_on_are_skipped(name, capsys):
    assert run(["train", "one.xmc", "--model", "saved", "--classifier", name, "--multiclass"]) == 0
    assert run(["stream", "all.xmc", "--model", "saved", "--skip-seen", "--json"]) == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (done["new_examples"], done["examples"]) == (80, 200)


@pytest.mark.parametrize("name", OTHERS)
def test_rows_with_any_number_of_labels_and_texts_continue_too(name):
    for data in ("train.txt", "notes.jsonl"):
        assert run(["train", data, "--model", data[:5], "--classifier", name]) == 0
        before = rows_learned(ramify.load(data[:5]))
        assert run(["stream", data, "--model", data[:5]]) == 0
        assert rows_learned(ramify.load(data[:5])) == 2 * before


def test_thresholds_that_follow_a_stream_continue(folder):
    data = load_data("train.txt")
    clf = ThresholdClassifier(OnlinePLTClassifier(random_state=0), random_state=0)
    clf.partial_fit(data.X[:100], data.Y[:100]).save("saved")
    (folder / "rest.txt").write_text("\n".join((folder / "train.txt").read_text().splitlines()[101:]) + "\n")
    assert run(["stream", "rest.txt", "--model", "saved", "--format", "xmc"]) == 0
    assert rows_learned(ramify.load("saved")) == 300
    (folder / "few.txt").write_text("\n".join((folder / "train.txt").read_text().splitlines()[1:21]) + "\n")
    assert run(["stream", "few.txt", "--model", "saved", "--format", "xmc", "--test-first"]) == 0
    assert rows_learned(ramify.load("saved")) == 320


def test_a_memory_tree_that_forgets_knows_how_many_rows_it_has_learned(capsys):
    arguments = ["train", "one.xmc", "--model", "saved", "--classifier", "memory-tree", "--set", "max_examples=50"]
    assert run(arguments) == 0
    assert run(["stream", "all.xmc", "--model", "saved", "--skip-seen", "--json"]) == 0
    done = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (done["new_examples"], done["examples"]) == (80, 200)
    assert ramify.load("saved").n_examples_ == 50


def rejected(capsys, *arguments):
    capsys.readouterr()
    assert run(["stream", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["plt", "fastxml", "tree-softmax"])
def test_a_model_that_cannot_learn_on_is_rejected(name, capsys):
    assert run(["train", "one.xmc", "--model", "saved", "--classifier", name, "--multiclass"]) == 0
    assert "cannot continue to learn" in rejected(capsys, "more.xmc", "--model", "saved")


def test_models_that_look_as_if_they_could_learn_on_are_rejected(capsys):
    data = load_data("train.txt")
    for clf in (
        ThresholdClassifier(OnlinePLTClassifier(), random_state=0),  # `partial_fit` would start again
        SpectralTreeClassifier(estimator=PLTClassifier(), random_state=0),
    ):
        clf.fit(data.X, data.Y).save("saved")
        assert "cannot continue to learn" in rejected(capsys, "train.txt", "--model", "saved")


def test_flags_of_another_method_are_rejected(capsys):
    assert run(["train", "one.xmc", "--model", "saved", "--classifier", "lomtree"]) == 0
    said = rejected(capsys, "more.xmc", "--model", "saved", "--policy", "best")
    assert "the model is a LOMTreeClassifier, which has no --policy" in said
    assert "was started" in rejected(capsys, "more.xmc", "--model", "saved", "--seed", "3")


def test_a_tree_of_fixed_width_names_the_line_that_is_wider(capsys, monkeypatch):
    assert run(["train", "one.xmc", "--model", "saved", "--classifier", "spectral"]) == 0
    for rows in (b"1 0:1\n2 50:1\n", b"3 60 6\n1 0:1\n2 50:1\n"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows)))
        assert "column 3: feature 50 is outside" in rejected(capsys, "--model", "saved", "--format", "xmc")
    assert ramify.load("saved").n_features_in_ == N_FEATURES


def test_one_class_per_row_is_checked_line_by_line(capsys, monkeypatch):
    assert run(["train", "one.xmc", "--model", "saved", "--classifier", "lomtree"]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 0:1\n2,3 5:1\n4 6:1\n")))
    assert run(["stream", "--model", "saved", "--skip-bad-lines"]) == 0
    assert "stdin, line 2: the row has 2 labels instead of one" in capsys.readouterr().err
    assert ramify.load("saved").n_examples_ == N_TRAIN + 2


def test_a_batch_model_remembers_where_features_of_libsvm_start(folder, capsys):
    (folder / "train.svm").write_text("0 0:1 2:1\n1 1:1\n" * 10)
    (folder / "test.svm").write_text("0 2:1\n1 1:1\n")  # looks as if features count from 1
    assert run(["train", "train.svm", "--model", "saved", "--format", "libsvm"]) == 0
    capsys.readouterr()
    assert run(["predict", "test.svm", "--model", "saved", "--top-k", "1", "--json"]) == 0
    answers = [json.loads(line)["labels"][0]["label"] for line in capsys.readouterr().out.splitlines()]
    assert answers == [0, 1]
