"""Small files do not fill the memory: gzip and npz expand only so far, and widths must fit the size of a file."""

from __future__ import annotations

import gzip
import io
import time
import zipfile

import numpy as np
import pytest

from ramify.cli.main import run
from ramify.cli.stream.input import StopSignal, blocks_of, opened
from ramify.data import DataError, load_data, load_jsonl, load_libsvm, load_npz, load_xmc, max_unpacked, read_names
from ramify.data.files import split_lines
from ramify.data.lines import iter_batches

BOMB = 70_000_000
READERS = {
    "xmc": load_xmc,
    "libsvm": load_libsvm,
    "jsonl": load_jsonl,
    "any": load_data,
    "names": read_names,
    "batches": lambda path: list(iter_batches(path, "xmc")),
}


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A file of 70 kB that expands a thousandfold."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.txt.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(BOMB // 1_000_000):
            file.write(b" " * 1_000_000)
    assert path.stat().st_size < 200_000
    return path


@pytest.mark.parametrize("reader", READERS)
def test_a_gzip_file_that_expands_a_thousandfold_is_rejected(bomb, reader):
    with pytest.raises(DataError, match="expand to more than 67,108,864 bytes"):
        READERS[reader](bomb)


@pytest.mark.parametrize("command", [["train"], ["stream", "--format", "xmc"], ["--max-unpacked", "1000", "train"]])
def test_the_command_line_rejects_it_and_has_a_flag(bomb, command, tmp_path, capsys):
    model = str(tmp_path / "model")
    assert run([*command, str(bomb), "--model", model]) == 2
    said = capsys.readouterr().err
    assert "expand to more than" in said
    assert "ramify --max-unpacked BYTES" in said


def test_a_limit_can_be_raised_and_lowered(tmp_path, capsys):
    rows = b"1 2 2\n0 0:1\n" + b" " * 1000
    path = tmp_path / "rows.txt.gz"
    path.write_bytes(gzip.compress(rows))
    with max_unpacked(len(rows)):
        assert load_data(path).n_rows == 1
    with max_unpacked(len(rows) - 1), pytest.raises(DataError, match="more than 1,011 bytes"):
        load_data(path)
    assert load_data(path).n_rows == 1
    for bad in (0, -1, 1.5, "1"):
        with pytest.raises(ValueError, match="max_unpacked must be a number of bytes"), max_unpacked(bad):
            pass
    arguments = ["train", str(path), "--model", str(tmp_path / "model")]
    assert run(["--max-unpacked", "1000", *arguments]) == 2
    assert run(["--max-unpacked", "2000", *arguments]) == 0


def test_an_npz_file_whose_members_expand_too_far_is_rejected(tmp_path):
    path = tmp_path / "bomb.npz"
    member = io.BytesIO()
    np.save(member, np.zeros(BOMB // 8))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("ramify_dataset", "x_values"):
            archive.writestr(f"{name}.npy", member.getvalue())
    with pytest.raises(DataError, match="expand to more than"):
        load_npz(path)


HUGE = 2**31 - 1


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.txt", f"1 {HUGE} 2\n0 0:1\n", "features"),
        ("a.txt", f"1 2 {HUGE}\n0 0:1\n", "labels"),
        ("a.svm", f"1 {HUGE - 1}:1\n", "features"),
        ("a.svm", f"{HUGE - 1} 1:1\n", "labels"),
    ],
)
def test_a_few_bytes_cannot_ask_for_billions_of_columns(tmp_path, name, text, what):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=rf"2,147,48\d,\d* {what} in a file of \d+ bytes"):
        load_data(path)
    if name == "a.svm":
        assert load_data(path, n_features=HUGE, n_labels=HUGE).n_rows == 1  # the caller says how wide it is


def test_an_npz_file_cannot_ask_for_billions_of_columns(tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"x_indptr": [0, 1], "x_indices": [0], "x_values": [1], "y_indptr": [0, 1], "y_indices": [0]}
    types = {"x_values": np.float32, "x_indices": np.int32, "y_indices": np.int32}
    given = {key: np.array(value, types.get(key, np.int64)) for key, value in arrays.items()}
    np.savez(path, ramify_dataset=np.array([1]), shape=np.array([1, 5, HUGE]), **given)
    with pytest.raises(DataError, match="labels in a file of"):
        load_npz(path)


def test_a_test_set_of_one_row_may_be_as_wide_as_its_training_set(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("1 337067 2812281\n5 0:1\n")
    assert load_data(path).n_labels == 2_812_281


def test_a_line_takes_time_in_proportion_to_its_length(tmp_path):
    """Joining what came so far with every block took 17 s for 60 MB, 68 s for 120 MB."""
    took = []
    for size in (10_000_000, 80_000_000):
        path = tmp_path / "long.txt"
        path.write_bytes(b"x" * size + b"\nshort\n")
        began = time.process_time()
        with StopSignal() as stop, opened(path) as (name, descriptor):
            blocks = blocks_of(name, descriptor, stop)
            assert [len(line) for lines in split_lines(blocks) for line in lines] == [size, 5]
        took.append(time.process_time() - began)
    assert took[1] < 25 * max(took[0], 0.01)  # eight times as long; 64 times if every block joins all before it
