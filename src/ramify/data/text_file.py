"""Labelled texts of any file, read in chunks: a model can be trained on more texts than fit in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ramify.data.columns import Columns, TextChunk, TextRow, find_columns, listed
from ramify.data.encodings import utf8_blocks
from ramify.data.errors import DataError
from ramify.data.fasttext import parse_line
from ramify.data.files import (
    LineSplitter,
    PathLike,
    check_is_text,
    data_errors,
    decode_line,
    open_unpacked,
    read_start,
)
from ramify.data.jsonl import parse_object, read_record
from ramify.data.tables import TableParser

# Formats of texts; "text" is one text per line, without labels.
TEXT_FORMATS = ("csv", "tsv", "jsonl", "fasttext", "parquet", "arrow", "text")
ARROW_FORMATS = ("parquet", "arrow")
CHUNK = 4096
_READ_AT_ONCE = 1 << 18


class RowParser(Protocol):
    """Reads rows from blocks of UTF-8 as they arrive."""

    n_bad_lines: int

    def feed(self, block: bytes) -> Iterator[TextRow]: ...
    def finish(self) -> Iterator[TextRow]: ...


class LineRows:
    """Rows that are lines: JSONL, fastText lines, or one text per line."""

    header: list[str] | None = None
    delimiter: str | None = None

    def __init__(
        self,
        kind: str,
        path: PathLike,
        columns: Columns,
        *,
        labels_required: bool,
        on_bad_line: Callable[[DataError], None] | None = None,
    ) -> None:
        self.path, self.columns, self.labels_required, self.on_bad_line = path, columns, labels_required, on_bad_line
        self.n_bad_lines = self._n_lines = 0
        self._splitter = LineSplitter()
        self._known: dict[Any, Any] = {}  # equal labels share their memory
        self._parse = {"jsonl": self._json, "fasttext": self._fasttext, "text": self._plain}[kind]

    def feed(self, block: bytes) -> Iterator[TextRow]:
        """The rows that the block completes."""
        yield from self._rows(self._splitter.feed(block))

    def finish(self) -> Iterator[TextRow]:
        """The last line, if it has no line break."""
        if rest := self._splitter.rest:
            yield from self._rows([rest])

    def _rows(self, lines: list[bytes]) -> Iterator[TextRow]:
        for raw in lines:
            self._n_lines += 1
            try:
                row = self._parse(decode_line(raw, self.path, self._n_lines), self._n_lines)
            except DataError as error:
                if self.on_bad_line is None:
                    raise
                self.n_bad_lines += 1
                self.on_bad_line(error)
                continue
            if row is not None:
                yield row

    def _json(self, line: str, number: int) -> TextRow | None:
        if not line.strip():
            return None
        value = parse_object(line, self.path, number)
        text, labels = read_record(value, self.path, number, self.labels_required, self.columns)
        return TextRow(text, self._shared(labels), number, value)

    def _fasttext(self, line: str, number: int) -> TextRow | None:
        if not line.strip():
            return None
        text, labels = parse_line(line, self.path, number)
        return TextRow(text, self._shared(labels), number)

    def _plain(self, line: str, number: int) -> TextRow:
        return TextRow(line, (), number)

    def _shared(self, labels: list[str]) -> tuple[str, ...]:
        row = tuple(labels)
        known: tuple[str, ...] | None = self._known.get(row)
        if known is None:
            known = tuple(self._known.setdefault(label, label) for label in row)
            self._known[known] = known
        return known


def new_parser(
    kind: str,
    path: PathLike,
    columns: Columns,
    *,
    labels_required: bool = True,
    on_bad_line: Callable[[DataError], None] | None = None,
) -> Any:
    """The parser of a format that is text."""
    if kind in ("csv", "tsv"):
        is_tsv = kind == "tsv"
        return TableParser(path, columns, labels_required=labels_required, is_tsv=is_tsv, on_bad_line=on_bad_line)
    return LineRows(kind, path, columns, labels_required=labels_required, on_bad_line=on_bad_line)


def chunk_of(rows: Sequence[TextRow]) -> TextChunk:
    """Rows as columns."""
    texts, labels, lines, fields = zip(*rows, strict=True)
    return TextChunk(list(texts), list(labels), lines, None if fields[0] is None else fields)


class TextFile:
    """A file of texts; every iteration reads it again, in chunks.

    `texts` and `labels` are what `fit` takes. The labels are kept when the texts are read, so that one pass suffices.
    `counter` (see `ramify.common.progress`) follows the reading; `name` replaces the path in messages.
    """

    def __init__(
        self,
        path: PathLike,
        kind: str,
        columns: Columns | None = None,
        *,
        labels_required: bool = True,
        name: PathLike | None = None,
        counter: Any = None,
    ) -> None:
        self.path, self.kind = Path(path), kind
        self.name: PathLike = path if name is None else name
        self.columns = Columns() if columns is None else columns
        self.labels_required, self.counter = labels_required, counter
        self.header: list[str] | None = None
        self.delimiter: str | None = None
        self._labels: list[tuple[str, ...]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.name)!r}, {self.kind})"

    def chunks(self, rows_at_once: int = CHUNK) -> Iterator[TextChunk]:
        """The rows of the file, some at a time; a file without rows raises."""
        count, labels = 0, list[tuple[str, ...]]()
        for chunk in self._read(rows_at_once):
            count += len(chunk)
            labels += chunk.labels
            if self.counter is not None:
                self.counter.rows = count
            yield chunk
        if count == 0:
            only = " after the header" if self.header is not None else ""
            raise DataError(f"the file has no rows{only}", self.name, hint="check how it was written")
        self._labels = labels

    @property
    def texts(self) -> TextColumn:
        """The texts, for `fit` and `predict`."""
        return TextColumn(self)

    @property
    def labels(self) -> LabelColumn:
        """The labels of each row, for `fit`; they are read when they are needed."""
        return LabelColumn(self)

    def label_rows(self) -> list[tuple[str, ...]]:
        """The labels of each row; the file is read unless its texts were."""
        if self._labels is None:
            for _ in self.chunks():
                pass
        assert self._labels is not None
        return self._labels

    def nothing_in(self, what: Literal["text", "labels"]) -> DataError:
        """The error that no row has a word, or none has a label; it names the columns that were read."""
        if self.header is not None:
            places = find_columns(self.header, self.columns, self.name, labels_required=False)
            names = [self.header[place] for place in getattr(places, what)]
        else:
            names = list((self.columns.text or ("text",)) if what == "text" else (self.columns.labels or ("labels",)))
        column = f"column {names[0]!r} has" if len(names) == 1 else f"columns {listed(names)} have"
        missing, flag = ("word", "--text-column") if what == "text" else ("label", "--label-column")
        hint = f"fill it in, or choose another column with {flag}"
        if self.kind == "fasttext":
            column, hint = "the file has", "a line looks like __label__R07.9 acute chest pain"
        return DataError(f"{column} no {missing} in any row", self.name, hint=hint)

    def _read(self, rows_at_once: int) -> Iterator[TextChunk]:
        if self.kind in ARROW_FORMATS:
            from ramify.data.arrow import ArrowFile  # imported on demand: pyarrow is an extra

            file = ArrowFile(self.path, self.kind, self.name)
            self.header = file.names
            yield from file.chunks(self.columns, rows_at_once, labels_required=self.labels_required)
            return
        if self.columns.encoding is None:
            check_is_text(read_start(self.path, 4096), self.name, is_decoded=True)
        parser = new_parser(self.kind, self.name, self.columns, labels_required=self.labels_required)
        rows = self._rows(parser)
        while some := list(itertools.islice(rows, rows_at_once)):
            yield chunk_of(some)

    def _rows(self, parser: Any) -> Iterator[TextRow]:
        with data_errors(self.path), open_unpacked(self.path) as stream:
            for block in utf8_blocks(self._blocks(stream), self.columns.encoding, self.name):
                for row in parser.feed(block):
                    self.header, self.delimiter = parser.header, parser.delimiter
                    yield row
            for row in parser.finish():
                self.header, self.delimiter = parser.header, parser.delimiter
                yield row
            self.header = parser.header

    def _blocks(self, stream: IO[bytes]) -> Iterator[bytes]:
        raw = getattr(getattr(stream, "raw", None), "_raw", stream)  # of gzip: the compressed bytes
        if self.counter is not None:
            self.counter.total = self.path.stat().st_size
        while block := stream.read(_READ_AT_ONCE):
            if self.counter is not None:
                self.counter.done = raw.tell()
            yield block


class TextColumn:
    """The texts of a file, as vectorizers take them: chunk by chunk."""

    def __init__(self, file: TextFile) -> None:
        self.file = file

    def text_chunks(self) -> Iterator[list[str]]:
        """The texts, some at a time."""
        for chunk in self.file.chunks():
            yield chunk.texts

    def rows_at(self, rows: Sequence[int] | NDArray[np.integer]) -> SomeTexts:
        """The texts of these rows, in the order of the file."""
        return SomeTexts(self, rows)

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self.text_chunks())


class SomeTexts:
    """The texts of some rows of a file, read again whenever they are needed."""

    def __init__(self, column: TextColumn, rows: Sequence[int] | NDArray[np.integer]) -> None:
        self.column, self.rows = column, np.unique(rows)

    def text_chunks(self) -> Iterator[list[str]]:
        """The texts, some at a time."""
        end = 0
        for texts in self.column.text_chunks():
            first, end = end, end + len(texts)
            begin, stop = np.searchsorted(self.rows, (first, end))
            if some := [texts[row - first] for row in self.rows[begin:stop].tolist()]:
                yield some

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(self.text_chunks())


class LabelColumn(Sequence[tuple[str, ...]]):
    """The labels of a file. They are known once the texts have been read, so `fit` needs one pass for both."""

    def __init__(self, file: TextFile) -> None:
        self.file = file

    def label_rows(self) -> list[tuple[str, ...]]:
        """All of them."""
        return self.file.label_rows()

    def __len__(self) -> int:
        return len(self.file.label_rows())

    def __getitem__(self, row: Any) -> Any:
        return self.file.label_rows()[row]
