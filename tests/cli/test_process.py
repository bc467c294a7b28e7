"""The command as a process: how it starts, stops, and gets on with pipes and terminals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_workspace import fresh_copy

RAMIFY = [sys.executable, "-c", "from ramify.cli.main import main; main()"]


@pytest.fixture
def folder(tmp_path):
    return fresh_copy(tmp_path)


def test_the_installed_command_is_this_one():
    script = Path(sys.executable).with_name("ramify")
    said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("ramify 0.")


def test_help_does_not_wait_for_heavy_imports():
    code = (
        "import sys; sys.argv = ['ramify']; from ramify.cli.main import run; run(['--help']); run(['train', '--help']);"
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'rich', 'matplotlib') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"


def test_nothing_asked_shows_the_help_and_all_is_well():
    done = subprocess.run(RAMIFY, capture_output=True, text=True)
    assert done.returncode == 0
    assert "ramify demo" in done.stdout


def test_ctrl_c_ends_a_long_training_at_once_and_leaves_no_files(folder):
    # The core computes without Python meanwhile; a training that sleeps instead would test nothing.
    big = "from ramify.data.synthetic import make_multilabel as m; from ramify.data import save_xmc as s; "
    big += "d = m(20000, 3000, 20000); s('big.txt', d.X, d.Y)"
    subprocess.run([sys.executable, "-c", big], cwd=folder, check=True)
    before = set(folder.iterdir())
    arguments = ["train", "big.txt", "--model", "new", "--n-trees", "200", "--tree", "one_level", "--threads", "1"]
    process = subprocess.Popen([*RAMIFY, *arguments], cwd=folder, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    start = time.perf_counter()
    _, said = process.communicate(timeout=60)
    assert time.perf_counter() - start < 5
    assert process.returncode == 130
    assert said == "error: interrupted; nothing was written\n"
    assert set(folder.iterdir()) == before


def test_a_reader_that_goes_away_is_no_error(folder):
    line = (folder / "test.txt").read_text().splitlines()
    (folder / "long.txt").write_text("\n".join(["60000 300 40", *(line[1:61] * 1000)]) + "\n")
    command = [*RAMIFY, "predict", "long.txt", "--model", "model", "--json"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert json.loads(first)["row"] == 1
    assert said == b""


def test_a_line_on_stdin_is_answered_before_the_next_one_comes(folder):
    command = [*RAMIFY, "predict", "--model", "notes-model", "--json"]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for text in ("nosebleed", "acute chest pain"):
        process.stdin.write(text + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["text"] == text
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def test_a_terminal_that_knows_only_ascii_gets_what_it_can_show(folder):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    (folder / "umlaut.jsonl").write_text('{"text": "\\u00dcbelkeit", "labels": ["R11 \\u00dc"]}\n' * 4)
    for arguments in (
        ["train", "umlaut.jsonl", "--model", "u"],
        ["tree", "--model", "u"],
        ["explain", "--model", "u", "--text", "Übelkeit"],
    ):
        done = subprocess.run([*RAMIFY, *arguments], cwd=folder, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
        done.stdout.decode("ascii")


def _in_terminal(arguments, folder):
    """Everything that a command writes to a terminal of its own."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    process = subprocess.Popen(
        [*RAMIFY, *arguments], cwd=folder, stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    said = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:  # Linux says so when the other side has closed
            break
        if not block:
            break
        said += block
    os.close(leader)
    return process.wait(timeout=60), said.decode()


def test_in_a_terminal_training_shows_its_phases_and_gives_the_cursor_back(folder):
    code, said = _in_terminal(["train", "train.txt", "--model", "new"], folder)
    assert code == 0
    assert "reading train.txt" in said or "building the tree" in said or "training" in said
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")
    assert "Trained 300 rows" in said.rpartition("\x1b[?25h")[2]


def test_predict_in_a_terminal_without_input_says_what_it_needs(folder):
    code, said = _in_terminal(["predict", "--model", "notes-model"], folder)
    assert code == 2
    assert "no input: give a file, --text" in said
