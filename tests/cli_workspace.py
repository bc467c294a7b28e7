"""Small files and models for tests of the command line, made once and copied for each test that writes."""

from __future__ import annotations

import atexit
import functools
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ramify.cli.main import run
from ramify.data import save_xmc
from ramify.data.synthetic import make_multilabel
from shared.warm_python import ramify_command

# The command as a process of its own.
RAMIFY = [sys.executable, "-c", "from ramify.cli.start import main; main()"]

NOTES = [
    ("acute chest pain", ["R07.9"]),
    ("chest pain on breathing", ["R07.1"]),
    ("pain in throat", ["R07.0"]),
    ("nosebleed", ["R04.0"]),
    ("epistaxis, recurrent", ["R04.0"]),
    ("cough with blood", ["R04.2", "R05"]),
    ("unclear", []),
] * 8
NAMES = {
    "R07.9": "Chest pain, unspecified",
    "R07.1": "Chest pain on breathing",
    "R07.0": "Pain in throat",
    "R04.0": "Epistaxis",
    "R04.2": "Hemoptysis",
    "R05": "Cough",
}
N_LABELS, N_FEATURES, N_TEST = 40, 300, 60


@functools.cache
def workspace() -> Path:
    """A folder with train.txt, valid.txt, test.txt, notes.jsonl, names and two trained models; not to be written to."""
    folder = Path(tempfile.mkdtemp(prefix="ramify-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sets = (("train.txt", "train", 300), ("valid.txt", "validation", N_TEST), ("test.txt", "test", N_TEST))
    for name, split, n_rows in sets:
        data = make_multilabel(n_rows, N_LABELS, N_FEATURES, split=split, random_state=3)
        save_xmc(folder / name, data.X, data.Y)
    lines = [json.dumps({"text": text, "labels": labels}) for text, labels in NOTES]
    (folder / "notes.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "codes.tsv").write_text("".join(f"{label}\t{name}\n" for label, name in NAMES.items()))
    (folder / "names.txt").write_text("".join(f"topic {column}\n" for column in range(N_LABELS)))
    (folder / "texts.txt").write_text("pain in the chest\nnosebleed\n")
    for data, model, names in (("train.txt", "model", "names.txt"), ("notes.jsonl", "notes-model", "codes.tsv")):
        arguments = ["train", folder / data, "--model", folder / model, "--label-names", folder / names]
        assert run([*map(str, arguments), "--arity", "2", "--max-leaf", "8"]) == 0
    return folder


def fresh_copy(folder: Path) -> Path:
    """The workspace's files in a folder of the test's own."""
    shutil.copytree(workspace(), folder, dirs_exist_ok=True)
    return folder


def read_terminal(leader: int) -> str:
    """What is written to a terminal until the other side closes it."""
    said = b""
    while True:
        try:
            block = os.read(leader, 65536)
        except OSError:  # Linux reports the end this way
            break
        if not block:
            break
        said += block
    os.close(leader)
    return said.decode()


def in_terminal(arguments: list[str], folder: Path, **environment: str) -> tuple[int, str]:
    """The exit code of a command, and what it writes to a terminal of its own."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(
        [*ramify_command(), *arguments], cwd=folder, stdin=follower, stdout=follower, stderr=follower, env=environment
    )
    os.close(follower)
    said = read_terminal(leader)
    return process.wait(timeout=60), said
