"""Read files as bytes and lines (gzip is detected), raise DataError on failure, and write atomically."""

from __future__ import annotations

import contextlib
import difflib
import errno
import gzip
import io
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from ramify.data.errors import DataError
from ramify.data.limits import check_unpacked

PathLike: TypeAlias = str | os.PathLike[str]

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16 and UTF-32
_TRUNCATED = "the file is truncated or damaged; download or write it again"
_NOT_UTF8 = "save the file as UTF-8, or give its --encoding, such as cp1252 for tables of a spreadsheet on Windows"
_READ_AT_ONCE = 1 << 18


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


def check_is_regular(path: PathLike) -> None:
    """Raise for what is no name of a file, and for pipes and devices: files are read more than once."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a file is given by its name, got a {type(path).__name__}; tables in memory go to fit")
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        message = "this is a pipe or a device, and the file is read more than once"
        raise DataError(message, path, hint="copy it to a file")


def read_bytes(path: PathLike) -> bytes:
    """Return the whole content, decompressed if it is gzip."""
    with data_errors(path), open_unpacked(path) as stream:
        return stream.read()


def read_start(path: PathLike, n_bytes: int = 65536) -> bytes:
    """Return the first bytes, decompressed if the file is gzip."""
    with data_errors(path), open_unpacked(path) as stream:
        return stream.read(n_bytes)


def check_is_text(start: bytes, path: PathLike, *, is_decoded: bool = False) -> None:
    """Raise if the content cannot be text: it is empty, a zip archive, or contains zero bytes.

    `is_decoded`: it will be read by its byte order mark, so that zero bytes are allowed in UTF-16 and UTF-32.
    """
    if not start:
        raise DataError("the file is empty", path, hint="check how it was written")
    if start.startswith(ZIP_MAGIC):
        raise DataError("this is a zip archive, not text", path, hint='if it is an npz file, use format="npz"')
    has_mark = start[:2] in WIDE_MARKS or start[:4] == b"\0\0\xfe\xff"
    if start.startswith(b"\x93NUMPY"):
        hint = "ramify.data.save_npz writes arrays with their labels to a file for training"
        raise DataError("this is one numpy array, without labels", path, hint=hint)
    if b"\0" in start and not (is_decoded and has_mark):
        hint = "check that it is the right file; if it is text, give its --encoding, such as utf-16"
        marked = "save it as UTF-8 text, or, if it is a table, give --encoding utf-16"
        raise DataError("this is a binary file, not text", path, hint=marked if has_mark else hint)


def iter_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield line numbers from 1, and lines without line ends; UTF-8, plain or gzip, without byte order mark."""
    with data_errors(path), open_unpacked(path) as stream:
        for number, line in enumerate(stream, start=1):
            yield number, decode_line(line, path, number).rstrip("\r\n")


def decode_line(line: bytes, path: PathLike, number: int) -> str:
    """Decode a line of UTF-8; a byte order mark in line 1 is dropped."""
    line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode("utf-8")) + 1
        message = f"byte 0x{line[error.start]:02x} is not UTF-8"
        raise DataError(message, path, number, column, _NOT_UTF8) from error


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


# Errors of writing, which do not say what was written.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def replaced_when_complete(path: PathLike) -> Iterator[IO[bytes]]:
    """Write to a temporary file and rename it at the end; compress with gzip if the name ends in .gz."""
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError("its directory does not exist", path, hint=f"create {target.parent} first")
    if target.is_dir():
        raise DataError("this is a directory, not a file", path, hint="add a file name")
    try:
        handle, temporary = tempfile.mkstemp(prefix=target.name + ".", suffix=".part", dir=target.parent)
    except OSError as error:
        hint = f"choose another directory, or allow writing to {target.parent.absolute()}"
        raise DataError(f"this file cannot be written ({error.strerror})", path, hint=hint) from error
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
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            raise OSError(error.errno, f"{error.strerror}; the file was not written", str(path)) from error
        raise


def open_unpacked(path: PathLike) -> IO[bytes]:
    """Open a file for reading, decompressed if it is gzip, within the limit of `ramify.data.max_unpacked`."""
    raw = open(path, "rb")  # noqa: SIM115  (the caller closes it)
    if raw.peek(2)[:2] == GZIP_MAGIC:
        return io.BufferedReader(_Unpacked(raw, path), _READ_AT_ONCE)
    return raw


class _Unpacked(io.RawIOBase):
    """The content of a gzip file. Reading raises if it expands too far; closing it closes the file."""

    def __init__(self, raw: io.BufferedReader, path: PathLike) -> None:
        self._raw, self._path = raw, path
        self._unpacked = gzip.GzipFile(fileobj=raw, mode="rb")
        self._n_unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._unpacked.read1(len(buffer))
        buffer[: len(content)] = content
        self._n_unpacked += len(content)
        check_unpacked(self._n_unpacked, self._raw.tell(), self._path)
        return len(content)

    def close(self) -> None:
        super().close()
        self._unpacked.close()
        self._raw.close()


def beginning(blocks: Iterator[bytes], *, whole_line: bool) -> bytes:
    """All blocks up to the first with more than white space, or up to the end of its line, joined in linear time.

    >>> blocks = iter([b" ", b"\\n a", b"b", b"c\\nd", b"e"])
    >>> beginning(blocks, whole_line=True), next(blocks)
    (b' \\n abc\\nd', b'e')
    """
    parts: list[bytes] = []
    has_begun = False
    for block in blocks:
        parts.append(block)
        seen = block if has_begun else block.lstrip()
        has_begun = has_begun or bool(seen)
        if has_begun and (not whole_line or b"\n" in seen):
            break
    return b"".join(parts)


class LineSplitter:
    """Cut blocks of bytes into lines, in linear time even if a line spans many blocks.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b"ab"), splitter.feed(b"c\\r\\nd"), splitter.rest
    ([], [b'abc'], b'd')
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, block: bytes) -> list[bytes]:
        """The lines that the block completes, without their ends."""
        first, newline, others = block.partition(b"\n")
        self._parts.append(first)
        if not newline:
            return []
        *lines, left = others.split(b"\n")
        lines.insert(0, b"".join(self._parts))
        self._parts = [left]
        return [line.removesuffix(b"\r") for line in lines]

    @property
    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._parts).removesuffix(b"\r")


def split_lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines that each block completes, as soon as it arrives; the last needs no newline."""
    splitter = LineSplitter()
    for block in blocks:
        if lines := splitter.feed(block):
            yield lines
    if splitter.rest:
        yield [splitter.rest]


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
