"""The examples at the end of each command's help run as they stand."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import io
import re
import shlex
import sys

import pytest

from cli_workspace import fresh_copy
from ramify.cli.main import run
from ramify.cluster import workers

COMMANDS = ["train", "stream", "predict", "evaluate", "tune", "explain", "tree", "convert", "plot", "demo"]


PAPERS = [
    ("Cells, in short", "how a cell divides", "biology"),
    ("Bright stars", "light of the night sky", "astronomy"),
    ("Life on moons", "cells below the ice", "astronomy;biology"),
] * 8
TICKETS = [
    ("screen black", "it stays black", "display"),
    ("battery", "drains after the update", "power;update"),
] * 8


@contextlib.contextmanager
def _in_process(address=None, n_workers=None):
    yield workers.InProcess()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with all files and models that the examples name."""
    monkeypatch.chdir(fresh_copy(tmp_path))
    for name, header, rows in (
        ("papers.csv", "title,abstract,subjects", PAPERS),
        ("test.csv", "title,abstract,subjects", PAPERS[:3]),
        ("tickets.csv", "subject,body,tags", TICKETS),
    ):
        lines = [header, *(",".join(f'"{cell}"' for cell in row) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "parents.tsv").write_text("R04.2\tR05\n")
    (tmp_path / "shards").mkdir()
    lines = (tmp_path / "notes.jsonl").read_text().splitlines(keepends=True)
    for number in range(2):
        (tmp_path / "shards" / f"{number}.jsonl").write_text("".join(lines[number::2]))
    columns = ["--text-column", "title", "--text-column", "abstract", "--label-column", "subjects"]
    assert run(["train", "papers.csv", "--model", "papers", *columns]) == 0
    if importlib.util.find_spec("ray") is None:  # the same steps without it; tests/cluster/test_ray.py runs Ray
        monkeypatch.setattr(workers, "ray_workers", _in_process)
    return tmp_path


def _words(line):
    """The words of a command, with names of files for patterns, as a shell gives them."""
    return [name for word in shlex.split(line) for name in (sorted(glob.glob(word)) if "*" in word else [word])]


def _examples(command, capsys):
    assert run([command, "--help"]) == 0
    said = capsys.readouterr().out
    return re.findall(r"^ +\$ (.+)$", said.partition("Examples:")[2], re.MULTILINE)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "demo"])
def test_the_examples_of_the_help_run(command, capsys, folder, monkeypatch):
    found = _examples(command, capsys)
    assert len(found) >= 3
    for line in found:
        before, _, after = line.rpartition("| ")
        if before:
            assert before.startswith("cat ")
            content = (folder / before.split()[1]).read_bytes()
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        name, *arguments = _words(after)
        assert name == "ramify"
        assert run(arguments) == 0, line


def test_the_demo_has_examples_too(capsys):
    assert _examples("demo", capsys)[0] == "ramify demo"


def test_every_command_is_in_the_help(capsys):
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"^  {command} +\S", said, re.MULTILINE) for command in COMMANDS)
