"""The error for bad data files: what is wrong, where, and how to fix it."""

from __future__ import annotations

import os


class DataError(ValueError):
    """A data file cannot be read or written; `path`, `line` and `column` say where, `hint` how to fix it.

    Lines and columns count from 1, and are None where they do not apply.

    >>> print(DataError("feature '17:abc' has no number after the colon", "train.txt", 4711, 12, "drop the feature"))
    train.txt, line 4711, column 12: feature '17:abc' has no number after the colon
    hint: drop the feature
    """

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, path, line, column, hint)
        self.message = message
        self.path = None if path is None else os.fspath(path)
        self.line = line
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        place = [] if self.path is None else [self.path]
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.column is not None:
            place.append(f"column {self.column}")
        text = f"{', '.join(place)}: {self.message}" if place else self.message
        return text if self.hint is None else f"{text}\nhint: {self.hint}"
