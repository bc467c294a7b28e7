"""What `predict` writes: answers for people and programs, or the user's own table with the answers beside it."""

from __future__ import annotations

import codecs
import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ramify.cli import output
from ramify.cli.rows import Chunk, n_rows
from ramify.data import Columns
from ramify.data.columns import DEFAULT_SEPARATOR
from ramify.data.load import suffix_format

# The columns that are added to the user's own.
LABELS, PROBABILITIES, NAMES, NOTICE = "predicted_labels", "predicted_probabilities", "predicted_names", "notice"
ADDED = (LABELS, PROBABILITIES, NAMES, NOTICE)
NO_KNOWN_WORD = "no known word"
# What separates labels in a cell, if no label contains it.
_SEPARATORS = (DEFAULT_SEPARATOR, "|", " || ", " ;; ")


class Output(str, Enum):
    table = "table"
    tsv = "tsv"
    jsonl = "jsonl"


@dataclass(frozen=True)
class Answer:
    """The labels of a row with probabilities and names, and what the user should know about it."""

    labels: Sequence[output.LabelRow]
    notice: str = ""


Write = Callable[[Chunk, Sequence[Answer]], None]


def parse_output(given: str, out: Path | None) -> tuple[Output | None, Path | None]:
    """`--output` is a format or a file; a file's name says how it is written, unless there is a format, too."""
    if given in Output.__members__:
        return Output(given), out
    if out is not None:
        raise ValueError(f"--output must be {', '.join(Output.__members__)} or a file, and --out is a file already")
    if "." not in Path(given).name:
        raise ValueError(f"--output must be {', '.join(Output.__members__)}, or a file such as {given}.csv")
    return None, Path(given)


@contextmanager
def answer_writer(
    form: Output | None, out: Path | None, model: Any, columns: Columns, encoding: str = "utf-8"
) -> Iterator[Write]:
    """A function that writes the answers of a chunk; a file appears when it is complete. Tables have the encoding."""
    kind = None if out is None or form is not None else suffix_format(out)
    if kind in ("parquet", "arrow"):
        with _opened(out) as stream:
            from ramify.data.arrow import arrow_writer

            with arrow_writer(stream, kind) as write_batch:
                yield _BatchWriter(write_batch, _has_names(model))
        return
    if kind in ("csv", "tsv") and encoding != "utf-8":
        encoder = codecs.getincrementalencoder(encoding)()
    else:
        encoder = codecs.getincrementalencoder("utf-8")("backslashreplace")
    with _opened(out) as stream:

        def write(text: str) -> None:
            if stream is None:
                sys.stdout.write(text)
                return
            try:
                stream.write(encoder.encode(text))
            except UnicodeEncodeError as error:
                sign = error.object[error.start]
                raise ValueError(
                    f"the answers have the character {sign!r}, which {encoding} cannot write; "
                    "save the data as UTF-8, or write to a file that ends in .jsonl"
                ) from None

        if kind in ("csv", "tsv"):
            yield _TableWriter(write, "\t" if kind == "tsv" else None, model, columns)
        elif kind == "jsonl":
            yield _RecordWriter(write)
        else:
            yield _PlainWriter(write, form or Output.table, columns)
        if stream is None:
            sys.stdout.flush()


@contextmanager
def _opened(out: Path | None) -> Iterator[Any]:
    if out is None:
        yield None
        return
    from ramify.data.files import replaced_when_complete

    with replaced_when_complete(out) as stream:
        yield stream


def _has_names(model: Any) -> bool:
    return model.schema_.label_names is not None


# --- one answer after the other --------------------------------------------------------------------------------------


class _PlainWriter:
    """A table for people, or lines of TSV or JSON with one row or one label each."""

    def __init__(self, write: Callable[[str], None], form: Output, columns: Columns) -> None:
        self._write, self._columns, self._form = write, columns, form
        self._number = 0
        if form is Output.tsv:
            write(f"{'row' if columns.id is None else 'id'}\tlabel\tprobability\tname\n")

    def __call__(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        ids = chunk.ids(self._columns)
        shown = {Output.table: self._table, Output.tsv: self._tsv, Output.jsonl: self._jsonl}[self._form]
        for position, answer in enumerate(answers):
            self._number += 1
            asked = None if chunk.texts is None else chunk.texts[position]
            self._write(shown(None if ids is None else ids[position], asked, answer))
        sys.stdout.flush()  # whoever types or pipes one line at a time waits for the answer

    def _table(self, row_id: Any, asked: str | None, answer: Answer) -> str:
        title = f"row {self._number}" if asked is None else asked
        title = title if row_id is None else f"{row_id}: {title}"
        lines = f"  {answer.notice}\n" if answer.notice else output.label_lines(answer.labels)
        return f"{output.title_line(title)}\n{lines}"

    def _tsv(self, row_id: Any, asked: str | None, answer: Answer) -> str:
        first = self._number if row_id is None else _cell(row_id)
        return "".join(f"{first}\t{_cell(label)}\t{p:.6g}\t{_cell(name)}\n" for label, p, name in answer.labels)

    def _jsonl(self, row_id: Any, asked: str | None, answer: Answer) -> str:
        record = {"row": self._number} if row_id is None else {"row": self._number, "id": row_id}
        record |= {} if asked is None else {"text": asked}
        record |= {"labels": _as_dicts(answer)} | ({"notice": answer.notice} if answer.notice else {})
        return output.json_line(record) + "\n"


def _cell(value: Any) -> str:
    return output.visible(" ".join(str(value).split()))


def _as_dicts(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"label": label, "probability": probability} | ({"name": name} if name else {})
        for label, probability, name in answer.labels
    ]


