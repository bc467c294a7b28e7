"""Open a file of texts by the names of its columns: in chunks, row by row, or at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ramify.data.columns import Columns, TextRow, as_names
from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_regular
from ramify.data.load import find_data_format
from ramify.data.text_file import TEXT_FORMATS, TextFile


def read_texts(
    path: PathLike,
    format: str | None = None,
    *,
    text_column: str | Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    labels_required: bool = True,
) -> TextFile:
    """Open a file of texts for training or prediction, without holding its texts in memory.

    CSV, TSV, JSONL, fastText lines, Parquet or Arrow, by name and content unless you pass `format`. Columns are chosen
    by name: see `Columns`. The file must be a regular one, because it may be read more than once.

    >>> import tempfile, os
    >>> from ramify import PLTClassifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.csv")
    ...     _ = open(path, "w").write("note;codes\\nchest pain;R07.9|R07.1\\nnosebleed;R04.0\\n")
    ...     notes = read_texts(path, text_column="note", label_column="codes", label_separator="|")
    ...     PLTClassifier(random_state=0).fit(notes.texts, notes.labels).predict_one("nosebleed", top_k=1)[0][0]
    'R04.0'
    """
    check_is_regular(path)
    columns = Columns(
        as_names(text_column), as_names(label_column), label_separator, encoding=encoding, delimiter=delimiter
    )
    kind = find_data_format(path, columns) if format is None else format
    if kind not in TEXT_FORMATS:
        known = ", ".join(TEXT_FORMATS)
        raise DataError(f"this is {kind}, which holds no texts", path, hint=f"give a file of texts: {known}")
    return TextFile(path, kind, columns, labels_required=labels_required)


def load_table(path: PathLike, format: str | None = None, **columns: Any) -> tuple[list[str], list[list[str]]]:
    """Return all texts of a table, and the labels of each: `iter_table` at once."""
    texts, labels = list[str](), list[list[str]]()
    for chunk in read_texts(path, format, **columns).chunks():
        texts += chunk.texts
        labels += map(list, chunk.labels)
    return texts, labels


def iter_table(path: PathLike, format: str | None = None, **columns: Any) -> Iterator[TextRow]:
    """Read a table row by row, in constant memory; the parameters are those of `read_texts`.

    A row has its `text`, its `labels`, the `line` on which it begins, and all its `fields`.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.csv")
    ...     _ = open(path, "w").write('text,labels\\n"pain, chest",R07.9;pain\\n')
    ...     [(row.text, row.labels) for row in iter_table(path)]
    [('pain, chest', ('R07.9', 'pain'))]
    """
    for chunk in read_texts(path, format, **columns).chunks():
        fields: Iterable[Any] = [None] * len(chunk) if chunk.fields is None else chunk.fields
        if chunk.batch is not None:
            fields = [list(row.values()) for row in chunk.batch.to_pylist()]
        yield from itertools.starmap(TextRow, zip(chunk.texts, chunk.labels, chunk.lines, fields, strict=True))
