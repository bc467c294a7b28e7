"""Split streams of any type into batches of rows and labels."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ramify.data.csr import check_csr
from ramify.data.lines import LineFormat, iter_batches
from ramify.data.load import find_format

# Texts of an iterable that are vectorised together: few enough for a live display.
_TEXTS_AT_ONCE = 64
_FILE_ROWS_AT_ONCE = 1024


def _is_sparse(array: Any) -> bool:
    return bool(sparse.issparse(array))


class SeparateRows(list[Any]):
    """Rows that only `learn_one` and `predict_one` accept: dicts, or arrays of one row each."""


def pieces(X: Any, Y: Any, multiclass: bool) -> Iterator[tuple[Any, Any]]:
    """Yield batches of rows and labels for `partial_fit` from the input of `evaluate`."""
    if isinstance(X, str | os.PathLike):
        if Y is not None:
            raise ValueError("X is a file, which contains its labels; do not pass Y")
        yield from _from_file(X, multiclass)
    elif Y is not None:
        X, Y = _as_rows(X), _as_labels(Y)
        if n_rows(X) != n_rows(Y):
            raise ValueError(f"X has {n_rows(X)} rows, but Y has {n_rows(Y)}; the numbers must be equal")
        yield X, Y
    elif isinstance(X, Iterable) and not _is_sparse(X) and not isinstance(X, np.ndarray):
        yield from _from_pairs(X)
    else:
        raise ValueError("without Y, X must be a file or an iterable of pairs (x, y); pass the labels of the rows as Y")


def _from_file(path: str | os.PathLike[str], multiclass: bool) -> Iterator[tuple[Any, Any]]:
    kind = find_format(path)
    if kind in ("npz", "fasttext"):
        raise ValueError(f"{os.fspath(path)} cannot be streamed; read it with load_data, and pass X and Y")
    format: LineFormat = kind  # type: ignore[assignment]
    for batch in iter_batches(path, format, _FILE_ROWS_AT_ONCE, one_label=multiclass):
        yield batch.X, [labels[0] for labels in batch.labels] if multiclass else batch.labels


def _from_pairs(stream: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    pairs = iter(stream)
    first = next(pairs, None)
    if first is None:
        return
    if not (isinstance(first, tuple | list) and len(first) == 2):
        raise ValueError(f"the iterable must yield pairs (x, y), got {repr(first)[:60]}; pass the labels of rows as Y")
    pairs = itertools.chain([first], pairs)
    is_text = isinstance(first[0], str)
    while some := list(itertools.islice(pairs, _TEXTS_AT_ONCE if is_text else 1)):
        xs, ys = [x for x, _ in some], [_as_collection(y) for _, y in some]
        if is_text:
            yield xs, ys
        elif isinstance(xs[0], Mapping):
            yield SeparateRows(xs), ys
        elif _is_sparse(xs[0]) or np.ndim(xs[0]) == 2:
            yield _as_rows(xs[0]), ys
        else:
            yield np.asarray(xs[0]).reshape(1, -1), ys


def _as_collection(y: Any) -> Any:
    """Convert a list of labels to a tuple: a list of 0 and 1 could be mistaken for a row of a 0/1 array."""
    return tuple(y) if isinstance(y, list) else y


def _as_rows(X: Any) -> Any:
    return check_csr("X", X) if _is_sparse(X) else X


def _as_labels(Y: Any) -> Any:
    if _is_sparse(Y):
        return check_csr("Y", Y)
    if np.ndim(Y) == 2 if isinstance(Y, np.ndarray) or hasattr(Y, "iloc") else _is_written_indicator(Y):
        return sparse.csr_array(np.asarray(Y))
    return Y


def _is_written_indicator(Y: Any) -> bool:
    """Return whether the lists are a 0/1 array. This looks at all rows: a batch alone could be ambiguous."""
    from ramify.data.labels import encode_labels

    if not (isinstance(Y, list | tuple) and len(Y) and isinstance(Y[0], list) and len(Y[0]) > 1):
        return False
    return not isinstance(Y[0][0], str) and encode_labels(Y).classes is None


# --- rows and labels of any type --------------------------------------------------------------------------------------


def n_rows(X: Any) -> int:
    if not hasattr(X, "shape") and not hasattr(X, "__len__"):
        raise ValueError(f"rows must be an array, a sparse matrix, a DataFrame or a list, got {X!r:.60}")
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def part(rows: Any, start: int, stop: int) -> Any:
    if start == 0 and stop == n_rows(rows):
        return rows
    if hasattr(rows, "iloc"):
        return rows.iloc[start:stop]
    some = rows[start:stop]
    return SeparateRows(some) if isinstance(rows, SeparateRows) else some


def joined(first: Any, second: Any) -> Any:
    if _is_sparse(first):
        width = max(first.shape[1], second.shape[1])
        both = [sparse.csr_array((a.data, a.indices, a.indptr), shape=(a.shape[0], width)) for a in (first, second)]
        return sparse.vstack(both, format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    rows = [*first, *second]
    return SeparateRows(rows) if isinstance(first, SeparateRows) else rows


def label_rows(y: Any) -> list[Any]:
    """Return the labels of each row, as the model returns them."""
    if _is_sparse(y):
        columns = np.where(y.data != 0, y.indices, -1).tolist()
        bounds = y.indptr.tolist()
        return [[c for c in columns[a:b] if c >= 0] for a, b in itertools.pairwise(bounds)]
    if is_one_class_each(y):
        classes = y.tolist() if hasattr(y, "tolist") else y
        return [(label,) for label in classes]
    return [labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in y]


def is_one_class_each(y: Any) -> bool:
    if _is_sparse(y):
        return False
    first = next(iter(y), None)
    return first is not None and (isinstance(first, str | bytes) or np.ndim(first) == 0) and not isinstance(first, set)


def is_fitted(model: Any) -> bool:
    """Return whether a model is fitted by the rules of scikit-learn, even if it is not an estimator."""
    method = getattr(model, "__sklearn_is_fitted__", None)
    if method is not None:
        return bool(method())
    return any(name.endswith("_") and not name.startswith("_") for name in vars(model))


def answers_as_it_learns(model: Any) -> bool:
    """Whether a fitted model answers each row in the same pass that learns it; a hierarchy needs the whole answer."""
    return hasattr(model, "_test_then_learn") and getattr(model, "hierarchy", None) is None
