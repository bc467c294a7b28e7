"""Which columns of a table, or fields of JSON lines, hold texts, labels and ids, and how cells become labels."""

from __future__ import annotations

import ast
import contextlib
import difflib
import json
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ramify.data.errors import DataError
from ramify.data.files import PathLike

# Names that are found without being asked for, in any case.
TEXT_NAMES, LABEL_NAMES, ID_NAMES = ("text", "texts"), ("labels", "label"), ("id",)
DEFAULT_SEPARATOR = ";"
# Cells whose labels are remembered: most tables repeat them, and equal labels then share their memory.
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 1_000_000, 1_000
# How Python and JSON write lists, tuples and sets.
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# Characters at the end of a cell that may be white space alone.
_SHORT = 100


@dataclass(frozen=True)
class Columns:
    """The user's choices: columns by name, and how the file is written.

    Several text columns are joined by a space; the labels of several label columns are taken together. Without names,
    columns called "text", "labels" or "label", and "id" are used. `label_separator` splits a cell into labels: by
    default ";" in tables, while a string in JSON or Arrow is one label. `encoding` is found by a byte order mark, else
    it is UTF-8; `delimiter` is found by the first rows. `known_text` and `known_labels` are the columns that a model
    was trained with: they are used without being asked for where a file has them.
    """

    text: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    label_separator: str | None = None
    id: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    known_text: tuple[str, ...] = ()
    known_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.label_separator == "":
            raise ValueError("the label separator must not be empty: leave it out if each cell is one label")
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"the delimiter must be one character, such as , or ; or a tab, got {self.delimiter!r}")

    def text_in(self, names: Collection[str]) -> tuple[str, ...]:
        """The columns of the texts among these names; none: the usual ones.

        >>> Columns(known_text=("body",)).text_in(["id", "body"]), Columns(known_text=("body",)).text_in(["text"])
        (('body',), ())
        """
        return self.text or _if_all_in(names, self.known_text)

    def labels_in(self, names: Collection[str]) -> tuple[str, ...]:
        """The columns of the labels among these names; none: the usual ones."""
        return self.labels or _if_all_in(names, self.known_labels)


def _if_all_in(names: Collection[str], known: tuple[str, ...]) -> tuple[str, ...]:
    return known if all(name in names for name in known) else ()


def as_names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One column or several, as a tuple."""
    names = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"columns are chosen by name: give one or a list of names, got {given!r}")
    return tuple(names)


class Places(NamedTuple):
    """The positions of the chosen columns."""

    text: tuple[int, ...]
    labels: tuple[int, ...]
    id: int | None


class TextRow(NamedTuple):
    """A text with its labels, the line on which it begins, and the user's fields: a list, a dict, or None."""

    text: str
    labels: tuple[str, ...]
    line: int
    fields: Any = None


@dataclass(frozen=True)
class TextChunk:
    """Some rows: texts, labels, first lines, and the user's own columns: lists, dicts, or an Arrow batch."""

    texts: list[str]
    labels: list[tuple[str, ...]]
    lines: Sequence[int]
    fields: Sequence[Any] | None = None
    batch: Any = None

    def __len__(self) -> int:
        return len(self.texts)


def find_columns(names: Sequence[str], columns: Columns, path: PathLike, *, labels_required: bool) -> Places:
    """Find the chosen columns among the names of a table, or those with the usual names.

    >>> find_columns(["id", "title", "Labels"], Columns(text=("title",)), "papers.csv", labels_required=True)
    Places(text=(1,), labels=(2,), id=0)
    """
    text = tuple(_place(name, names, path) for name in columns.text_in(names))
    labels = tuple(_place(name, names, path) for name in columns.labels_in(names))
    if not text:
        text = _usual(TEXT_NAMES, names, path)
        if not text:
            raise DataError('no column is called "text"', path, 1, hint=_choose("--text-column", names))
    if not labels:
        labels = _usual(LABEL_NAMES, names, path)
        if not labels and labels_required:
            raise DataError('no column is called "labels"', path, 1, hint=_choose("--label-column", names))
    ids = _usual(ID_NAMES, names, path) if columns.id is None else (_place(columns.id, names, path),)
    return Places(text, labels, ids[0] if ids else None)


