"""The demo on a part of the classification: what it shows, what it learns, and that the commands it names work."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import ramify
from ramify.cli.commands.demo import ASKED_AGAIN, LESSONS
from ramify.cli.main import run
from ramify.data import icd10


@pytest.fixture(autouse=True)
def small_classification(monkeypatch, tmp_path):
    whole = icd10.load_icd10()

    def part(texts, wanted):
        kept = [k for k, labels in enumerate(texts.labels) if wanted & set(labels)]
        return icd10.LabelledTexts([texts.texts[k] for k in kept], [texts.labels[k] for k in kept])

    wanted = {"R00-R09", "N20-N23", "K35-K38", "Z77-Z99", "I20-I25", "I60-I69", "E08-E13", "H10-H11", "R10-R19"}
    train = part(whole.train, wanted)
    known = {label for labels in train.labels for label in labels}
    names = {label: name for label, name in whole.names.items() if label in known}
    small = icd10.Icd10(train, part(whole.test, wanted), names)
    monkeypatch.setattr(icd10, "load_icd10", lambda: small)
    monkeypatch.chdir(tmp_path)


def test_the_demo_measures_answers_teaches_and_says_how_to_ask_more(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    assert run(["demo"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^R: codes that are found +\d\d\.\d +\d\d\.\d +\d\d\.\d$", said, re.MULTILINE)
    assert re.search(r"\nkidney stone\n +\d+\.\d%  N20\.0 +Calculus of kidney", said)
    assert "\nasdf qwerty\n  no known word\n" in said
    lessons = re.search(r"one line each \(\d+ ms\):\n(.+?)\n\n", said, re.DOTALL)[1].splitlines()
    assert [tuple(re.split("  +", line.strip())) for line in lessons] == list(LESSONS.items())
    commands = re.findall(r"^  ramify (.+)$", said, re.MULTILINE)
    assert [shlex.split(command)[0] for command in commands] == ["predict", "explain", "tree"]
    for command in commands:
        assert run(shlex.split(command)) == 0
    assert max(map(len, said.splitlines())) <= 90


def test_the_demo_writes_json_learns_lay_terms_and_saves_what_it_learned(capsys):
    assert run(["demo", "--model", "elsewhere", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["model"] == "elsewhere"
    assert facts["code_found"]["@5"] >= facts["code_found"]["@1"] > 0.2
    answers = {answer["text"]: answer for answer in facts["answers"]}
    assert answers["allergic to peanuts"]["labels"][0]["label"] == "Z91.010"
    assert answers["asdf qwerty"]["labels"] == []
    marked = {"kidney stone"[span["start"] : span["end"]] for span in answers["kidney stone"]["spans"]}
    assert "stone" in " ".join(marked)
    first = [answer["labels"][0]["label"] for answer in facts["after_teaching"]]
    assert first == ["I21.9", "H10.9", "R11.10"]
    before = [[label["label"] for label in answer["labels"][:1]] for answer in facts["before_teaching"]]
    assert all(label not in answer for label, answer in zip(first, before, strict=True))
    model = ramify.load("elsewhere")
    assert model.schema_.label_names is not None
    assert [model.predict_one(text, top_k=1)[0][0] for text in ASKED_AGAIN] == first
    assert not any(label.startswith("chapter") or "-" in label for label in model.classes_)
