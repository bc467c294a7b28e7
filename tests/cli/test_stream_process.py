"""`ramify stream` as a process: interrupted, starved; what it said is saved is there. Kills: attacks/test_kills.py."""

from __future__ import annotations

import array
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time

import numpy as np
import pytest

import ramify
from cli_workspace import read_terminal
from ramify.data import save_xmc
from ramify.data.synthetic import make_multilabel
from shared.warm_python import ramify_command

N_ROWS = 1500


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    data = make_multilabel(N_ROWS, 120, 800, random_state=9)
    path = tmp_path_factory.mktemp("stream") / "train.txt"
    save_xmc(path, data.X, data.Y)
    return path.read_bytes().splitlines(keepends=True)[1:]


def start(folder, *arguments, **options):
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    command = [
        *ramify_command(),  # a process of its own: signals must reach it before its input ends
        "stream",
        "--model",
        "model",
        "--format",
        "xmc",
        "--threads",
        "1",
        *map(str, arguments),
    ]
    # A shell that starts tests in the background has Ctrl-C ignored, and children inherit that.
    return subprocess.Popen(
        command, cwd=folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), **options
    )


def wait_until_read(pipe):
    """Wait until the process at the other end has read all that was written."""
    waiting = array.array("i", [1])
    while waiting[0]:
        time.sleep(0.01)
        fcntl.ioctl(pipe, termios.FIONREAD, waiting)


def stopped(process, number):
    """What a process says when it is asked to stop; its input stays open, so that the signal comes first."""
    wait_until_read(process.stdin)
    process.send_signal(number)
    process.wait(timeout=60)
    return process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_asked_to_stop_it_saves_all_whole_lines_that_came(tmp_path, lines, number, code):
    process = start(tmp_path, "--save-every", 100)
    process.stdin.write(b"".join(lines[:250]) + lines[250][:20])
    process.stdin.flush()
    said, error = stopped(process, number)
    assert process.returncode == code, error
    assert b"saved 250 examples\nStopped by " + number.name.encode() in said
    assert ramify.load(tmp_path / "model").n_examples_ == 250


def test_asked_to_stop_before_a_whole_line_came_it_says_so(tmp_path):
    process = start(tmp_path)
    process.stdin.write(b"3,7 ")
    process.stdin.flush()
    _, error = stopped(process, signal.SIGTERM)
    assert process.returncode == 2
    assert b"no rows arrived before SIGTERM" in error
    assert not (tmp_path / "model").exists()


def test_each_line_is_learned_as_it_comes(tmp_path, lines):
    process = start(tmp_path, "--save-every", 1)
    for number in range(1, 4):
        process.stdin.write(lines[number])
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], 30)
        assert ready
        assert process.stdout.readline().startswith(f"saved {number} example".encode())
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_what_was_learned_is_saved_when_the_reader_closes_the_pipe(tmp_path, lines):
    process = start(tmp_path, "--save-every", 100)
    process.stdin.write(b"".join(lines[:150]))
    process.stdin.flush()
    assert process.stdout.readline() == b"saved 100 examples\n"
    process.stdout.close()
    process.stdin.write(b"".join(lines[150:260]))
    process.stdin.close()
    assert process.wait(timeout=120) == 141
    assert process.stderr.read() == b""
    assert ramify.load(tmp_path / "model").n_examples_ in (200, 260)
    process.stderr.close()


def test_a_terminal_sees_a_table_that_stays(tmp_path, lines):
    (tmp_path / "lines.txt").write_bytes(b"".join(lines))
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "100", "TERM": "xterm"}
    process = start(
        tmp_path, "lines.txt", "--test-first", "--window", 500, stdin=follower, stdout=follower, stderr=follower,
        env=environment,
    )  # fmt: skip
    os.close(follower)
    said = read_terminal(leader)
    assert process.wait(timeout=120) == 0
    assert "all P@1" in said
    assert "saved 1,500 examples" in said
    assert "Learned 1,500 examples" in said
    assert np.isfinite(ramify.load(tmp_path / "model").memory_)
