"""Labelled texts as JSON lines: `{"text": "...", "labels": ["a, b", "ü"]}`, one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ramify.data.columns import LABEL_NAMES, Columns, as_names, label_of_value, listed
from ramify.data.encodings import utf8_blocks
from ramify.data.errors import DataError
from ramify.data.files import (
    PathLike,
    check_is_text,
    data_errors,
    decode_line,
    open_unpacked,
    read_start,
    split_lines,
)

_EXAMPLE = 'a line looks like {"text": "acute chest pain", "labels": ["R07.9"]}'
_READ_AT_ONCE = 1 << 18
_DEFAULT = Columns()


class LabelledText(NamedTuple):
    """A text and its labels, in the order of the file."""

    text: str
    labels: list[str]


def iter_jsonl(
    path: PathLike,
    *,
    labels_required: bool = True,
    text_column: str | Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    encoding: str | None = None,
) -> Iterator[LabelledText]:
    """Read a JSONL file, plain or gzip, row by row, in constant memory.

    The fields are "text", and "labels" or "label", unless you name others; several text fields are joined by a space.
    Labels are a list, or one string or number; numbers become strings. `label_separator` splits a string into labels.
    Blank lines are skipped and other keys ignored. Unless `labels_required`, labels may be missing.
    Raises DataError with the line number.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9"]}')
    ...     [record.labels for record in iter_jsonl(path)]
    [['R07.9']]
    """
    columns = Columns(as_names(text_column), as_names(label_column), label_separator, encoding=encoding)
    if encoding is None:
        check_is_text(read_start(path, 4096), path, is_decoded=True)
    with data_errors(path), open_unpacked(path) as stream:
        blocks = iter(lambda: stream.read(_READ_AT_ONCE), b"")
        number = 0
        for lines in split_lines(utf8_blocks(blocks, encoding, path)):
            for raw in lines:
                number += 1
                line = decode_line(raw, path, number)
                if line.strip():
                    yield parse_record(line, path, number, labels_required, columns)


def load_jsonl(path: PathLike, *, labels_required: bool = True, **columns: Any) -> tuple[list[str], list[list[str]]]:
    """Return all texts of a JSONL file, and the labels of each; the parameters are those of `iter_jsonl`.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9", "pain, chest"]}')
    ...     load_jsonl(path)
    (['acute chest pain'], [['R07.9', 'pain, chest']])
    """
    return texts_and_labels(iter_jsonl(path, labels_required=labels_required, **columns))


def texts_and_labels(records: Iterable[LabelledText]) -> tuple[list[str], list[list[str]]]:
    """Return the texts and the labels of all records."""
    texts: list[str] = []
    labels: list[list[str]] = []
    for record in records:
        texts.append(record.text)
        labels.append(record.labels)
    return texts, labels


def parse_record(
    line: str, path: PathLike, number: int, labels_required: bool, columns: Columns | None = None
) -> LabelledText:
    """Parse one line; errors contain the line number."""
    return read_record(parse_object(line, path, number), path, number, labels_required, columns or _DEFAULT)


def parse_object(line: str, path: PathLike, number: int) -> dict[str, Any]:
    """The JSON object on a line."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"invalid JSON ({error.msg})", path, number, error.colno, _EXAMPLE) from error
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, deeply nested brackets
        raise DataError(f"cannot parse this JSON ({error})", path, number, hint=_EXAMPLE) from error
    if not isinstance(value, dict):
        raise DataError(f"expected a JSON object, got {_kind(value)}", path, number, hint=_EXAMPLE)
    return value


def read_record(
    value: dict[str, Any], path: PathLike, number: int, labels_required: bool, columns: Columns
) -> LabelledText:
    """The text and the labels of an object."""
    text = _text_of(value, columns.text_in(value), path, number)
    labels: list[str] = []
    names = columns.labels_in(value)
    if not names:
        names = tuple(name for name in LABEL_NAMES if name in value)[:1]
        if not names and labels_required:
            hint = f'write "labels": [] for a row without labels{_fields(value, "--label-column")}'
            raise DataError('the object has no "labels"', path, number, hint=hint)
    for name in names:
        if name not in value and labels_required:
            hint = f"write {json.dumps(name)}: [] for a row without labels{_fields(value, '--label-column')}"
            raise DataError(f"the object has no {json.dumps(name)}", path, number, hint=hint)
        labels += _labels_of(name, value.get(name), columns.label_separator, path, number)
    for name, string in [("text", text), *(("labels", label) for label in labels)]:
        if not _is_unicode(string):
            hint = r"write the character, or both \u escapes"
            raise DataError(f'"{name}" contains half of a surrogate pair', path, number, hint=hint)
    return LabelledText(text, labels)


def _text_of(value: dict[str, Any], names: tuple[str, ...], path: PathLike, number: int) -> str:
    found = []
    for name in names or ("text",):
        text = value.get(name)
        if isinstance(text, str):
            found.append(text)
        elif name in value and not (text is None and len(names) > 1):
            message = f"{json.dumps(name)} must be a string, got {_kind(text)}"
            raise DataError(message, path, number, hint=_EXAMPLE)
    if not found:
        name = json.dumps(names[0] if names else "text")
        hint = f"{_EXAMPLE}{_fields(value, '--text-column')}"
        raise DataError(f"the object has no {name}", path, number, hint=hint)
    return found[0] if len(found) == 1 else " ".join(filter(None, found))


def _fields(value: dict[str, Any], flag: str) -> str:
    return f"; the fields are {listed(list(value))}: choose with {flag}" if value else ""


def _labels_of(name: str, labels: Any, separator: str | None, path: PathLike, number: int) -> list[str]:
    if labels is None:
        return []
    if isinstance(labels, str) and separator is not None:
        return [label for part in labels.split(separator) if (label := part.strip())]
    found = []
    for value in labels if isinstance(labels, list) else [labels]:
        one = label_of_value(value)
        if one is None:
            message = f"{json.dumps(name)} must hold strings or numbers, got {_kind(value)}"
            raise DataError(message, path, number, hint=_EXAMPLE)
        found.append(one)
    return found


def _is_unicode(string: str) -> bool:
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    """Describe a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {json.dumps(value)[:40]}"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"
