"""`kill -9` of `ramify stream` at random moments: each checkpoint equals that of an uninterrupted run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import ramify
from attacks.driver import n_inputs, report
from cli_workspace import RAMIFY
from ramify import OnlinePLTClassifier
from ramify.cli.main import run
from ramify.data.synthetic import make_multilabel

N_ROWS, SAVE_EVERY = 3000, 17


def attack_stream_with_kills(count, seed):
    """Kill `count` streams, each resumed from the last; after each kill compare the checkpoint with its reference.

    The reference has learned the same number of rows in one process. When all rows are learned, a new model starts.
    """
    data = make_multilabel(N_ROWS, 60, 400, features_per_row=20, random_state=9)
    rows = [tuple(labels.tolist()) for labels in np.split(data.Y.indices, data.Y.indptr[1:-1])]
    moments, outcomes = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory(prefix="ramify-kills-") as name:
        folder = Path(name)
        _write_lines(folder / "lines.txt", data.X, rows)
        _write_lines(folder / "one.txt", data.X, rows[:1])
        with contextlib.redirect_stdout(io.StringIO()):  # imports what every copy of this process needs
            assert run(["stream", str(folder / "one.txt"), "--model", str(folder / "one"), "--format", "xmc"]) == 0
        number, reference, known = 0, OnlinePLTClassifier(random_state=0), 0
        while outcomes["killed"] < count:
            killed, acknowledged = _stream(folder, f"model-{number}", moments)
            outcomes["killed" if killed else "finished"] += 1
            if not (folder / f"model-{number}" / "manifest.json").exists():
                assert acknowledged == 0
                outcomes["before the first save"] += 1
                continue
            model = ramify.load(folder / f"model-{number}", verify=True)
            held = model.n_examples_
            assert held >= max(acknowledged, known), f"{held} rows held, {acknowledged} acknowledged, {known} before"
            assert held == N_ROWS or held % SAVE_EVERY == 0
            if held > known:
                reference.partial_fit(data.X[known:held], rows[known:held])
            assert _state(model) == _state(reference), f"the checkpoint differs after {held} rows"
            outcomes["identical"] += 1
            known = held
            if held == N_ROWS:
                # What killed saves left behind is swept away by the next one; the last may have been killed itself.
                if killed:
                    model.save(folder / f"model-{number}")
                assert len(list((folder / f"model-{number}").iterdir())) == 2
                number, reference, known = number + 1, OnlinePLTClassifier(random_state=0), 0
    return outcomes


def _write_lines(path, X, rows):
    with path.open("w") as file:
        for row, labels in enumerate(rows):
            start, stop = X.indptr[row : row + 2]
            features = zip(X.indices[start:stop], X.data[start:stop], strict=True)
            values = " ".join(f"{index}:{value:.9g}" for index, value in features)
            print(",".join(map(str, labels)), values, file=file)


def _stream(folder, model, moments):
    """Start the command and kill it; whether it was killed, and the number of examples it said to have saved."""
    command = ["stream", "lines.txt", "--model", model, "--format", "xmc", "--threads", "1", "--json", "--skip-seen"]
    command += ["--save-every", str(SAVE_EVERY)]
    if moments.random() < 0.05:  # in a fresh interpreter, at any moment of its start too
        process, reader = _fresh_process(command, folder)
        said, delay = b"", moments.uniform(0, 2)
    else:
        process, reader = _forked_process(command, folder)
        said, delay = reader.readline(), moments.uniform(0, 0.1)
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    said += reader.read()
    reader.close()
    _, status = os.waitpid(process, 0)
    whole = said.rpartition(b"\n")[0].splitlines()
    saved = [event["examples"] for event in map(json.loads, whole) if event["event"] == "saved"]
    return os.WIFSIGNALED(status), max(saved, default=0)


def _fresh_process(command, folder):
    process = subprocess.Popen([*RAMIFY, *command], cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    process.returncode = 0  # it is waited for by its number
    return process.pid, process.stdout


def _forked_process(command, folder):
    """A copy of this process, which has imported everything already, runs the command."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.chdir(folder)
            os.dup2(writer, 1)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  (pytest may have replaced it)
            os._exit(run(command))
        finally:
            os._exit(1)
    os.close(writer)
    return process, open(reader, "rb")


def _state(model):
    arrays = model.model_.learner.state(1)
    return {name: array.tobytes() for name, array in arrays.items()} | {"labels": model.schema_.labels.classes.tolist()}


def test_every_checkpoint_after_a_kill_is_that_of_an_uninterrupted_run():
    outcomes = attack_stream_with_kills(min(n_inputs(20), 200), 7)
    report("kill -9 of ramify stream", outcomes)
    assert outcomes["identical"] >= 15
