"""What reaches a terminal or a log: no control characters from data, colours only if wanted, no wrapped lines."""

from __future__ import annotations

import json
import re

import pytest

from cli_workspace import fresh_copy, in_terminal
from ramify.cli import output
from ramify.cli.main import run

STYLE = re.compile(r"\x1b\[[\d;]*m")
# Clear the screen, set its title, C1 control, text direction, line breaks.
LABELS = ["red\x1b[2J", "green\x9b31m", "blue\u202eeulb", "two\nlines\r\x07", "tab\there"]
NAMES = ["\x1b]0;title\x07", "\x1b[8mhidden", "\x7f", "", "name"]
TEXTS = ["rose\x1b[1A cherry", "leaf grass", "sky sea", "poem song", "table sheet"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))
    return tmp_path


@pytest.fixture
def hostile(folder):
    """A model of texts whose labels and names contain control characters."""
    rows = [json.dumps({"text": text, "labels": [label]}) for text, label in zip(TEXTS, LABELS, strict=True)] * 4
    (folder / "rows.jsonl").write_text("\n".join(rows))
    lines = [f"{label}\t{name}" for label, name in zip(LABELS, NAMES, strict=True) if label.split() == [label]]
    (folder / "names.tsv").write_text("\n".join(lines[:2]))
    assert run(["train", "rows.jsonl", "--model", "hostile", "--label-names", "names.tsv", "--arity", "2"]) == 0
    assert run(["train", "rows.jsonl", "--model", "candidates", "--classifier", "spectral"]) == 0


def said_by(capsys, *arguments, code=0):
    capsys.readouterr()
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def narrow_terminal(arguments, folder, **environment):
    """What a command writes to a terminal of 60 columns."""
    code, said = in_terminal(arguments, folder, COLUMNS="60", **environment)
    assert code == 0, said
    return said


def active_characters(text):
    return {character for character in text if character != "\n" and output.visible(character) != character}


QUESTION = ["--text", TEXTS[0], "--text", "two\nlines"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "--model", "hostile", *QUESTION],
        ["predict", "--model", "hostile", *QUESTION, "--output", "tsv"],
        ["predict", "--model", "hostile", *QUESTION, "--json"],
        ["explain", "--model", "hostile", "--text", TEXTS[0], "--top-k", "5"],
        ["explain", "--model", "hostile", "--text", TEXTS[0], "--top-k", "5", "--json"],
        ["explain", "--model", "candidates", "--text", TEXTS[1]],
        ["tree", "--model", "hostile", "--depth", "9"],
        ["tree", "--model", "hostile", "--depth", "0"],
        ["tree", "--model", "hostile", "--cost"],
        ["tree", "--model", "hostile", "--cost", "--json"],
        ["tree", "--model", "candidates"],
    ],
)
def test_no_control_character_of_a_label_name_or_text_is_printed(hostile, capsys, arguments):
    said = said_by(capsys, *arguments)
    is_tsv = "tsv" in arguments
    assert active_characters(said) <= ({"\t"} if is_tsv else set())
    shown = r"\u001b[2J" if "--json" in arguments else r"red\x1b[2J" if "hostile" in arguments else r"green\x9b31m"
    if arguments[:5] != ["tree", "--model", "hostile", "--depth", "0"]:
        assert shown in said


def test_json_holds_the_labels_names_and_texts_exactly(hostile, capsys):
    lines = said_by(capsys, "predict", "--model", "hostile", *QUESTION, "--json", "--top-k", "5").splitlines()
    answers = [json.loads(line) for line in lines]
    assert [answer["text"] for answer in answers] == [TEXTS[0], "two\nlines"]
    assert {found["label"] for answer in answers for found in answer["labels"]} == set(LABELS)
    names = {found["label"]: found.get("name") for found in answers[0]["labels"]}
    assert (names[LABELS[0]], names[LABELS[1]]) == (NAMES[0], NAMES[1])
    (explained,) = json.loads(said_by(capsys, "explain", "--model", "hostile", "--text", TEXTS[0], "--json"))
    assert (explained["label"], explained["name"]) == (LABELS[0], NAMES[0])


def test_errors_show_control_characters_too(hostile, folder, capsys):
    said = said_by(capsys, "explain", "--model", "model", "test.txt", "--label", "\x1b[2J", code=2)
    assert active_characters(said) == set()
    (folder / "bad.txt").write_text("1 3 2\n0 \x1b[2J:1\n")
    for command in (["train", "bad.txt", "--model", "new"], ["stream", "bad.txt", "--model", "new"]):
        assert active_characters(said_by(capsys, *command, code=2)) == set()


def test_a_terminal_gets_our_escapes_and_none_of_the_data(hostile, folder):
    for command in ("predict", "explain"):
        said = narrow_terminal([command, "--model", "hostile", "--text", TEXTS[0]], folder)
        assert "\x1b[1m" in said or "\x1b[1;36m" in said
        for sequence in ("\x1b[2J", "\x1b]0;", "\x1b[1A", "\x9b"):
            assert sequence not in said
        assert r"red\x1b[2J" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "--model", "notes-model", "--text", "acute chest pain"],
        ["explain", "--model", "notes-model", "--text", "acute chest pain"],
        ["evaluate", "notes.jsonl", "--model", "notes-model"],
    ],
)
def test_no_color_is_respected(folder, arguments):
    assert STYLE.search(narrow_terminal(arguments, folder))
    assert not STYLE.search(narrow_terminal(arguments, folder, NO_COLOR="1"))


def test_lines_in_a_log_are_not_wrapped_cut_or_padded(folder, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    text = " ".join(f"word{number}" for number in range(60))
    name = "a name " * 30 + "that ends"
    rows = [json.dumps({"text": text, "labels": ["long"]}), json.dumps({"text": "other", "labels": ["short"]})] * 5
    (folder / "rows.jsonl").write_text("\n".join(rows))
    (folder / "names.tsv").write_text(f"long\t{name}\n")
    assert run(["train", "rows.jsonl", "--model", "new", "--label-names", "names.tsv"]) == 0
    asked = ["--model", "new", "--text", text]
    explained = said_by(capsys, "explain", *asked, "--features", "60")
    assert all(line == line.rstrip() for line in explained.splitlines())
    assert any("word0\u00a0" in line and "word59\u00a0" in line for line in explained.splitlines())
    for command in (["predict", *asked], ["explain", *asked], ["tree", "--model", "new"]):
        assert any(line.rstrip().endswith("that ends") for line in said_by(capsys, *command).splitlines())


def test_a_terminal_cuts_long_lines_at_its_width(folder):
    said = narrow_terminal(["predict", "--model", "model", "test.txt"], folder, NO_COLOR="1")
    assert max(map(len, said.split("\r\n"))) <= 60
