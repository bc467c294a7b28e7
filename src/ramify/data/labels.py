"""Encode the labels of Y as columns, and decode columns as labels."""

from __future__ import annotations

import difflib
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.data.label_forms import MAX_LABELS, Kind, indicator_of, read_indicator, read_labels
from ramify.data.names import NameTable
from ramify.data.series import column_names

# Common types of the labels of one row; `read_labels` handles the others.
_PLAIN_CLASSES = (str, int, float, np.integer, np.bool_)
_PLAIN_LABELS = {str, int, np.int32, np.int64}
# Names that are compared with an unknown label.
_SIMILAR = 1000
_PLAIN_COLLECTIONS = {list, tuple, set, frozenset}


@dataclass(frozen=True)
class EncodedLabels:
    """Y as a sparse 0/1 array, and the labels of its columns unless Y was a 0/1 array."""

    indicator: sparse.csr_array
    classes: NDArray[Any] | None
    is_multiclass: bool


def encode_labels(Y: Any) -> EncodedLabels:
    """Encode Y: a 0/1 array, label collections, or one class per row.

    >>> encoded = encode_labels([["Übelkeit", "Bein, links"], [], ["Bein, links"]])
    >>> encoded.classes.tolist(), encoded.indicator.toarray().astype(int).tolist()
    (['Übelkeit', 'Bein, links'], [[1, 1], [0, 0], [0, 1]])
    >>> encode_labels(["b", "a", "b"]).classes.tolist()
    ['a', 'b']
    """
    encoding = LabelEncoding()
    indicator = encoding.extend(Y)
    classes = None if encoding.kind == "indicator" else encoding.classes
    return EncodedLabels(indicator, classes, encoding.is_multiclass)


def label_indicator(Y: Any) -> sparse.csr_array:
    """Return Y as a sparse 0/1 array; a 1-D integer array contains one label column per row.

    >>> label_indicator(np.array([2, 0])).toarray().astype(int).tolist()
    [[0, 0, 1], [1, 0, 0]]
    """
    if not sparse.issparse(Y):
        Y = np.asarray(Y)
        if Y.ndim == 1 and Y.dtype.kind in "iu":
            if len(Y) and Y.min() < 0:
                raise ValueError(f"label columns must be at least 0, got {Y.min()} in row {int(np.argmin(Y))}")
            if len(Y) and Y.max() >= MAX_LABELS:
                raise ValueError(f"label columns must be below {MAX_LABELS}, got {Y.max()} in row {int(np.argmax(Y))}")
            return _one_per_row(Y.astype(np.int64), int(Y.max()) + 1 if len(Y) else 0)
        if Y.ndim != 2:
            raise ValueError(f"Y must be a 2-D array of 0 and 1 or a 1-D array of label columns, got shape {Y.shape}")
    return read_indicator(Y)


