"""The demo on a small part of the classification: what it shows, and that the commands it names work."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import ramify
from ramify.cli.main import run
from ramify.data import icd10


@pytest.fixture(autouse=True)
def small_classification(monkeypatch, tmp_path):
    whole = icd10.load_icd10()

    def part(texts, wanted):
        kept = [k for k, labels in enumerate(texts.labels) if wanted & set(labels)]
        return icd10.LabelledTexts([texts.texts[k] for k in kept], [texts.labels[k] for k in kept])

    wanted = {"R00-R09", "N20-N23", "K35-K38", "Z77-Z99"}
    small = icd10.Icd10(part(whole.train, wanted), part(whole.test, wanted), whole.names)
    monkeypatch.setattr(icd10, "load_icd10", lambda: small)
    monkeypatch.chdir(tmp_path)


def test_the_demo_measures_answers_and_says_how_to_ask_more(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    assert run(["demo"]) == 0
    said = capsys.readouterr().out
    assert "held-out terms" in said
    assert re.search(r"^P: .* \d\d\.\d +\d\d\.\d +\d\d\.\d$", said, re.MULTILINE)
    assert re.search(r"\nkidney stone\n +\d+\.\d%  N20\.0 +Calculus of kidney", said)
    commands = re.findall(r"^  ramify (.+)$", said, re.MULTILINE)
    assert [shlex.split(command)[0] for command in commands] == ["predict", "explain", "tree"]
    for command in commands:
        assert run(shlex.split(command)) == 0
    assert max(map(len, said.splitlines())) <= 90


def test_the_demo_writes_json_and_saves_where_asked(capsys):
    assert run(["demo", "--model", "elsewhere", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == "elsewhere"
    assert facts["test"]["P@1"] > 0.5
    assert facts["code_found"]["@5"] >= facts["code_found"]["@1"] > 0
    best = {text: answers[0]["label"] for text, answers in facts["answers"].items() if answers}
    assert best["allergic to peanuts"] == "Z91.010"
    assert ramify.load("elsewhere").schema_.label_names is not None
