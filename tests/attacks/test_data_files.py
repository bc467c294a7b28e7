"""Damaged data files: every reader of the library and the command line reads them or raises DataError."""

from __future__ import annotations

import atexit
import contextlib
import gzip
import io
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

import ramify
from attacks.driver import attack, damaged, n_inputs, report
from cli_workspace import workspace
from ramify.cli.main import run
from ramify.cli.rows import rows_to_predict
from ramify.cli.stream.input import StopSignal, blocks_of, opened
from ramify.data import DataError, iter_fasttext, load_data, load_jsonl, load_libsvm, load_npz, load_xmc, save_npz
from ramify.data.columns import Columns
from ramify.data.files import split_lines
from ramify.data.lines import LineParser, iter_batches, iter_xmc
from ramify.data.synthetic import make_multilabel

XMC = b"3 9 4\n0,2 0:0.5 8:-1e-3\n3 1:2 1:0.25\n 4:7\n"
LIBSVM = b"0,2 1:0.5 9:-1e-3  # a comment\n3 1:2 4:0.25\n\n1 2:1\n"
JSONL = (
    '{"text": "acute chest pain", "labels": ["R07.9"]}\n\n{"text": "Übelkeit \\ud83d\\ude00", "labels": []}\n'
    '{"labels": ["a, b", "c"], "text": "", "id": 7}\n'
).encode()
FASTTEXT = "__label__R07.9 __label__x acute chest pain\n\nÜbelkeit __label__y\n".encode()


