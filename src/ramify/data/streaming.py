"""XMC files that need not fit into memory: read a chunk of rows at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ramify import _core
from ramify.common.validation import number_of_threads
from ramify.data.dataset import Dataset
from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, iter_lines, read_start
from ramify.data.xmc import _dataset, _told_for, load_xmc

_HINT = "the file may be cut off; else correct the first number of the header"


def iter_xmc(path: PathLike, rows_at_once: int = 4096, *, n_jobs: int | None = None) -> Iterator[Dataset]:
    """The rows of an XMC file, gzip or not, as data sets of at most `rows_at_once` rows.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.txt")
    ...     _ = open(path, "w").write("3 2 4\\n0,2 0:0.5\\n1 1:2\\n3 0:1\\n")
    ...     list(iter_xmc(path, 2))
    [Dataset(2 rows, 2 features, 4 labels, 1.5 labels a row), Dataset(1 rows, 2 features, 4 labels, 1.0 labels a row)]
    """
    check_is_text(read_start(path, 4096), path)
    lines = (line for _, line in iter_lines(path))
    header = next(lines).split()
    if len(header) != 3 or not all(word.isascii() and word.isdigit() for word in header):
        yield load_xmc(path, n_jobs=n_jobs)  # raises: the parser says best what is wrong with a header
        return
    n_rows = int(header[0])
    seen = 0
    while rows := list(itertools.islice(lines, rows_at_once)):
        while seen + len(rows) > n_rows and not rows[-1].strip():
            rows.pop()  # blank lines at the end
        if seen + len(rows) > n_rows:
            message = f"there are more rows than the {n_rows} that the header announces"
            raise DataError(message, path, n_rows + 2, hint=_HINT)
        if rows:
            yield _parse(rows, header, path, seen, number_of_threads(n_jobs))
        seen += len(rows)
    if seen < n_rows:
        raise DataError(f"the file ends after {seen} rows, but the header announces {n_rows}", path, hint=_HINT)


def _parse(rows: list[str], header: list[str], path: PathLike, seen: int, n_threads: int) -> Dataset:
    text = "\n".join([f"{len(rows)} {header[1]} {header[2]}", *rows, ""]).encode()
    try:
        return _dataset(_core.parse_xmc(text, n_threads=n_threads))
    except _core.TextError as error:
        told = _told_for(path, error)
        line = None if told.line is None else told.line + seen if told.line > 1 else told.line
        raise DataError(told.message, path, line, told.column, told.hint) from None
