"""`ramify stream`: what it learns, goes on with, refuses and says."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import ramify
from cli_workspace import fresh_copy
from ramify.cli.lock import only_writer
from ramify.cli.main import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))
    return tmp_path


def feed(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def stream(*arguments):
    return run(["stream", *map(str, arguments)])


def rows(folder, start=0, stop=None):
    return (folder / "train.txt").read_bytes().splitlines(keepends=True)[1:][start:stop]


def same_model(one, other):
    one, other = ramify.load(one), ramify.load(other)
    a, b = one.model_.learner.state(1), other.model_.learner.state(1)
    return all(np.array_equal(a[name], b[name]) for name in a) and one.classes_.tolist() == other.classes_.tolist()


def test_a_stream_gives_the_model_that_partial_fit_gives(folder):
    assert stream("train.txt", "--model", "new", "--save-every", 70, "--seed", 4) == 0
    data = ramify.data.load_data("train.txt")
    labels = [tuple(row.tolist()) for row in np.split(data.Y.indices, data.Y.indptr[1:-1])]
    model = ramify.OnlinePLTClassifier(random_state=4).partial_fit(data.X, labels)
    model.save("wanted")
    assert same_model("new", "wanted")
    assert ramify.load("new").n_features_in_ == data.n_features


@pytest.mark.parametrize("policy", ["fair", "best", "random"])
def test_a_stream_in_pieces_gives_the_same_model_bit_for_bit(folder, monkeypatch, policy):
    assert stream("train.txt", "--model", "whole", "--policy", policy) == 0
    header = (folder / "train.txt").read_bytes().splitlines(keepends=True)[0]
    for start, stop in ((0, 80), (80, 81), (81, 300)):
        # Rows without a header would pass for libsvm; the model knows better.
        feed(monkeypatch, b"".join([header] * (start == 0) + rows(folder, start, stop)))
        assert stream("--model", "pieces", "--save-every", 33, *(["--policy", policy] if start == 0 else [])) == 0
    assert same_model("whole", "pieces")


def test_testing_first_changes_nothing_that_is_learned(folder):
    assert stream("train.txt", "--model", "plain") == 0
    assert stream("train.txt", "--model", "tested", "--test-first", "--window", 50, "--save-every", 64) == 0
    assert same_model("plain", "tested")


def test_rows_that_were_learned_are_skipped_when_asked(folder, monkeypatch):
    feed(monkeypatch, b"".join(rows(folder, 0, 120)))
    assert stream("--model", "new", "--format", "xmc") == 0
    assert stream("train.txt", "--model", "new", "--skip-seen") == 0
    assert ramify.load("new").n_examples_ == 300
    feed(monkeypatch, b"".join(rows(folder)))
    assert stream("--model", "whole", "--format", "xmc") == 0
    assert same_model("new", "whole")


def test_gzip_is_unpacked_also_when_packed_files_are_joined(folder, monkeypatch):
    content = (folder / "train.txt").read_bytes()
    feed(monkeypatch, gzip.compress(content) + gzip.compress(content))
    assert stream("--model", "packed") == 0
    feed(monkeypatch, content + content)
    assert stream("--model", "plain") == 0
    assert same_model("packed", "plain")
    assert ramify.load("plain").n_examples_ == 600


def test_truncated_gzip_is_reported_and_complete_lines_are_kept(folder, monkeypatch, capsys):
    feed(monkeypatch, gzip.compress((folder / "train.txt").read_bytes())[:-3000])
    assert stream("--model", "new") == 2
    said = capsys.readouterr()
    assert "gzip" in said.err
    assert said.out.startswith("saved ")
    assert ramify.load("new").n_examples_ > 100


def test_texts_bring_new_words_and_new_labels(folder, monkeypatch, capsys):
    assert stream("notes.jsonl", "--model", "notes") == 0
    feed(monkeypatch, b'{"text": "broken leg", "labels": ["S82"]}\n' * 5)
    assert stream("--model", "notes") == 0
    capsys.readouterr()
    assert run(["predict", "--model", "notes", "--text", "leg broken", "--top-k", "1"]) == 0
    assert "S82" in capsys.readouterr().out


def test_labels_of_any_size_are_just_labels(folder, monkeypatch):
    feed(monkeypatch, b"2000000000 3:1\n7 4:1\n")
    assert stream("--model", "new", "--format", "xmc") == 0
    assert ramify.load("new").classes_.tolist() == [2000000000, 7]


def test_machines_get_an_object_a_line(folder, monkeypatch, capsys):
    feed(monkeypatch, b"".join([*rows(folder, 0, 100), b"1 x\n", *rows(folder, 100, 150)]))
    arguments = ["--model", "new", "--format", "xmc", "--json", "--test-first", "--window", 60, "--save-every", 100]
    assert stream(*arguments, "--skip-bad-lines", "--report", "run.json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["window", "saved", "skipped", "window", "window", "saved", "done"]
    assert [event["examples"] for event in events if event["event"] == "saved"] == [100, 150]
    assert (events[2]["line"], events[2]["column"]) == (101, 3)
    assert events[-1]["skipped_lines"] == 1
    report = json.loads((folder / "run.json").read_text())
    assert [window["examples"] for window in report["windows"]] == [60, 120, 150]
    assert run(["plot", "progressive", "run.json", "--out", "run.svg", "--metric", "P@1"]) == 0


def test_a_bad_line_stops_the_stream_where_it_is_and_the_rows_before_it_are_saved(folder, monkeypatch, capsys):
    feed(monkeypatch, b"".join([*rows(folder, 0, 40), b"4 3:abc\n", *rows(folder, 40, 60)]))
    assert stream("--model", "new", "--format", "xmc") == 2
    said = capsys.readouterr()
    assert "stdin, line 41, column 3" in said.err
    assert said.out == "saved 40 examples\n"
    assert ramify.load("new").n_examples_ == 40


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows arrived"),
        (b"\n\n", "no rows arrived"),
        (b" 1:1\n 2:1\n", "none of the 2 rows has a label"),
        (b"3 0:1\n", "--zero-based"),
        (b"\0\1\2\n", "binary"),
        (b"1 x\n", "column 3"),
    ],
)
def test_a_stream_that_teaches_nothing_is_refused_and_leaves_no_model(folder, monkeypatch, capsys, content, message):
    feed(monkeypatch, content)
    assert stream("--model", "new") == 2
    assert message in capsys.readouterr().err
    assert not (folder / "new").exists()


def test_nothing_new_leaves_the_checkpoint_as_it_is(folder, monkeypatch, capsys):
    assert stream("train.txt", "--model", "new") == 0
    before = (folder / "new" / "manifest.json").read_bytes()
    feed(monkeypatch, b"")
    assert stream("--model", "new") == 0
    assert (folder / "new" / "manifest.json").read_bytes() == before
    assert "Learned 0 examples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("begun", "then", "message"),
    [
        (["train.txt"], ["notes.jsonl"], "has learned numbers, but these are texts"),
        (["notes.jsonl"], ["train.txt"], "has learned texts, but these are numbers"),
        (["train.txt"], ["train.txt", "--format", "libsvm"], "has learned XMC text, but this is libsvm"),
        (["train.txt"], ["train.txt", "--policy", "best"], "started with --policy fair"),
        (["train.txt"], ["train.txt", "--arity", "3"], "started without --arity"),
        (["train.txt"], ["train.txt", "--seed", "3"], "started with --seed 0"),
        (["train.txt"], ["train.txt", "--multiclass"], "started without --multiclass"),
        (["notes.jsonl"], ["notes.jsonl", "--ngrams", "2"], "up to 1 consecutive word"),
    ],
)
def test_what_does_not_go_on_where_the_model_stopped_is_refused(folder, capsys, begun, then, message):
    assert stream(*begun, "--model", "new") == 0
    before = (folder / "new" / "manifest.json").read_bytes()
    assert stream(*then, "--model", "new") == 2
    said = capsys.readouterr().err
    assert message in said
    assert "--new" in said
    assert (folder / "new" / "manifest.json").read_bytes() == before


def test_a_model_that_cannot_go_on_is_not_touched(folder, capsys):
    assert stream("train.txt", "--model", "model") == 2
    assert "a PLTClassifier cannot continue to learn" in capsys.readouterr().err


def test_other_files_than_a_model_are_not_touched(folder, capsys):
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("x")
    assert stream("train.txt", "--model", "mine", "--new") == 2
    assert "holds no model" in capsys.readouterr().err


def test_a_report_needs_the_tests(folder, capsys):
    assert stream("train.txt", "--model", "new", "--report", "run.json") == 2
    assert "--test-first" in capsys.readouterr().err


def test_libsvm_remembers_where_its_features_begin(folder, monkeypatch):
    feed(monkeypatch, b"1 0:1\n2 1:1\n")
    assert stream("--model", "new", "--zero-based") == 0
    feed(monkeypatch, b"1 0:1\n")
    assert stream("--model", "new") == 0
    assert ramify.load("new").n_features_in_ == 2


def test_one_class_a_row(folder, monkeypatch, capsys):
    feed(monkeypatch, b"5 1:1\n9 2:1\n" * 20)
    assert stream("--model", "new", "--multiclass") == 0
    model = ramify.load("new")
    assert model.predict_proba(np.eye(2, dtype=np.float32)).sum(axis=1) == pytest.approx([1, 1])
    feed(monkeypatch, b"5,9 1:1\n")
    assert stream("--model", "new") == 2
    assert "line 1: the row has 2 labels instead of one" in capsys.readouterr().err


# --- train --online, and the commands that ask the model -------------------------------------------------------------


def test_an_online_learner_is_trained_asked_explained_and_goes_on(folder, monkeypatch, capsys):
    arguments = ["train", "train.txt", "--model", "new", "--online", "--n-epochs", "2", "--label-names", "names.txt"]
    assert run([*arguments, "--test", "test.txt", "--policy", "best"]) == 0
    assert "P  " in capsys.readouterr().out
    for command in (
        ["predict", "test.txt", "--top-k", "2"],
        ["evaluate", "test.txt"],
        ["tree", "--out", "tree.txt", "--plot", "tree.svg"],
        ["explain", "test.txt", "--row", "3"],
        ["plot", "tree", "--out", "shape.svg"],
        ["plot", "reliability", "test.txt", "--out", "reliability.svg"],
    ):
        assert run([*command, "--model", "new"]) == 0, command
        assert capsys.readouterr().out
    feed(monkeypatch, b"77 5:1 400:1\n")
    assert stream("--model", "new") == 0
    model = ramify.load("new")
    assert (model.n_examples_, model.n_labels_, model.n_features_in_) == (601, 78, 401)
    assert run(["predict", "test.txt", "--model", "new"]) == 0
    assert "topic 3" in capsys.readouterr().out


def test_an_online_learner_of_texts(folder, capsys):
    arguments = ["train", "notes.jsonl", "--model", "new", "--online", "--n-epochs", "4", "--label-names", "codes.tsv"]
    assert run(arguments) == 0
    assert run(["explain", "--model", "new", "--text", "acute chest pain"]) == 0
    assert "chest" in capsys.readouterr().out
    assert stream("notes.jsonl", "--model", "new") == 0


def test_the_tree_to_begin_with_can_be_built(folder):
    assert run(["train", "train.txt", "--model", "new", "--online", "--tree", "kmeans", "--max-leaf", "30"]) == 0
    assert ramify.load("new").n_labels_ == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--online", "--n-trees", "2"], "--n-trees is not for --classifier online-plt\nhint: it is for plt, fastxml"),
        (["--policy", "best"], "--policy is not for --classifier plt\nhint: it is for online-plt"),
        (["--shuffle"], "--shuffle is not for --classifier plt"),
        (["--online", "--arity", "1"], "arity must be"),
        (["--C", "1", "--set", "solver__C=2"], "--set solver__C: this parameter also has a flag"),
    ],
)
def test_options_that_would_be_ignored_are_refused(folder, capsys, arguments, message):
    assert run(["train", "train.txt", "--model", "new", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_wrong_number_of_labels_before_an_unparsable_line_skips_both(folder, monkeypatch, capsys):
    good = [b"%d %d:1\n" % (k % 3, k % 5) for k in range(50)]
    feed(monkeypatch, b"".join([*good[:20], b"1,2 0:1\n", b"4 3:abc\n", *good[20:]]))
    assert run(["stream", "--model", "new", "--format", "xmc", "--multiclass", "--skip-bad-lines"]) == 0
    assert ramify.load("new").n_examples_ == 50
    said = capsys.readouterr().err
    assert "line 21: the row has 2 labels" in said
    assert "line 22" in said


def test_what_was_learned_is_saved_whatever_goes_wrong(folder, monkeypatch, capsys):
    feed(monkeypatch, b"".join(rows(folder, 0, 100)))

    def fail(self, name, stop):
        raise RuntimeError("the machine is on fire")

    monkeypatch.setattr("ramify.cli.stream.run.StreamRun._check_anything_learned", fail)
    assert run(["stream", "--model", "new", "--format", "xmc"]) == 1
    assert ramify.load("new").n_examples_ == 100


def test_a_second_stream_on_the_same_directory_is_rejected_with_the_process_of_the_first(folder, monkeypatch, capsys):
    with only_writer(Path("new")):
        feed(monkeypatch, b"".join(rows(folder, 0, 20)))
        assert run(["stream", "--model", "./new"]) == 2
    assert f"in use by ramify stream, process {os.getpid()}" in capsys.readouterr().err
    assert not Path("new").exists()
    feed(monkeypatch, b"".join(rows(folder, 0, 20)))
    assert run(["stream", "--model", "new", "--format", "xmc"]) == 0
    assert not list(Path().glob(".*lock"))


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_model_that_a_stream_holds_is_not_replaced_behind_its_back(folder, capsys, command):
    """The stream would replace what was trained or tuned with its next save, and both would report success."""
    before = {file.name: file.read_bytes() for file in Path("model").iterdir()}
    with only_writer(Path("model")):
        assert run([command, "train.txt", "--model", "model"]) == 2
    assert f"in use by ramify stream, process {os.getpid()}" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in Path("model").iterdir()} == before
    assert run([command, "train.txt", "--model", "model"]) == 0
    assert not list(Path().glob(".*lock"))


def test_the_lock_lies_in_the_directory_where_nothing_else_may_be_written(folder, monkeypatch):
    """As in a container with a volume for the model."""
    Path("volume").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != Path.cwd() and access(path, mode))
    with only_writer(Path("volume")):
        assert [file.name for file in Path("volume").iterdir()] == [".stream-lock"]
        with pytest.raises(ValueError, match="in use by"), only_writer(Path("volume")):
            pass
    assert not list(Path("volume").iterdir())
    (Path("volume") / ".stream-lock").touch()  # left by a process that was killed
    assert run(["train", "train.txt", "--model", "volume"]) == 0


@pytest.mark.parametrize("name", ["n" * 250, "/proc/new"], ids=["too long with the lock's ending", "no folder"])
def test_a_directory_that_cannot_be_locked_is_named(folder, capsys, name):
    assert run(["train", str(folder / "train.txt"), "--model", name]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert f"{name}: " in said
    assert "lock" not in said
