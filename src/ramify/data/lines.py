"""Read rows line by line, from a pipe or a file: sizes need not be known, and a bad line does not affect others."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ramify import _core
from ramify.common.validation import number_of_threads
from ramify.data.columns import Columns, TextRow
from ramify.data.csr import MAX_FEATURES, csr_rows
from ramify.data.dataset import Dataset
from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, data_errors, decode_line, iter_lines, open_unpacked, read_start
from ramify.data.jsonl import parse_record
from ramify.data.tables import TableParser
from ramify.data.xmc import data_error, load_xmc, parsed_dataset

LineFormat: TypeAlias = Literal["xmc", "libsvm", "jsonl"]

_MOST_LABELS = 2**31 - 1
_HEADER = re.compile(rb"\s*(\d{1,10})[ \t]+(\d{1,10})[ \t]+(\d{1,10})\s*")
_LONGEST_HEADER = 80
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WRONG_COUNT = "the file may be truncated; otherwise correct the first number of the header"


@dataclass(frozen=True)
class LabelledBatch:
    """A batch of rows: features or texts, the labels of each, and their line numbers."""

    X: Any
    labels: list[tuple[Any, ...]]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, start: int, stop: int) -> LabelledBatch:
        return LabelledBatch(self.X[start:stop], self.labels[start:stop], self.lines[start:stop])


class TableRows:
    """Rows of a table, as `LineParser` returns them: from blocks of UTF-8 as they arrive."""

    def __init__(
        self,
        format: str,
        source: PathLike,
        columns: Columns,
        *,
        one_label: bool = False,
        on_bad_line: Callable[[DataError], None] | None = None,
    ) -> None:
        is_tsv = format == "tsv"
        self.one_label, self.on_bad_line, self.source = one_label, on_bad_line, source
        self._n_wrong = 0
        self._parser = TableParser(source, columns, is_tsv=is_tsv, on_bad_line=on_bad_line)

    @property
    def n_bad_lines(self) -> int:
        return self._parser.n_bad_lines + self._n_wrong

    def parse(self, block: bytes, *, is_last: bool = False) -> Iterator[LabelledBatch]:
        """Yield the rows that the block completes; those before a bad one first."""
        kept: list[TextRow] = []
        try:
            for row in self._parser.finish(block) if is_last else self._parser.feed(block):
                if self.one_label and len(row.labels) != 1:
                    self._reject(row)
                else:
                    kept.append(row)
        except DataError as error:
            if kept:
                yield _batch_of(kept)
            raise error from None
        if kept:
            yield _batch_of(kept)

    def _reject(self, row: TextRow) -> None:
        error = not_one_label(len(row.labels), self.source, row.line)
        if self.on_bad_line is None:
            raise error
        self._n_wrong += 1
        self.on_bad_line(error)


def _batch_of(rows: list[TextRow]) -> LabelledBatch:
    return LabelledBatch([row.text for row in rows], [row.labels for row in rows], [row.line for row in rows])


def not_one_label(number: int, source: PathLike, line: int) -> DataError:
    """The error about a row of a stream whose rows have one label each."""
    hint = "omit --multiclass if rows can have any number of labels"
    return DataError(f"the row has {number} labels instead of one", source, line, hint=hint)


class _BadLine(Exception):
    """The position of a bad line in the batch, and its error."""

    def __init__(self, position: int, error: DataError) -> None:
        super().__init__(position, error)
        self.position, self.error = position, error


class LineParser:
    """Parse lines of XMC text, libsvm or JSONL into rows. New features and labels may appear at any time.

    XMC needs no header here. A header may be anywhere (files may be concatenated). It gives the minimum number of
    features and the number of rows that follow, including blank ones; other blank lines are skipped. Libsvm features
    count from 1 unless `zero_based`. `on_bad_line` is called for each bad line; without it a bad line raises after the
    rows before it were yielded. `max_features` is the number of features that rows may have; then all have this width.

    >>> rows = next(LineParser("xmc", "stdin").parse([b"7,3 0:0.5 4:1", b"12 2:1"]))
    >>> rows.labels, rows.X.shape
    ([(3, 7), (12,)], (2, 5))
    """

    def __init__(
        self,
        format: LineFormat,
        source: PathLike,
        *,
        zero_based: bool = False,
        one_label: bool = False,
        max_features: int | None = None,
        columns: Columns | None = None,
        on_bad_line: Callable[[DataError], None] | None = None,
    ) -> None:
        self.columns = columns
        self.format, self.source = format, source
        self.zero_based, self.one_label = zero_based, one_label
        self.on_bad_line = on_bad_line
        self.n_lines = self.n_bad_lines = 0
        self.max_features = MAX_FEATURES if max_features is None else max_features
        self.n_features = 0 if max_features is None else max_features
        self._announced = 0  # rows of the last header not read yet

    def parse(self, lines: list[bytes]) -> Iterator[LabelledBatch]:
        """Yield the rows of the next lines (without line ends), in order, split into batches only at bad lines."""
        if self.n_lines == 0 and lines:
            lines = [lines[0].removeprefix(_BYTE_ORDER_MARK), *lines[1:]]
        kept, numbers = self._rows_among(lines)
        start, stop, error = 0, len(kept), None
        while start < len(kept):
            if start < stop:
                try:
                    rows = self._read(kept[start:stop], numbers[start:stop])
                except _BadLine as bad:  # first the rows before it, in which an earlier line may be bad in another way
                    stop, error = start + bad.position, bad.error
                    continue
                yield rows
            if error is not None:
                self._reject(error)
            start, stop, error = stop + 1, len(kept), None

    def _reject(self, error: DataError) -> None:
        if self.on_bad_line is None:
            raise error
        self.n_bad_lines += 1
        self.on_bad_line(error)

    def _rows_among(self, lines: list[bytes]) -> tuple[list[bytes], list[int]]:
        kept: list[bytes] = []
        numbers: list[int] = []
        for line in lines:
            self.n_lines += 1
            if self.format == "libsvm" and b"#" in line:
                line = line[: line.index(b"#")]
            is_blank = not line or line.isspace()
            if self.format == "xmc":
                header = _HEADER.fullmatch(line) if len(line) <= _LONGEST_HEADER else None
                if header is not None:
                    self._announced = int(header[1])
                    self.n_features = max(self.n_features, min(int(header[2]), self.max_features))
                    continue
                is_blank = is_blank and self._announced == 0
                self._announced = max(0, self._announced - 1)
            if not is_blank:
                kept.append(line)
                numbers.append(self.n_lines)
        return kept, numbers

    def _read(self, lines: list[bytes], numbers: list[int]) -> LabelledBatch:
        read = self._texts if self.format == "jsonl" else self._numbers
        rows = read(lines, numbers)
        if self.one_label:
            for position, labels in enumerate(rows.labels):
                if len(labels) != 1:
                    raise _BadLine(position, not_one_label(len(labels), self.source, numbers[position]))
        return rows

    def _numbers(self, lines: list[bytes], numbers: list[int]) -> LabelledBatch:
        text = b"\n".join([*lines, b""])
        try:
            if self.format == "xmc":
                header = f"{len(lines)} {self.max_features} {_MOST_LABELS}\n".encode()
                parsed = _core.parse_xmc(header + text)
            else:
                first = 0 if self.zero_based else 1
                # The blank line keeps a byte order mark in the middle of a stream from being skipped as that of a file.
                parsed = _core.parse_libsvm(b"\n" + text, first_feature=first, n_features=self.max_features)
        except _core.TextError as error:
            message, line, column, hint = error.args
            position = line - 2  # after the header, or the blank line
            if self.format == "libsvm" and "feature" in message and " 0" in message:
                hint = "use --zero-based if features count from 0, or --format xmc if these are XMC lines"
            raise _BadLine(position, DataError(message, self.source, numbers[position], column, hint)) from None
        _, _, feature_ptr, features, values, label_ptr, label_columns = parsed
        if len(features):
            self.n_features = max(self.n_features, int(features.max()) + 1)
        X = csr_rows(values, features, feature_ptr, (len(lines), self.n_features))
        flat = label_columns.tolist()
        return LabelledBatch(X, [tuple(flat[a:b]) for a, b in itertools.pairwise(label_ptr.tolist())], numbers)

    def _texts(self, lines: list[bytes], numbers: list[int]) -> LabelledBatch:
        texts, labels = [], []
        for position, (line, number) in enumerate(zip(lines, numbers, strict=True)):
            try:
                record = parse_record(decode_line(line, self.source, number), self.source, number, True, self.columns)
            except DataError as error:
                raise _BadLine(position, error) from None
            texts.append(record.text)
            labels.append(tuple(record.labels))
        return LabelledBatch(texts, labels, numbers)


def iter_batches(
    path: PathLike, format: LineFormat, rows_at_once: int = 1024, *, one_label: bool = False, zero_based: bool = False
) -> Iterator[LabelledBatch]:
    """Read the rows of a file, plain or gzip, in batches, in constant memory.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9"]}')
    ...     [(batch.X, batch.labels) for batch in iter_batches(path, "jsonl")]
    [(['acute chest pain'], [('R07.9',)])]
    """
    check_is_text(read_start(path, 4096), path)
    parser = LineParser(format, path, one_label=one_label, zero_based=zero_based)
    with data_errors(path), open_unpacked(path) as stream:
        while lines := [line.rstrip(b"\r\n") for line in itertools.islice(stream, rows_at_once)]:
            yield from parser.parse(lines)


def iter_xmc(path: PathLike, rows_at_once: int = 4096, *, n_jobs: int | None = None) -> Iterator[Dataset]:
    """Read an XMC file, plain or gzip, as data sets of at most `rows_at_once` rows.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.txt")
    ...     _ = open(path, "w").write("3 2 4\\n0,2 0:0.5\\n1 1:2\\n3 0:1\\n")
    ...     [part.n_rows for part in iter_xmc(path, 2)]
    [2, 1]
    """
    check_is_text(read_start(path, 4096), path)
    lines = (line for _, line in iter_lines(path))
    header = next(lines).split()
    if len(header) != 3 or not all(word.isascii() and word.isdigit() for word in header):
        yield load_xmc(path, n_jobs=n_jobs)  # raises: the parser explains what is wrong with the header
        return
    n_rows = int(header[0])
    seen = 0
    while rows := list(itertools.islice(lines, rows_at_once)):
        while seen + len(rows) > n_rows and not rows[-1].strip():
            rows.pop()  # blank lines at the end
        if seen + len(rows) > n_rows:
            message = f"there are more rows than the {n_rows} that the header announces"
            raise DataError(message, path, n_rows + 2, hint=_WRONG_COUNT)
        if rows:
            yield _parse_rows(rows, header, path, seen, number_of_threads(n_jobs))
        seen += len(rows)
    if seen < n_rows:
        raise DataError(f"the file ends after {seen} rows, but the header announces {n_rows}", path, hint=_WRONG_COUNT)


def _parse_rows(rows: list[str], header: list[str], path: PathLike, seen: int, n_threads: int) -> Dataset:
    text = "\n".join([f"{len(rows)} {header[1]} {header[2]}", *rows, ""]).encode()
    try:
        return parsed_dataset(_core.parse_xmc(text, n_threads=n_threads))
    except _core.TextError as error:
        found = data_error(path, error)
        line = None if found.line is None else found.line + seen if found.line > 1 else found.line
        raise DataError(found.message, path, line, found.column, found.hint) from None


def format_name(format: str) -> str:
    """Return the display name of a format.

    >>> format_name("xmc"), format_name("jsonl")
    ('XMC text', 'JSONL')
    """
    return {"xmc": "XMC text", "jsonl": "JSONL", "csv": "CSV", "tsv": "TSV"}.get(format, format)
