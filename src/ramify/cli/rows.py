"""Rows to predict, in chunks: of a file, of `--text`, or of stdin as they arrive."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ramify.cli.data import check_fits, check_libsvm_fits, read_for
from ramify.cli.models import takes_text
from ramify.cli.options import DataFormat, RowFormat
from ramify.cli.sources import is_stream, opened_stream
from ramify.common.progress import RowCounter
from ramify.data import Columns, DataError, TextFile
from ramify.data.columns import TextChunk, TextRow, find_columns
from ramify.data.encodings import utf8_blocks
from ramify.data.files import BYTE_ORDER_MARK, GZIP_MAGIC, ZIP_MAGIC, beginning, check_is_text, read_start
from ramify.data.lines import iter_xmc
from ramify.data.load import ARROW_MAGIC, as_utf8, find_format, format_of_content, holds_numbers, suffix_format
from ramify.data.text_file import CHUNK, TEXT_FORMATS, chunk_of, new_parser

_BINARY = (GZIP_MAGIC, ZIP_MAGIC, *ARROW_MAGIC)
_ADVICE = "give a file, --text, or texts on stdin, one per line"


@dataclass(frozen=True)
class Chunk:
    """Some rows: X; if they are texts, the texts; if they are records, the user's own columns and their names."""

    X: Any
    texts: Sequence[str] | None = None
    source: TextChunk | None = None
    header: Sequence[str] | None = None
    delimiter: str | None = None

    def ids(self, columns: Columns) -> Sequence[Any] | None:
        """What the user calls the rows: the column of `--id-column`."""
        if self.source is None or columns.id is None:
            return None
        if self.source.batch is not None or self.header is not None:
            names = list(self.header or self.source.batch.schema.names)
            place = find_columns(names, columns, "", labels_required=False).id
            if self.source.batch is not None:
                return list(self.source.batch.column(place).to_pylist())
            return [fields[place] for fields in self.source.fields or ()]
        return None if self.source.fields is None else [fields.get(columns.id) for fields in self.source.fields]


def rows_to_predict(
    model: Any,
    path: Path | None,
    texts: Sequence[str] | None,
    format: RowFormat | None,
    columns: Columns,
    *,
    threads: int = -1,
    counter: RowCounter | None = None,
) -> Iterator[Chunk]:
    """The rows that a command line names: `--text`, a file, or stdin ("-", or no file at all in a pipe)."""
    if texts:
        if path is not None:
            raise ValueError("give either --text or a file, not both")
        check_takes_text(model, "--text")
        return iter([Chunk(list(texts), texts)])
    if path is None or is_stream(path):
        return _from_stream(model, path, format, columns, threads)
    return _from_file(model, path, format, columns, threads, counter)


def one_row(model: Any, path: Path, number: int, format: RowFormat | None, columns: Columns) -> Any:
    """Row `number` (from 1) of a file, as `explain` takes it."""
    seen = 0
    for chunk in rows_to_predict(model, path, None, format, columns, threads=1):
        size = n_rows(chunk.X)
        if number <= seen + size:
            position = number - seen - 1
            return chunk.X[position] if isinstance(chunk.X, list) else chunk.X[[position]]
        seen += size
    raise DataError(f"there is no row {number}: the file has {seen}", path, hint="rows count from 1")


def check_takes_text(model: Any, source: str) -> None:
    if not takes_text(model):
        raise ValueError(
            f"{source} gives texts, but the model was trained on numbers\n"
            f"hint: give a file with rows of {model.n_features_in_} features"
        )


def n_rows(X: Any) -> int:
    return len(X) if isinstance(X, list) else int(X.shape[0])


# --- files -----------------------------------------------------------------------------------------------------------


def _from_file(
    model: Any,
    path: Path,
    format: RowFormat | None,
    columns: Columns,
    threads: int,
    counter: RowCounter | None = None,
    name: str | None = None,
) -> Iterator[Chunk]:
    kind = _kind_of(model, path, columns) if format is None else format.value
    if format is None:
        check_libsvm_fits(model, kind, path)
    if kind in TEXT_FORMATS:
        check_fits(model, [], path)
        return _chunks_of(TextFile(path, kind, columns, labels_required=False, counter=counter, name=name))
    if kind == "xmc":
        return _from_xmc(model, path, threads, counter)
    return iter([Chunk(read_for(model, path, DataFormat(kind), threads=threads).X)])