class LabelEncoding:
    """The mapping between labels and columns; new labels get new columns.

    >>> encoding = LabelEncoding()
    >>> encoding.extend([["a"], ["b", "a"]]).shape, encoding.extend([["c"]]).shape
    ((2, 2), (1, 3))
    >>> encoding.columns(["c", "a"]).tolist(), encoding.names([1])
    ([2, 0], ['b'])
    """

    def __init__(self) -> None:
        self.kind: Kind | None = None
        self.n_labels = 0
        self._classes: NDArray[Any] | None = None
        self._names: list[Any] | None = None
        self._table: NameTable | None = None
        self._dtype: np.dtype[Any] = np.dtype(object)
        self._index: dict[Any, int] | None = None

    def stored_classes(self) -> dict[str, Any]:
        """Return the classes for a model file: numbers as an array, strings as a NameTable with their numpy type."""
        if self.kind == "indicator":
            return {}
        if self._table is not None:
            return {"classes": self._table, "dtype": str(self._dtype)}
        classes = self.classes
        if classes.dtype.kind in "OU":
            return {"classes": NameTable.from_names(classes.tolist()), "dtype": str(classes.dtype)}
        return {"classes": classes}

    @classmethod
    def from_stored(cls, kind: Kind, n_labels: int, classes: Any = None, dtype: str = "object") -> LabelEncoding:
        """Restore an encoding from `stored_classes`, its kind and its number of labels; rejects bad values."""
        encoding = cls()
        if kind not in ("indicator", "collections", "classes"):
            raise ValueError(f"unknown kind of labels {kind!r}; expected indicator, collections or classes")
        if type(n_labels) is not int or n_labels < 0:
            raise ValueError(f"the number of labels must be an integer of at least 0, got {n_labels!r}")
        if kind != "indicator" and (classes is None or len(classes) != n_labels):
            n_names = "none" if classes is None else len(classes)
            raise ValueError(f"expected {n_labels} label names, got {n_names}")
        encoding.kind, encoding.n_labels = kind, n_labels
        if isinstance(classes, NameTable):
            encoding._table = classes
            encoding._dtype = np.dtype(object) if dtype == "object" else classes.string_dtype(dtype)
        elif classes is not None:
            if not isinstance(classes, np.ndarray) or classes.ndim != 1 or classes.dtype.kind not in "biuf":
                raise ValueError("label names must be a 1-D array")
            encoding._classes = classes
        return encoding

    @property
    def is_multiclass(self) -> bool:
        return self.kind == "classes"

    @property
    def classes(self) -> NDArray[Any]:
        """The label of each column."""
        if self._classes is None or len(self._classes) != self.n_labels:
            if self.kind == "indicator":
                self._classes = np.arange(self.n_labels)
            else:
                self._classes = _as_array(self._name_list(), self._dtype)
        return self._classes

    def names(self, columns: NDArray[np.integer] | Sequence[int]) -> list[Any]:
        """Return the labels of these columns as Python strings and numbers."""
        positions = columns.tolist() if isinstance(columns, np.ndarray) else [int(column) for column in columns]
        if self.kind == "indicator":
            return positions
        if self._names is not None:
            names = self._names
            return [names[position] for position in positions]
        if self._table is not None:
            return self._table.take(positions)
        return self.classes[positions].tolist()  # type: ignore[no-any-return]

    def columns(self, labels: Iterable[Any]) -> NDArray[np.int32]:
        """Return the columns of these labels; an unknown label raises a ValueError that names it."""
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            raise ValueError(f"labels must be a list of labels, got {labels!r}; write [{labels!r}]")
        if sparse.issparse(labels):
            raise ValueError("labels must be a list of labels, the same for every row, got a sparse array")
        labels = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        if self.kind == "indicator":
            for label in labels:
                is_integer = isinstance(label, int | np.integer) and not isinstance(label, bool)
                if not is_integer or not 0 <= label < self.n_labels:
                    raise ValueError(f"label {label!r} is not a column of Y; columns are 0 to {self.n_labels - 1}")
            return np.asarray(labels, dtype=np.int32)
        index = self._name_index()
        for label in labels:
            if not _is_known(label, index):
                raise ValueError(
                    f"label {label!r} is not among the {self.n_labels} known labels{_nearest(label, index)}"
                )
        return np.fromiter((index[label] for label in labels), dtype=np.int32, count=len(labels))

    def known_columns(self, y: Any) -> NDArray[np.int32] | None:
        """Return the sorted columns of one row's class or labels; None if `extend` must handle them."""
        if self.kind == "classes" and isinstance(y, _PLAIN_CLASSES):
            column = self._name_index().get(y)
            return None if column is None else np.array([column], dtype=np.int32)
        if self.kind != "collections" or type(y) not in _PLAIN_COLLECTIONS:
            return None
        if not _PLAIN_LABELS.issuperset(map(type, y)):
            return None
        columns = set(map(self._name_index().get, y))
        return None if None in columns else np.array(sorted(columns), dtype=np.int32)  # type: ignore[type-var]

    def extend(self, Y: Any, *, is_sorted: bool = True) -> sparse.csr_array:
        """Encode Y; new labels get the next columns. A rejected Y changes nothing.

        The first classes are sorted, as scikit-learn does, unless the order in which they come is to be kept.
        """
        names = self._names_of_table(Y)
        if names is not None:
            indicator = read_indicator(Y)
            new = {name for name in names if self.kind is None or not _is_known(name, self._name_index())}
            self.extend([names] if new else [])
            return self._at_columns(indicator, self.columns(names))
        kind, content = read_labels(Y, self.kind)
        if kind == "indicator":
            if content.shape[1] < self.n_labels:
                content.resize(content.shape[0], self.n_labels)
            self.kind, self.n_labels = kind, content.shape[1]
            return content  # type: ignore[no-any-return]
        values, indptr = content
        if self.kind is None and isinstance(values, np.ndarray):
            classes, codes = _first_classes(values, is_sorted)
            self._adopt(kind, classes)
            return _one_per_row(codes, self.n_labels)
        values = values.tolist() if isinstance(values, np.ndarray) else values
        if self.kind is None:
            numbered: defaultdict[Any, int] = defaultdict(itertools.count().__next__)
            columns = np.fromiter(map(numbered.__getitem__, values), np.int32, len(values))
            self._adopt_names(kind, list(numbered), dict(numbered))
            return indicator_of(columns, indptr, self.n_labels)
        index = self._name_index()
        fresh = [label for label in dict.fromkeys(values) if label not in index]
        if not fresh:
            return indicator_of(
                np.fromiter(map(index.__getitem__, values), np.int32, len(values)), indptr, self.n_labels
            )
        if fresh and index and isinstance(fresh[0], str) != isinstance(next(iter(index)), str):
            raise ValueError(f"Y has the label {fresh[0]!r}, but labels so far are like {next(iter(index))!r}")
        names = self._name_list()
        index.update(zip(fresh, range(len(names), len(names) + len(fresh)), strict=True))
        names.extend(fresh)
        self._adopt_names(kind, names, index)
        return indicator_of(np.fromiter(map(index.__getitem__, values), np.int32, len(values)), indptr, self.n_labels)

    def name_in_advance(self, Y: Any, classes: Any) -> None:
        """Assign the first columns to these labels: classes sorted as in scikit-learn, other labels as given.

        Does nothing if Y is a 0/1 array, which has columns already.
        """
        if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
            raise ValueError(f"classes must be a list of labels, got {classes!r}")
        kind, _ = read_labels(Y, None)
        if self._names_of_table(Y) is not None:
            kind = "collections"
        if kind == "indicator":
            return
        classes = np.asarray(classes) if hasattr(classes, "dtype") else list(classes)
        try:
            self.extend(classes if kind == "classes" else [tuple(classes)])
        except ValueError as error:
            raise ValueError(f"classes: {error}") from None
        if self.kind != kind:
            raise ValueError(f"classes must be a list of labels, got {classes!r}")

    def widen(self, n_labels: int) -> None:
        """Extend a 0/1 array to at least `n_labels` columns."""
        self.n_labels = max(self.n_labels, n_labels)

    @contextmanager
    def unchanged_on_failure(self) -> Iterator[None]:
        """Remove the labels added inside the block if it raises."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            for name in [] if self._names is None else self._names[before["n_labels"] :]:
                self._name_index().pop(name, None)
            if self._names is not None:
                del self._names[before["n_labels"] :]
            self.__dict__.update(before)
            raise

    def encode(self, Y: Any) -> tuple[sparse.csr_array, NDArray[np.bool_]]:
        """Encode Y with the known labels; the second array marks rows that also have unknown labels."""
        names = self._names_of_table(Y)
        if names is not None:
            indicator = read_indicator(Y)
            is_known = np.array([_is_known(name, self._name_index()) for name in names])
            known = self.columns([name for name, is_one in zip(names, is_known, strict=True) if is_one])
            beyond = indicator[:, np.flatnonzero(~is_known)].sum(axis=1) > 0
            return self._at_columns(indicator[:, np.flatnonzero(is_known)], known), np.asarray(beyond)
        kind, content = read_labels(Y, self.kind)
        if kind == "indicator":
            beyond = content[:, self.n_labels :].sum(axis=1) > 0
            content.resize(content.shape[0], self.n_labels)
            return content, np.asarray(beyond)
        values, indptr = content
        values = values.tolist() if isinstance(values, np.ndarray) else values
        index = self._name_index()
        codes = np.fromiter((index.get(label, -1) for label in values), np.int64, len(values))
        kept = np.concatenate([[0], np.cumsum(codes >= 0)])
        unknown = np.diff(kept[indptr]) < np.diff(indptr)
        return indicator_of(codes[codes >= 0].astype(np.int32), kept[indptr], self.n_labels), unknown

    def _names_of_table(self, Y: Any) -> list[str] | None:
        """The labels of a table of 0 and 1 with a named column for each; None if Y is something else."""
        names = column_names(Y) if self.kind in (None, "collections") else None
        if names is not None and len(set(names)) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise ValueError(f"Y has two columns called {twice!r}: give each label one column")
        return names

    def _at_columns(self, indicator: sparse.csr_array, columns: NDArray[np.int32]) -> sparse.csr_array:
        """The array of a table with its columns where the labels that they name are."""
        return indicator_of(columns[indicator.indices], indicator.indptr.astype(np.int64), self.n_labels)

    def _adopt(self, kind: Kind, classes: NDArray[Any]) -> None:
        self.kind, self.n_labels, self._classes = kind, len(classes), classes

    def _adopt_names(self, kind: Kind, names: list[Any], index: dict[Any, int]) -> None:
        self.kind, self._names, self._index, self._table, self._dtype = kind, names, index, None, np.dtype(object)
        self.n_labels = len(names)

    def _name_list(self) -> list[Any]:
        if self._names is None:
            source = self._table if self._table is not None else self._classes
            self._names = [] if source is None else source.tolist()
        return self._names

    def _name_index(self) -> dict[Any, int]:
        if self._index is None:
            self._index = {name: column for column, name in enumerate(self._name_list())}
        return self._index

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None, "_names": None if self._names is None else list(self._names)}


def _is_known(label: Any, index: dict[Any, int]) -> bool:
    try:
        return label in index
    except TypeError:  # unhashable, so it cannot be a label
        return False


def _nearest(label: Any, index: dict[Any, int]) -> str:
    """The label that was probably meant: equal but for case and punctuation, or else the most similar one."""
    if not isinstance(label, str):
        return ""
    wanted = _letters(label)
    names = [name for name in index if isinstance(name, str)]
    near = next((name for name in names if _letters(name) == wanted), None)
    if near is None:
        # Similarity is slow to compute: only for names that share their start and end with the label.
        best = heapq.nlargest(_SIMILAR, names, key=lambda name: _shared(name, label) + _shared(name[::-1], label[::-1]))
        near = next(iter(difflib.get_close_matches(label, best, n=1)), None)
    return "" if near is None else f"; did you mean {near!r}?"


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def _shared(one: str, other: str) -> int:
    """Characters that both begin with."""
    return next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _as_array(names: list[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    # Keep strings as objects: in a fixed-width array one long name would widen all entries.
    if names and not isinstance(names[0], str):
        return np.asarray(names)
    array = np.empty(len(names), dtype=dtype)
    array[:] = names
    return array


def _one_per_row(codes: NDArray[np.integer], n_labels: int) -> sparse.csr_array:
    return indicator_of(codes.astype(np.int32), np.arange(len(codes) + 1, dtype=np.int64), n_labels)


def _first_classes(y: NDArray[Any], is_sorted: bool) -> tuple[NDArray[Any], NDArray[np.integer]]:
    if y.dtype.kind not in "OU" and is_sorted:
        return np.unique(y, return_inverse=True)
    # Sorting only the distinct strings is many times faster than sorting all of them.
    values = y.tolist()
    names = list(dict.fromkeys(values))
    if is_sorted:
        names.sort()
    index = {name: column for column, name in enumerate(names)}
    return np.array(names, dtype=y.dtype), np.fromiter(map(index.__getitem__, values), np.int32, len(values))
