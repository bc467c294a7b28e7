"""`ramify train --classifier memory-tree`: a model by its name, and what the other commands do with it."""

from __future__ import annotations

import json

import pytest

import ramify
from cli_workspace import fresh_copy
from ramify.cli.main import run

TRAIN = ["train", "notes.jsonl", "--model", "memories", "--classifier", "memory-tree"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))
    return tmp_path


def test_a_memory_tree_is_trained_evaluated_asked_and_explained(folder, capsys):
    assert run([*TRAIN, "--set", "alpha=0.5", "--set", "label_scorer=votes", "--label-names", "codes.tsv"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Trained 56 rows x 6 labels in ")
    # Each of seven notes came eight times: those with the same weights of words are one. Weights settle on the way.
    assert "28 examples stored" in said
    model = ramify.load(folder / "memories")
    assert (type(model).__name__, model.alpha, model.label_scorer) == ("MemoryTreeClassifier", 0.5, "votes")
    assert model.source_format_ == "jsonl"
    assert run(["evaluate", "notes.jsonl", "--model", "memories", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["P@1"] > 0.7
    assert run(["explain", "--model", "memories", "--text", "acute chest pain", "--json"]) == 0
    (explained,) = json.loads(capsys.readouterr().out)
    assert explained["label"] == "R07.9"
    assert explained["retrieved"][0]["labels"] == ["R07.9"]
    assert run(["explain", "--model", "memories", "--text", "nosebleed"]) == 0
    assert "of the vote" in capsys.readouterr().out


def test_epochs_and_bounds_are_set_and_reported(folder, capsys):
    command = ["train", "train.txt", "--model", "memories", "--classifier", "memory-tree", "--n-epochs", "2", "--json"]
    assert run([*command, "--set", "max_examples=100", "--test", "test.txt"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["n_examples"]) == (300, 100)
    assert "P@1" in facts["test"]
    model = ramify.load(folder / "memories")
    assert (model.n_epochs, model.max_examples) == (2, 100)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "alpha=7"], "alpha must be"),
        (["--set", "arity=2"], "MemoryTreeClassifier has no such parameter; it has "),
        (["--set", "alpha"], "--set takes NAME=VALUE"),
        (["--arity", "3"], "--arity is not for --classifier memory-tree"),
        (["--online"], "--online is not for --classifier memory-tree"),
        (["--classifier", "plt", "--set", "alpha=1"], "--set alpha: PLTClassifier has no such parameter"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_data_are_read(folder, capsys, arguments, said):
    assert run([*TRAIN, *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (folder / "memories").exists()


def test_a_memory_tree_has_no_label_tree_to_show(folder, capsys):
    assert run(TRAIN) == 0
    assert run(["tree", "--model", "memories"]) == 2
    assert "a MemoryTreeClassifier has no label tree to show" in capsys.readouterr().err


def test_a_model_without_a_label_tree_has_none_to_draw(folder, capsys):
    assert run(["train", "train.txt", "--model", "memories", "--classifier", "memory-tree"]) == 0
    assert run(["plot", "tree", "--model", "memories", "--out", "tree.png"]) == 2
    assert "a MemoryTreeClassifier has no label tree to draw" in capsys.readouterr().err
