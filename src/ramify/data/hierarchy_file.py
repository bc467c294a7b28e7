"""Read a hierarchy of labels from a file: a line for each label and parent."""

from __future__ import annotations

from typing import Any

from ramify.data.errors import DataError
from ramify.data.files import PathLike, iter_lines

_HINT = "write lines label<tab>parent, one for each parent of a label"


def read_hierarchy(path: PathLike, *, are_numbers: bool) -> dict[Any, list[Any]]:
    """Label -> parents, from lines label<tab>parent; `are_numbers`: labels are columns of the data, counted from 0.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "parents.tsv")
    ...     _ = path.write_text("E11.9\\tE11\\nE11\\tE08-E13\\n")
    ...     read_hierarchy(path, are_numbers=False)
    {'E11.9': ['E11'], 'E11': ['E08-E13']}
    """
    parents: dict[Any, list[Any]] = {}
    for number, line in iter_lines(path):
        if not line.strip():
            continue
        pair = line.split("\t")
        if len(pair) != 2 or not all(part.strip() for part in pair):
            raise DataError(f"expected a label and its parent, got {line[:60]!r}", path, number, hint=_HINT)
        if are_numbers:
            strange = next((part for part in pair if not part.strip().isdigit()), None)
            if strange is not None:
                raise DataError(f"the labels of the data are numbers, not {strange!r}", path, number)
        child, parent = (int(part) if are_numbers else part for part in pair)
        parents.setdefault(child, []).append(parent)
    return parents
