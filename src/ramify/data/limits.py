"""Limits that keep a small file from filling the memory: how far gzip may expand, and how wide rows may be.

Compressed text rarely expands more than tenfold; bytes made for it expand a thousandfold. A header of thirty bytes can
announce billions of labels, for which models would reserve memory. The limits are far above what real data need.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ramify.data.errors import DataError

# What is allowed whatever the size of the file, and how much more each of its bytes allows.
FREE_BYTES, BYTES_PER_BYTE = 1 << 26, 100
FREE_COLUMNS, COLUMNS_PER_BYTE = 1 << 24, 16

_given: ContextVar[int | None] = ContextVar("max_unpacked", default=None)


@contextmanager
def max_unpacked(n_bytes: int) -> Iterator[None]:
    """Let compressed files that are opened inside the block expand to this many bytes.

    By default they may expand to 64 MB, or a hundredfold, whichever is more.

    >>> with max_unpacked(10 * 2**30):
    ...     unpacked_limit(1_000_000)
    10737418240
    >>> unpacked_limit(1_000_000)
    100000000
    """
    if type(n_bytes) is not int or n_bytes < 1:
        raise ValueError(f"max_unpacked must be a number of bytes of at least 1, got {n_bytes!r}")
    token = _given.set(n_bytes)
    try:
        yield
    finally:
        _given.reset(token)


def unpacked_limit(n_packed: int) -> int:
    """The bytes that `n_packed` compressed bytes may expand to."""
    given = _given.get()
    return max(FREE_BYTES, BYTES_PER_BYTE * n_packed) if given is None else given


def check_unpacked(n_unpacked: int, n_packed: int, path: str | os.PathLike[str]) -> None:
    """Raise if compressed bytes have expanded beyond the limit."""
    limit = unpacked_limit(n_packed)
    if n_unpacked > limit:
        raise DataError(
            f"the compressed data expand to more than {limit:,} bytes",
            path,
            hint="if you trust the file: ramify --max-unpacked BYTES …, or with ramify.data.max_unpacked(BYTES): …",
        )


def widest(n_bytes: int) -> int:
    """The most columns that a file with this many bytes may have.

    >>> widest(30), widest(10_000_000)
    (16777216, 160000000)
    """
    return max(FREE_COLUMNS, COLUMNS_PER_BYTE * n_bytes)


def check_width(what: str, width: int, n_bytes: int, path: str | os.PathLike[str]) -> None:
    """Raise if a file is too small to have so many features or labels."""
    if width > widest(n_bytes):
        raise DataError(
            f"there are {width:,} {what} in a file of {n_bytes:,} bytes, more than the {widest(n_bytes):,} allowed",
            path,
            hint=f"correct the header, or number the {what} from 0 without large gaps",
        )
