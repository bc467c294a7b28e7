"""`--cluster`: training and prediction on a Ray of this machine, and what the command says without one."""

import importlib.util
import json
import subprocess
import sys
from contextlib import nullcontext

import pytest

from cli_workspace import NOTES, RAMIFY, workspace
from ramify import cluster, load
from ramify.cli.main import run
from ramify.cluster.workers import InProcess
from ramify.data import load_xmc
from shared.same_model import check_same_model


@pytest.mark.parametrize("command", ["train", "predict"])
def test_without_ray_one_line_says_what_to_install(command, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    folder = workspace()
    model = tmp_path / "model" if command == "train" else folder / "model"
    arguments = [command, folder / "train.txt", "--model", model, "--cluster", "auto"]
    assert run([str(a) for a in (*arguments, *(["--out", tmp_path / "out"] if command == "predict" else []))]) == 2
    assert capsys.readouterr().err.splitlines() == ["error: ramify.cluster needs Ray: pip install 'ramify[ray]'"]


@pytest.fixture
def in_process(monkeypatch):
    """The cluster's steps in this process."""
    for place in ("ramify.cluster.workers", "ramify.cluster.prediction"):
        monkeypatch.setattr(f"{place}.ray_workers", lambda *_: nullcontext(InProcess()))


def test_columns_of_tables_count_on_a_cluster_as_well(tmp_path, in_process, capsys):
    for k, notes in enumerate((NOTES[:20], NOTES[20:])):
        lines = [f"{text};{'|'.join(labels)};{k}" for text, labels in notes]
        (tmp_path / f"{k}.csv").write_text("\n".join(["note;codes;text", *lines]))
    both = "\n".join(["note;codes;text", *(f"{text};{'|'.join(labels)};x" for text, labels in NOTES)])
    (tmp_path / "all.csv").write_text(both)
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    chosen = ["--text-column", "note", "--label-column", "codes", "--label-separator", "|"]
    assert run(list(map(str, ["train", tmp_path / "all.csv", "--model", tmp_path / "alone", *chosen]))) == 0
    on_cluster = ["--model", tmp_path / "model", "--cluster", "auto"]
    assert run(list(map(str, ["train", *files, *on_cluster, *chosen]))) == 0
    alone = load(tmp_path / "alone")
    check_same_model(alone, load(tmp_path / "model"))
    assert load(tmp_path / "model").source_columns_ == alone.source_columns_
    # The columns are remembered, and a table without labels can be answered.
    (tmp_path / "ask.csv").write_text("note;text\n" + "\n".join(f"{text};x" for text, _ in NOTES))
    assert (
        run(list(map(str, ["predict", tmp_path / "ask.csv", *on_cluster, "--out", tmp_path / "out", "-k", "2"]))) == 0
    )
    lines = (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()
    found = [[(one["label"], one["probability"]) for one in json.loads(line)["labels"]] for line in lines]
    assert found == alone.predict_labels([text for text, _ in NOTES], top_k=2)
    for option in (["--id-column", "note"], ["--format", "text"]):
        arguments = ["predict", tmp_path / "ask.csv", *on_cluster, "--out", tmp_path / "out", *option]
        assert run(list(map(str, arguments))) == 2
        assert f"{option[0]} is not for --cluster" in capsys.readouterr().err


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="NOT TESTED: ramify.cluster on Ray, which is not installed (make test-cluster)",
)


@needs_ray
@pytest.mark.parametrize(("classifier", "where"), [("plt", "address"), ("fastxml", "local")])
def test_the_command_trains_and_predicts_on_a_cluster(tmp_path, nodes, classifier, where):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for k, notes in enumerate((NOTES[:20], NOTES[20:])):
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in notes]
        (tmp_path / f"{k}.jsonl").write_text("\n".join(lines))
        table = pa.table({"text": [text for text, _ in notes], "labels": [labels for _, labels in notes]})
        pq.write_table(table, tmp_path / f"{k}.parquet")
    lines = [json.dumps({"text": text, "labels": labels}) for text, labels in NOTES]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    choice = ["--classifier", classifier, *(["--n-trees", "4"] if classifier == "fastxml" else [])]
    assert run(list(map(str, ["train", tmp_path / "all.jsonl", "--model", tmp_path / "alone", *choice]))) == 0
    on_ray = ["--cluster", nodes.address if where == "address" else where, "--threads", "2"]
    _run("train", *files, "--model", tmp_path / "model", "--checkpoint", tmp_path / "run", *choice, *on_ray)
    check_same_model(load(tmp_path / "alone"), load(tmp_path / "model"))
    said = _run(
        "predict", *files, "--model", tmp_path / "model", "--out", tmp_path / "out", "--output", "parquet", "-k", "2",
        *on_ray,
    )  # fmt: skip
    assert said.startswith("Answered 2 files: ")
    answers = [row for k in (0, 1) for row in pq.read_table(tmp_path / "out" / f"part-{k:05d}.parquet").to_pylist()]
    expected = load(tmp_path / "alone").predict_labels([text for text, _ in NOTES], top_k=2)
    assert [row["labels"] for row in answers] == [[label for label, _ in row] for row in expected]


@needs_ray
def test_the_command_predicts_with_a_model_in_parts(tmp_path):
    whole = load(workspace() / "model")
    parts = cluster.split(whole, tmp_path / "parts", 2)
    _run("predict", workspace() / "test.txt", "--model", parts, "--out", tmp_path / "out", "--cluster", "local")
    answers = [json.loads(line) for line in (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()]
    expected = whole.predict_labels(load_xmc(workspace() / "test.txt").X)
    found = [[(one["label"], one["probability"]) for one in row["labels"]] for row in answers]
    assert found == [[(int(label), p) for label, p in row] for row in expected]


def _run(*arguments):
    done = subprocess.run([*RAMIFY, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_several_files_need_a_cluster(tmp_path, capsys):
    files = [str(workspace() / name) for name in ("train.txt", "test.txt")]
    assert run(["train", *files, "--model", str(tmp_path / "model")]) == 2
    assert "train on one, or on all of them with --cluster auto" in capsys.readouterr().err
    assert run(["predict", *files, "--model", str(workspace() / "model")]) == 2
    assert "predict one, or all of them with --cluster auto" in capsys.readouterr().err
