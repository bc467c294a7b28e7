"""Arrays in a safetensors file: written in one pass, read as read-only views of a memory map, checked before use.

The format: eight bytes with the length of the header, the header (JSON: name -> dtype, shape, data_offsets), then the
arrays' bytes without gaps. Each array begins at a multiple of 64 bytes here, so that vector code may read it in place:
the bytes between two arrays are arrays themselves, named `pad.N`, as the format allows no others.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
MAX_HEADER = 16 * 1024 * 1024
_MAX_DIMENSIONS = 8
_CHUNK = 1 << 22

_DTYPES = {
    "BOOL": "?",
    "U8": "<u1",
    "I8": "<i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_CODES = {np.dtype(name): code for code, name in _DTYPES.items()}


class TensorFileError(ValueError):
    """The bytes are not a safetensors file that this library reads; says what is wrong with them."""


def write_tensors(file: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int]:
    """Write the arrays to an open file; returns its size and its CRC-32."""
    header: dict[str, Any] = {}
    parts: list[NDArray[np.uint8]] = []
    end = 0
    for name, array in arrays.items():
        plain = np.asarray(array, order="C")
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        if plain.dtype not in _CODES:
            raise TypeError(f"array {name!r} has dtype {plain.dtype}, which model files do not hold")
        if name.startswith(("pad.", "__")):
            raise ValueError(f"an array may not be called {name!r}: such names belong to the format")
        data = plain.reshape(-1).view(np.uint8)
        header[name] = _entry(_CODES[plain.dtype], plain.shape, end, end + len(data))
        parts.append(data)
        end += len(data)
        if end % ALIGNMENT:
            padding = np.zeros(-end % ALIGNMENT, dtype=np.uint8)
            header[f"pad.{len(parts)}"] = _entry("U8", padding.shape, end, end + len(padding))
            parts.append(padding)
            end += len(padding)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    start = len(text).to_bytes(8, "little") + text
    file.write(start)
    checksum = zlib.crc32(start)
    for part in parts:
        for position in range(0, len(part), _CHUNK):
            chunk = part[position : position + _CHUNK].data
            file.write(chunk)
            checksum = zlib.crc32(chunk, checksum)
    return len(start) + end, checksum


def _entry(code: str, shape: tuple[int, ...], start: int, stop: int) -> dict[str, Any]:
    return {"dtype": code, "shape": list(shape), "data_offsets": [start, stop]}


def read_tensors(buffer: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a file that has been read or memory-mapped, as views of it; raises TensorFileError.

    >>> import io
    >>> file = io.BytesIO()
    >>> size, checksum = write_tensors(file, {"theta": np.arange(3, dtype=np.float32)})
    >>> read_tensors(file.getvalue())
    {'theta': array([0., 1., 2.], dtype=float32)}
    """
    header, start = _read_header(buffer)
    body = len(buffer) - start
    spans: list[tuple[int, int, str]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, first, last = _check_entry(name, entry)
        spans.append((first, last, name))
        if last > body:
            raise TensorFileError(f"array {name!r} ends at byte {start + last}, but the file has {len(buffer)} bytes")
        if not name.startswith("pad."):
            arrays[name] = _view(buffer, name, dtype, shape, start + first)
    end = 0
    for first, last, name in sorted(spans):
        if first != end:
            raise TensorFileError(
                f"array {name!r} {'overlaps' if first < end else 'leaves a gap after'} the one before it"
            )
        end = last
    if end != body:
        raise TensorFileError(f"{body - end} bytes follow the last array")
    return arrays


def _read_header(buffer: Any) -> tuple[dict[str, Any], int]:
    if len(buffer) < 8:
        raise TensorFileError(f"it has only {len(buffer)} bytes")
    length = int.from_bytes(buffer[:8], "little")
    if length > MAX_HEADER:
        raise TensorFileError(f"its header claims {length} bytes, more than the {MAX_HEADER} allowed")
    if 8 + length > len(buffer):
        raise TensorFileError(f"its header claims {length} bytes, but the file has only {len(buffer)}")
    try:
        header = json.loads(bytes(buffer[8 : 8 + length]).decode("utf-8"), object_pairs_hook=_without_repeats)
    except RecursionError:
        raise TensorFileError("its header is nested too deeply") from None
    except ValueError as error:
        raise TensorFileError(f"its header is not JSON ({error})") from None
    if not isinstance(header, dict):
        raise TensorFileError("its header is not a JSON object")
    return header, 8 + length


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name occurs twice")
    return content


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _check_entry(name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise TensorFileError(f"array {name!r} is not described by dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        raise TensorFileError(f"array {name!r} has the unknown dtype {code!r}")
    if not isinstance(shape, list) or len(shape) > _MAX_DIMENSIONS or not all(map(_is_count, shape)):
        raise TensorFileError(f"array {name!r} has the impossible shape {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise TensorFileError(f"array {name!r} has the impossible data_offsets {str(offsets)[:80]}")
    dtype = np.dtype(_DTYPES[code])
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise TensorFileError(
            f"array {name!r} has {offsets[1] - offsets[0]} bytes, but its shape {shape} of {code} needs "
            f"{math.prod(shape) * dtype.itemsize}"
        )
    return dtype, tuple(shape), offsets[0], offsets[1]


def _view(buffer: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    count = math.prod(shape)
    try:
        if count == 0:
            return np.zeros(shape, dtype=dtype)
        array = np.frombuffer(buffer, dtype=dtype, count=count, offset=offset).reshape(shape)
    except (ValueError, OverflowError) as error:
        raise TensorFileError(f"array {name!r} of shape {shape} cannot be held in memory ({error})") from None
    return array if array.flags.aligned else array.copy()
