"""Build, check and take apart the sparse rows that go into and out of the core."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.data.masked import check_no_mask

_INT32_MAX = np.iinfo(np.int32).max
# Models reserve an index for the bias.
MAX_FEATURES = _INT32_MAX - 1


class Compressed(Protocol):
    """What the core reads of a sparse array: a csr_array, a csc_array by columns, or `RowArrays`."""

    @property
    def indptr(self) -> NDArray[Any]: ...
    @property
    def indices(self) -> NDArray[Any]: ...
    @property
    def data(self) -> NDArray[Any]: ...


class RowArrays(NamedTuple):
    """Rows for the core, built much faster than a csr_array, and not checked."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[Any]

    @classmethod
    def one(cls, indices: NDArray[np.int32], data: NDArray[Any]) -> RowArrays:
        """Return a single row."""
        return cls(np.array([0, len(indices)]), indices, data)


def csr_rows(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a csr_array with int32 indices, and an int32 indptr unless there are too many entries.

    scipy would give both the wider of their types.

    >>> csr_rows(np.ones(1), np.array([2]), np.array([0, 1]), (1, 3)).indices.dtype
    dtype('int32')
    """
    if shape[1] <= _INT32_MAX:
        indices = indices.astype(np.int32, copy=False)
    if len(indices) <= _INT32_MAX:
        return sparse.csr_array((data, indices, indptr.astype(np.int32, copy=False)), shape=shape)
    rows = sparse.csr_array(shape, dtype=data.dtype)
    rows.data, rows.indices, rows.indptr = data, indices, indptr.astype(np.int64, copy=False)
    return rows


def checked_rows(X: Any) -> sparse.csr_array:
    """Rows of finite numbers, dense or sparse in any format, as float32, for functions that take X outside a model.

    >>> checked_rows([[1, 0], [0, 2]]).dtype
    dtype('float32')
    """
    from sklearn.utils import check_array

    check_no_mask("X", X)
    if sparse.issparse(X) and getattr(X, "ndim", 0) == 2:
        X = check_csr("X", X)
    try:
        return sparse.csr_array(check_array(X, accept_sparse="csr", dtype=np.float32, input_name="X"))
    except TypeError as error:  # of values that are no numbers
        raise ValueError(f"X must be an array or a sparse matrix of numbers: {error}") from error


def check_csr(name: str, array: Any, *, is_copied: bool = False) -> sparse.csr_array:
    """Return a 2-D sparse array of any format as csr_array, or raise ValueError if its index arrays are invalid.

    scipy checks them only when an array is built. If the caller has changed them since, the core, and even scipy's
    own conversions, would read and write out of bounds. Another thread may change them even after this check: so the
    row pointers, and whatever scipy converts, are checked on a copy. The column numbers and values of a CSR array are
    shared, because the core checks those again when it copies a row; `is_copied` copies them too.

    >>> Y = sparse.csr_array(np.eye(3))
    >>> Y.indices[1] = 7
    >>> check_csr("Y", Y)
    Traceback (most recent call last):
    ValueError: Y is a broken sparse matrix: row 1 has column index 7, but must be between 0 and 2; build Y again
    """
    if array.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got {array.ndim}")
    check_parts(name, array)
    if array.format == "csr" and not is_copied:
        array = copy.copy(array)
        array.indptr = array.indptr.copy()
    elif array.format in ("csr", "bsr", "csc", "coo"):
        array = copy.deepcopy(array)  # array.copy() would raise scipy's own errors
    _check_types(name, array)
    rows, columns = ("row", array.shape[0]), ("column", array.shape[1])
    if array.format in ("csr", "bsr"):
        _check_compressed(name, array, rows, columns)
    elif array.format == "csc":
        _check_compressed(name, array, columns, rows)
    elif array.format == "coo":
        for indices, line in ((array.row, rows), (array.col, columns)):
            at = _first_outside(indices, line[1])
            if at is not None:
                _reject(name, f"entry {at} has {line[0]} index {indices[at]}, {_allowed(line[1])}")
    result = sparse.csr_array(array)
    if array.format not in ("csr", "bsr", "csc", "coo"):
        _check_compressed(name, result, rows, columns)
    stored = int(result.indptr[-1])
    if len(result.indices) > stored or len(result.data) > stored:  # scipy allows unused space at the end
        result.indices, result.data = result.indices[:stored], result.data[:stored]
    return result


def check_parts(name: str, array: Any) -> None:
    """Reject what a caller has put in place of a sparse array's parts: even its dtype is that of its values."""
    compressed = ("indptr", "indices", "data")
    parts = {"csr": compressed, "csc": compressed, "bsr": compressed, "coo": ("data",)}.get(array.format, ())
    for part in parts:
        values, n_dimensions = getattr(array, part), 3 if (array.format, part) == ("bsr", "data") else 1
        if not isinstance(values, np.ndarray) or values.ndim != n_dimensions:
            got = f"a {values.ndim}-D one" if isinstance(values, np.ndarray) else type(values).__name__
            _reject(name, f"its {part} must be a {n_dimensions}-D array, got {got}")


def _check_types(name: str, array: Any) -> None:
    """Check the types of values and index arrays; the array is a copy, whose indices get the machine's byte order."""
    if array.dtype.kind in "mMSUV":
        raise ValueError(f"{name} must hold numbers, got values of type {array.dtype}")
    if array.format == "coo":
        array.coords = tuple(_integers(name, "coords", indices) for indices in array.coords)
    elif array.format in ("csr", "csc", "bsr"):
        for part in ("indptr", "indices"):
            setattr(array, part, _integers(name, part, getattr(array, part)))


def _integers(name: str, part: str, indices: Any) -> NDArray[Any]:
    if not isinstance(indices, np.ndarray) or indices.ndim != 1 or indices.dtype.kind not in "iu":
        what = f"of {indices.dtype}, {indices.ndim}-D" if isinstance(indices, np.ndarray) else type(indices).__name__
        _reject(name, f"its {part} must be a 1-D array of integers, got {what}")
    native = np.int64 if indices.dtype.kind == "u" else indices.dtype.newbyteorder("=")
    return indices.astype(native, copy=False)


def _check_compressed(name: str, array: Any, major: tuple[str, int], minor: tuple[str, int]) -> None:
    """Check indptr, then indices, which count blocks in the bsr format."""
    indptr, indices = array.indptr, array.indices
    height, width = getattr(array, "blocksize", (1, 1))
    unit, n_lines = major[0], major[1] // height
    if len(indptr) != n_lines + 1:
        _reject(name, f"indptr has {len(indptr)} entries, but needs {n_lines + 1}, one per {unit} and one more")
    if indptr[0] != 0:
        _reject(name, f"indptr starts at {indptr[0]}, but must start at 0")
    is_falling = indptr[1:] < indptr[:-1]
    if is_falling.any():
        line = int(np.argmax(is_falling))
        _reject(name, f"indptr decreases from {indptr[line]} to {indptr[line + 1]} at {unit} {line}")
    stored = int(indptr[-1])
    if stored > min(len(indices), len(array.data)):
        _reject(name, f"indptr ends at {stored}, but there are {len(indices)} indices and {len(array.data)} values")
    at = _first_outside(indices[:stored], minor[1] // width)
    if at is not None:
        line = int(np.searchsorted(indptr, at, side="right")) - 1
        _reject(name, f"{unit} {line} has {minor[0]} index {indices[at]}, {_allowed(minor[1] // width)}")


def _first_outside(indices: NDArray[Any], size: int) -> int | None:
    # Seen as unsigned, a negative index is larger than any size, so one maximum checks both ends.
    if len(indices) == 0 or indices.view(f"u{indices.itemsize}").max() < size:
        return None
    return int(np.argmax((indices < 0) | (indices >= size)))


def _allowed(size: int) -> str:
    return f"but must be between 0 and {size - 1}" if size else "but its size is 0"


def _reject(name: str, reason: str) -> NoReturn:
    raise ValueError(f"{name} is a broken sparse matrix: {reason}; build {name} again")
