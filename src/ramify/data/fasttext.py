"""Labelled texts in fastText format: words that start with `__label__` are a line's labels, the rest is its text."""

from __future__ import annotations

from collections.abc import Iterator

from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, iter_lines, read_start
from ramify.data.jsonl import LabelledText, texts_and_labels

PREFIX = "__label__"
_EXAMPLE = "a line looks like __label__R07.9 acute chest pain"


def iter_fasttext(path: PathLike) -> Iterator[LabelledText]:
    """Read a file of labelled texts, plain or gzip, row by row, in constant memory.

    Labels are returned without the prefix and may be anywhere in a line, or missing. Blank lines are skipped.
    Raises DataError with the line number.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.txt")
    ...     _ = open(path, "w").write("__label__R07.9 acute chest pain")
    ...     [(record.text, record.labels) for record in iter_fasttext(path)]
    [('acute chest pain', ['R07.9'])]
    """
    check_is_text(read_start(path, 4096), path)
    for number, line in iter_lines(path):
        if line.strip():
            yield parse_line(line, path, number)


def parse_line(line: str, path: PathLike, number: int) -> LabelledText:
    """Parse one line; errors contain the line number.

    >>> parse_line("__label__R07.9 acute chest pain", "notes.txt", 1)
    LabelledText(text='acute chest pain', labels=['R07.9'])
    """
    words = line.split()
    # Labels usually come first: search the other words only if the line contains more labels.
    n_first = next((place for place, word in enumerate(words) if not word.startswith(PREFIX)), len(words))
    labels = [word.removeprefix(PREFIX) for word in words[:n_first]]
    words = words[n_first:]
    if line.count(PREFIX) > n_first:
        labels += [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
        words = [word for word in words if not word.startswith(PREFIX)]
    if "" in labels:
        column = line.index(PREFIX) + 1 if len(labels) == 1 else None
        raise DataError(f"a label has no name after {PREFIX}", path, number, column, _EXAMPLE)
    return LabelledText(" ".join(words), labels)


def load_fasttext(path: PathLike) -> tuple[list[str], list[list[str]]]:
    """Return all texts of a file in fastText format, and the labels of each.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "notes.txt")
    ...     _ = open(path, "w").write("__label__R07.9 __label__pain acute chest pain")
    ...     load_fasttext(path)
    (['acute chest pain'], [['R07.9', 'pain']])
    """
    return texts_and_labels(iter_fasttext(path))
