"""Read files as bytes and lines (gzip is detected), raise DataError on failure, and write atomically."""

from __future__ import annotations

import contextlib
import difflib
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeAlias

from ramify.data.errors import DataError

PathLike: TypeAlias = str | os.PathLike[str]

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
_TRUNCATED = "the file is truncated or damaged; download or write it again"


@contextlib.contextmanager
def data_errors(path: PathLike) -> Iterator[None]:
    """Turn the errors of opening and decompressing a file into a DataError."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError("there is no such file", path, hint=_similar_names(Path(path))) from error
    except IsADirectoryError as error:
        raise DataError("this is a directory, not a file", path, hint=_names_inside(Path(path))) from error
    except PermissionError as error:
        raise DataError("no permission to open the file", path, hint="check its owner and mode") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"broken gzip data ({error})", path, hint=_TRUNCATED) from error


def read_bytes(path: PathLike) -> bytes:
    """Return the whole content, decompressed if it is gzip."""
    with data_errors(path):
        content = Path(path).read_bytes()
        return gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content


def read_start(path: PathLike, n_bytes: int = 65536) -> bytes:
    """Return the first bytes, decompressed if the file is gzip."""
    with data_errors(path), open_unpacked(path) as stream:
        return stream.read(n_bytes)


def check_is_text(start: bytes, path: PathLike) -> None:
    """Raise if the content cannot be text: it is empty, a zip archive, or contains zero bytes."""
    if not start:
        raise DataError("the file is empty", path, hint="check how it was written")
    if start.startswith(ZIP_MAGIC):
        raise DataError("this is a zip archive, not text", path, hint='if it is an npz file, use format="npz"')
    if b"\0" in start:
        hint = "save it as UTF-8 text" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "check that it is the right file"
        raise DataError("this is a binary file, not text", path, hint=hint)


def iter_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1, and lines without line ends; UTF-8, plain or gzip, without byte order mark."""
    with data_errors(path), open_unpacked(path) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, decode_line(line, path, number).rstrip("\r\n")


def decode_line(line: bytes, path: PathLike, number: int) -> str:
    """Decode a line of UTF-8; a byte order mark in line 1 is dropped."""
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode("utf-8")) + 1
        message = f"byte 0x{line[error.start]:02x} is not UTF-8"
        raise DataError(message, path, number, column, "save the file as UTF-8") from error


def read_names(path: PathLike) -> list[str]:
    """Read one name per line, as in labels.txt.gz; blank lines at the end are dropped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.txt")
    ...     _ = path.write_text("chest pain\\ncough, dry\\n")
    ...     read_names(path)
    ['chest pain', 'cough, dry']
    """
    names = [line for _, line in iter_lines(path)]
    while names and not names[-1].strip():
        names.pop()
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise DataError("a name is missing", path, number, hint="write one label or feature name per line")
    return names


@contextlib.contextmanager
def replaced_when_complete(path: PathLike) -> Iterator[IO[bytes]]:
    """Write to a temporary file and rename it at the end; compress with gzip if the name ends in .gz."""
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError("its directory does not exist", path, hint=f"create {target.parent} first")
    if target.is_dir():
        raise DataError("this is a directory, not a file", path, hint="add a file name")
    handle, temporary = tempfile.mkstemp(prefix=target.name + ".", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as raw:
            if target.suffix == ".gz":
                # Store no time and no name, so that the same data gives the same bytes.
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
        _set_usual_mode(temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def open_unpacked(path: PathLike) -> IO[bytes]:
    """Open a file for reading, decompressed if it is gzip."""
    raw = open(path, "rb")  # noqa: SIM115  (the caller closes it)
    if raw.peek(2)[:2] == GZIP_MAGIC:
        packed = _ClosingGzipFile(fileobj=raw)
        return io.BufferedReader(packed)
    return raw


class _ClosingGzipFile(gzip.GzipFile):
    """A GzipFile that also closes the underlying file."""

    def __init__(self, fileobj: IO[bytes]) -> None:
        super().__init__(fileobj=fileobj, mode="rb")
        self._raw = fileobj

    def close(self) -> None:
        super().close()
        self._raw.close()


def _set_usual_mode(path: str) -> None:
    # mkstemp makes files readable only by their owner; use the mode that open() would give.
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


def _similar_names(path: Path) -> str:
    if not path.parent.is_dir():
        return f"its directory {path.parent} does not exist either"
    names = difflib.get_close_matches(path.name, os.listdir(path.parent), n=3)
    return f"did you mean {' or '.join(sorted(names))}?" if names else "check the path"


def _names_inside(path: Path) -> str:
    names = sorted(os.listdir(path))[:4]
    return f"choose one of its files: {', '.join(names)}" if names else "it is empty"
