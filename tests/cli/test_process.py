"""The command as a process: how it starts, stops, and gets on with pipes and terminals."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from cli_workspace import fresh_copy
from ramify.data import save_xmc
from ramify.data.synthetic import make_multilabel
from shared.warm_python import environment, ramify_command, warm_python


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


def test_a_program_has_paid_for_its_imports_when_ramify_is_imported():
    code = "import sys; import ramify; before = set(sys.modules); ramify.load; print(len(set(sys.modules) - before))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "0"


def test_nothing_asked_shows_the_help_and_all_is_well():
    done = subprocess.run(ramify_command(), capture_output=True, text=True)
    assert done.returncode == 0
    assert "ramify demo" in done.stdout


INTERRUPTED = """
import sys, time
from ramify.cli.main import main
from shared.interrupt import interrupt_after
sent = interrupt_after(1.5)
try:
    main()
finally:
    print(time.process_time() - sent[0])
"""


def test_ctrl_c_ends_a_long_training_at_once_and_leaves_no_files(folder):
    # The core computes without Python meanwhile; a training that sleeps instead would test nothing.
    data = make_multilabel(20000, 3000, 20000)
    save_xmc(folder / "big.txt", data.X, data.Y)
    before = set(folder.iterdir())
    arguments = ["train", "big.txt", "--model", "new", "--n-trees", "200", "--tree", "one_level", "--threads", "1"]
    done = subprocess.run(
        [*warm_python(), "-c", INTERRUPTED, *arguments],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 130
    assert done.stderr == "error: interrupted; nothing was written\n"
    assert float(done.stdout) < 4  # seconds of the processor
    assert set(folder.iterdir()) == before


def test_a_reader_that_goes_away_is_no_error(folder):
    line = (folder / "test.txt").read_text().splitlines()
    (folder / "long.txt").write_text("\n".join(["60000 300 40", *(line[1:61] * 1000)]) + "\n")
    command = [*ramify_command(), "predict", "long.txt", "--model", "model", "--json"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert json.loads(first)["row"] == 1
    assert said == b""


def test_a_line_on_stdin_is_answered_before_the_next_one_comes(folder):
    command = [*ramify_command(), "predict", "--model", "notes-model", "--json"]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for text in ("nosebleed", "acute chest pain"):
        process.stdin.write(text + "\n")
        process.stdin.flush()
        assert select.select([process.stdout], [], [], 60)[0]
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
        done = subprocess.run([*ramify_command(), *arguments], cwd=folder, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
        done.stdout.decode("ascii")


def _in_terminal(arguments, folder):
    """Everything that a command writes to a terminal of its own."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    process = subprocess.Popen(
        [*ramify_command(), *arguments], cwd=folder, stdin=follower, stdout=follower, stderr=follower, env=environment
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
    assert "nothing to ask about" in said
