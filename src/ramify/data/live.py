"""Rows that arrive as lines, from a pipe or a file: no sizes are known beforehand, and no line spoils the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Literal, TypeAlias

from ramify import _core
from ramify.data.dataset import csr_of
from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, open_unpacked, read_start, told_as_data_error
from ramify.data.jsonl import parse_record

LineFormat: TypeAlias = Literal["xmc", "libsvm", "jsonl"]

# A model needs some numbers for itself; no file comes near.
_MOST_FEATURES, _MOST_LABELS = 2**31 - 2, 2**31 - 1
_HEADER = re.compile(rb"\s*(\d{1,10})[ \t]+(\d{1,10})[ \t]+(\d{1,10})\s*")
_LONGEST_HEADER = 80
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class LabelledBatch:
    """Some rows: features or texts, the labels of each, and the numbers of their lines."""

    X: Any
    labels: list[tuple[Any, ...]]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, start: int, stop: int) -> LabelledBatch:
        return LabelledBatch(self.X[start:stop], self.labels[start:stop], self.lines[start:stop])


class _BadLine(Exception):
    """Which of the lines cannot be read, and why."""

    def __init__(self, position: int, error: DataError) -> None:
        super().__init__(position, error)
        self.position, self.error = position, error


class LineParser:
    """Turns lines of XMC text, libsvm or JSONL into rows, whose features and labels are whatever comes.

    XMC needs no header here. A header, wherever it stands (files may be joined), tells the least number of features,
    and that as many lines are rows, blank ones too; other blank lines are skipped. Libsvm's features count from 1
    unless `zero_based`. `on_bad_line` is told of each line that cannot be read; without it such a line is raised, after
    the rows before it were given.

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
        on_bad_line: Callable[[DataError], None] | None = None,
    ) -> None:
        self.format, self.source = format, source
        self.zero_based, self.one_label = zero_based, one_label
        self.on_bad_line = on_bad_line
        self.n_lines = self.n_bad_lines = self.n_features = 0
        self._announced = 0  # rows of the last header that are still to come

    def parse(self, lines: list[bytes]) -> Iterator[LabelledBatch]:
        """The rows of the next lines, which are without their ends; in order, in as few batches as bad lines allow."""
        if self.n_lines == 0 and lines:
            lines = [lines[0].removeprefix(_BYTE_ORDER_MARK), *lines[1:]]
        kept, numbers = self._rows_among(lines)
        start = 0
        while start < len(kept):
            try:
                yield self._read(kept[start:], numbers[start:])
                return
            except _BadLine as bad:
                if bad.position:
                    yield self._read(kept[start : start + bad.position], numbers[start : start + bad.position])
                if self.on_bad_line is None:
                    raise bad.error from None
                self.n_bad_lines += 1
                self.on_bad_line(bad.error)
                start += bad.position + 1

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
                    self.n_features = max(self.n_features, min(int(header[2]), _MOST_FEATURES))
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
                    message = f"the row has {len(labels)} labels instead of one"
                    hint = "leave --multiclass out if rows may have any number of labels"
                    raise _BadLine(position, DataError(message, self.source, numbers[position], hint=hint))
        return rows

    def _numbers(self, lines: list[bytes], numbers: list[int]) -> LabelledBatch:
        text = b"\n".join([*lines, b""])
        try:
            if self.format == "xmc":
                header = f"{len(lines)} {_MOST_FEATURES} {_MOST_LABELS}\n".encode()
                parsed = _core.parse_xmc(header + text)
            else:
                first = 0 if self.zero_based else 1
                parsed = _core.parse_libsvm(text, first_feature=first, n_features=_MOST_FEATURES)
        except _core.TextError as error:
            message, line, column, hint = error.args
            position = line - 2 if self.format == "xmc" else line - 1
            if self.format == "libsvm" and "feature" in message and " 0" in message:
                hint = "say --zero-based if features count from 0, or --format xmc if these are XMC lines"
            raise _BadLine(position, DataError(message, self.source, numbers[position], column, hint)) from None
        _, _, feature_ptr, features, values, label_ptr, label_columns = parsed
        if len(features):
            self.n_features = max(self.n_features, int(features.max()) + 1)
        X = csr_of(values, features, feature_ptr, (len(lines), self.n_features))
        flat = label_columns.tolist()
        return LabelledBatch(X, [tuple(flat[a:b]) for a, b in pairwise(label_ptr.tolist())], numbers)

    def _texts(self, lines: list[bytes], numbers: list[int]) -> LabelledBatch:
        texts, labels = [], []
        for position, (line, number) in enumerate(zip(lines, numbers, strict=True)):
            try:
                record = parse_record(_decoded(line, self.source, number), self.source, number, labels_required=True)
            except DataError as error:
                raise _BadLine(position, error) from None
            texts.append(record.text)
            labels.append(tuple(record.labels))
        return LabelledBatch(texts, labels, numbers)


def iter_batches(
    path: PathLike, format: LineFormat, rows_at_once: int = 1024, *, one_label: bool = False, zero_based: bool = False
) -> Iterator[LabelledBatch]:
    """The rows of a file, gzip or not, some at a time; memory does not grow with the file.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9"]}')
    ...     [(batch.X, batch.labels) for batch in iter_batches(path, "jsonl")]
    [(['acute chest pain'], [('R07.9',)])]
    """
    check_is_text(read_start(path, 4096), path)
    parser = LineParser(format, path, one_label=one_label, zero_based=zero_based)
    with told_as_data_error(path), open_unpacked(path) as stream:
        while lines := [line.rstrip(b"\r\n") for line in islice(stream, rows_at_once)]:
            yield from parser.parse(lines)


def in_words(format: str) -> str:
    """What a format is called where people read.

    >>> in_words("xmc"), in_words("jsonl")
    ('XMC text', 'JSONL')
    """
    return {"xmc": "XMC text", "jsonl": "JSONL"}.get(format, format)


def _decoded(line: bytes, source: PathLike, number: int) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode()) + 1
        message = f"byte 0x{line[error.start]:02x} is not UTF-8"
        raise DataError(message, source, number, column, "write the lines as UTF-8") from None
