"""The commands read and write the user's tables: columns by name, stdin and pipes, answers beside them."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest

from cli_workspace import NOTES
from ramify.cli.main import run

FLAGS = ["--text-column", "note", "--label-column", "codes", "--label-separator", "|"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().to_csv("notes.csv", index=False, sep=";", encoding="utf-8-sig")
    return tmp_path


def table():
    return pd.DataFrame(
        [(f"n-{i}", text, "|".join(labels)) for i, (text, labels) in enumerate(NOTES)], columns=["nr", "note", "codes"]
    )


@pytest.fixture
def command(capsys, monkeypatch):
    def call(*arguments, stdin=None, code=0):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        found = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert found == code, captured.err
        return captured.err if code else captured.out

    return call


@pytest.fixture
def model(command):
    command("train", "notes.csv", "--model", "model", *FLAGS)
    return "model"


def test_a_table_trains_evaluates_tunes_and_explains(command, model):
    assert json.loads(command("evaluate", "notes.csv", "-m", model, *FLAGS, "--json"))["unknown_labels"] == 0
    command("tune", "notes.csv", "-m", model, *FLAGS, "--out", "tuned")
    assert "nosebleed" in command("explain", "notes.csv", "-m", model, "--row", 4, "--text-column", "note")
    command("convert", "notes.csv", "notes.npz", *FLAGS)


def test_a_table_gives_the_model_of_the_same_json_lines(command, model):
    with open("notes.jsonl", "w") as file:
        for text, labels in NOTES:
            print(json.dumps({"text": text, "labels": labels}), file=file)
    command("train", "notes.jsonl", "--model", "other")
    asked = ["--text", "nosebleed at night", "--json"]
    assert command("predict", "-m", model, *asked) == command("predict", "-m", "other", *asked)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.arrow"])
@pytest.mark.parametrize("option", ["--output", "--out"])
def test_answers_keep_the_users_columns_and_order(command, model, name, option):
    command("predict", "notes.csv", "-m", model, "--text-column", "note", "--top-k", 2, option, name)
    if name in ("out.csv", "out.tsv"):
        found = pd.read_csv(name, sep="\t" if name == "out.tsv" else ";", keep_default_na=False).to_dict("records")
    elif name == "out.jsonl":
        found = [json.loads(line) for line in Path(name).read_text().splitlines()]
    else:
        found = (pd.read_parquet if name == "out.parquet" else pd.read_feather)(name).to_dict("records")
    assert [row["nr"] for row in found] == [f"n-{i}" for i in range(len(NOTES))]
    assert [row["note"] for row in found] == [text for text, _ in NOTES]
    first = found[3]["predicted_labels"]
    assert (first.split(";") if isinstance(first, str) else list(first))[0] in (
        "R04.0",
        found[3]["predicted_labels"][0],
    )


def test_answers_of_json_lines_and_parquet_keep_their_fields(command, model):
    with open("in.jsonl", "w") as file:
        print(json.dumps({"note": "nosebleed", "extra": {"a": [1]}, "labels": ["x"]}), file=file)
    command("predict", "in.jsonl", "-m", model, "--text-column", "note", "--output", "out.jsonl", "-k", 1)
    found = json.loads(Path("out.jsonl").read_text())
    assert (found["extra"], found["labels"], found["predicted_labels"][0]["label"]) == ({"a": [1]}, ["x"], "R04.0")
    pd.DataFrame({"note": ["nosebleed"], "n": [7]}).to_parquet("in.parquet")
    command("predict", "in.parquet", "-m", model, "--text-column", "note", "--output", "out.parquet", "-k", 1)
    found = pd.read_parquet("out.parquet")
    assert (found["n"].tolist(), list(found["predicted_labels"][0])) == ([7], ["R04.0"])


def test_labels_with_umlauts_and_separators_survive(command):
    rows = [("rot", "Bein; links"), ("grün", "Übelkeit, früh")] * 6
    pd.DataFrame(rows, columns=["text", "labels"]).to_csv("a.csv", index=False)
    command("train", "a.csv", "-m", "m", "--label-separator", "#")
    command("predict", "a.csv", "-m", "m", "-k", 2, "--output", "out.csv")
    with open("out.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert found[0]["predicted_labels"].split("|")[0] == "Bein; links"
    assert found[1]["predicted_labels"].split("|")[0] == "Übelkeit, früh"
    error = command("predict", "a.csv", "-m", "m", "--output", "out.csv", "--label-separator", ";", code=2)
    assert "is part of the label 'Bein; links'" in error


def test_tables_come_from_stdin_and_pipes(command, model, folder):
    content = (folder / "notes.csv").read_bytes()
    asked = ["-m", model, "--text-column", "note", "--json"]
    wanted = command("predict", "notes.csv", *asked)
    assert command("predict", "-", *asked, stdin=content) == wanted
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: (folder / "pipe").write_bytes(content))
    writer.start()
    assert command("predict", "pipe", *asked) == wanted
    writer.join()
    command("train", "-", "-m", "from-stdin", *FLAGS, stdin=content)
    assert command("predict", "notes.csv", "-m", "from-stdin", "--text-column", "note", "--json") == wanted
    error = command("train", "-", "-m", "none", *FLAGS, stdin=b"note;codes\nx\n", code=2)
    assert error.startswith("error: stdin, line 2: the row has 1 field")


def test_ids_name_the_answers(command, model):
    asked = ["notes.csv", "-m", model, "--text-column", "note", "--id-column", "nr", "-k", 1]
    assert json.loads(command("predict", *asked, "--json").splitlines()[3])["id"] == "n-3"
    assert command("predict", *asked, "--output", "tsv").splitlines()[1].startswith("n-0\t")


def test_a_stream_learns_tables_and_skips_bad_rows(command, folder):
    command("stream", "notes.csv", "-m", "online", *FLAGS)
    assert "R04.0" in command("predict", "-m", "online", "--text", "nosebleed", "-k", 1)
    (folder / "more.csv").write_text('note,codes\n"new\nwords",X1\nbad,row,here\n"other words",X2\n')
    said = command("stream", "more.csv", "-m", "online", *FLAGS, "--skip-bad-lines", "--json")
    events = [json.loads(line) for line in said.splitlines()]
    assert (events[-1]["new_examples"], events[-1]["skipped_lines"], events[-1]["labels"]) == (2, 1, 8)
    error = command("stream", "more.csv", "-m", "online", *FLAGS, code=2)
    assert error.startswith("error: more.csv, line 4: the row has 3 fields")


def test_a_stream_of_a_cp1252_table_equals_that_of_utf_8(command):
    table().assign(note=lambda rows: rows["note"] + " ü").to_csv("a.csv", index=False, encoding="cp1252")
    table().assign(note=lambda rows: rows["note"] + " ü").to_csv("b.csv", index=False)
    command("stream", "a.csv", "-m", "a", *FLAGS, "--encoding", "cp1252")
    command("stream", "b.csv", "-m", "b", *FLAGS)
    asked = ["--text", "nosebleed ü", "--json"]
    assert command("predict", "-m", "a", *asked) == command("predict", "-m", "b", *asked)


def test_a_text_without_a_known_word_gets_a_notice(command, model):
    (found,) = map(json.loads, command("predict", "-m", model, "--text", "asdf qwerty", "--json").splitlines())
    assert (found["labels"], found["notice"]) == ([], "no known word")
    assert command("predict", "-m", model, "--text", "asdf").splitlines() == ["asdf", "  no known word"]


def test_answers_can_be_limited_to_a_set_of_labels(command, model, folder):
    (folder / "only.txt").write_text("R05\nR07.9\tChest pain\n")
    said = command("predict", "-m", model, "--text", "nosebleed", "--labels-from", "only.txt", "--json")
    whole = command("predict", "-m", model, "--text", "nosebleed", "--json", "-k", 6)
    wanted = [one for one in json.loads(whole)["labels"] if one["label"] in ("R05", "R07.9")]
    assert json.loads(said)["labels"] == wanted
    (folder / "only.txt").write_text("R05\nR7.9\n")
    error = command("predict", "-m", model, "--text", "x", "--labels-from", "only.txt", code=2)
    assert error.startswith("error: only.txt, line 2: label 'R7.9' is not among the 6 known labels")


def test_a_likely_separator_is_pointed_out(command, capsys, folder):
    table().replace({"codes": {"": "none|known"}}).to_csv("a.csv", index=False)
    assert run(["train", "a.csv", "-m", "m", "--text-column", "note", "--label-column", "codes"]) == 0
    assert "hint: each row has exactly one label" in capsys.readouterr().err


def test_a_model_remembers_the_names_of_its_columns(command, model):
    command("predict", "notes.csv", "-m", model, "--text-column", "note", "-o", "named.csv")
    command("predict", "notes.csv", "-m", model, "-o", "known.csv")
    assert Path("known.csv").read_bytes() == Path("named.csv").read_bytes()
    named, known = (json.loads(command("evaluate", "notes.csv", "-m", model, *f, "--json")) for f in (FLAGS, []))
    assert named == known
    command("tune", "notes.csv", "-m", model, "--out", "tuned")
    command("predict", "notes.csv", "-m", "tuned")
    assert "nosebleed" in command("explain", "notes.csv", "-m", model, "--row", 4)


def test_remembered_columns_are_no_duty(command, model):
    Path("usual.csv").write_text("text,labels\nsudden nosebleed,R04.0\n")
    Path("usual.jsonl").write_text('{"text": "sudden nosebleed", "labels": ["R04.0"]}\n')
    for usual in ("usual.csv", "usual.jsonl"):
        assert json.loads(command("evaluate", usual, "-m", model, "--json"))["rows"] == 1
    table().rename(columns={"note": "other"}).to_csv("other.csv", index=False)
    assert "no column is called" in command("predict", "other.csv", "-m", model, "--format", "csv", code=2)
    command("predict", "other.csv", "-m", model, "--text-column", "other")


def test_a_stream_remembers_the_names_of_its_columns(command):
    command("stream", "notes.csv", "--model", "live", "--new", *FLAGS)
    command("stream", "notes.csv", "--model", "live")
    command("predict", "notes.csv", "--model", "live")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_answers_have_the_encoding_of_the_table(command, encoding):
    rows = [("rot", "Bein"), ("grün", "Übelkeit")] * 6
    pd.DataFrame(rows, columns=["text", "labels"]).to_csv("a.csv", index=False, encoding=encoding)
    chosen = ["--encoding", encoding] if encoding == "cp1252" else []
    command("train", "a.csv", "-m", "m", *chosen)
    command("predict", "a.csv", "-m", "m", "-k", 1, "--output", "out.csv", *chosen)
    found, given = Path("out.csv").read_bytes(), Path("a.csv").read_bytes()
    assert found[:3] == given[:3]
    lines = found.decode(encoding).splitlines()
    assert [line.split(",")[2] for line in lines[1:3]] == ["Bein", "Übelkeit"]
    assert len(lines) == 13


def test_a_character_that_the_encoding_lacks_is_an_error(command):
    pd.DataFrame([("rot", "Bein"), ("blau", "\u03b1")] * 6, columns=["text", "labels"]).to_csv("a.csv", index=False)
    command("train", "a.csv", "-m", "m")
    message = command("predict", "a.csv", "-m", "m", "--output", "out.csv", "--encoding", "cp1252", code=2)
    assert "cp1252" in message
    assert not Path("out.csv").exists()


def test_a_model_remembers_the_encoding_of_its_tables_for_files_that_are_not_utf_8(command):
    rows = pd.DataFrame([("rot", "Bein"), ("grün", "Übelkeit")] * 6, columns=["text", "labels"])
    rows.to_csv("old.csv", index=False, encoding="cp1252")
    rows.to_csv("new.csv", index=False)
    command("train", "old.csv", "-m", "m", "--encoding", "cp1252")
    for name, encoding in (("old", "cp1252"), ("new", "utf-8")):
        command("predict", f"{name}.csv", "-m", "m", "-k", 1, "--output", f"{name}.out.csv")
        assert (
            Path(f"{name}.out.csv").read_bytes().decode(encoding).splitlines()[2].startswith("grün,Übelkeit,Übelkeit")
        )
        assert json.loads(command("evaluate", f"{name}.csv", "-m", "m", "--json"))["unknown_labels"] == 0
        assert "grün" in command("explain", f"{name}.csv", "-m", "m", "--row", 2)
    command("stream", "old.csv", "-m", "live", "--encoding", "cp1252")
    command("stream", "old.csv", "-m", "live")
    assert "Übelkeit" in command("predict", "-m", "live", "--text", "grün", "-k", 1)


def test_convert_reads_a_table_as_the_model_does_and_never_writes_over_it(command, model):
    command("convert", "notes.csv", "notes.npz", "--model", model)
    before = Path("notes.csv").read_bytes()
    assert "notes.csv: .csv files hold texts" in command("convert", "notes.csv", "notes.csv", *FLAGS, code=2)
    error = command("convert", "notes.csv", "notes.csv", "--to", "xmc", *FLAGS, code=2)
    assert error.startswith("error: notes.csv is the file to read")
    error = command("predict", "notes.csv", "-m", model, "--output", "tsv", "--out", "notes.csv", code=2)
    assert error.startswith("error: notes.csv is the file to read")
    assert Path("notes.csv").read_bytes() == before


def test_a_file_that_cannot_be_written_is_named(command, model):
    error = command("predict", "notes.csv", "-m", model, "--output", "/proc/answers.csv", code=2)
    assert error.startswith("error: /proc/answers.csv: this file cannot be written (")


def test_rows_without_any_label_cannot_be_measured(command, model):
    Path("a.csv").write_text("note,codes\nnosebleed,\n")
    assert "a.csv: column 'codes' has no label in any row" in command("evaluate", "a.csv", "-m", model, code=2)


def test_labels_that_may_be_several_are_pointed_out_though_a_row_has_none(capsys):
    Path("a.csv").write_text("text,labels\nrot,a|b\nblau,b|c\ngelb,\n")
    assert run(["train", "a.csv", "-m", "m"]) == 0
    assert "many labels contain '|'" in capsys.readouterr().err


def test_doubtful_labels_are_a_warning_of_one_line(capsys):
    Path("a.csv").write_text("text,labels\nrot,Bein\nrot,nan\n")
    assert run(["train", "a.csv", "-m", "m"]) == 0
    assert capsys.readouterr().err.startswith("warning: the label 'nan' looks like a missing value")
