"""`ramify predict` reads what fits the model, from files and stdin alike, and rejects the rest."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

from cli_workspace import fresh_copy
from ramify.cli.main import run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))
    return tmp_path


@pytest.fixture
def predict(capsys, monkeypatch):
    """Exit code, answers and error of `ramify predict` with these bytes on stdin."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run(["predict", *arguments, "--json"])
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return call


RECORDS = b'{"text": "nosebleed", "labels": ["R04.0"]}\n\n{"text": "acute chest pain"}\n'


@pytest.mark.parametrize("format", [[], ["--format", "jsonl"]])
@pytest.mark.parametrize(
    "records",
    [RECORDS, b"\xef\xbb\xbf" + RECORDS, b"\n\n" + RECORDS, gzip.compress(RECORDS)],
    ids=["plain", "byte order mark", "empty lines", "gzip"],
)
def test_json_lines_on_stdin_are_records_and_not_texts(predict, format, records):
    code, found, _ = predict("--model", "notes-model", *format, stdin=records)
    assert (code, [row["text"] for row in found]) == (0, ["nosebleed", "acute chest pain"])
    assert [row["labels"][0]["label"] for row in found] == ["R04.0", "R07.9"]


def test_fasttext_lines_on_stdin_lose_their_labels(predict):
    code, found, _ = predict("--model", "notes-model", stdin=b"__label__R04.0 nosebleed\n")
    assert (code, found[0]["text"]) == (0, "nosebleed")


def test_format_text_reads_anything_as_texts(predict):
    code, found, _ = predict("--model", "notes-model", "--format", "text", stdin=RECORDS)
    assert (code, len(found), found[0]["text"][:1]) == (0, 3, "{")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_numbers_on_stdin_are_answered_as_those_of_a_file(predict, folder, pack):
    _, wanted, _ = predict("test.txt", "--model", "model")
    code, found, _ = predict("--model", "model", stdin=pack((folder / "test.txt").read_bytes()))
    assert (code, found) == (0, wanted)


BAD = [
    (["--model", "notes-model"], b'{"text": "a"}\n{"text": 3}\n', 'stdin, line 2: "text" must be a string'),
    (["--model", "notes-model"], b'{"txt": "a"}\n', 'stdin, line 1: the object has no "text"'),
    (["--model", "notes-model"], b'[{"text": "a"}]\n', "stdin: this is one JSON array"),
    (["--model", "notes-model"], b'id,text,"labels"\n1,nosebleed\n', "stdin, line 2: the row has 2 fields, but"),
    (["--model", "notes-model", "--format", "jsonl"], b"nosebleed\n", "stdin, line 1, column 1: invalid JSON"),
    (["--model", "notes-model"], b"nose\0bleed\n", "stdin: this is a binary file"),
    (["--model", "notes-model"], b"fine\n\xff\n", "stdin, line 2, column 1: byte 0xff is not UTF-8"),
    (["--model", "notes-model"], b"\xef\xbb\xbf\xc3\xbc\xff\n", "stdin, line 1, column 2: byte 0xff is not UTF-8"),
    (["--model", "notes-model"], b"2 3 4\n0,3 1:0.5\n2 0:1 2:0.25\n", "stdin: these are numbers (3 features)"),
    (["--model", "notes-model"], b"2 1:0.5 3:1\n", "stdin: these are numbers"),
    (["--model", "model"], b"nosebleed\n", "stdin gives texts, but the model was trained on numbers"),
    (["--model", "model"], b'{"text": "a"}\n', "stdin gives texts, but the model was trained on numbers"),
    (["--model", "model"], b"1 300 40\n0 1:x\n", "stdin, line 2, column 3: feature '1:x'"),
    (["--model", "model"], b"1 200 40\n0 1:1\n", "stdin: the data have 200 features, the model 300"),
    (["papers.csv", "--model", "notes-model"], None, 'papers.csv, line 1: no column is called "text"'),
    (["papers.csv.gz", "--model", "notes-model"], None, 'papers.csv.gz, line 1: no column is called "text"'),
    (["papers.csv", "--model", "model"], None, "papers.csv: these are texts, but the model was trained on numbers"),
    (["array.json", "--model", "notes-model"], None, "array.json: this is one JSON array"),
    (["test.txt", "--model", "notes-model"], None, "test.txt: these are numbers (300 features)"),
    (["test.svm", "--model", "notes-model"], None, "test.svm: these are numbers"),
]


@pytest.mark.parametrize(("arguments", "stdin", "message"), BAD)
def test_input_that_does_not_fit_the_model_is_rejected(predict, folder, arguments, stdin, message):
    table = "title,labels\nnosebleed,R04.0\n"
    (folder / "papers.csv").write_text(table)
    (folder / "papers.csv.gz").write_bytes(gzip.compress(table.encode()))
    (folder / "array.json").write_text('[\n  {"text": "nosebleed"}\n]\n')
    assert run(["convert", "test.txt", "test.svm"]) == 0
    code, found, error = predict(*arguments, stdin=stdin)
    assert (code, found) == (2, [])
    assert error.startswith(f"error: {message}")


@pytest.mark.parametrize("text", [b"call at 5:30 pm\n", b"12 30 45\n", b"[sic] text, and more\n", b"7\n"])
def test_texts_that_look_a_little_like_other_formats_are_texts(predict, folder, text):
    code, found, _ = predict("--model", "notes-model", stdin=text)
    assert (code, [row["text"] for row in found]) == (0, [text.decode().strip()])
    (folder / "lines.txt").write_bytes(text)
    assert predict("lines.txt", "--model", "notes-model")[1] == found


def test_rows_that_convert_has_vectorised_for_a_model_of_texts_fit_it(predict):
    assert run(["convert", "notes.jsonl", "rows.txt", "--model", "notes-model"]) == 0
    code, found, _ = predict("rows.txt", "--model", "notes-model")
    assert (code, found[0]["labels"]) == (0, predict("notes.jsonl", "--model", "notes-model")[1][0]["labels"])


def test_a_program_may_replace_stdin_with_a_string(predict, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("nosebleed"))
    assert predict("--model", "notes-model")[1][0]["text"] == "nosebleed"
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"text": "nosebleed", "labels": ["R04.0"]}'))
    assert run(["stream", "--model", "new"]) == 0


def test_a_stdin_that_cannot_be_read_is_rejected(predict, monkeypatch, tmp_path):
    with open(tmp_path / "other", "w") as written:
        monkeypatch.setattr(sys, "stdin", written)
        code, _, error = predict("--model", "notes-model")
        assert (code, "stdin is not open for reading" in error) == (2, True)
