"""Labelled texts in tables: CSV, TSV and what spreadsheets export, read as the bytes arrive."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ramify.data.columns import CellLabels, Columns, Places, TextRow, find_columns
from ramify.data.errors import DataError
from ramify.data.files import PathLike, decode_line

DELIMITERS = (",", ";", "\t", "|")
# Characters of a field: far above any text, but an open quote does not swallow a file of any size.
LONGEST_FIELD = 1 << 24
_SAMPLED_ROWS = 20
# A record this long is parsed again only when twice as much of it has arrived.
_LONG_RECORD = 1 << 20
# A first line that names the delimiter for spreadsheet programs; it is not part of the table.
_SEP_LINE = re.compile(r'\s*"?sep=([^"\r\n])"?\s*')
_QUOTES = "write fields with the delimiter, quotes or line breaks in double quotes, and quotes inside them twice"

csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))


class _Incomplete(Exception):
    """The lines so far end within a record."""


class _Lines:
    """Lines for a csv.reader that may have to wait for more."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.place = 0
        self.is_complete = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if self.place < len(self.waiting):
            self.place += 1
            return self.waiting[self.place - 1]
        if self.is_complete:
            raise StopIteration
        raise _Incomplete


class TableParser:
    """Reads a table from blocks of UTF-8. The first row names the columns; blank lines are skipped.

    So are rows of empty cells, which spreadsheets append, where labels are needed.

    `on_bad_line` is called for each row that cannot be read; without it such a row raises.

    >>> parser = TableParser("papers.csv", Columns(text=("title",), labels=("tags",)))
    >>> [row.text for row in [*parser.feed(b'title;tags\\n"Red, '), *parser.finish(b'green";colour')]]
    ['Red, green']
    """

    def __init__(
        self,
        path: PathLike,
        columns: Columns | None = None,
        *,
        labels_required: bool = True,
        is_tsv: bool = False,
        on_bad_line: Callable[[DataError], None] | None = None,
    ) -> None:
        self.path, self.columns = path, Columns() if columns is None else columns
        self.labels_required, self.on_bad_line = labels_required, on_bad_line
        self.header: list[str] | None = None
        self.places: Places | None = None
        self.delimiter = self.columns.delimiter
        self.n_bad_lines = 0
        self._is_tsv = is_tsv
        self._parts: list[bytes] = []  # after the last line break
        self._lines = _Lines()
        self._n_lines = 0  # before those that wait
        self._retry_at = 0
        self._reader: Any = None
        self._labels = CellLabels(self.columns.label_separator)

    def feed(self, block: bytes) -> Iterator[TextRow]:
        """The rows that the block completes."""
        end = block.rfind(b"\n") + 1
        if end == 0:
            self._parts.append(block)
            return
        lines = b"".join([*self._parts, block[:end]])
        self._parts = [block[end:]] if end < len(block) else []
        yield from self._read(lines)

    def finish(self, block: bytes = b"") -> Iterator[TextRow]:
        """The rows after the last block; the last line needs no line break."""
        lines = b"".join([*self._parts, block])
        self._parts = []
        self._lines.is_complete = True
        yield from self._read(lines)
        if self.header is None:
            raise DataError("the file is empty", self.path, hint="check how it was written")

    # --- lines and records ----------------------------------------------------------------------------------------

    def _read(self, lines: bytes) -> Iterator[TextRow]:
        waiting = self._lines.waiting
        waiting.extend(io.StringIO(self._decoded(lines), newline=""))
        if self._retry_at and not self._lines.is_complete and sum(map(len, waiting)) < self._retry_at:
            return
        self._retry_at = 0
        if self._reader is None:
            if not any(line.strip() for line in waiting) and not self._lines.is_complete:
                return
            self.delimiter = self._named_delimiter() or find_delimiter(waiting, prefers_tabs=self._is_tsv)
            self._reader = csv.reader(self._lines, delimiter=self.delimiter, strict=True)
        for line, record in self._records():
            if not record or (self.labels_required and len(record) > 1 and not any(record)):
                continue
            if self.header is None:
                self._take_header(record, line)
                continue
            row = self._row(record, line)
            if row is not None:
                yield row
        del waiting[: self._lines.place]
        self._n_lines += self._lines.place
        self._lines.place = 0

    def _named_delimiter(self) -> str | None:
        """The delimiter that the user names, or else a line "sep=;", which is blanked out; None: it must be found."""
        waiting = self._lines.waiting
        place = next((place for place, line in enumerate(waiting) if line.strip()), 0)
        named = _SEP_LINE.fullmatch(waiting[place]) if waiting else None
        if named is not None:
            waiting[place] = "\n"
        return self.delimiter or (None if named is None else named[1])

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """The complete records with their first line; an incomplete one is read again when more has arrived."""
        lines = self._lines
        while True:
            start = lines.place
            number = self._n_lines + start + 1
            try:
                record = next(self._reader)
            except StopIteration:
                return
            except _Incomplete:
                length = sum(map(len, lines.waiting[start:]))
                if length > LONGEST_FIELD:
                    self._reject(_open_quote(number, self.path))
                    return
                lines.place = start
                self._retry_at = 2 * length if length > _LONG_RECORD else 0
                return
            except csv.Error as error:
                self._reject(self._error(error, number))
                continue
            yield number, record

    def _error(self, error: csv.Error, line: int) -> DataError:
        said = str(error)
        if "unexpected end" in said or "field limit" in said:
            return _open_quote(line, self.path)
        column = None
        text = self._lines.waiting[self._lines.place - 1]
        line = self._n_lines + self._lines.place
        if "expected after" in said:
            place = _after_closing_quote(text, str(self.delimiter))
            column = None if place is None else place + 1
            said = "a closing quote is followed by more text"
        elif "new-line character" in said:
            column, said = text.find("\r") + 1, "a carriage return stands alone, outside quotes"
        return DataError(said, self.path, line, column, _QUOTES)

    def _decoded(self, lines: bytes) -> str:
        try:
            return lines.decode("utf-8")
        except UnicodeDecodeError:
            first = self._n_lines + len(self._lines.waiting) + 1
            for number, line in enumerate(lines.split(b"\n"), first):
                decode_line(line, self.path, number)
            raise

    def _reject(self, error: DataError) -> None:
        if self.on_bad_line is None:
            raise error
        self.n_bad_lines += 1
        self.on_bad_line(error)

    # --- rows -----------------------------------------------------------------------------------------------------

    def _take_header(self, record: list[str], line: int) -> None:
        names = [name.strip() for name in record]
        self.places = find_columns(names, self.columns, self.path, labels_required=self.labels_required)
        self.header = names

    def _row(self, record: list[str], line: int) -> TextRow | None:
        assert self.header is not None
        assert self.places is not None
        if len(record) != len(self.header):
            fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
            message = f"the row has {fields}, but the header has {len(self.header)}"
            if len(record) > len(self.header):
                message += f": the first too many is {record[len(self.header)]!r:.40}"
            else:
                message += f": none for column {self.header[len(record)]!r:.40}"
            self._reject(DataError(message, self.path, line, hint=_QUOTES))
            return None
        text, labels, _ = self.places
        joined = record[text[0]] if len(text) == 1 else " ".join(filter(None, [record[place] for place in text]))
        if len(labels) == 1:
            return TextRow(joined, self._labels(record[labels[0]]), line, record)
        return TextRow(joined, tuple(one for place in labels for one in self._labels(record[place])), line, record)


