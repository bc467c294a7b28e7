"""Search and browse the labels of a model: names and labels, case-insensitive, best matches first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramify.base.schema import Schema

_SEPARATOR = "\x1f"  # between labels in the searched text; removed from the labels themselves


def known_columns(schema: Schema, labels: Sequence[Any]) -> list[int]:
    """The columns of those labels that the schema has: a snapshot may not know the newest ones yet."""
    columns: list[int] = []
    for label in labels:
        if schema.labels.kind == "indicator":
            columns += [label] if label < schema.n_labels else []
            continue
        found = schema.labels.known_columns(label if schema.is_multiclass else [label])
        columns += [] if found is None else found.tolist()
    return columns


class LabelIndex:
    """All labels of a schema in one text, so that a search is one scan in C."""

    def __init__(self, schema: Schema) -> None:
        self.n_labels = schema.n_labels
        labels = [str(label) for label in schema.labels_of(range(self.n_labels))]
        names = [""] * self.n_labels if schema.label_names is None else schema.label_names.tolist()
        self._lines = [
            f"{label} {name}".strip().replace(_SEPARATOR, " ").lower()
            for label, name in zip(labels, names, strict=True)
        ]
        self._text = _SEPARATOR + _SEPARATOR.join(self._lines)
        self._starts: list[int] | None = None

    def find(self, query: str, most: int) -> list[int]:
        """Columns of labels that contain all words of the query; those that start with it come first."""
        words = query.replace(_SEPARATOR, " ").lower().split()
        if not words:
            return list(range(min(most, self.n_labels)))
        longest = max(words, key=len)
        starts = self._line_starts()
        found, place = [], self._text.find(longest)
        column = 0
        while place >= 0:
            while column + 1 < len(starts) and starts[column + 1] <= place:
                column += 1
            line = self._lines[column]
            if all(word in line for word in words):
                found.append(column)
            next_line = self._text.find(_SEPARATOR, place)
            place = -1 if next_line < 0 else self._text.find(longest, next_line)
        whole = " ".join(words)
        return sorted(found, key=lambda c: _rank(self._lines[c], whole, words))[:most]

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            place, starts = 1, []
            for line in self._lines:
                starts.append(place)
                place += len(line) + 1
            self._starts = starts
        return self._starts


def _rank(line: str, whole: str, words: list[str]) -> tuple[Any, ...]:
    """Exact first, then lines that start with the query, then words that do, then short lines."""
    starts_word = all(line.startswith(word) or f" {word}" in line for word in words)
    return (line != whole, not line.startswith(whole), not starts_word, len(line))
