"""Columns of files, polars and pyarrow as plain lists; neither package is needed for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plain_column(values: Any) -> Any:
    """A polars Series, an Array or ChunkedArray of pyarrow, or the labels of a file as a list; others unchanged.

    >>> plain_column(["chest pain"])
    ['chest pain']
    """
    if hasattr(values, "label_rows"):
        return values.label_rows()
    package = type(values).__module__.split(".")[0]
    if package == "polars" and hasattr(values, "to_list"):
        return values.to_list()
    if package == "pyarrow" and hasattr(values, "to_pylist") and not hasattr(values, "column_names"):
        return values.to_pylist()
    if package == "pandas" and type(getattr(values, "dtype", None)).__name__ == "ArrowDtype":
        return _plain_rows(values.tolist())
    return values


def is_lazy(values: Any) -> bool:
    """Whether these are a query of polars and not its rows yet."""
    return type(values).__module__.split(".")[0] == "polars" and hasattr(values, "collect")


def is_mapping(values: Any) -> bool:
    """Whether `items()` gives keys with values: a dict or alike, or a Series of pandas with its index.

    >>> is_mapping({"N20.0": "kidney stone"}), is_mapping(["kidney stone"])
    (True, False)
    """
    return isinstance(values, Mapping) or (hasattr(values, "items") and hasattr(values, "iloc") and values.ndim == 1)


def only_column(table: Any) -> list[Any] | None:
    """The column of a table with one column; None for anything else.

    >>> only_column(["a", "b"])
    """
    if hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:
        return list(table.iloc[:, 0]) if table.shape[1] == 1 else None
    if hasattr(table, "to_series") and hasattr(table, "columns"):
        return list(table.to_series(0).to_list()) if len(table.columns) == 1 else None
    if hasattr(table, "column_names"):
        return list(table.column(0).to_pylist()) if len(table.column_names) == 1 else None
    return None


def column_names(table: Any) -> list[str] | None:
    """The names of the columns of a table; None if it is none, has a single column, or columns without names.

    >>> column_names([[0, 1]])
    """
    if is_lazy(table) or not (hasattr(table, "columns") or hasattr(table, "column_names")):
        return None
    columns = table.column_names if hasattr(table, "column_names") else table.columns
    names = list(columns)
    return names if len(names) > 1 and all(isinstance(name, str) for name in names) else None


def _plain_rows(rows: list[Any]) -> list[Any]:
    return [row.tolist() if hasattr(row, "tolist") and getattr(row, "ndim", 0) == 1 else row for row in rows]
