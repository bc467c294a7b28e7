"""The schema of a stream: labels and features may be new in any row, and a rejected row changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import no_entries, one_row
from ramify.base.rows import (
    as_texts,
    finite_values,
    holds_no_rows,
    in_order,
    read_numbers,
    row_from_dict,
)
from ramify.base.schema import Schema, check_as_many_rows, column_names_of
from ramify.common.validation import check_integer
from ramify.data.names import NameTable

if TYPE_CHECKING:
    from typing_extensions import Self

# What is learned at once: rows, labels, and weights of the rows or None.
Piece = tuple[sparse.csr_array, sparse.csr_array, NDArray[np.float32] | None]

# Feature numbers of a stream are below this.
MAX_FEATURES = 2**31 - 2


@dataclass(frozen=True)
class DictRow:
    """One row given as feature -> value, where an array of rows is expected."""

    x: Mapping[Any, Any]


class StreamSchema(Schema):
    """A schema that grows: rows of any width, new labels, and features named one by one in dicts."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.named_columns: dict[str, int] | None = None  # of features that dicts name

    # --- learning -------------------------------------------------------------------------------------------------

    def start(self, X: Any, y: Any, classes: Any, new_vectorizer: Any) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Rows and labels of the first piece of a stream; it may hold no label yet.

        Classes get columns in the order in which they come, as they do later: a model does not depend on the pieces.
        """
        if isinstance(X, DictRow):
            rows, fresh = self._dict_row(X.x, {})
            self.n_features = rows.shape[1]
            self.named_columns = fresh
        else:
            rows = self.read_training_rows(X, new_vectorizer)
        return rows, self.read_training_labels(y, rows.shape[0], classes, is_sorted=False)

    def extend(self, X: Any, y: Any, accept: Callable[[sparse.csr_array, sparse.csr_array], Piece]) -> Piece:
        """Rows and labels of a later piece; what is new in it is known from now on, unless it is rejected.

        `accept(X, Y)` returns what is to be learned of them, or raises.
        """
        with self.labels.unchanged_on_failure(), self._vocabulary_unchanged_on_failure() as learn_texts:
            fresh = None
            if isinstance(X, DictRow):
                rows, fresh = self._dict_row(X.x, self.feature_index)
            else:
                rows = self._wide_rows(X, learn_texts)
            if self.grows and rows.shape[1] > self.vectorizer.n_columns_:
                raise ValueError(
                    f"x has features that are not among the {self.vectorizer.n_columns_:,} terms of the texts so far: "
                    f"this {self.owner} learns texts, so give it the text"
                )
            check_integer("the number of features", rows.shape[1], at_most=MAX_FEATURES)
            indicator = self.labels.extend(y)
            check_as_many_rows(rows.shape[0], indicator)
            piece = accept(rows, indicator)
        if fresh is not None and not self.grows:
            if self.named_columns is None:
                self.named_columns = dict(self.feature_index or {})
            self.named_columns.update(fresh)
        elif self.feature_names is not None and rows.shape[1] > self.n_features:
            names = column_names_of(X)
            self.feature_names = self.feature_names if names is None else names
            self.__dict__.pop("_given_index", None)
        self.widen(rows.shape[1])
        return piece

    @property
    def grows(self) -> bool:
        """Whether new words of texts become new features."""
        return hasattr(self.vectorizer, "learn")

    @contextmanager
    def _vocabulary_unchanged_on_failure(self) -> Iterator[Callable[[list[str]], sparse.csr_array] | None]:
        """A function that learns the words of texts, undone if the body fails; None if there is nothing to learn."""
        if not self.grows:
            yield None
            return
        vectorizer = self.vectorizer
        n_texts = vectorizer.n_texts_
        try:
            yield vectorizer.learn
        except BaseException:
            if vectorizer.n_texts_ != n_texts:
                vectorizer.forget_last()
            raise

    def plain_text(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32], int] | None:
        """A text to learn: columns, values, the width it needs; None if `extend` has to read it."""
        if self.grows:
            columns, values = self.vectorizer.learn_one(text)
            return columns, values, self.vectorizer.n_columns_
        row = self._text_row(text)
        return None if row is None else (*row, self.n_features)

    def widen(self, n_features: int) -> None:
        """Room for this many features and for all labels, in the tables of names too."""
        if self.grows:
            self.__dict__.pop("_given_index", None)
        self.n_features = max(self.n_features, n_features)
        if self.label_names is not None:
            self.label_names = self.label_names.widened(self.n_labels)
        if self.column_names is not None:
            self.column_names = self.column_names.widened(self.n_features)

    def plain_dict(
        self, x: Mapping[Any, Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32], int, dict[str, int]] | None:
        """A dict row to learn: columns, values, the width it needs, new names; None if `extend` has to read it."""
        known = self.named_columns
        fresh: dict[str, int] = {}
        if self.grows:
            return None
        if known is not None:
            unknown = [feature for feature in x if feature not in known]
            if unknown:
                if set(map(type, unknown)) != {str}:
                    return None
                first = max(self.n_features, len(known))
                fresh = dict(zip(unknown, range(first, first + len(unknown)), strict=True))
                columns = [known[name] if name in known else fresh[name] for name in x]
            else:
                columns = [known[name] for name in x]
        else:
            columns = list(x)
            if not set(map(type, columns)) <= {int}:
                return None
        columns, values = in_order(columns, finite_values(x))
        if columns and (columns[0] < 0 or columns[-1] >= MAX_FEATURES):
            return None
        width = columns[-1] + 1 if columns else 0
        return np.array(columns, dtype=np.int32), values, width, fresh

    def _dict_row(
        self, x: Mapping[Any, Any], known: Mapping[str, int] | None
    ) -> tuple[sparse.csr_array, dict[str, int] | None]:
        """One row given as feature -> value, and the columns of new names (None: it has no names)."""
        n_features = self.n_features
        if any(isinstance(feature, str) for feature in x):
            if known is None:
                if n_features:
                    raise ValueError("x names its features, but the model has learned from numbered ones so far")
                known = {}
            fresh: dict[str, int] = {}
            columns: dict[str, int] = {}
            for name in x:
                if isinstance(name, str):
                    if name not in known:
                        fresh[name] = max(n_features, len(known)) + len(fresh)
                    columns[name] = fresh[name] if name in fresh else known[name]
            width = max(n_features, *(column + 1 for column in columns.values()))
            return one_row(*row_from_dict(x, columns, width), width), fresh
        if self.named_columns is not None and x:
            raise ValueError("x numbers its features, but the model has learned from named ones so far")
        too_large = [feature for feature in x if isinstance(feature, int | np.integer) and feature >= MAX_FEATURES]
        if too_large:
            raise ValueError(f"feature numbers must be below {MAX_FEATURES}, got {too_large[0]}")
        indices, values = row_from_dict(x, None, MAX_FEATURES)
        width = max(int(indices[-1]) + 1 if len(indices) else 0, n_features)
        return one_row(indices, values, width), None

    # --- queries --------------------------------------------------------------------------------------------------

    def rows(self, X: Any) -> sparse.csr_array:
        """Rows of a query; features that were never seen are left out, as in a dict."""
        rows = self._wide_rows(X)
        return rows if rows.shape[1] <= self.n_features else sparse.csr_array(rows[:, : self.n_features])

    def _wide_rows(
        self, X: Any, learn_texts: Callable[[list[str]], sparse.csr_array] | None = None
    ) -> sparse.csr_array:
        """Rows as CSR, whatever their width."""
        texts = as_texts(X)
        if texts is not None:
            if self.vectorizer is None:
                raise ValueError(f"X holds texts, but this {self.owner} was trained on numbers so far")
            return self._text_rows((learn_texts or self.vectorizer.transform)(texts))
        if holds_no_rows(X):
            return no_entries(0, self.n_features)
        self._check_column_names(X)
        rows = read_numbers(X, self.owner)
        if self.vectorizer is not None and rows.shape[1] != self.n_features:
            raise ValueError(
                f"X has {rows.shape[1]} columns of numbers, but this {self.owner} was trained on texts "
                f"({self.n_features:,} features): give texts, or rows of vectorizer_.transform(texts)"
            )
        return rows

    def _check_column_names(self, X: Any) -> None:
        """Columns that have names must be the known ones, in their order; new ones may follow."""
        known, names = self.feature_names, column_names_of(X)
        if known is None or names is None or not np.array_equal(names[: len(known)], known):
            super()._check_column_names(X)

    @property
    def feature_index(self) -> Mapping[str, int] | None:
        """The column of each feature name."""
        return self._given_index if self.named_columns is None else self.named_columns

    def named_column_table(self) -> NameTable | None:
        """Names that came one by one, by column, as a model that learns no more has them."""
        if self.named_columns is None:
            return None
        names = [""] * self.n_features
        for name, column in self.named_columns.items():
            names[column] = name
        return NameTable.from_names(names)

    def frozen(self, owner: str) -> Schema:
        """A schema for a batch model with the same rows and labels."""
        copy = Schema.from_state(owner, super().state())
        copy.column_names = self.named_column_table() or copy.column_names
        return copy

    def snapshot(self) -> Self:
        return copy.deepcopy(self)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        state = super().state() | {"is_stream": True}
        if self.named_columns is not None:
            state["named_columns"] = {
                "names": NameTable.from_names(list(self.named_columns)),
                "columns": np.fromiter(self.named_columns.values(), np.int64, len(self.named_columns)),
            }
        return state

    @classmethod
    def from_state(cls, owner: str, state: Mapping[str, Any]) -> Self:
        schema = super().from_state(owner, state)
        if "named_columns" in state:
            names, columns = state["named_columns"]["names"].tolist(), state["named_columns"]["columns"]
            known = dict(zip(names, columns.tolist(), strict=True))
            is_sound = columns.dtype == np.int64 and len(known) == len(names) == len(set(known.values()))
            if not is_sound or not all(0 <= column < schema.n_features for column in known.values()):
                raise ValueError(f"the columns of {len(names)} named features are not distinct columns of the model")
            schema.named_columns = known
        return schema


def schema_from_state(owner: str, state: Mapping[str, Any]) -> Schema:
    """The schema that `Schema.state` or `StreamSchema.state` described."""
    return (StreamSchema if state.get("is_stream") else Schema).from_state(owner, state)


def one_label_row(y: Any, kind: str | None) -> Any:
    """The labels of one row as Y: a class, a collection of labels, or, where Y is a 0/1 array (`kind`), such a row."""
    if sparse.issparse(y):
        given: Any = y
        return given if given.ndim == 2 else given.reshape((1, -1))
    if isinstance(y, list | tuple | np.ndarray) and np.ndim(y) == 1:
        row = np.asarray(y if len(y) else np.zeros(0))
        if kind == "indicator" and row.dtype.kind in "biuf":
            return sparse.csr_array(row[None])
        y = tuple(y.tolist() if isinstance(y, np.ndarray) else y)  # a list of 0 and 1 could be taken for such a row
    return [y]
