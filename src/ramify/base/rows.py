"""Reading X: texts, arrays, tables and single rows become one canonical CSR array."""

from __future__ import annotations

import bisect
import functools
import itertools
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.odd_rows import check_values, clearer_refusal, shortened
from ramify.data.csr import MAX_FEATURES, check_csr, csr_rows
from ramify.data.masked import check_no_mask
from ramify.data.series import plain_column


def as_texts(X: Any) -> Any:
    """The texts of a list, Series or 1-D array of strings as a list; None if X holds numbers.

    Texts of a file (`ramify.data.read_texts`) stay what they are, so that vectorizers read them in chunks.

    >>> as_texts(["acute chest pain"])
    ['acute chest pain']
    """
    if isinstance(X, str | bytes):
        raise ValueError(f"X must hold one text a row, got the single text {shortened(X)}; wrap it in a list: [text]")
    if hasattr(X, "text_chunks"):
        return X
    X = plain_column(X)
    if sparse.issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or isinstance(X, Mapping):
        return None
    if isinstance(X, np.ndarray):
        if X.dtype.kind not in "UOT":
            return None
        rows = list(X.tolist())
    elif isinstance(X, list | tuple) or type(X).__module__.split(".")[0] == "pandas":
        rows = list(X)
    else:
        return None
    if rows and _core.holds_only_str(rows):
        return rows
    types = set(map(type, rows))
    if not any(issubclass(row_type, str) for row_type in types):
        return None
    for row, text in enumerate(rows):
        if not isinstance(text, str):
            is_missing = text is None or str(text) in ("nan", "<NA>", "NaT")
            how = "missing values of pandas are filled by X.fillna('')" if is_missing else "convert it: str(value)"
            raise ValueError(f"X holds texts, but row {row} is {shortened(text)}; write '' for an empty text; {how}")
    return rows


def as_one_row(x: Any) -> Any:
    """One row as an array of one row, a text as a list of one text; anything else unchanged.

    >>> as_one_row(np.array([0.5, 0.0])), as_one_row("chest pain")
    (array([[0.5, 0. ]]), ['chest pain'])
    """
    if isinstance(x, str):
        return [x]
    if not sparse.issparse(x) and not isinstance(x, list) and np.ndim(x) == 1 and as_texts(x) is None:
        check_no_mask("X", x)
        return np.asarray(x).reshape(1, -1)
    return x


def holds_no_rows(X: Any) -> bool:
    """Whether X is an empty list, Series or 1-D array, such as texts after a filter that kept none.

    >>> holds_no_rows([]), holds_no_rows(np.zeros((0, 3)))
    (True, False)
    """
    return not sparse.issparse(X) and getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__") and len(X) == 0


def read_numbers(X: Any, owner: str, *, min_rows: int = 0, min_features: int = 0) -> sparse.csr_array:
    """Rows of numbers as a canonical CSR array; `owner` is the classifier's name, for messages.

    Plain numpy arrays and CSR arrays are read here. scikit-learn reads everything else (lists, tables, other sparse
    formats) and words the rejections.
    """
    check_values(X)
    plain = _plain_numbers(X)
    if plain is None or plain.shape[0] < min_rows or plain.shape[1] < min_features:
        from sklearn.utils import check_array

        if sparse.issparse(X) and getattr(X, "ndim", 0) == 2:
            X = check_csr("X", X)  # before any conversion, which would read where a broken index points
        # Overflow in the conversion becomes infinity, which is rejected by name right after.
        with np.errstate(over="ignore", invalid="ignore"), clearer_refusal(X, as_texts):
            plain = check_array(
                X,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=np.float32,
                ensure_min_samples=min_rows,
                ensure_min_features=min_features,
                estimator=owner,
                input_name="X",
            )
    return canonical_rows(plain)


