"""Read Y: convert every supported type to a 0/1 array, label collections or classes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.common.warn import warn_user
from ramify.data.csr import check_csr, check_parts, csr_rows
from ramify.data.masked import check_no_mask
from ramify.data.series import is_lazy, only_column, plain_column

Kind: TypeAlias = Literal["indicator", "collections", "classes"]

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
MAX_LABELS = np.iinfo(np.int32).max
_NUMBERS = (bool, int, float, np.number, np.bool_)
_NAMELESS = ("indicator", "collections")  # what is given, and what is known


def indicator_of(columns: NDArray[np.int32], indptr: NDArray[np.int64], n_labels: int) -> sparse.csr_array:
    shape = (len(indptr) - 1, n_labels)
    indicator = csr_rows(np.ones(len(columns), dtype=np.float32), columns, indptr, shape)
    indicator.sum_duplicates()
    indicator.data[:] = 1.0  # a label listed twice in a row is one label
    return indicator


def read_labels(Y: Any, kind: Kind | None) -> tuple[Kind, Any]:
    """Return the kind of Y, and for "indicator" a csr_array, otherwise all labels and the indptr of the rows."""
    if Y is None:
        raise ValueError("fit requires y to be passed, but the target y is None")
    found, content = _read_any(plain_column(Y), kind)
    if kind is not None and found != kind:
        names = {"indicator": "a 0/1 array", "collections": "label collections", "classes": "one class per row"}
        hint = "; give a table with named columns, or lists of labels" if (found, kind) == _NAMELESS else ""
        raise ValueError(f"Y is {names[found]}, but the model was trained with {names[kind]}{hint}")
    return found, content


def _read_any(Y: Any, kind: Kind | None) -> tuple[Kind, Any]:
    if sparse.issparse(Y):
        return "indicator", read_indicator(Y)
    check_no_mask("Y", Y)
    if isinstance(Y, str | bytes | dict | set | frozenset):
        raise ValueError(f"Y must be an array or a list with one entry per row, got a {type(Y).__name__}")
    if isinstance(Y, Iterator) or (isinstance(Y, Iterable) and not hasattr(Y, "__getitem__")):
        raise ValueError(f"Y must be an array or a list with one entry per row, got a {type(Y).__name__}; pass list(Y)")
    if is_lazy(Y):
        raise ValueError(f"Y is a {type(Y).__name__}, which is not read yet: give Y.collect()")
    column = only_column(Y)
    if column is not None and any(isinstance(row, _COLLECTIONS) for row in column):
        return _read_any(column, kind)
    if isinstance(Y, list | tuple) or (getattr(Y, "ndim", 1) == 1 and getattr(Y, "dtype", None) == np.dtype(object)):
        rows = Y.tolist() if isinstance(Y, np.ndarray) else list(Y)
        if any(issubclass(row_type, _COLLECTIONS) for row_type in set(map(type, rows))):
            if kind != "collections" and _looks_like_indicator(rows):
                return "indicator", read_indicator(np.asarray(rows))
            return "collections", _read_collections(rows)
        if kind == "collections" and not rows:
            return "collections", ([], np.zeros(1, dtype=np.int64))
        return _read_classes(_plain_array(rows, Y))
    y = np.asarray(Y)
    if y.ndim == 2 and not (y.shape[1] == 1 and _is_column_of_classes(y)):
        return "indicator", read_indicator(y)
    if y.ndim == 2:
        from sklearn.exceptions import DataConversionWarning

        warn_user(
            "A column-vector y was passed when a 1d array was expected; using its only column as y",
            DataConversionWarning,
        )
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"Unknown label type: Y has {y.ndim} dimensions, expected 1 (classes) or 2 (a 0/1 array)")
    if y.dtype == object:
        y = _plain_array(y.tolist(), y)
    return _read_classes(y)


def _is_column_of_classes(y: NDArray[Any]) -> bool:
    return y.dtype.kind not in "b" and not bool(np.isin(y, (0, 1)).all())


def _looks_like_indicator(rows: list[Any]) -> bool:
    """Return whether the rows are lists of 0 and 1 of equal length, at least 2: a 0/1 array written as lists.

    As label collections they would give nearly every row the same labels, which is never intended.
    """
    types = set(map(type, rows))
    if not all(issubclass(row_type, list | np.ndarray) for row_type in types):
        return False
    if not types <= {list} and any(isinstance(row, np.ndarray) and row.ndim != 1 for row in rows):
        return False
    width = len(rows[0])
    is_number = (int, float, np.number, np.bool_)
    if width < 2 or not all(isinstance(value, is_number) and value in (0, 1) for value in rows[0]):
        return False
    if any(len(row) != width for row in rows):
        return False
    try:
        array = np.asarray(rows)
    except ValueError:
        return False
    return array.ndim == 2 and array.dtype.kind in "biuf" and bool(((array == 0) | (array == 1)).all())


def read_indicator(Y: Any) -> sparse.csr_array:
    if getattr(Y, "ndim", 2) != 2:
        raise ValueError(f"Unknown label type: a sparse Y must have 2 dimensions, got {Y.ndim}")
    if sparse.issparse(Y):
        check_parts("Y", Y)
    else:
        Y = plain_numbers(np.asarray(Y))
    if Y.dtype.kind not in "biuf":
        raise ValueError(
            f"Unknown label type: a 2-D Y must contain only 0 and 1, got {Y.dtype}; pass label names as lists"
        )
    if Y.shape[1] > MAX_LABELS:
        raise ValueError(f"Y has {Y.shape[1]} columns; at most {MAX_LABELS} labels are supported")
    indicator = check_csr("Y", Y, is_copied=True) if sparse.issparse(Y) else sparse.csr_array(Y)
    indicator.sum_duplicates()
    bad = (indicator.data != 0) & (indicator.data != 1)
    if bad.any():
        first = int(np.argmax(bad))
        row = int(np.searchsorted(indicator.indptr, first, side="right")) - 1
        raise ValueError(
            "Unknown label type: a 2-D Y must contain only 0 and 1, "
            f"got {indicator.data[first]} in row {row}, column {indicator.indices[first]}"
        )
    indicator = indicator.astype(np.float32)
    indicator.eliminate_zeros()
    return csr_rows(indicator.data, indicator.indices, indicator.indptr, indicator.shape)


def plain_numbers(Y: NDArray[Any]) -> NDArray[Any]:
    """A dense array as scipy takes it: objects that are numbers, half floats and foreign byte order are converted."""
    if Y.dtype == object:
        for place, value in enumerate(Y.flat):
            if _is_missing(value):
                row, column = divmod(place, Y.shape[1])
                raise ValueError(
                    f"Unknown label type: Y has a missing value in row {row}, column {column}: write 0 or 1"
                )
        if all(isinstance(value, _NUMBERS) for value in Y.flat):
            return Y.astype(np.float64)
    if Y.dtype.kind == "f" and Y.dtype.itemsize < 4:
        return Y.astype(np.float32)
    return Y.astype(Y.dtype.newbyteorder("="), copy=False)


def _is_missing(value: Any) -> bool:
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _read_classes(y: NDArray[Any]) -> tuple[Kind, Any]:
    if y.dtype.kind == "T":  # numpy's strings of any length
        y = _plain_array(y.tolist(), None)
    y = y.astype(y.dtype.newbyteorder("="), copy=False)  # model files and the core know one byte order
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise ValueError(f"Input y contains {'NaN' if np.isnan(y[row]) else 'infinity'} in row {row}")
    if y.dtype.kind in "mMcVS":
        raise ValueError(f"Unknown label type: classes must be integers or strings, got {y.dtype}; use Y.astype(str)")
    if y.dtype.kind == "f":  # for other types it would only warn about many classes, the purpose of this library
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(y)
    return "classes", (y, np.arange(len(y) + 1, dtype=np.int64))


def _plain_array(rows: list[Any], original: Any) -> NDArray[Any]:
    """Convert entries that are not collections to an array of one plain type."""
    types = set(map(type, rows))
    if all(issubclass(t, str) for t in types) and rows:
        if isinstance(original, np.ndarray):
            return original
        # A fixed-width array would cut off zero bytes at the end of a string.
        keeps_objects = _is_pandas(original) or any(name.endswith("\0") for name in rows)
        return np.asarray(rows, dtype=object if keeps_objects else None)
    for row, value in enumerate(rows):
        if _is_missing(value):
            raise ValueError(
                f"Input y contains {'None' if value is None else 'NaN'} in row {row}; remove rows without a class"
            )
    if any(issubclass(t, str) for t in types):
        odd = next(row for row, value in enumerate(rows) if isinstance(value, str) != isinstance(rows[0], str))
        raise ValueError(
            f"Unknown label type: y mixes strings and numbers, {rows[0]!r} in row 0 and {rows[odd]!r} in row {odd}"
        )
    array = np.asarray(rows)
    if array.dtype == object:
        row = next((row for row, value in enumerate(rows) if not isinstance(value, _NUMBERS)), 0)
        raise ValueError(
            f"Unknown label type: classes must be integers or strings, got {rows[row]!r:.60} in row {row}; "
            "if rows have several labels, give each row as a list"
        )
    return array


def _is_pandas(values: Any) -> bool:
    return type(values).__module__.split(".")[0] == "pandas"


def _read_collections(rows: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return all labels in one list, and the indptr of the rows."""
    for row_type in set(map(type, rows)):
        if not issubclass(row_type, _COLLECTIONS):
            row = next(row for row, labels in enumerate(rows) if type(labels) is row_type)
            _reject_row(row, rows[row])
        if issubclass(row_type, set | frozenset):
            rows = [
                _sorted_set(row, labels) if isinstance(labels, set | frozenset) else labels
                for row, labels in enumerate(rows)
            ]
        if issubclass(row_type, np.ndarray):
            for row, labels in enumerate(rows):
                if isinstance(labels, np.ndarray) and labels.ndim != 1:
                    _reject_row(row, labels)
            rows = [labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in rows]
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)), out=indptr[1:])
    labels = list(itertools.chain.from_iterable(rows))
    types = set(map(type, labels))
    if types <= {str}:
        return labels, indptr
    if types <= {int}:
        if labels and (min(labels) < 0 or max(labels) > np.iinfo(np.int64).max):
            position = next(i for i, label in enumerate(labels) if not 0 <= label <= np.iinfo(np.int64).max)
            raise ValueError(
                f"integer labels must be between 0 and 2^63 - 1, got {labels[position]} in {_row(position, indptr)}"
            )
        return labels, indptr
    for position, label in enumerate(labels):
        if not isinstance(label, str | int | np.integer) or isinstance(label, bool):
            what = "NaN" if label != label else repr(label)
            raise ValueError(
                f"Unknown label type: labels are strings or integers, got {what} in {_row(position, indptr)}"
            )
    if any(issubclass(t, str) for t in types) and not all(issubclass(t, str) for t in types):
        position = next(i for i, label in enumerate(labels) if isinstance(label, str) != isinstance(labels[0], str))
        raise ValueError(
            f"Unknown label type: Y mixes strings and integers, {labels[0]!r} in {_row(0, indptr)} "
            f"and {labels[position]!r} in {_row(position, indptr)}"
        )
    plain = str if isinstance(labels[0], str) else int
    return _read_collections([[plain(label) for label in row] for row in rows])


def _row(position: int, indptr: NDArray[np.int64]) -> str:
    return f"row {int(np.searchsorted(indptr, position, side='right')) - 1}"


def _sorted_set(row: int, labels: set[Any] | frozenset[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        raise ValueError(f"Unknown label type: row {row} of Y mixes strings and integers: {labels!r}") from None


def _reject_row(row: int, labels: Any) -> NoReturn:
    if isinstance(labels, str):
        hint = f"write [{labels!r}] if other rows are lists"
    else:
        hint = "write [] for a row without labels"
    is_nan = isinstance(labels, float) and labels != labels
    what = "None" if labels is None else "NaN" if is_nan else repr(labels)
    raise ValueError(f"row {row} of Y is {what}, not a collection of labels; {hint}")
