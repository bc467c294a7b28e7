"""Where data come from: a regular file, stdin, a pipe or a device."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramify.cli.options import open_stdin
from ramify.data import DataError
from ramify.data.files import PathLike


def is_stream(path: Path) -> bool:
    """Whether a path can be read only once: "-", a pipe, /dev/stdin."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


@contextlib.contextmanager
def opened_stream(path: Path | None, advice: str) -> Iterator[tuple[str, Any]]:
    """The name and the bytes of a path that can be read only once; None and "-" are stdin."""
    if path is None or str(path) == "-":
        yield "stdin", open_stdin(path is not None, advice)
    elif str(path) in ("/dev/stdin", "/proc/self/fd/0") and not hasattr(sys.stdin, "fileno"):
        yield str(path), open_stdin(True, advice)
    else:
        with open(path, "rb") as stream:
            yield str(path), stream


class Source:
    """A file to read as often as needed: what can be read only once is copied first.

    `name` is what messages call it. The copy lives as long as this object.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self._copy: Any = None
        if is_stream(path):
            self._copy = tempfile.NamedTemporaryFile(prefix="ramify-input-")  # noqa: SIM115  (lives as long as this)
            with opened_stream(path, "give a file, or data on stdin") as (name, stream):
                shutil.copyfileobj(stream, self._copy)
            self._copy.flush()
            self.path, self.name = Path(self._copy.name), name

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Errors name the source and not its copy."""
        try:
            yield
        except DataError as error:
            if error.path != str(self.path):
                raise
            raise DataError(error.message, self.name, error.line, error.column, error.hint) from None


def shown_name(path: PathLike) -> str:
    return "stdin" if str(path) == "-" else str(path)
