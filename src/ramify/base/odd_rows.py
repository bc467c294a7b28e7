"""What is wrong with an X that is not rows of numbers, and what to give instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from ramify.data.masked import check_no_mask
from ramify.data.series import is_lazy

_DATES = ("date", "time", "duration")


def shortened(value: Any) -> str:
    """The value as Python writes it, at most 60 characters.

    >>> shortened("chest pain")
    "'chest pain'"
    """
    said = repr(value.item() if isinstance(value, np.generic) else value)
    return said if len(said) <= 60 else said[:57] + "..."


def check_values(X: Any) -> None:
    """Reject values that would silently be read as other numbers: masked values, dates and times."""
    check_no_mask("X", X)
    for column, dtype in _types_of(X):
        if getattr(dtype, "kind", "") in ("m", "M") or str(dtype).lower().startswith(_DATES):
            raise ValueError(
                f"{column} holds dates or times ({dtype}): turn them into numbers, such as days since a day"
            )


def _types_of(X: Any) -> list[tuple[str, Any]]:
    """The type of an array or sparse array, or of each column of a table."""
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # pyarrow
        return [(f"column {field.name!r} of X", field.type) for field in X.schema]
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        return [(f"column {name!r} of X", dtype) for name, dtype in zip(X.columns, X.dtypes, strict=True)]
    return [("X", X.dtype)] if hasattr(X, "dtype") else []


def check_is_read(X: Any) -> None:
    """Reject a polars LazyFrame."""
    if is_lazy(X):
        raise ValueError(f"X is a {type(X).__name__}, which is not read yet: give X.collect()")


def check_table(X: Any) -> None:
    """Reject a table that has two columns of one name."""
    names = list(getattr(X, "column_names", X.columns))
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"X has two columns named {twice!r}: rename one")


@contextmanager
def clearer_refusal(X: Any, as_texts: Callable[[Any], Any]) -> Iterator[None]:
    """Replace the error about an odd X by one that says what it is and what to give instead, where that is known."""
    try:
        yield
    except (TypeError, ValueError) as error:
        said = _said_of_odd_rows(X, as_texts)
        if said is None:
            raise
        raise ValueError(said) from error
    except OverflowError as error:
        raise ValueError(f"X contains an integer that is too large for a float ({error})") from error


def _said_of_odd_rows(X: Any, as_texts: Callable[[Any], Any]) -> str | None:
    expected = "X must be an array, a sparse matrix, a DataFrame or a list with one entry a row"
    if X is None or isinstance(X, Iterator):
        return f"{expected}, got {'None' if X is None else f'a {type(X).__name__}: give list(X)'}"
    if isinstance(X, Mapping):
        return "X is a dict: a row given as feature -> value is for predict_one, explain and learn_one"
    if isinstance(X, set | frozenset | type) or not (hasattr(X, "__len__") or hasattr(X, "__array__")):
        return f"{expected}, got {shortened(X)}"
    first = X[0] if isinstance(X, list | tuple) and X else None
    if isinstance(first, Mapping):
        return "X is a list of dicts: make rows of them, for instance with scikit-learn's DictVectorizer"
    if isinstance(first, bytes):
        return f"row 0 of X is {shortened(first)}: texts are strings, so decode them first"
    if isinstance(X, list | tuple) and any(row is None for row in X):
        return f"row {next(place for place, row in enumerate(X) if row is None)} of X is None"
    said = _said_of_odd_columns(X, as_texts) if hasattr(X, "columns") else None
    return _said_of_values(X) if said is None else said


def _said_of_values(X: Any) -> str | None:
    """Which value of an array, a list of rows or a table is no finite number, and where; None if it is not known."""
    if sparse.issparse(X):
        return _said_of_entries(X)
    try:
        values = np.asarray(X)
    except ValueError:
        return _said_of_lengths(X)
    if values.ndim and values.shape[0] == 0 and values.shape[1:2] != (0,):
        return "X has no rows (0 samples): give at least one; check the filter or the file that it came from"
    if values.ndim == 1 and values.dtype.kind == "S":
        return f"row 0 of X is {shortened(values[0])}: texts are strings, so decode them first"
    if values.ndim != 2:
        return None
    if values.dtype.kind == "f":
        bad = _first(~_is_finite(values.reshape(-1)))
        return None if bad is None else _said_of_number(values.flat[bad], *divmod(bad, values.shape[1]))
    if values.dtype.kind not in "OSU":
        return None
    for place, value in enumerate(values.flat):
        row, column = divmod(place, values.shape[1])
        if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT"):
            return _said_of_number(float("nan"), row, column)
        if isinstance(value, str | bytes) and not _is_number(value):
            return (
                f"X must hold numbers, but row {row}, column {column} is {shortened(value)}: give texts as a list with "
                "one string a row, and turn categories into numbers, for instance with scikit-learn's OneHotEncoder"
            )
    return None


def _said_of_entries(X: Any) -> str | None:
    if X.ndim != 2 or X.dtype.kind != "f":
        return None
    entries = X.tocoo()
    bad = _first(~_is_finite(entries.data))
    return None if bad is None else _said_of_number(entries.data[bad], int(entries.row[bad]), int(entries.col[bad]))


def _said_of_number(value: Any, row: int, column: int) -> str:
    if np.isnan(value):
        return (
            f"Input X contains NaN, a missing value, in row {row}, column {column}: fill it (pandas: X.fillna(0), "
            "scikit-learn: SimpleImputer) or remove the row"
        )
    return (
        f"Input X contains infinity or a value too large for float32 in row {row}, column {column} ({value}): "
        "remove or scale it"
    )


def _said_of_lengths(X: Any) -> str | None:
    """Which row of a list is longer or shorter than the first."""
    if not isinstance(X, list | tuple) or not all(hasattr(row, "__len__") for row in X):
        return None
    other = next((place for place, row in enumerate(X) if len(row) != len(X[0])), None)
    if other is None:
        return None
    return (
        f"the rows of X differ in length: row 0 has {len(X[0])} values, row {other} has {len(X[other])}; "
        "give one value for every feature"
    )


def _is_finite(values: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.isfinite(values.astype(np.float32, copy=False))


def _first(is_bad: Any) -> int | None:
    return int(np.argmax(is_bad)) if len(is_bad) and is_bad.any() else None


def _is_number(value: str | bytes) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _said_of_odd_columns(X: Any, as_texts: Callable[[Any], Any]) -> str | None:
    names = list(getattr(X, "column_names", X.columns))
    if not names:
        return "X has no columns"
    for place, name in enumerate(names):
        values = X.iloc[:, place] if hasattr(X, "iloc") else X[name]
        present = next(
            (getattr(values, drop)() for drop in ("dropna", "drop_nulls", "drop_null") if hasattr(values, drop)), values
        )
        if as_texts(present) is not None:
            return f"column {name!r} of X holds texts: give the texts alone, X[{name!r}], or only numbers"
    return None
