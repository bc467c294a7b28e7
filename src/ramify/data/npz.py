"""A data set as one npz file: plain numpy arrays, no pickle, everything checked when read."""

from __future__ import annotations

import os
import tokenize
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data.csr import csr_rows
from ramify.data.dataset import Dataset, as_features, as_indicator
from ramify.data.errors import DataError
from ramify.data.files import ZIP_MAGIC, PathLike, data_errors, read_start, replaced_when_complete
from ramify.data.limits import check_unpacked, check_width
from ramify.data.names import NameTable

_VERSION = 1
_ARRAYS = {
    "shape": np.int64,
    "x_indptr": np.int64,
    "x_indices": np.int32,
    "x_values": np.float32,
    "y_indptr": np.int64,
    "y_indices": np.int32,
}
_STRINGS = ("label_names", "feature_names", "texts")
_WRITE_AGAIN = "write the file again with ramify.data.save_npz"


def save_npz(
    path: PathLike,
    X: Any,
    Y: Any,
    *,
    label_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
) -> None:
    """Write features, 0/1 labels and optional names and texts; `load_npz` returns the same bits.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.npz")
    ...     save_npz(path, [[0.5, 0.0]], [[1, 0, 1]], label_names=["a", "b", "c, d"])
    ...     load_npz(path).label_names
    ['a', 'b', 'c, d']
    """
    X, Y = as_features(X), as_indicator(Y)
    strings = {"label_names": label_names, "feature_names": feature_names, "texts": texts}
    given = {name: list(entries) for name, entries in strings.items() if entries is not None}
    Dataset(X, Y, **given)  # checks the lengths
    arrays: dict[str, NDArray[Any]] = {
        "ramify_dataset": np.array([_VERSION], dtype=np.int64),
        "shape": np.array([*X.shape, Y.shape[1]], dtype=np.int64),
        "x_indptr": X.indptr.astype(np.int64),
        "x_indices": X.indices.astype(np.int32),
        "x_values": X.data,
        "y_indptr": Y.indptr.astype(np.int64),
        "y_indices": Y.indices.astype(np.int32),
    }
    for name, entries in given.items():
        table = NameTable.from_names(entries)
        arrays[f"{name}_bytes"], arrays[f"{name}_offsets"] = table.text, table.offsets
    with replaced_when_complete(path) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def load_npz(path: PathLike) -> Dataset:
    """Read a file of `save_npz`; a truncated, foreign or inconsistent file raises DataError."""
    if not read_start(path, 4).startswith(ZIP_MAGIC):
        raise DataError("this is not an npz file", path, hint="check the path; ramify.data.save_npz writes npz files")
    try:
        with data_errors(path), zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if "ramify_dataset" not in members:
                found = ", ".join(sorted(members)[:6]) or "nothing"
                raise DataError(f"this npz file is not a ramify data set (it has {found})", path, hint=_WRITE_AGAIN)
            known = {name: info for name, info in members.items() if _is_known(name)}
            check_unpacked(sum(info.file_size for info in known.values()), os.path.getsize(path), path)
            arrays = {name: _read_array(archive, info) for name, info in known.items()}
        data = _checked_dataset(arrays)
        for what, width in (("features", data.n_features), ("labels", data.n_labels)):
            check_width(what, width, sum(array.nbytes for array in arrays.values()), path)
        return data
    except DataError:
        raise
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"the npz file is damaged ({error})", path, hint="download or write it again") from error
    except (KeyError, ValueError, MemoryError) as error:
        raise DataError(f"the npz file is inconsistent: {error}", path, hint=_WRITE_AGAIN) from error


def _is_known(name: str) -> bool:
    return (
        name in _ARRAYS or name == "ramify_dataset" or name.removesuffix("_bytes").removesuffix("_offsets") in _STRINGS
    )


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array after checking its header against the member's size, so a bad header cannot fill the memory."""
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"array {info.filename} has the unknown npy version {version}")
        try:
            shape, _, dtype = npy.read_array_header_1_0(stream)
        except (tokenize.TokenError, SyntaxError, TypeError, RecursionError) as error:  # numpy evaluates the header
            raise ValueError(f"array {info.filename} has a damaged header ({error})") from error
        if dtype.hasobject or len(shape) != 1:
            raise ValueError(f"array {info.filename} must be a plain array with one dimension")
        n_bytes = shape[0] * dtype.itemsize
        if n_bytes > info.file_size:
            raise ValueError(f"array {info.filename} declares {n_bytes} bytes, but has {info.file_size}")
        content = stream.read(n_bytes)
        if len(content) != n_bytes or stream.read(1):  # reading to the end also verifies the checksum
            raise ValueError(f"array {info.filename} does not have its declared length")
    return np.frombuffer(content, dtype=dtype)


def _checked_dataset(arrays: dict[str, NDArray[Any]]) -> Dataset:
    version = arrays["ramify_dataset"]
    if version.tolist() != [_VERSION]:
        raise ValueError(f"unknown format version {version.tolist()}; this program reads version {_VERSION}")
    for name, dtype in _ARRAYS.items():
        if name not in arrays:
            raise ValueError(f"array {name} is missing")
        if arrays[name].dtype != dtype:
            raise ValueError(f"array {name} must be {np.dtype(dtype)}, got {arrays[name].dtype}")
    shape = arrays["shape"].tolist()
    if len(shape) != 3 or not all(0 <= size <= np.iinfo(np.int32).max for size in shape):
        raise ValueError(f"the shape must be three sizes (rows, features, labels), got {shape}")
    n_rows, n_features, n_labels = shape
    ones = np.ones(arrays["y_indices"].size, dtype=np.float32)
    X = _checked_csr(arrays["x_values"], arrays["x_indices"], arrays["x_indptr"], (n_rows, n_features), "x")
    Y = _checked_csr(ones, arrays["y_indices"], arrays["y_indptr"], (n_rows, n_labels), "y")
    strings = {
        name: NameTable(arrays[f"{name}_bytes"], arrays[f"{name}_offsets"]).tolist()
        for name in _STRINGS
        if f"{name}_bytes" in arrays
    }
    return Dataset(as_features(X), as_indicator(Y), **strings)


def _checked_csr(
    values: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int], name: str
) -> csr_array:
    if indptr.size != shape[0] + 1 or indptr[0] != 0 or indptr[-1] != indices.size or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{name}_indptr must have {shape[0] + 1} entries that increase from 0 to {indices.size}")
    if values.size != indices.size:
        raise ValueError(f"{name} has {values.size} values for {indices.size} indices")
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        raise ValueError(f"{name}_indices must be between 0 and {shape[1] - 1}")
    # Copy, because frombuffer returns read-only arrays and users may want to scale theirs in place.
    result = csr_rows(values.copy(), indices.copy(), indptr.copy(), shape)
    if not result.has_canonical_format:
        raise ValueError(f"{name}_indices must be sorted and unique within each row")
    return result
