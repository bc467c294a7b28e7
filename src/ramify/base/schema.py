"""How a classifier reads its input and names its output: texts, features, labels, and their widths."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import no_entries
from ramify.base.naming import (
    check_name_table,
    feature_name_table,
    label_name_table,
    named_features,
    terms_of_text,
)
from ramify.base.odd_rows import check_is_read, check_table
from ramify.base.rows import (
    as_one_row,
    as_texts,
    canonical_rows,
    full_row,
    holds_no_rows,
    plain_row,
    read_numbers,
    row_from_dict,
)
from ramify.common.cached import cached_property
from ramify.common.progress import phase
from ramify.common.validation import check_choice, check_integer
from ramify.common.warn import warn_user
from ramify.data.doubtful_labels import doubts_about
from ramify.data.encodings import check_encoding
from ramify.data.labels import LabelEncoding
from ramify.data.names import NameTable
from ramify.data.text_file import TEXT_FORMATS

if TYPE_CHECKING:
    from typing_extensions import Self

Row = tuple[NDArray[np.int32], NDArray[np.float32]]

_SOURCE_FORMATS = ("xmc", "libsvm", "libsvm-zero-based", *TEXT_FORMATS)
_ONE_ROW_TYPES = (sparse.csr_array, sparse.csr_matrix)


class Schema:
    """Converts what users have into CSR rows and label columns, and columns back into labels.

    A schema is learned from the first data by `read_training_rows` and `read_training_labels`; afterwards `rows` and
    `row` read queries. It is saved and restored on its own, and does not need scikit-learn for arrays.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner  # the classifier's name, for messages
        self.labels = LabelEncoding()
        self.n_features = 0
        self.vectorizer: Any = None
        self.feature_names: NDArray[np.object_] | None = None  # columns of a DataFrame
        self.label_names: NameTable | None = None
        self.column_names: NameTable | None = None
        self.source_columns: dict[str, Any] = {}  # of the file: what the user chose: names, separator, encoding
        self.source_format: str | None = None  # of the file: the same number may be another feature in another format

    @classmethod
    def sharing(cls, owner: str, other: Schema) -> Self:
        """A schema of this class with the labels, features and names of another."""
        schema = cls(owner)
        schema.__dict__.update({name: value for name, value in other.__dict__.items() if name in schema.__dict__})
        schema.owner, schema.vectorizer = owner, None  # the outer classifier reads the texts
        return schema

    # --- reading training data ------------------------------------------------------------------------------------

    def read_training_rows(self, X: Any, new_vectorizer: Any) -> sparse.csr_array:
        """Rows to train on; sets what later rows must look like. `new_vectorizer()` is called if X holds texts."""
        if holds_no_rows(X):
            raise ValueError("X has no rows (0 samples): give at least one, a text or a row of numbers, and its labels")
        texts = as_texts(X)
        if texts is not None:
            self.vectorizer = new_vectorizer()
            with phase("vectorising"), _naming_empty_texts(texts):
                rows = self._text_rows(self.vectorizer.fit_transform(texts))
        else:
            self.feature_names = column_names_of(X)
            rows = read_numbers(X, self.owner, min_rows=1, min_features=1)
        self.n_features = rows.shape[1]
        return rows

    def read_training_labels(
        self, Y: Any, n_rows: int, classes: Any = None, *, is_sorted: bool = True
    ) -> sparse.csr_array:
        """The 0/1 array of Y, one row for each row of X; `classes` may name labels in advance."""
        if Y is None:
            raise ValueError(f"This {self.owner} estimator requires y to be passed, but the target y is None")
        if classes is not None:
            self.labels.name_in_advance(Y, classes)
        indicator = self.labels.extend(Y, is_sorted=is_sorted)
        check_as_many_rows(n_rows, indicator)
        return indicator

    def warn_of_doubtful_labels(self) -> None:
        """Warn of labels that were probably not meant, such as two that look the same."""
        if self.labels.kind == "indicator" or self.labels.classes.dtype.kind not in "OU":
            return
        for doubt in doubts_about(self.labels.classes.tolist()):
            warn_user(doubt)

    # --- reading queries ------------------------------------------------------------------------------------------

    def rows(self, X: Any) -> sparse.csr_array:
        """The rows of a query as CSR."""
        texts = as_texts(X)
        if texts is not None:
            return self._text_rows(self._vectorizer_for_texts().transform(texts))
        if holds_no_rows(X):
            return no_entries(0, self.n_features)
        self._check_column_names(X)
        rows = read_numbers(X, self.owner, min_features=1)
        if rows.shape[1] != self.n_features and self.vectorizer is not None:
            raise ValueError(
                f"X has {rows.shape[1]} columns of numbers, but this {self.owner} was trained on texts "
                f"({self.n_features:,} features): give texts, or rows of vectorizer_.transform(texts)"
            )
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {self.owner} is expecting {self.n_features} features as input"
            )
        return rows

    def row(self, x: Any) -> Row:
        """One row as (indices, values): a dict feature -> value, a text, a 1-D array, or an array of one row."""
        if isinstance(x, Mapping):
            return row_from_dict(x, self.feature_index, self.n_features)
        plain = self._text_row(x) if isinstance(x, str) else self.plain_row(x[None] if _is_vector(x) else x)
        if plain is not None:
            return plain
        rows = self.rows(as_one_row(x))
        if rows.shape[0] != 1:
            raise ValueError(f"expected one row, got {rows.shape[0]}; use predict_labels for several")
        return rows.indices, rows.data

    def plain_row(self, X: Any) -> Row | None:
        """The row of one text, or of a CSR array that needs no conversion; None if `rows` has to read it."""
        if type(X) is list:
            return self._text_row(X[0]) if len(X) == 1 and type(X[0]) is str else None
        if type(X) is np.ndarray:
            is_plain = self.feature_names is None and self.vectorizer is None and X.ndim == 2
            return full_row(X, self.n_features) if is_plain else None
        # With feature names, `rows` warns about arrays without them.
        if type(X) not in _ONE_ROW_TYPES or X.shape[0] != 1 or self.feature_names is not None:
            return None
        return plain_row(X, self.n_features)

    def _text_row(self, text: str) -> Row | None:
        if not hasattr(self.vectorizer, "transform_one"):
            return None
        columns, values = self.vectorizer.transform_one(text)
        return (columns, values) if values.all() else (columns[values != 0], values[values != 0])

    def _text_rows(self, rows: sparse.csr_array) -> sparse.csr_array:
        """What the vectorizer returned; the library's own return rows that only need their zeros removed, if any."""
        if not hasattr(self.vectorizer, "transform_one"):
            return canonical_rows(rows)
        rows.has_canonical_format = True
        if np.count_nonzero(rows.data) != len(rows.data):
            rows.eliminate_zeros()
        return rows

    def _vectorizer_for_texts(self) -> Any:
        if self.vectorizer is None:
            raise ValueError(
                f"X holds texts, but this {self.owner} was trained on numbers: "
                f"give it rows of {self.n_features} features, or train it on texts"
            )
        return self.vectorizer

    def _check_column_names(self, X: Any) -> None:
        """Names of columns must be those of the training data; scikit-learn words errors and warnings."""
        check_is_read(X)
        if self.feature_names is None and not hasattr(X, "columns"):
            return
        from sklearn.utils.validation import _check_feature_names

        if hasattr(X, "columns"):
            check_table(X)
        stand_in = type(self.owner, (), {})()
        if self.feature_names is not None:
            stand_in.feature_names_in_ = self.feature_names
        _check_feature_names(stand_in, X, reset=False)

    # --- names ----------------------------------------------------------------------------------------------------

    @property
    def n_labels(self) -> int:
        return self.labels.n_labels

    @property
    def is_multiclass(self) -> bool:
        return self.labels.is_multiclass

    def label_of(self, column: int) -> Any:
        return self.labels.names([column])[0]

    def labels_of(self, columns: Sequence[int] | NDArray[np.integer]) -> list[Any]:
        """The labels of these columns."""
        return self.labels.names(columns)

    def label_name(self, column: int) -> str:
        """What people call the label of a column; "" if it has no name."""
        return "" if self.label_names is None else str(self.label_names[column])

    @property
    def feature_index(self) -> Mapping[str, int] | None:
        """The column of each feature name: from the vocabulary, given names, or the columns of a DataFrame."""
        return self._given_index

    @cached_property
    def _given_index(self) -> Mapping[str, int] | None:
        if self.vectorizer is not None:
            return getattr(self.vectorizer, "vocabulary_", None)
        names = self.feature_names if self.column_names is None else self.column_names.tolist()
        return None if names is None else {name: column for column, name in enumerate(names)}

    def feature_names_of(self, columns: NDArray[np.integer]) -> list[str]:
        """The names of these feature columns, "feature 17" for one that has none."""
        if self.column_names is None and hasattr(self.vectorizer, "term_at"):
            return [self.vectorizer.term_at(int(column)) for column in columns]
        return named_features(columns, self.column_names, self.feature_index)

    def terms_of(self, x: Any) -> dict[int, str]:
        """For a text and a vectorizer without a vocabulary: the text's terms by column."""
        return terms_of_text(self.vectorizer, x)

    def occurrences(self, x: Any) -> list[tuple[int, int, int, str]]:
        """Where a text's terms stand: column, first character, the one after the last, and the term."""
        text = x[0] if isinstance(x, list) and len(x) == 1 else x
        if not isinstance(text, str) or not hasattr(self.vectorizer, "occurrences"):
            return []
        found: list[tuple[int, int, int, str]] = self.vectorizer.occurrences(text)
        return found

    def set_names(self, labels: Any = None, features: Any = None) -> None:
        """Set the names of labels (in column order, or as label -> name) and of feature columns."""
        label_names = None if labels is None else label_name_table(labels, self.labels.classes)
        column_names = None if features is None else feature_name_table(features, self.n_features)
        if label_names is not None:
            self.label_names = label_names
        if column_names is not None:
            self.column_names = column_names
            self.__dict__.pop("_given_index", None)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON values, arrays and name tables for a model file."""
        labels = self.labels
        state: dict[str, Any] = {
            "n_features": self.n_features,
            "labels": {"kind": labels.kind, "n_labels": labels.n_labels, **labels.stored_classes()},
        }
        if self.feature_names is not None:
            state["feature_names"] = NameTable.from_names(self.feature_names)
        if self.label_names is not None:
            state["label_names"] = self.label_names
        if self.column_names is not None:
            state["feature_column_names"] = self.column_names
        if self.source_format is not None:
            state["source_format"] = self.source_format
        if self.source_columns:
            state["source_columns"] = self.source_columns
        if self.vectorizer is not None:
            from ramify.data.text import vectorizer_state

            state["vectorizer"] = vectorizer_state(self.vectorizer)
        return state

    @classmethod
    def from_state(cls, owner: str, state: Mapping[str, Any]) -> Self:
        """Take back what `state` gave; bad content raises ValueError."""
        schema = cls(owner)
        schema.n_features = check_integer("n_features", state["n_features"], at_least=0)
        schema.labels = LabelEncoding.from_stored(**state["labels"])
        if "feature_names" in state:
            schema.feature_names = np.array(state["feature_names"].tolist(), dtype=object)
        if "label_names" in state:
            schema.label_names = check_name_table(state["label_names"], schema.n_labels, "label")
        if "feature_column_names" in state:
            schema.column_names = check_name_table(state["feature_column_names"], schema.n_features, "feature")
        if "source_format" in state:
            schema.source_format = check_choice("source_format", state["source_format"], _SOURCE_FORMATS)
        if "source_columns" in state:
            schema.source_columns = _checked_columns(state["source_columns"])
        if "vectorizer" in state:
            from ramify.data.text import vectorizer_from_state

            schema.vectorizer = vectorizer_from_state(*state["vectorizer"])
            width = schema.vectorizer.transform([""]).shape[1]
            if width > schema.n_features:
                raise ValueError(f"the vectorizer has {width} features, but the model {schema.n_features}")
        return schema

    def snapshot(self) -> Self:
        """This schema as it is now: later names and labels do not appear in it."""
        other = copy.copy(self)
        other.labels = copy.copy(self.labels)
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_given_index"}


def _checked_columns(given: Any) -> dict[str, Any]:
    """The columns of a model file; damaged ones raise ValueError."""
    kinds = {"text": list, "labels": list, "label_separator": str, "encoding": str}
    if not isinstance(given, dict) or any(not isinstance(v, kinds.get(k, ())) or not v for k, v in given.items()):
        raise ValueError("the saved source_columns are damaged; copy the file again")
    if not all(isinstance(name, str) for kind in ("text", "labels") for name in given.get(kind, [])):
        raise ValueError("the saved source_columns must be names")
    if "encoding" in given:
        check_encoding(given["encoding"])
    return given


def no_label_in(Y: Any) -> ValueError:
    """The error that no row has a label."""
    if hasattr(Y, "file"):
        error: ValueError = Y.file.nothing_in("labels")
        return error
    return ValueError("Y has no labels: at least one row must have one")


@contextmanager
def _naming_empty_texts(texts: Any) -> Iterator[None]:
    """Say where texts without any word come from; vectorizers know only that they found no term."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("empty vocabulary"):
            raise
        if hasattr(texts, "file"):
            raise texts.file.nothing_in("text") from None
        raise ValueError(f"{error}; X has no text with a word that the vectorizer keeps") from None


def _is_vector(x: Any) -> bool:
    return type(x) is np.ndarray and x.ndim == 1


def column_names_of(X: Any) -> NDArray[np.object_] | None:
    """The names of a table's columns, if X is one and they are strings."""
    check_is_read(X)
    if not hasattr(X, "columns"):
        return None
    from sklearn.utils.validation import _get_feature_names

    check_table(X)
    names: NDArray[np.object_] | None = _get_feature_names(X)
    return names


def check_as_many_rows(n_rows: int, indicator: sparse.csr_array) -> None:
    """Reject labels whose number of rows differs from that of X."""
    if indicator.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows} rows, but Y has {indicator.shape[0]}: give one entry of Y per row of X")
