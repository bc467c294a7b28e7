"""Opening files: errors before the first row, and atomic writing."""

from __future__ import annotations

import doctest
import gzip
import importlib
import os
import pickle
from pathlib import Path

import pytest

from ramify.data import DataError, load_data, load_jsonl, load_npz, load_xmc, read_names
from ramify.data.files import replaced_when_complete

TINY = b"1 2 3\n0,2 0:0.5\n"


@pytest.mark.parametrize("module", ["dataset", "errors", "jsonl", "load", "synthetic", "text", "xmc"])
def test_examples_in_docstrings_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"ramify.data.{module}"))
    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.parametrize("load", [load_data, load_xmc, load_jsonl, load_npz, read_names])
class TestFilesThatCannotBeOpened:
    def test_a_missing_file_is_named_with_a_similar_file(self, tmp_path, load):
        (tmp_path / "train.txt.gz").write_bytes(b"")
        with pytest.raises(DataError, match=r"train\.txt: there is no such file\nhint: did you mean train\.txt\.gz\?"):
            load(tmp_path / "train.txt")

    def test_a_missing_directory_is_named(self, tmp_path, load):
        with pytest.raises(DataError, match="nowhere does not exist either"):
            load(tmp_path / "nowhere" / "train.txt")

    def test_a_directory_is_rejected_and_its_files_are_suggested(self, tmp_path, load):
        (tmp_path / "train.txt").write_bytes(TINY)
        with pytest.raises(DataError, match=r"a directory, not a file\nhint: choose one of its files: train\.txt"):
            load(tmp_path)


@pytest.mark.parametrize("n_bytes", [3, 12, 40])
@pytest.mark.parametrize("load", [load_data, load_xmc, load_jsonl, read_names])
def test_truncated_gzip_is_rejected(tmp_path, load, n_bytes):
    path = tmp_path / "train.txt"
    path.write_bytes(gzip.compress(TINY * 1000, mtime=0)[:n_bytes])
    with pytest.raises(DataError, match="broken gzip data") as caught:
        load(path)
    assert caught.value.path == str(path)
    assert caught.value.hint is not None


def test_damaged_gzip_is_rejected(tmp_path):
    packed = bytearray(gzip.compress(os.urandom(200), mtime=0))
    packed[-6] ^= 1  # the checksum
    (tmp_path / "a.txt").write_bytes(packed)
    with pytest.raises(DataError, match="broken gzip data"):
        load_xmc(tmp_path / "a.txt")


@pytest.mark.parametrize("load", [load_data, load_xmc, load_jsonl])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"\x7fELF\x02\x01\0\0", "a binary file"),
        ("1 2 3\n".encode("utf-16-le"), "a binary file"),
    ],
)
def test_content_that_is_not_text_is_rejected(tmp_path, load, content, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "a.txt")


def test_names_keep_umlauts_and_commas_without_line_ends(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes(gzip.compress("\ufeffÄrger, groß\r\nb \n\n".encode()))
    assert read_names(path) == ["Ärger, groß", "b "]


def test_a_missing_name_is_rejected(tmp_path):
    (tmp_path / "labels.txt").write_text("a\n\nb\n")
    with pytest.raises(DataError, match="line 2: a name is missing"):
        read_names(tmp_path / "labels.txt")


def test_invalid_utf8_is_reported_with_line_and_column(tmp_path):
    (tmp_path / "labels.txt").write_bytes("a\nüb".encode() + b"\xff\n")
    with pytest.raises(DataError, match="line 2, column 3: byte 0xff is not UTF-8"):
        read_names(tmp_path / "labels.txt")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write_half() -> None:
        with replaced_when_complete(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert os.listdir(tmp_path) == ["a.txt"]
    assert path.read_text() == "old"


def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    def write_too_much() -> None:
        with replaced_when_complete(tmp_path / "a.txt"), open("/dev/full", "wb", buffering=0) as full:
            full.write(b"new")

    with pytest.raises(OSError, match=r"No space left on device; the file was not written: '.*a\.txt'"):
        write_too_much()
    assert not os.listdir(tmp_path)


def test_gzip_files_of_the_same_content_are_identical(tmp_path):
    for name in ("a.gz", "b.gz"):
        with replaced_when_complete(tmp_path / name) as stream:
            stream.write(b"text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"


def test_writing_into_a_missing_directory_is_rejected(tmp_path):
    with pytest.raises(DataError, match="its directory does not exist"), replaced_when_complete(tmp_path / "x" / "y"):
        pass


def test_a_written_file_has_the_usual_mode(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    with replaced_when_complete(tmp_path / "a.txt"):
        pass
    assert Path(tmp_path / "a.txt").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_the_error_can_be_pickled():
    """Worker processes send their errors this way."""
    error = pickle.loads(pickle.dumps(DataError("bad", "a.txt", 3, 4, "fix it")))
    assert (error.message, error.path, error.line, error.column, error.hint) == ("bad", "a.txt", 3, 4, "fix it")
    assert str(error) == "a.txt, line 3, column 4: bad\nhint: fix it"