def find_delimiter(lines: Sequence[str], *, prefers_tabs: bool = False) -> str:
    """The delimiter that divides the header and the rows after it into most fields, and equally many.

    >>> find_delimiter(["title;tags", "a, b, c;d"]), find_delimiter(["only"])
    (';', ',')
    """
    best, most = "\t" if prefers_tabs else DELIMITERS[0], 0.0
    for delimiter in ("\t", *DELIMITERS) if prefers_tabs else DELIMITERS:
        rows: list[list[str]] = []
        try:
            for row in csv.reader(lines, delimiter=delimiter):
                if row:
                    rows.append(row)
                if len(rows) > _SAMPLED_ROWS:
                    break
        except csv.Error:
            pass
        if not rows:
            continue
        width = len(rows[0])
        # The last row of the sample may be cut off.
        others = rows[1:-1] or rows[1:]
        agreement = (1 + sum(len(row) == width for row in others)) / (1 + len(others))
        if width > 1 and width * agreement > most:
            best, most = delimiter, width * agreement
    return best


def _after_closing_quote(text: str, delimiter: str) -> int | None:
    """The place of the first character after a closing quote that is no delimiter; None if a field spans lines."""
    is_quoted, place = False, 0
    while place < len(text):
        if text[place] == '"':
            if is_quoted and text[place + 1 : place + 2] == '"':
                place += 1
            elif is_quoted and text[place + 1 : place + 2] not in (delimiter, "\r", "\n", ""):
                return place + 1
            else:
                is_quoted = not is_quoted
        place += 1
    return None


def _open_quote(line: int, path: PathLike) -> DataError:
    return DataError("a quote that opens in this row is never closed", path, line, hint=_QUOTES)