# --- the user's table with the answers beside it ---------------------------------------------------------------------


class _RecordWriter:
    """JSON lines with the user's fields and the answer."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._seen = write, 0

    def __call__(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        for record, answer in zip(_records(chunk, self._seen), answers, strict=True):
            added = {LABELS: _as_dicts(answer)} | ({NOTICE: answer.notice} if answer.notice else {})
            kept = {name: value for name, value in record.items() if name not in ADDED}
            self._write(json.dumps(kept | added, ensure_ascii=False, default=str) + "\n")
        self._seen += n_rows(chunk.X)


class _TableWriter:
    """CSV or TSV with the user's columns and those of the answer, in which labels are joined by a separator."""

    def __init__(self, write: Callable[[str], None], delimiter: str | None, model: Any, columns: Columns) -> None:
        self._write, self._delimiter = write, delimiter or columns.delimiter
        self._separator = _separator_for(model, columns.label_separator)
        self._has_names = _has_names(model)
        self._columns: _OwnColumns | None = None

    def __call__(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        buffer = io.StringIO(newline="")
        table = csv.writer(buffer, delimiter=self._delimiter or chunk.delimiter or ",", lineterminator="\n")
        if self._columns is None:
            added = [LABELS, PROBABILITIES, *([NAMES] if self._has_names else []), NOTICE]
            self._columns = _OwnColumns(chunk, added)
            table.writerow([*self._columns.names, *added])
        for own, answer in zip(self._columns.rows(chunk), answers, strict=True):
            joined = [
                self._separator.join(str(label) for label, _, _ in answer.labels),
                self._separator.join(f"{p:.6g}" for _, p, _ in answer.labels),
            ]
            if self._has_names:
                joined.append(self._separator.join(name for _, _, name in answer.labels))
            table.writerow([*map(self._value, own), *joined, answer.notice])
        self._write(buffer.getvalue())

    def _value(self, value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(one, str) and self._separator not in one for one in value):
            return self._separator.join(value)
        return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else value


def _separator_for(model: Any, given: str | None) -> str:
    """The user's separator, or one that no label contains."""
    labels = [label for label in model.classes_.tolist() if isinstance(label, str)]
    if given is not None:
        clash = next((label for label in labels if given in label), None)
        if clash is not None:
            raise ValueError(f"--label-separator {given!r} is part of the label {clash!r}: choose another")
        return given
    return next(s for s in (*_SEPARATORS, "\x1f") if not any(s in label for label in labels) or s == "\x1f")


class _OwnColumns:
    """The user's columns, except those of earlier answers; fields of JSON lines are those of the first chunk."""

    def __init__(self, chunk: Chunk, added: Sequence[str]) -> None:
        self._seen = 0
        names = chunk.header
        if names is None:
            names = list(dict.fromkeys(name for record in _records(chunk, 0) for name in record))
        self._places = [place for place, name in enumerate(names) if name not in added]
        self.names = [names[place] for place in self._places]

    def rows(self, chunk: Chunk) -> Iterator[list[Any]]:
        """The values of these columns."""
        if chunk.source is not None and chunk.source.batch is None and chunk.header is not None:
            for fields in chunk.source.fields or ():  # names may occur twice, so not by name
                yield [fields[place] for place in self._places]
        else:
            for record in _records(chunk, self._seen):
                yield [record.get(name) for name in self.names]
        self._seen += n_rows(chunk.X)


def _records(chunk: Chunk, seen: int) -> list[dict[str, Any]]:
    """The user's columns of each row; where there are none, its number and text."""
    source = chunk.source
    if source is not None and source.batch is not None:
        return list(source.batch.to_pylist())
    if source is not None and source.fields is not None:
        if chunk.header is None:
            return list(source.fields)
        return [dict(zip(chunk.header, fields, strict=True)) for fields in source.fields]
    texts = [{}] * n_rows(chunk.X) if chunk.texts is None else [{"text": text} for text in chunk.texts]
    return [{"row": number, **text} for number, text in enumerate(texts, seen + 1)]


class _BatchWriter:
    """Arrow batches with the user's columns and those of the answer; columns that are not Arrow's become strings."""

    def __init__(self, write: Callable[[Any], None], has_names: bool) -> None:
        self._write, self._has_names = write, has_names
        self._columns: _OwnColumns | None = None

    def __call__(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        from ramify.data.arrow import pyarrow

        arrow = pyarrow()
        strings = arrow.list_(arrow.string())
        added = {
            LABELS: arrow.array([[str(label) for label, _, _ in a.labels] for a in answers], strings),
            PROBABILITIES: arrow.array([[p for _, p, _ in a.labels] for a in answers], arrow.list_(arrow.float32())),
        }
        if self._has_names:
            added[NAMES] = arrow.array([[name for _, _, name in a.labels] for a in answers], strings)
        added[NOTICE] = arrow.array([a.notice or None for a in answers], arrow.string())
        batch = None if chunk.source is None else chunk.source.batch
        if self._columns is None:
            self._columns = _OwnColumns(chunk, list(added))
        names = self._columns.names
        if batch is not None:
            own = [batch.column(name) for name in names]
        else:
            rows = [[_as_string(value) for value in row] for row in self._columns.rows(chunk)]
            own = [arrow.array(column, arrow.string()) for column in zip(*rows, strict=True)]
        self._write(arrow.RecordBatch.from_arrays([*own, *added.values()], names=[*names, *added]))


def _as_string(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
