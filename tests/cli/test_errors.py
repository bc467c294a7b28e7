"""Bad input at the command line: exit code 2, one error on stderr that says what and where, no traceback, no files."""

from __future__ import annotations

import contextlib

import pytest

from cli_workspace import fresh_copy
from ramify.cli.main import run


@pytest.fixture(autouse=True)
def in_workspace(tmp_path, monkeypatch):
    folder = fresh_copy(tmp_path)
    (folder / "bad.txt").write_text("2 3 2\n0 1:x\n1 2:1\n")
    (folder / "short.txt").write_text("3 300 40\n0 1:1\n")
    (folder / "long.txt").write_text("1 300 40\n0 1:1\n1 2:1\n")
    (folder / "bad.jsonl").write_text('{"text": "a", "labels": ["x"]}\n{"text": 3, "labels": []}\n')
    (folder / "empty.txt").write_text("")
    (folder / "binary.txt").write_bytes(b"\0\1\2" * 20)
    (folder / "cut.gz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0")
    (folder / "other").mkdir()
    (folder / "other" / "file").write_text("mine")
    monkeypatch.chdir(folder)
    return folder


TRAIN = ["train", "train.txt", "--model", "new"]
BAD = [
    # the command line itself
    (["trainn"], "No such command"),
    (["train"], "Missing argument"),
    (["train", "train.txt"], "--model"),
    ([*TRAIN, "--colour"], "No such option"),
    ([*TRAIN, "--arity", "many"], "--arity"),
    ([*TRAIN, "--threads", "0"], "--threads"),
    (["plot"], "Missing command"),
    (["explain", "--model", "model"], "one row"),
    (["explain", "test.txt", "--model", "model", "--text", "a"], "one row"),
    (["predict", "test.txt", "--model", "notes-model", "--text", "a"], "not both"),
    (["evaluate", "test.txt", "--model", "model", "--k", "0"], "--k takes numbers"),
    (["evaluate", "test.txt", "--model", "model", "--k", "one"], "--k takes numbers"),
    # parameters
    ([*TRAIN, "--arity", "1"], "arity must be an integer of at least 2, got 1"),
    ([*TRAIN, "--C", "-1"], "C must be a number above 0"),
    ([*TRAIN, "--tree", "oak"], "--tree must be a file or one of kmeans"),
    ([*TRAIN, "--tree", "codes.tsv"], "codes.tsv, line 1: not a label tree"),
    ([*TRAIN, "--multiclass"], "--multiclass needs exactly one"),
    ([*TRAIN, "--classifier", "lomtree"], "--classifier lomtree needs exactly one"),
    (["predict", "test.txt", "--model", "model", "--threshold", "2"], "threshold must be a number between 0 and 1"),
    (["tree", "--model", "model", "--tree", "3"], "the model has 1 tree"),
    # files
    (["train", "nosuch.txt", "--model", "new"], "nosuch.txt: there is no such file"),
    ([*TRAIN, "--test", "tset.txt"], "tset.txt: there is no such file"),
    (["train", ".", "--model", "new"], "this is a directory"),
    (["train", "bad.txt", "--model", "new"], "bad.txt, line 2, column 3: feature '1:x' has no number"),
    (["train", "bad.jsonl", "--model", "new"], 'bad.jsonl, line 2: "text" must be a string, got the number 3'),
    (["train", "empty.txt", "--model", "new"], "empty.txt: the file is empty"),
    (["train", "binary.txt", "--model", "new"], "binary.txt: this is a binary file"),
    (["train", "cut.gz", "--model", "new"], "cut.gz: broken gzip data"),
    (["train", "train.txt", "--model", "new", "--format", "npz"], "train.txt: this is not an npz file"),
    (["predict", "bad.txt", "--model", "model"], "bad.txt, line 2, column 3"),
    (["predict", "short.txt", "--model", "model", "--out", "x"], "ends after 1 rows, but the header announces 3"),
    (["predict", "long.txt", "--model", "model"], "long.txt, line 3: there are more rows than the 1"),
    (["convert", "train.txt", "no/such/place.npz"], "its directory does not exist"),
    (["convert", "train.txt", "train.npz.gz"], "not compressed with gzip"),
    (["convert", "train.txt", "train.jsonl.gz"], "train.jsonl.gz: .jsonl files hold texts"),
    (["predict", "test.txt", "--model", "model", "--out", "no/such/place"], "its directory does not exist"),
    (["plot", "frequency", "train.txt", "--out", "f.gif"], "must end in .png or .svg"),
    (["tree", "--model", "model", "--plot", "f.pdf"], "must end in .png or .svg"),
    # names
    ([*TRAIN, "--label-names", "nosuch"], "nosuch: there is no such file"),
    ([*TRAIN, "--label-names", "texts.txt"], "texts.txt: expected 40 label names, got 2"),
    ([*TRAIN, "--label-names", "codes.tsv"], "codes.tsv: the labels of the data are numbers"),
    ([*TRAIN, "--feature-names", "texts.txt"], "texts.txt: expected 300 feature names, got 2"),
    (["train", "notes.jsonl", "--model", "new", "--label-names", "names.txt"], "the labels are words"),
    (["train", "notes.jsonl", "--model", "new", "--feature-names", "names.txt"], "need no names"),
    # models and what does not fit them
    ([*TRAIN[:-1], "other"], "other: the directory is not empty and holds no model"),
    ([*TRAIN[:-1], "train.txt"], "a file has the name"),
    (["predict", "test.txt", "--model", "nosuch"], "there is no model at nosuch"),
    (["predict", "test.txt", "--model", "other"], "it has no manifest.json"),
    (["predict", "test.txt", "--model", "train.txt"], "a ramify model is a directory"),
    (["predict", "--model", "model", "--text", "a"], "--text gives texts, but the model was trained on numbers"),
    (["predict", "notes.jsonl", "--model", "model"], "these are texts, but the model was trained on numbers"),
    (["evaluate", "test.txt", "--model", "notes-model"], "features"),
    (["evaluate", "notes.jsonl", "--model", "model"], "these are texts"),
    (["explain", "--model", "notes-model", "--text", "a", "--label", "R7.9"], "'R7.9' is not among the 6 known labels"),
    (["explain", "test.txt", "--model", "model", "--label", "abc"], "labels are numbers, got 'abc'"),
    (["explain", "test.txt", "--model", "model", "--label", "40"], "columns are 0 to 39"),
    (["explain", "test.txt", "--model", "model", "--row", "61"], "there is no row 61: the file has 60"),
    (["convert", "train.txt", "x.npz", "--model", "notes-model"], "--model vectorises texts, but these are numbers"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_refused_with_a_message_and_leaves_nothing(arguments, message, capsys, in_workspace):
    before = {path: path.stat().st_mtime_ns for path in in_workspace.rglob("*")}
    capsys.readouterr()
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("hint: "))
    assert {path: path.stat().st_mtime_ns for path in in_workspace.rglob("*")} == before


def test_a_refused_training_leaves_the_model_that_was_there(in_workspace, capsys):
    before = (in_workspace / "model" / "manifest.json").read_bytes()
    assert run(["train", "bad.txt", "--model", "model"]) == 2
    assert (in_workspace / "model" / "manifest.json").read_bytes() == before


def test_something_unexpected_ends_with_1_and_says_how_to_see_more(monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("a wire is loose")

    monkeypatch.setattr("ramify.cli.models.load_model", broken)
    assert run(["tree", "--model", "model"]) == 1
    captured = capsys.readouterr()
    assert "unexpected RuntimeError: a wire is loose" in captured.err
    assert "Traceback" not in captured.err
    monkeypatch.setenv("RAMIFY_TRACEBACK", "1")
    assert run(["tree", "--model", "model"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_extra_that_is_missing_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert run(["plot", "tree", "--model", "model", "--out", "t.png"]) == 2
    assert "pip install 'ramify[plots]'" in capsys.readouterr().err


def test_too_little_memory_is_reported(monkeypatch, capsys):
    def greedy(*_, **__):
        raise MemoryError

    monkeypatch.setattr("ramify.cli.models.load_model", greedy)
    assert run(["tree", "--model", "model"]) == 1
    assert capsys.readouterr().err.startswith("error: not enough memory")


def test_a_full_disk_behind_the_output_is_named(monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert run(["predict", "test.txt", "--model", "model"]) == 2
        assert capsys.readouterr().err == "error: the output: No space left on device\n"
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()


def test_a_link_to_nothing_is_no_file(in_workspace, capsys):
    (in_workspace / "link").symlink_to("nowhere")
    assert run(["train", "train.txt", "--model", "link"]) == 2
    assert "a symbolic link to nothing has the name of the model's directory" in capsys.readouterr().err