def _place(name: str, names: Sequence[str], path: PathLike) -> int:
    found = [place for place, known in enumerate(names) if known == name]
    if not found:
        found = [place for place, known in enumerate(names) if known.casefold() == name.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{len(found)} columns are called {name!r}", path, 1, hint="rename all but one")
    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and set(parts) <= set(names):
        hint = "these are several columns: give one at a time; --text-column may be repeated"
        raise DataError(f"there is no column {name!r}", path, 1, hint=hint)
    near = difflib.get_close_matches(name, names, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise DataError(f"there is no column {name!r}", path, 1, hint=f"the columns are {listed(names)}{meant}")


def _usual(wanted: Sequence[str], names: Sequence[str], path: PathLike) -> tuple[int, ...]:
    lowered = [name.casefold() for name in names]
    return next(((_place(name, lowered, path),) for name in wanted if name in lowered), ())


def _choose(flag: str, names: Sequence[str]) -> str:
    only = "; if it should have more, give its --delimiter" if len(names) == 1 else ""
    return f"the first line must name the columns, which are {listed(names)}: choose with {flag}{only}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message.

    >>> listed(["title", "body, long"])
    "'title', 'body, long'"
    """
    shown = ", ".join(repr(name if len(name) <= 40 else name[:39] + "…") for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


class CellLabels:
    """The labels of cells: split at the separator, without spaces around them; none in an empty cell.

    Without a separator of the user's, a cell that holds a list as Python or JSON writes it is read as one.

    >>> split = CellLabels(None)
    >>> split("Bein, links; Übelkeit"), split(""), split("['a', 'b;c']")
    (('Bein, links', 'Übelkeit'), (), ('a', 'b;c'))
    >>> CellLabels(",")("Übelkeit, Bein")
    ('Übelkeit', 'Bein')
    """

    def __init__(self, separator: str | None) -> None:
        self._separator = DEFAULT_SEPARATOR if separator is None else separator
        self._reads_lists = separator is None
        self._known: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, str] = {}

    def __call__(self, cell: str) -> tuple[str, ...]:
        found = self._known.get(cell)
        if found is None:
            found = tuple(self._labels.setdefault(label, label) for label in self._split(cell))
            if len(cell) <= _LONGEST_REMEMBERED and len(self._known) < _MOST_REMEMBERED:
                self._known[cell] = found
        return found

    def _split(self, cell: str) -> list[str]:
        if self._reads_lists and cell[:1] in _BRACKETS and cell.endswith(_BRACKETS[cell[0]]):
            listed = _written_list(cell)
            if listed is not None:
                return listed
        if self._reads_lists and cell == "set()":
            return []
        return [label for part in cell.split(self._separator) if (label := part.strip())]


# One entry of a list as Python or JSON writes it, and what follows it. Each character can be matched in one way only.
_ENTRY = re.compile(r"""\s*('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|0|-?[1-9][0-9]*)\s*(?:,|(?=[\])}]\Z))""")


def _written_list(cell: str) -> list[str] | None:
    """The strings and whole numbers of a list, or the strings of a tuple or set; None if the cell is none of these.

    Entry by entry: Python's own parser takes a hundred times the memory of a large cell, and joins 'a' 'b' to one.

    >>> _written_list("['a', 'b;c', 7]"), _written_list("[['a']]"), _written_list("['a' 'b']")
    (['a', 'b;c', '7'], None, None)
    >>> _written_list("('a',)"), _written_list("{'a', 'b'}"), _written_list("(7)")
    (['a'], ['a', 'b'], None)
    """
    found: list[str] = []
    place, end = 1, len(cell) - 1
    while cell[place:end].strip() if end - place < _SHORT else place < end:
        entry = _ENTRY.match(cell, place)
        label = None if entry is None else _unquoted(entry[1])
        if entry is None or label is None or (cell[0] != "[" and entry[1][0] not in "'\""):  # "(7)" is a label
            return None
        found.append(label)
        place = entry.end()
    return found


def _unquoted(entry: str) -> str | None:
    """A label of a written list; None if its escapes are no Unicode text."""
    if entry[0] not in "'\"":
        return entry
    if "\\" not in entry:
        return entry[1:-1]
    try:
        if entry[0] == '"':
            with contextlib.suppress(ValueError):
                return _unicode(json.loads(entry))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return _unicode(ast.literal_eval(entry))
    except (ValueError, SyntaxError, MemoryError):
        return None


def _unicode(label: str) -> str:
    label.encode()  # raises UnicodeEncodeError, a ValueError, for half of a surrogate pair
    return label


def label_of_value(value: Any) -> str | None:
    """A label given as a string or a number; None if it is neither. Whole numbers have no decimals.

    >>> label_of_value("R07.9"), label_of_value(17), label_of_value(17.0), label_of_value([])
    ('R07.9', '17', '17', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
