"""What labels and features are called by people: kept beside a model, saved with it, never used to learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.data.names import NameTable


def label_name_table(names: Mapping[Any, str] | Sequence[str], labels: NDArray[Any]) -> NameTable:
    """A name for each label column, from a sequence in column order or from label -> name; "" where there is none.

    >>> label_name_table({"R07.9": "Chest pain"}, np.array(["R07", "R07.9"])).tolist()
    ['', 'Chest pain']
    """
    if isinstance(names, Mapping):
        known = set(labels.tolist())
        strange = [label for label in names if label not in known]
        if len(strange) == len(names):
            example = f", such as {strange[0]!r}" if strange else ""
            raise ValueError(f"none of the {len(names)} labels that are given names{example} is one of the model's")
        return _table((names.get(label, "") for label in labels.tolist()), "label")
    return _table(_as_many(names, len(labels), "label"), "label")


def feature_name_table(names: Sequence[str], n_features: int) -> NameTable:
    """A name for each feature column."""
    return _table(_as_many(names, n_features, "feature"), "feature")


def check_name_table(table: Any, size: int, what: str) -> NameTable:
    """A table that a model file holds, if it fits the model."""
    if not isinstance(table, NameTable) or len(table) != size:
        raise ValueError(f"the names of {size} {what}s do not fit")
    return table


def label_name(model: Any, column: int) -> str:
    """What people call the label of a column; "" if the model was not told."""
    table = model.__dict__.get("label_names_")
    return "" if table is None else str(table[column])


def feature_names(model: Any, columns: Sequence[int] | NDArray[np.integer]) -> list[str]:
    """The names of these feature columns, and "feature 17" for one that has none; the bias comes after the last one."""
    n_features: int = model.n_features_in_
    known = _known_features(model, {int(column) for column in columns})
    return ["bias" if c >= n_features else known.get(int(c), f"feature {c}") for c in columns]


def _known_features(model: Any, columns: set[int]) -> dict[int, str]:
    if "feature_column_names_" in model.__dict__:
        table: NameTable = model.feature_column_names_
        return {column: table[column] for column in columns if column < len(table) and table[column]}
    grown: dict[str, int] | None = model.__dict__.get("feature_columns_")
    if grown is not None:
        return {column: name for name, column in grown.items() if column in columns}
    vocabulary = getattr(model.__dict__.get("vectorizer_"), "vocabulary_", None)
    if vocabulary is not None:
        return {int(column): term for term, column in vocabulary.items() if column in columns}
    names = model.__dict__.get("feature_names_in_")
    return {} if names is None else {column: str(names[column]) for column in columns if column < len(names)}


def hashed_terms(model: Any, x: Any) -> dict[int, str]:
    """For a text and a vectorizer that hashes and keeps no names: the text's own terms by the column they fall in."""
    vectorizer = model.__dict__.get("vectorizer_")
    text = x[0] if isinstance(x, list) and len(x) == 1 else x
    if hasattr(vectorizer, "terms_of") and isinstance(text, str):
        terms_of: dict[int, str] = vectorizer.terms_of(text)
        return terms_of
    if vectorizer is None or hasattr(vectorizer, "vocabulary_") or not isinstance(text, str):
        return {}
    from sklearn.feature_extraction import FeatureHasher

    hasher = FeatureHasher(vectorizer.n_features, input_type="string", alternate_sign=False)
    terms: dict[int, str] = {}
    for term in dict.fromkeys(vectorizer.build_analyzer()(text)):
        column = int(hasher.transform([[term]]).indices[0])
        terms[column] = f"{terms[column]} | {term}" if column in terms else term
    return terms


def _as_many(names: Any, size: int, what: str) -> list[str]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"the model has {size} {what}s: give a list with the name of each, got {names!r:.60}")
    rows = list(names)
    if len(rows) != size:
        raise ValueError(f"the model has {size} {what}s, but {len(rows)} names are given: name each {what}")
    return rows


def _table(names: Iterable[str], what: str) -> NameTable:
    rows = list(names)
    for position, name in enumerate(rows):
        if not isinstance(name, str):
            raise ValueError(f"names are strings, but {what} {position} is called {name!r}")
    return NameTable.from_names(rows)
