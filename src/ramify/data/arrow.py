"""Labelled texts in Parquet and Arrow (Feather) files, read and written batch by batch; needs pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramify.data.columns import Columns, TextChunk, find_columns, label_of_value
from ramify.data.errors import DataError
from ramify.data.files import PathLike, data_errors


def pyarrow() -> Any:
    """The pyarrow package; without it, an error that says what to install."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("Parquet and Arrow files need pyarrow: pip install 'ramify[arrow]'") from error
    return pyarrow


@contextlib.contextmanager
def _arrow_errors(kind: str, path: PathLike) -> Iterator[None]:
    """Turn what pyarrow raises for a damaged file into a DataError. Many of its errors are Python's own."""
    arrow = pyarrow()
    try:
        yield
    except (DataError, GeneratorExit):
        raise
    except (arrow.ArrowException, ValueError, TypeError, LookupError, OSError, MemoryError, OverflowError) as error:
        said = str(error).partition("\n")[0] or type(error).__name__
        message = f"this cannot be read as {'Parquet' if kind == 'parquet' else 'Arrow'} ({said})"
        raise DataError(
            message, path, hint="the file is truncated, damaged or of another format; write it again"
        ) from None


class ArrowFile:
    """The record batches of a Parquet, Arrow or Feather file."""

    def __init__(self, path: PathLike, kind: str, name: PathLike | None = None) -> None:
        self.path, self.kind = Path(path), kind
        self.name: PathLike = path if name is None else name
        pyarrow()
        with data_errors(path), open(path, "rb"), _arrow_errors(kind, self.name):
            self.schema = self._open().schema_arrow if kind == "parquet" else self._open().schema
        self.names: list[str] = list(self.schema.names)

    def _open(self) -> Any:
        if self.kind == "parquet":
            from pyarrow import parquet

            return parquet.ParquetFile(str(self.path))
        from pyarrow import feather, ipc, memory_map

        with open(self.path, "rb") as file:
            start = file.read(6)
        if start == b"ARROW1":
            return ipc.open_file(memory_map(str(self.path)))
        return (
            feather.read_table(str(self.path)) if start[:4] == b"FEA1" else ipc.open_stream(memory_map(str(self.path)))
        )

    def batches(self, rows_at_once: int) -> Iterator[Any]:
        """Record batches of at most this many rows."""
        with _arrow_errors(self.kind, self.name):
            file = self._open()
            if self.kind == "parquet":
                yield from map(_validated, file.iter_batches(batch_size=rows_at_once))
                return
            if hasattr(file, "num_record_batches"):
                whole: Iterator[Any] = map(file.get_batch, range(file.num_record_batches))
            else:
                whole = iter(file.to_batches()) if hasattr(file, "to_batches") else iter(file)
            for batch in map(_validated, whole):
                for start in range(0, batch.num_rows, rows_at_once):
                    yield batch.slice(start, rows_at_once)

    def chunks(self, columns: Columns, rows_at_once: int, *, labels_required: bool) -> Iterator[TextChunk]:
        """The texts and labels of the chosen columns; a missing text is empty, a missing label none."""
        places = find_columns(self.names, columns, self.name, labels_required=labels_required)
        first = 1
        for batch in self.batches(rows_at_once):
            texts = self._texts(batch, places.text)
            parts = [self._labels(batch, place, columns.label_separator, first) for place in places.labels]
            labels: Any = parts[0] if len(parts) == 1 else [sum(row, ()) for row in zip(*parts, strict=True)]
            labels = labels if parts else [()] * batch.num_rows
            yield TextChunk(texts, labels, range(first, first + batch.num_rows), batch=batch)
            first += batch.num_rows

    def _texts(self, batch: Any, places: tuple[int, ...]) -> list[str]:
        parts = []
        for place in places:
            if not is_string(batch.schema.field(place).type):
                said = f"column {self.names[place]!r} holds {batch.schema.field(place).type}, not texts"
                raise DataError(said, self.name, hint="choose a column of strings with --text-column")
            parts.append([text or "" for text in batch.column(place).to_pylist()])
        if len(parts) == 1:
            return parts[0]
        return [" ".join(filter(None, row)) for row in zip(*parts, strict=True)]

    def _labels(self, batch: Any, place: int, separator: str | None, first: int) -> list[tuple[str, ...]]:
        found = []
        for row, value in enumerate(batch.column(place).to_pylist(), first):
            if isinstance(value, str) and separator is not None:
                found.append(tuple(label for part in value.split(separator) if (label := part.strip())))
                continue
            values = [] if value is None or value != value else value if isinstance(value, list) else [value]
            labels = [label_of_value(one) for one in values]
            if None in labels:
                said = f"row {row} of column {self.names[place]!r} is {value!r:.60}, not a label or a list of labels"
                raise DataError(said, self.name, hint="labels are strings or numbers, or lists of them")
            found.append(tuple(labels))  # type: ignore[arg-type]
        return found


def _validated(batch: Any) -> Any:
    """Check offsets and UTF-8, which pyarrow trusts: a damaged file would be read beyond its end."""
    batch.validate(full=True)
    return batch


def is_string(kind: Any) -> bool:
    """Whether an Arrow type holds strings, also as a dictionary."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_view = getattr(types, "is_string_view", lambda _: False)
    return bool(types.is_string(kind) or types.is_large_string(kind) or is_view(kind))


@contextlib.contextmanager
def arrow_writer(stream: Any, kind: str) -> Iterator[Any]:
    """A function that writes record batches to a stream, as Parquet or as an Arrow file (Feather 2)."""
    arrow = pyarrow()
    sink = arrow.PythonFile(stream, mode="w")
    writer: Any = None

    def write(batch: Any) -> None:
        nonlocal writer
        if writer is None:
            if kind == "parquet":
                from pyarrow import parquet

                writer = parquet.ParquetWriter(sink, batch.schema)
            else:
                writer = arrow.ipc.new_file(sink, batch.schema)
        writer.write_batch(batch)

    yield write
    if writer is not None:
        writer.close()
