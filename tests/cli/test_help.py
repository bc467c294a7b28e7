"""The examples at the end of each command's help run as they stand."""

from __future__ import annotations

import io
import re
import shlex
import sys

import pytest

from cli_workspace import fresh_copy
from ramify.cli.main import run

COMMANDS = ["train", "stream", "predict", "evaluate", "tune", "explain", "tree", "convert", "plot", "demo"]


def _examples(command, capsys):
    assert run([command, "--help"]) == 0
    said = capsys.readouterr().out
    return re.findall(r"^ +\$ (.+)$", said.partition("Examples:")[2], re.MULTILINE)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "demo"])
def test_the_examples_of_the_help_run(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))
    found = _examples(command, capsys)
    assert len(found) >= 3
    for line in found:
        before, _, after = line.rpartition("| ")
        if before:
            assert before.startswith("cat ")
            content = (tmp_path / before.split()[1]).read_bytes()
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        name, *arguments = shlex.split(after)
        assert name == "ramify"
        assert run(arguments) == 0, line


def test_the_demo_has_examples_too(capsys):
    assert _examples("demo", capsys)[0] == "ramify demo"


def test_every_command_is_in_the_help(capsys):
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"^  {command} +\S", said, re.MULTILINE) for command in COMMANDS)