FOLDER = Path(tempfile.mkdtemp(prefix="ramify-attacks-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def consumed(rows):
    for _ in rows:
        pass


READERS = {
    "xmc": (
        XMC,
        [load_xmc, lambda path: consumed(iter_xmc(path, 2)), lambda path: consumed(iter_batches(path, "xmc"))],
    ),
    "libsvm": (LIBSVM, [load_libsvm, lambda path: consumed(iter_batches(path, "libsvm"))]),
    "jsonl": (JSONL, [load_jsonl, lambda path: consumed(iter_batches(path, "jsonl"))]),
    "fasttext": (FASTTEXT, [lambda path: consumed(iter_fasttext(path))]),
    "any": (XMC, [load_data]),
}


def attack_text(count, seed, format, is_packed=False):
    """Damage text of a format, or its gzip form, and read it with one of the readers."""
    content, readers = READERS[format]
    path = FOLDER / "damaged"
    sound = gzip.compress(content, mtime=0) if is_packed else content

    def one_input(generator):
        path.write_bytes(damaged(sound, generator))
        generator.choice(readers)(path)
        return "ok"

    return attack(one_input, count, seed, (DataError,))


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("format", READERS)
def test_damaged_text_is_read_or_rejected(format, is_packed):
    outcomes = attack_text(n_inputs(300), 1, format, is_packed)
    report(f"{format} {'gzip' if is_packed else 'plain'}", outcomes)
    assert outcomes["DataError"]


def attack_npz(count, seed):
    """Damage an npz file as a whole, and the arrays inside, with right checksums."""
    path = FOLDER / "damaged.npz"
    data = make_multilabel(5, 4, 9, random_state=0)
    save_npz(path, data.X, data.Y, label_names=list("abcd"))
    sound = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(sound)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def one_input(generator):
        if generator.random() < 0.4:
            path.write_bytes(damaged(sound, generator))
        else:
            chosen = generator.choice(sorted(members))
            changed = {**members, chosen: damaged(members[chosen], generator)}
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in changed.items():
                    archive.writestr(name, content)
        load_npz(path)
        return "ok"

    return attack(one_input, count, seed, (DataError,))


def test_a_damaged_npz_file_is_read_or_rejected():
    outcomes = attack_npz(n_inputs(1000), 2)
    report("npz", outcomes)
    assert outcomes["DataError"]


def attack_stream_lines(count, seed):
    """Damaged lines as `ramify stream` reads them: bad ones are skipped, the rest are rows."""
    path = FOLDER / "lines"
    sound = {"xmc": XMC, "libsvm": LIBSVM, "jsonl": JSONL}

    def one_input(generator):
        format = generator.choice(sorted(sound))
        content = gzip.compress(sound[format], mtime=0) if generator.random() < 0.2 else sound[format]
        path.write_bytes(damaged(content, generator))
        skipped = []
        parser = LineParser(format, path, one_label=generator.random() < 0.3, on_bad_line=skipped.append)
        with StopSignal() as stop, opened(path) as (name, descriptor):
            for lines in split_lines(blocks_of(name, descriptor, stop)):
                consumed(parser.parse(lines))
        return "skipped" if skipped else "ok"

    return attack(one_input, count, seed, (DataError,))


def test_damaged_lines_of_a_stream_are_skipped():
    outcomes = attack_stream_lines(n_inputs(1000), 3)
    report("stream lines", outcomes)
    assert outcomes["skipped"]
    assert outcomes["ok"]


# --- the command line ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def stdin_of(content):
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(content))
    try:
        yield
    finally:
        sys.stdin = before


def attack_predict(count, seed):
    """Damaged rows for a model of texts and a model of numbers, in files and on stdin."""
    models = {name: ramify.load(workspace() / name) for name in ("model", "notes-model")}
    numbers = b"\n".join((workspace() / "test.txt").read_bytes().splitlines()[:4]).replace(b"60 ", b"3 ", 1) + b"\n"
    sound = [numbers, XMC, LIBSVM, JSONL, FASTTEXT, b"acute chest pain\nnosebleed\n", b"text,labels\nnosebleed,R04.0\n"]
    path = FOLDER / "rows.txt"

    def one_input(generator):
        model = models[generator.choice(sorted(models))]
        content = damaged(generator.choice(sound), generator)
        if generator.random() < 0.5:
            path.write_bytes(content)
            chunks = rows_to_predict(model, path, None, None, Columns(), threads=1)
            for chunk in chunks:
                model.predict_labels(chunk.X, 2)
            return "ok"
        with stdin_of(content):
            for chunk in rows_to_predict(model, None, None, None, Columns(), threads=1):
                model.predict_labels(chunk.X, 2)
        return "ok"

    return attack(one_input, count, seed, (DataError, ValueError))


def test_damaged_rows_to_predict_are_answered_or_rejected():
    outcomes = attack_predict(n_inputs(500), 4)
    report("predict", outcomes)
    assert {"ok", "DataError", "ValueError"} == set(outcomes)


COMMANDS = {
    "train": ["train", "ROWS", "--model", "NEW"],
    "predict": ["predict", "ROWS", "--model", "notes-model", "--json"],
    "evaluate": ["evaluate", "ROWS", "--model", "notes-model", "--json"],
    "stream": ["stream", "ROWS", "--model", "NEW", "--json", "--skip-bad-lines"],
    "convert": ["convert", "ROWS", "NEW.npz"],
}


def attack_commands(count, seed):
    """Damaged files through whole commands: they succeed or exit with 2, never with 1."""
    path = FOLDER / "rows.jsonl"
    places = {"ROWS": str(path), "notes-model": str(workspace() / "notes-model"), "NEW.npz": str(FOLDER / "new.npz")}

    def one_input(generator):
        path.write_bytes(damaged(JSONL * 3, generator))
        name = generator.choice(sorted(COMMANDS))
        places["NEW"] = str(FOLDER / name)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = run([places.get(word, word) for word in COMMANDS[name]])
        assert code in (0, 2), said.getvalue()
        assert code == 0 or said.getvalue().splitlines()[-1].startswith(("error: ", "hint: ")), said.getvalue()
        return f"{name} exit {code}"

    return attack(one_input, count, seed, ())


def test_commands_never_fail_unexpectedly():
    outcomes = attack_commands(n_inputs(40), 5)
    report("commands", outcomes)
    assert {name.split()[0] for name in outcomes} == set(COMMANDS)
