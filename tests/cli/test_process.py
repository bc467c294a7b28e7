"""The command as a process: how it starts, stops, and gets on with pipes and terminals."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_workspace import RAMIFY, fresh_copy, in_terminal, read_terminal
from ramify.cli import main
from ramify.data import save_xmc
from ramify.data.synthetic import make_multilabel
from shared.warm_python import ramify_command


@pytest.fixture
def folder(tmp_path):
    return fresh_copy(tmp_path)


def CTRL_C():
    """A shell that starts tests in the background ignores Ctrl-C, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def cpu_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_without(channel, arguments, folder):
    """Run a command with stdin (0), stdout (1) or stderr (2) closed."""
    return subprocess.run(
        [*RAMIFY, *arguments], cwd=folder, capture_output=True, text=True, preexec_fn=lambda: os.close(channel)
    )


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


def test_no_arguments_show_the_help_and_exit_with_0():
    done = subprocess.run(ramify_command(), capture_output=True, text=True)
    assert done.returncode == 0
    assert "ramify demo" in done.stdout


def test_ctrl_c_ends_a_long_training_at_once_and_leaves_no_files(folder):
    # The core computes without Python meanwhile; a training that sleeps instead would test nothing.
    data = make_multilabel(5000, 3000, 20000)
    save_xmc(folder / "big.txt", data.X, data.Y)
    before = set(folder.iterdir())
    arguments = ["train", "big.txt", "--model", "new", "--n-trees", "200", "--tree", "one_level", "--threads", "1"]
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    process = subprocess.Popen([*RAMIFY, *arguments], cwd=folder, stderr=follower, env=environment, preexec_fn=CTRL_C)
    os.close(follower)
    said = b""
    while b"choosing" not in said:  # the phase that the terminal shows, most of the work of this training
        said += os.read(leader, 65536)
    used = cpu_seconds(process.pid)
    process.send_signal(signal.SIGINT)
    said = read_terminal(leader)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 130
    # Seconds of computing after the signal, however busy the machine is.
    assert usage.ru_utime + usage.ru_stime - used < 5
    assert said.replace("\r", "").endswith("interrupted\n")
    assert "Traceback" not in said
    assert set(folder.iterdir()) == before


# Ctrl-C arrives as a module begins to load: before the command line is there, and while a command imports.
INTERRUPTED_IMPORT = """
import os, signal, sys

module = sys.argv.pop(1)

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from ramify.cli.start import main
main()
"""
MODULES = ["ramify.cli.main", "typing", "ramify.cli.app", "typer", "ramify.cli.commands.tune", "ramify.cli.data"]
MODULES += ["numpy", "ramify._core", "scipy.sparse", "sklearn.base", "ramify.models.plt.classifier"]


@pytest.mark.parametrize("module", MODULES)
def test_ctrl_c_while_modules_are_loaded_ends_quietly(folder, module):
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module, "train", "train.txt", "--model", "new"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=CTRL_C)
    assert done.returncode == 130, done.stderr
    assert done.stdout == ""
    assert done.stderr in ("", "interrupted\n")
    assert not (folder / "new").exists()


def test_ctrl_c_after_the_work_is_done_changes_nothing():
    code = "import atexit, os, signal; atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); "
    code += "from ramify.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, preexec_fn=CTRL_C)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_where_python_drops_exceptions_is_not_lost():
    code = """
import signal, time
from ramify.cli import main

class Droppable:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        "work that is not interrupted"

def import_callback():
    cb = "def cb(): signal.raise_signal(signal.SIGINT)"
    exec(compile(cb, "<frozen importlib._bootstrap>", "exec"), globals())
    globals()["cb"]()

def command():
    START()
    time.sleep(600)

signal.signal(signal.SIGINT, main._interrupt)
import ramify.cli.app
ramify.cli.app.app.command("wait")(command)
main.sys.exit(main.run(["wait"]))
"""
    for start in ("Droppable", "import_callback"):
        program = code.replace("START", start)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_ctrl_c_that_a_library_turns_into_another_error_is_still_ctrl_c(monkeypatch, capsys):
    def load(*_):
        try:
            main._interrupt(signal.SIGINT, None)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    monkeypatch.setattr("ramify.cli.models.load_model", load)
    assert main.run(["tree", "--model", "model"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_command_in_the_background_goes_on_ignoring_ctrl_c(folder):
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    command = [sys.executable, "-c", INTERRUPTED_IMPORT, "scipy.sparse", "train", "train.txt", "--model", "new"]
    assert subprocess.run(command, cwd=folder, capture_output=True, preexec_fn=ignore).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "--model", "notes-model"], "error: no input, stdin is closed: give a file, --text, or texts"),
        (["predict", "-", "--model", "notes-model"], "error: no input, stdin is closed"),
        (["stream", "--model", "new"], "error: no input, stdin is closed: give a file, or lines"),
        (["stream", "-", "--model", "new"], "error: no input, stdin is closed"),
    ],
)
def test_a_closed_stdin_is_refused_with_what_to_give_instead(folder, arguments, message):
    done = run_without(0, arguments, folder)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1


def test_commands_that_need_no_stdin_run_without_one(folder):
    assert run_without(0, ["predict", "test.txt", "--model", "model"], folder).returncode == 0


@pytest.mark.parametrize("channel", [1, 2])
def test_a_closed_stdout_or_stderr_changes_nothing_else(folder, channel):
    for arguments in (["predict", "test.txt", "--model", "model"], ["train", "train.txt", "--model", "new"]):
        done = run_without(channel, arguments, folder)
        assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "new" / "manifest.json").exists()
    assert run_without(channel, ["predict", "nosuch.txt", "--model", "model"], folder).returncode == 2


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
    command = [*RAMIFY, "predict", "--model", "notes-model", "--json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=buffered
    )
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


def test_in_a_terminal_training_shows_its_phases_and_gives_the_cursor_back(folder):
    code, said = in_terminal(["train", "train.txt", "--model", "new"], folder)
    assert code == 0
    assert "reading train.txt" in said or "building the tree" in said or "training" in said
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")
    assert "Trained 300 rows" in said.rpartition("\x1b[?25h")[2]


def test_predict_in_a_terminal_without_input_says_what_it_needs(folder):
    code, said = in_terminal(["predict", "--model", "notes-model"], folder)
    assert code == 2
    assert "no input: give a file, --text" in said
