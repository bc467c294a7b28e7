"""Rows to ask about, a chunk at a time: from a file of any format, from the command line, from stdin."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ramify.cli.labelled import check_fits, read_for
from ramify.cli.options import DataFormat, RowFormat
from ramify.data import DataError, iter_fasttext, iter_jsonl
from ramify.data.files import check_is_text, iter_lines, read_start
from ramify.data.load import find_format
from ramify.data.streaming import iter_xmc

CHUNK = 4096


@dataclass(frozen=True)
class Chunk:
    """Some rows: their X, and the texts where they are texts."""

    X: Any
    texts: Sequence[str] | None = None


def rows_to_ask(
    model: Any, path: Path | None, texts: Sequence[str] | None, format: RowFormat | None, threads: int = -1
) -> Iterator[Chunk]:
    """The rows that a command line names: `--text`, a file, or stdin ("-", or nothing at all in a pipe)."""
    if texts:
        if path is not None:
            raise ValueError("give either --text or a file, not both")
        check_takes_text(model, "--text")
        return iter([Chunk(list(texts), texts)])
    if path is None and sys.stdin.isatty():
        raise ValueError("nothing to ask about: give a file, --text, or texts on stdin, one a line")
    if path is None or str(path) == "-":
        check_takes_text(model, "stdin")
        return _from_stdin(sys.stdin.buffer)
    return _from_file(model, path, format, threads)


def one_row(model: Any, path: Path, number: int, format: RowFormat | None) -> Any:
    """Row `number` (from 1) of a file, as `explain` takes it."""
    seen = 0
    for chunk in _from_file(model, path, format, 1):
        size = len(chunk.X) if isinstance(chunk.X, list) else chunk.X.shape[0]
        if number <= seen + size:
            position = number - seen - 1
            return chunk.X[position] if isinstance(chunk.X, list) else chunk.X[[position]]
        seen += size
    raise DataError(f"there is no row {number}: the file has {seen}", path, hint="rows count from 1")


def check_takes_text(model: Any, source: str) -> None:
    if not hasattr(model, "vectorizer_"):
        raise ValueError(
            f"{source} gives texts, but the model was trained on numbers\n"
            f"hint: give a file with rows of {model.n_features_in_} features"
        )


def _from_file(model: Any, path: Path, format: RowFormat | None, threads: int) -> Iterator[Chunk]:
    kind = _kind_of(model, path) if format is None else format.value
    if kind in ("text", "jsonl", "fasttext"):
        check_is_text(read_start(path, 4096), path)
        check_fits(model, [], path)
        lines = (text for _, text in iter_lines(path)) if kind == "text" else _texts(path, kind)
        return (Chunk(texts, texts) for texts in _in_chunks(lines))
    if kind == "xmc":
        return _from_xmc(model, path, threads)
    return iter([Chunk(read_for(model, path, DataFormat(kind), threads).X)])


def _kind_of(model: Any, path: Path) -> str:
    kind = find_format(path)
    # Anything that is not recognised counts as XMC; for a model of texts it is more likely to be just that.
    if kind in ("xmc", "libsvm") and hasattr(model, "vectorizer_"):
        return "text"
    return kind


def _texts(path: Path, kind: str) -> Iterator[str]:
    records = iter_jsonl(path, labels_required=False) if kind == "jsonl" else iter_fasttext(path)
    return (record.text for record in records)


def _in_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    texts = iter(texts)
    while chunk := list(itertools.islice(texts, CHUNK)):
        yield chunk


def _from_xmc(model: Any, path: Path, threads: int) -> Iterator[Chunk]:
    for data in iter_xmc(path, CHUNK, n_jobs=threads):
        check_fits(model, data.X, path)
        yield Chunk(data.X)


def _from_stdin(stream: BinaryIO) -> Iterator[Chunk]:
    """Whatever lines have come, at once: a person or a slow program gets the answer to each line as it is written."""
    left = b""
    line_number = 0
    while True:
        block = stream.read1(1 << 16) if hasattr(stream, "read1") else stream.read(1 << 16)
        lines = (left + block).split(b"\n")
        left = lines.pop() if block else b""
        if not block and lines == [b""]:
            return
        texts = []
        for line in lines:
            line_number += 1
            try:
                texts.append(line.decode("utf-8").rstrip("\r"))
            except UnicodeDecodeError:
                raise DataError("this is not UTF-8", "stdin", line_number, hint="convert it to UTF-8 first") from None
        if texts:
            yield Chunk(texts, texts)
        if not block:
            return
