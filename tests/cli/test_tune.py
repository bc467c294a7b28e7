"""`ramify tune` writes thresholds into a model, and everything after it decides with them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ramify
from cli_workspace import fresh_copy
from ramify.cli.main import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))
    return tmp_path


def evaluated(capsys, model):
    capsys.readouterr()
    assert run(["evaluate", "test.txt", "--model", model, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("method", ["ofo", "fta", "sto"])
def test_thresholds_are_written_and_used_by_evaluate_and_the_library(folder, capsys, method):
    before = evaluated(capsys, "model")
    assert before["decided"] == "at p >= 0.5"
    assert run(["tune", "test.txt", "--model", "model", "--method", method, "--out", "tuned", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["labels"], report["method"]) == (60, 40, method)
    assert report["at_half"] == pytest.approx(before["macro_f1_empty_0"])
    after = evaluated(capsys, "tuned")
    assert after["decided"] == "with tuned thresholds"
    assert after["macro_f1_empty_0"] > before["macro_f1_empty_0"] + 0.05
    assert ramify.load(folder / "tuned").thresholds_.shape == (40,)
    assert not hasattr(ramify.load(folder / "model"), "thresholds_")
    assert run(["tune", "test.txt", "--model", "model", "--method", method]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Tuned 40 thresholds by {method} on 60 rows: macro_f1 ")
    np.testing.assert_array_equal(ramify.load(folder / "model").thresholds_, ramify.load(folder / "tuned").thresholds_)


@pytest.mark.parametrize("objective", ["macro_f2", "macro_f0.5", "macro_jaccard", "macro_g_mean"])
def test_other_measures_are_tuned_by_the_methods_that_have_a_rule_for_them(folder, capsys, objective):
    arguments = ["tune", "test.txt", "--model", "model", "--objective", objective]
    assert run([*arguments, "--method", "sto", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["objective"] == objective
    assert report["validated"] > report["at_half"]
    assert run([*arguments, "--method", "ofo"]) != 0
    assert f"'ofo' has no rule for objective='{objective}'" in capsys.readouterr().err


def test_a_model_of_words_is_tuned_on_texts(folder, capsys):
    assert run(["tune", "notes.jsonl", "--model", "notes-model", "--objective", "micro_f1", "--method", "sto"]) == 0
    thresholds = ramify.load(folder / "notes-model").thresholds_
    assert len(thresholds) == 6
    assert len(set(thresholds.tolist())) == 1


def test_predict_returns_the_labels_that_reach_their_thresholds(folder, capsys):
    def predicted(*arguments):
        capsys.readouterr()
        assert run(["predict", "test.txt", "--model", "model", "--json", *arguments]) == 0
        return [{row["label"] for row in json.loads(line)["labels"]} for line in capsys.readouterr().out.splitlines()]

    assert {len(labels) for labels in predicted()} == {5}
    assert run(["tune", "test.txt", "--model", "model"]) == 0
    X = ramify.data.load_data(folder / "test.txt").X
    decided = ramify.load(folder / "model").predict(X)
    assert predicted() == [set(decided[[row]].indices.tolist()) for row in range(X.shape[0])]
    assert {len(labels) for labels in predicted("--top-k", "3")} == {3}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--c", "0.5"], "--c takes numbers of at least 1"),
        (["--c", "many"], "--c takes numbers"),
        (["--objective", "example_f1"], "no rule"),
        (["--out", "test.txt"], "a file has the name"),
    ],
)
def test_refusals_say_what_and_change_nothing(folder, capsys, arguments, said):
    assert run(["tune", "test.txt", "--model", "model", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not hasattr(ramify.load(folder / "model"), "thresholds_")


def test_curves_are_drawn_for_every_tuner(folder, capsys):
    arguments = ["train.txt", "test.txt", "--model", "model", "--c", "100,20,2"]
    assert run(["plot", "fmeasure", *arguments, "--out", "curves.svg"]) == 0
    picture = (folder / "curves.svg").read_text()
    for name in ("OFO", "FTA", "STO"):
        assert f"{name} test" in picture
        assert f"{name} validation" in picture
    assert run(["plot", "fmeasure", *arguments, "--objective", "example_f1", "--out", "rows.svg"]) == 0
    assert "OFO test" not in (folder / "rows.svg").read_text()