def _kind_of(model: Any, path: Path, columns: Columns) -> str:
    kind = find_format(path, columns)
    if suffix_format(path) is not None:
        return kind
    return _kind_for(model, kind, as_utf8(read_start(path), columns.encoding))


def _kind_for(model: Any, kind: str, start: bytes) -> str:
    """Text of no recognised format counts as XMC; for a model of texts it is plain text, unless it can only be rows."""
    return "text" if kind in ("xmc", "libsvm") and takes_text(model) and not holds_numbers(start) else kind


def _chunks_of(file: TextFile) -> Iterator[Chunk]:
    for chunk in file.chunks():
        yield Chunk(chunk.texts, chunk.texts, chunk, file.header, file.delimiter)


def _from_xmc(model: Any, path: Path, threads: int, counter: RowCounter | None) -> Iterator[Chunk]:
    for data in iter_xmc(path, CHUNK, n_jobs=threads):
        check_fits(model, data.X, path)
        if counter is not None:
            counter.rows += data.n_rows
        yield Chunk(data.X)


# --- stdin and pipes -------------------------------------------------------------------------------------------------


def _from_stream(
    model: Any, path: Path | None, format: RowFormat | None, columns: Columns, threads: int
) -> Iterator[Chunk]:
    with contextlib.ExitStack() as stack:
        name, stream = stack.enter_context(opened_stream(path, _ADVICE))
        rows = _from_blocks(model, name, _blocks(stream), format, columns, threads)
        first = next(rows, None)  # wrong input is refused before anything is written
        kept = stack.pop_all()
    return _closing(kept, itertools.chain([] if first is None else [first], rows))


def _closing(stack: contextlib.ExitStack, rows: Iterable[Chunk]) -> Iterator[Chunk]:
    with stack:
        yield from rows


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read1(1 << 16) if hasattr(stream, "read1") else stream.read(1 << 16), b"")


def _from_blocks(
    model: Any, name: str, blocks: Iterator[bytes], format: RowFormat | None, columns: Columns, threads: int
) -> Iterator[Chunk]:
    """Texts as soon as they arrive, so that a person or a slow program gets an answer to each; else all at once.

    Numbers, compressed data and Arrow are copied to a file first.
    """
    start = beginning(blocks, whole_line=False)
    if not start:
        return
    blocks = itertools.chain([start], blocks)
    if not start.startswith(_BINARY):
        if columns.encoding is None:
            check_is_text(start[:4096], name, is_decoded=True)
        text = as_utf8(start, columns.encoding)
        kind = _kind_for(model, format_of_content(text, name, columns), text) if format is None else format.value
        starts_with_digit = text.removeprefix(BYTE_ORDER_MARK).lstrip()[:1].isdigit()
        if kind in TEXT_FORMATS or (format is None and not starts_with_digit):
            check_takes_text(model, name)
            yield from _texts_of(blocks, name, kind if kind in TEXT_FORMATS else "text", columns)
            return
    with tempfile.NamedTemporaryFile(prefix="ramify-input-") as copy:
        copy.writelines(blocks)
        copy.flush()
        try:
            yield from _from_file(model, Path(copy.name), format, columns, threads, name=name)
        except DataError as error:
            raise DataError(error.message, name, error.line, error.column, error.hint) from None


def _texts_of(blocks: Iterable[bytes], name: str, kind: str, columns: Columns) -> Iterator[Chunk]:
    parser = new_parser(kind, name, columns, labels_required=False)
    for block in utf8_blocks(blocks, columns.encoding, name):
        if rows := list(parser.feed(block)):
            yield _chunk(rows, parser)
    if rows := list(parser.finish()):
        yield _chunk(rows, parser)


def _chunk(rows: Sequence[TextRow], parser: Any) -> Chunk:
    chunk = chunk_of(rows)
    return Chunk(chunk.texts, chunk.texts, chunk, parser.header, parser.delimiter)
