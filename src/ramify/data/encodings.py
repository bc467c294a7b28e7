"""Text in any encoding as UTF-8: by byte order mark, or as the user says."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from ramify.data.errors import DataError
from ramify.data.files import BYTE_ORDER_MARK, PathLike, data_errors, open_unpacked

# The marks of UTF-32 begin with those of UTF-16.
_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
_LONGEST_MARK = 4
_READ_AT_ONCE = 1 << 18


def utf8_blocks(blocks: Iterable[bytes], encoding: str | None, path: PathLike) -> Iterator[bytes]:
    """The same text in UTF-8, without byte order mark; without `encoding`, by the mark, else it is UTF-8 already.

    >>> b"".join(utf8_blocks(["Übelkeit".encode("cp1252")], "cp1252", "notes.csv")).decode()
    'Übelkeit'
    """
    blocks, start = iter(blocks), b""
    for block in blocks:
        start += block
        if len(start) >= _LONGEST_MARK:
            break
    if encoding is None:
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    codec = check_encoding(encoding)
    if codec.name in ("utf-8", "utf-8-sig"):
        yield from itertools.chain([start.removeprefix(BYTE_ORDER_MARK)], blocks)
        return
    decoder = codec.incrementaldecoder("strict")
    n_lines, is_first = 0, True
    pieces: Iterable[tuple[bytes, bool]] = itertools.chain(
        [(start, False)], ((block, False) for block in blocks), [(b"", True)]
    )
    for piece, is_last in pieces:
        try:
            text = decoder.decode(piece, is_last)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "ignore")
            line, column = n_lines + before.count("\n") + 1, len(before) - before.rfind("\n")
            shown = error.object[error.start : error.start + 1].hex()
            hint = "give the right --encoding, such as utf-8, cp1252 or utf-16, or save the file as UTF-8"
            raise DataError(f"byte 0x{shown} is not {encoding}", path, line, column, hint) from None
        if is_first and text:
            text, is_first = text.removeprefix("\ufeff"), False
        n_lines += text.count("\n")
        if text:
            yield text.encode("utf-8", "surrogatepass")


def encoding_like(path: PathLike, known: str) -> str | None:
    """The encoding of earlier tables, unless this one is UTF-8 or has a byte order mark: then None.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write("Übelkeit".encode("cp1252")), file.flush()
    ...     encoding_like(file.name, "cp1252")
    'cp1252'
    """
    with data_errors(path), open_unpacked(path) as stream:
        start = stream.read(_LONGEST_MARK)
        if any(start.startswith(mark) for mark in (BYTE_ORDER_MARK, *(mark for mark, _ in _MARKS))):
            return None
        for block in itertools.chain([start], iter(lambda: stream.read(_READ_AT_ONCE), b"")):
            if b"\0" in block:
                return known
            if not block.isascii():
                return None if _begins_as_utf8(block) else known
    return None


def _begins_as_utf8(block: bytes) -> bool:
    """Whether a block is UTF-8; its last character may be cut off."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(block)
    except UnicodeDecodeError:
        return False
    return True


def encoding_of(path: PathLike, given: str | None) -> str:
    """The encoding in which a table like this one is written: as given, or by the byte order mark, which is kept."""
    if given is not None:
        return given
    if not Path(path).is_file():  # a pipe can be read only once
        return "utf-8"
    with open(path, "rb") as file:
        start = file.read(_LONGEST_MARK)
    if start.startswith(BYTE_ORDER_MARK):
        return "utf-8-sig"
    return next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")


def check_encoding(encoding: str) -> codecs.CodecInfo:
    """The codec of a text encoding; an unknown name raises."""
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        codec = None
    if codec is None or not codec._is_text_encoding or codec.incrementaldecoder is None:
        raise ValueError(
            f"there is no encoding {encoding!r}: use utf-8, cp1252, latin-1, utf-16 or another of Python's"
        )
    return codec
