"""Labelled texts as JSON lines: `{"text": "...", "labels": ["a, b", "ü"]}`, one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, iter_lines, read_start

_EXAMPLE = 'a line looks like {"text": "acute chest pain", "labels": ["R07.9"]}'


class LabelledText(NamedTuple):
    """A text and its labels, in the order of the file."""

    text: str
    labels: list[str]


def iter_jsonl(path: PathLike, *, labels_required: bool = True) -> Iterator[LabelledText]:
    """Read a JSONL file, plain or gzip, row by row, in constant memory.

    Blank lines are skipped and other keys ignored. Unless `labels_required`, "labels" may be missing.
    Raises DataError with the line number.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9"]}')
    ...     [record.labels for record in iter_jsonl(path)]
    [['R07.9']]
    """
    check_is_text(read_start(path, 4096), path)
    for number, line in iter_lines(path):
        if line.strip():
            yield parse_record(line, path, number, labels_required)


def load_jsonl(path: PathLike, *, labels_required: bool = True) -> tuple[list[str], list[list[str]]]:
    """Return all texts of a JSONL file, and the labels of each.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9", "pain, chest"]}')
    ...     load_jsonl(path)
    (['acute chest pain'], [['R07.9', 'pain, chest']])
    """
    return texts_and_labels(iter_jsonl(path, labels_required=labels_required))


def texts_and_labels(records: Iterable[LabelledText]) -> tuple[list[str], list[list[str]]]:
    """Return the texts and the labels of all records."""
    texts: list[str] = []
    labels: list[list[str]] = []
    for record in records:
        texts.append(record.text)
        labels.append(record.labels)
    return texts, labels


def parse_record(line: str, path: PathLike, number: int, labels_required: bool) -> LabelledText:
    """Parse one line; errors contain the line number."""

    def bad_line(message: str, hint: str = _EXAMPLE, column: int | None = None) -> DataError:
        return DataError(message, path, number, column, hint)

    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise bad_line(f"invalid JSON ({error.msg})", column=error.colno) from error
    except (ValueError, RecursionError) as error:  # numbers with thousands of digits, deeply nested brackets
        raise bad_line(f"cannot parse this JSON ({error})") from error
    if not isinstance(value, dict):
        raise bad_line(f"expected a JSON object, got {_kind(value)}")
    if "text" not in value:
        raise bad_line('the object has no "text"')
    text, labels = value["text"], value.get("labels", None if labels_required else [])
    if not isinstance(text, str):
        raise bad_line(f'"text" must be a string, got {_kind(text)}')
    if "labels" not in value and labels_required:
        raise bad_line('the object has no "labels"', 'write "labels": [] for a row without labels')
    if isinstance(labels, str):
        raise bad_line('"labels" must be a list, got a string', f'write "labels": [{json.dumps(labels)[:80]}]')
    if not isinstance(labels, list):
        raise bad_line(f'"labels" must be a list of strings, got {_kind(labels)}')
    for label in labels:
        if not isinstance(label, str):
            raise bad_line(f'"labels" must contain strings, got {_kind(label)}', f"add quotes: {_quoted(label)}")
    for name, string in [("text", text), *(("labels", label) for label in labels)]:
        if not _is_unicode(string):
            raise bad_line(f'"{name}" contains half of a surrogate pair', r"write the character, or both \u escapes")
    return LabelledText(text, labels)


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


def _quoted(value: Any) -> str:
    return json.dumps(json.dumps(value))[:80] if isinstance(value, (int, float)) else '"like this"'
