"""Labelled texts as JSON lines: `{"text": "...", "labels": ["a, b", "ü"]}`, one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, iter_lines, read_start

_EXAMPLE = 'a line looks like {"text": "acute chest pain", "labels": ["R07.9"]}'


class LabelledText(NamedTuple):
    """A text and its labels, in the order of the file."""

    text: str
    labels: list[str]


def iter_jsonl(path: PathLike, *, labels_required: bool = True) -> Iterator[LabelledText]:
    """Read a JSONL file, gzip or not, row by row; memory does not grow with the file.

    Blank lines are skipped and other keys ignored. Without `labels_required` a row may lack "labels" and then has none.
    Raises DataError with the line's number.

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
    """All texts of a JSONL file, and the labels of each.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.jsonl")
    ...     _ = open(path, "w").write('{"text": "acute chest pain", "labels": ["R07.9", "pain, chest"]}')
    ...     load_jsonl(path)
    (['acute chest pain'], [['R07.9', 'pain, chest']])
    """
    texts: list[str] = []
    labels: list[list[str]] = []
    for record in iter_jsonl(path, labels_required=labels_required):
        texts.append(record.text)
        labels.append(record.labels)
    return texts, labels


def parse_record(line: str, path: PathLike, number: int, labels_required: bool) -> LabelledText:
    """The record of one line; what is wrong with it is told with the line's number."""

    def refuse(message: str, hint: str = _EXAMPLE, column: int | None = None) -> DataError:
        return DataError(message, path, number, column, hint)

    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise refuse(f"this is not JSON ({error.msg})", column=error.colno) from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, brackets nested without end
        raise refuse(f"this JSON cannot be read ({error})") from error
    if not isinstance(value, dict):
        raise refuse(f"the line holds {_kind(value)} instead of an object")
    if "text" not in value:
        raise refuse('the object has no "text"')
    text, labels = value["text"], value.get("labels", None if labels_required else [])
    if not isinstance(text, str):
        raise refuse(f'"text" is {_kind(text)} instead of a string')
    if "labels" not in value and labels_required:
        raise refuse('the object has no "labels"', 'a row without labels says so: "labels": []')
    if isinstance(labels, str):
        raise refuse('"labels" is a string instead of a list', f'write "labels": [{json.dumps(labels)[:80]}]')
    if not isinstance(labels, list):
        raise refuse(f'"labels" is {_kind(labels)} instead of a list of strings')
    for label in labels:
        if not isinstance(label, str):
            raise refuse(f'"labels" holds {_kind(label)} instead of a string', f"put quotes round it: {_quoted(label)}")
    for name, string in [("text", text), *(("labels", label) for label in labels)]:
        if not _is_unicode(string):
            raise refuse(f'"{name}" holds half of a surrogate pair', r"write the character itself, or both \u escapes")
    return LabelledText(text, labels)


def _is_unicode(string: str) -> bool:
    try:
        string.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {json.dumps(value)[:40]}"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"


def _quoted(value: Any) -> str:
    return json.dumps(json.dumps(value))[:80] if isinstance(value, (int, float)) else '"like this"'
