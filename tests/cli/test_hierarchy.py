"""`ramify train --hierarchy`: answers of the saved model agree with the file."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ramify.cli.app import app


@pytest.fixture
def notes(tmp_path):
    rows = [("sugar in urine", ["E11.9", "E11"]), ("insulin resistant", ["E11.9"]), ("broken leg", ["S82"])] * 10
    file = tmp_path / "notes.jsonl"
    file.write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows))
    return file


def train(notes, lines, *more):
    parents = notes.parent / "parents.tsv"
    parents.write_text(lines)
    model = str(notes.parent / "model")
    return CliRunner().invoke(app, ["train", str(notes), "--model", model, "--hierarchy", str(parents), *more]), model


@pytest.mark.parametrize("more", [(), ("--online",)])
def test_a_model_trained_with_a_hierarchy_answers_with_it(notes, more):
    result, model = train(notes, "E11.9\tE11\n", *more)
    assert result.exit_code == 0, result.output
    asked = CliRunner().invoke(app, ["predict", "--model", model, "--text", "insulin", "--json"])
    found = {one["label"]: one["probability"] for one in json.loads(asked.stdout)["labels"]}
    assert found["E11"] >= found["E11.9"]
    explained = CliRunner().invoke(app, ["explain", "--model", model, "--text", "insulin", "--label", "E11", "--json"])
    assert json.loads(explained.stdout)[0]["raised_by"]["label"] == "E11.9"


@pytest.mark.parametrize(
    ("lines", "more", "message"),
    [
        ("E11.9\n", (), "line 1: expected a label and its parent"),
        ("E11.9\tE11\nE11\tE11.9\n", (), "hierarchy has a cycle: 'E11.9' -> 'E11' -> 'E11.9'"),
        ("E11.9\tE10\n", (), "label 'E10' is not among the 3 known labels"),
        ("E11.9\tE11\n", ("--classifier", "lomtree"), "--hierarchy is not for --classifier lomtree"),
    ],
)
def test_a_bad_hierarchy_is_refused_with_its_reason(notes, lines, more, message):
    result, _ = train(notes, lines, *more)
    assert result.exit_code != 0
    assert message in f"{result.output} {result.exception}"