def _plain_numbers(X: Any) -> Any:
    """A 2-D float32 array, dense or CSR, if X is one of finite numbers; None if it needs a closer look."""
    if type(X) is np.ndarray:
        values = X
    elif type(X) in (sparse.csr_array, sparse.csr_matrix):
        values = X.data
    else:
        return None
    if not isinstance(values, np.ndarray) or X.ndim != 2 or values.dtype.kind not in "biuf":
        return None
    if values.dtype != np.float32:
        with np.errstate(over="ignore"):  # a broken sparse array is to be rejected in our words, not scipy's
            X = (X if type(X) is np.ndarray else check_csr("X", X)).astype(np.float32)
        values = X if type(X) is np.ndarray else X.data
    return X if _all_finite(values) else None


def _all_finite(values: NDArray[Any], n_at_once: int = 1 << 22) -> bool:
    if values.ndim != 1 or len(values) <= n_at_once:
        return bool(np.isfinite(values).all())
    # In pieces: the array may be mapped from a file and larger than the memory.
    return all(np.isfinite(values[k : k + n_at_once]).all() for k in range(0, len(values), n_at_once))


def canonical_rows(X: Any) -> sparse.csr_array:
    """Checked numbers as a float32 csr_array: int32 indices, sorted, none twice, no stored zeros.

    The caller's arrays are never written to; they are copied if they have to be sorted or cleaned.
    """
    if X.shape[1] > MAX_FEATURES:
        raise ValueError(f"X has {X.shape[1]} columns; at most {MAX_FEATURES} features are supported")
    if not sparse.issparse(X) and X.dtype == np.float32 and X.flags.c_contiguous and X.size and X.all():
        return full_rows(X)
    rows = check_csr("X", X) if sparse.issparse(X) else sparse.csr_array(X)
    if rows.dtype != np.float32:
        rows = rows.astype(np.float32)
    # A new array: scipy caches flags about a matrix, and the caller may have changed it since.
    rows = csr_rows(rows.data, rows.indices, rows.indptr, rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
        if not np.isfinite(rows.data).all():
            raise ValueError("Input X contains infinity: features given twice in a row add up beyond float32")
    if np.count_nonzero(rows.data) != len(rows.data):
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def full_rows(X: NDArray[np.float32]) -> sparse.csr_array:
    """Rows of an array without zeros. Their values are those of X itself, which is never written to: no search for
    zeros, no copy.

    >>> full_rows(np.array([[1, 2], [3, 4]], dtype=np.float32)).indices
    array([0, 1, 0, 1], dtype=int32)
    """
    n_rows, n_columns = X.shape
    rows = csr_rows(
        X.reshape(-1), np.tile(_columns(n_columns), n_rows), np.arange(n_rows + 1) * np.int64(n_columns), X.shape
    )
    rows.has_canonical_format = True
    return rows


def full_row(x: Any, n_features: int) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
    """A row given as a numpy array of finite floats without zeros; None if `canonical_rows` has to read it."""
    if x.dtype.kind != "f" or x.shape not in ((n_features,), (1, n_features)) or not n_features:
        return None
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(x.reshape(-1), dtype=np.float32)
    columns = _columns(n_features)
    return (columns, values) if values.all() and _core.is_plain_row(columns, values, n_features) else None


@functools.lru_cache(maxsize=16)
def _columns(n_columns: int) -> NDArray[np.int32]:
    columns = np.arange(n_columns, dtype=np.int32)
    columns.flags.writeable = False
    return columns


def plain_row(X: Any, n_features: int) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
    """The arrays of a one-row CSR if they are canonical already; None if `canonical_rows` has to read them."""
    indptr, indices, values = X.indptr, X.indices, X.data
    are_arrays = type(indptr) is type(indices) is type(values) is np.ndarray
    if not are_arrays or indptr.shape != (2,) or indices.ndim != 1 or values.ndim != 1:
        return None  # whatever a caller put there
    count = len(indices)
    if X.shape[1] != n_features or indptr[1] != count:
        return None
    if values.dtype != np.float32:
        if values.dtype != np.float64:
            return None
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    if indices.dtype != np.int32:
        # In order, with both ends inside: nothing is lost in 32 bits.
        if indices.dtype.kind not in "iu":
            return None
        if count and (indices[0] < 0 or indices[-1] >= n_features or not (indices[1:] > indices[:-1]).all()):
            return None
        indices = indices.astype(np.int32)
    return (indices, values) if _core.is_plain_row(indices, values, n_features) else None


def row_from_dict(
    x: Mapping[Any, Any], names: Mapping[str, int] | None, n_features: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """A row given as feature -> value, features being column numbers or names.

    Features that the model has never seen are left out, as in river.

    >>> row_from_dict({7: 0.5, 2: 1}, None, 10)
    (array([2, 7], dtype=int32), array([1. , 0.5], dtype=float32))
    """
    columns = _plain_columns(x, names, n_features)
    if columns is None:
        columns = [_column(feature, names, n_features) for feature in x]
    columns, values = in_order(columns, finite_values(x))
    if columns and columns[0] < 0:
        raise ValueError(f"feature numbers begin at 0, got {columns[0]}")
    seen = bisect.bisect_left(columns, n_features)
    if seen < len(columns):
        columns, values = columns[:seen], values[:seen]
    if len(set(columns)) < seen:
        twice = next(column for column, following in itertools.pairwise(columns) if column == following)
        raise ValueError(f"a feature is given twice: by name and by number {twice}")
    return np.array(columns, dtype=np.int32), values


def in_order(columns: list[int], values: NDArray[np.float32]) -> tuple[list[int], NDArray[np.float32]]:
    """A row's columns in ascending order with their values; for a dozen features lists are faster than arrays."""
    ordered = sorted(columns)
    if ordered == columns:
        return columns, values
    return ordered, values[sorted(range(len(columns)), key=columns.__getitem__)]


def _plain_columns(x: Mapping[Any, Any], names: Mapping[str, int] | None, n_features: int) -> list[int] | None:
    """The columns of features that are all names or all numbers; None otherwise."""
    types = set(map(type, x))
    if types == {str} and names is not None:
        return [names.get(name, n_features) for name in x]
    return list(x) if types <= {int} else None


def _column(feature: Any, names: Mapping[str, int] | None, n_features: int) -> int:
    if isinstance(feature, str):
        if names is None:
            raise ValueError(f"feature {feature!r} is a name, but the model was trained without feature names")
        return names.get(feature, n_features)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool):
        return int(feature)
    raise ValueError(f"a feature is a column number or a name, got {feature!r}")


_LARGEST = float(np.finfo(np.float32).max)
_PLAIN_NUMBERS = {float, int, bool, np.float32, np.float64}


def finite_values(x: Mapping[Any, Any]) -> NDArray[np.float32]:
    """The values of a dict row as float32; values that are not finite numbers are rejected."""
    try:
        exact = np.fromiter(x.values(), dtype=np.float64, count=len(x))
        if exact.dot(exact) <= _LARGEST**2 and _PLAIN_NUMBERS.issuperset(map(type, x.values())):
            return exact.astype(np.float32)
        with np.errstate(over="ignore"):
            values = exact.astype(np.float32)
        if np.isfinite(values).all() and not any(issubclass(t, str | bytes) for t in set(map(type, x.values()))):
            return values
    except (TypeError, ValueError, OverflowError):
        pass
    feature, value = next((feature, value) for feature, value in x.items() if not _is_finite(value))
    raise ValueError(
        f"feature {feature!r} is {value!r}: values must be numbers, neither NaN nor infinite nor beyond float32"
    )


def _is_finite(value: Any) -> bool:
    # Not through float: an integer may be too large for it.
    return isinstance(value, numbers.Real) and bool(-_LARGEST <= value <= _LARGEST)  # type: ignore[operator]
