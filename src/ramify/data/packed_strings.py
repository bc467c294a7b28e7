"""Many strings as two numpy arrays, UTF-8 bytes and offsets, so that a file of arrays can hold them without pickle."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def pack_strings(strings: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The strings' UTF-8 bytes one behind the other, and where each begins (one offset more than strings).

    >>> pack_strings(["Äpfel", ""])[1]
    array([0, 6, 6])
    """
    encoded = [string.encode("utf-8") for string in strings]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def unpack_strings(content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """What `pack_strings` packed; raises ValueError if the two arrays do not fit together."""
    content, offsets = np.asarray(content), np.asarray(offsets)
    if content.dtype != np.uint8 or content.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1:
        raise ValueError("packed strings are a uint8 array and an int64 array of one dimension each")
    if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != content.size or np.any(np.diff(offsets) < 0):
        raise ValueError("the offsets of packed strings must rise from 0 to the number of bytes")
    data, bounds = content.tobytes(), offsets.tolist()
    return [data[begin:end].decode("utf-8") for begin, end in itertools.pairwise(bounds)]
