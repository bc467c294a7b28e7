"""Names of labels and features for people: saved with a model, never used to learn."""

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
            example = f", such as {strange[0]!r}," if strange else ""
            raise ValueError(f"none of the {len(names)} named labels{example} is a label of the model")
        return _table((names.get(label, "") for label in labels.tolist()), "label")
    return _table(_as_many(names, len(labels), "label"), "label")


def feature_name_table(names: Sequence[str], n_features: int) -> NameTable:
    """A name for each feature column."""
    return _table(_as_many(names, n_features, "feature"), "feature")


def check_name_table(table: Any, size: int, what: str) -> NameTable:
    """The table of a model file, if it has the expected size."""
    if not isinstance(table, NameTable) or len(table) != size:
        got = len(table) if isinstance(table, NameTable) else table
        raise ValueError(f"expected names of {size} {what}s, got {got!r:.60}")
    return table


def named_features(
    columns: Sequence[int] | NDArray[np.integer], table: NameTable | None, index: Mapping[str, int] | None
) -> list[str]:
    """The names of feature columns from a table by column or an index by name; "feature 17" for one without a name.

    >>> named_features([0, 2], None, {"red": 0, "green": 1})
    ['red', 'feature 2']
    """
    wanted = {int(column) for column in columns}
    known: dict[int, str] = {}
    if table is not None:
        known = {column: table[column] for column in wanted if column < len(table) and table[column]}
    elif index is not None:
        known = {int(column): str(name) for name, column in index.items() if column in wanted}
    return [known.get(int(column), f"feature {column}") for column in columns]


def terms_of_text(vectorizer: Any, x: Any) -> dict[int, str]:
    """For a text and a vectorizer that hashes, and so keeps no names: the text's own terms by column."""
    text = x[0] if isinstance(x, list) and len(x) == 1 else x
    if vectorizer is None or not isinstance(text, str):
        return {}
    if hasattr(vectorizer, "terms_of"):
        terms_of: dict[int, str] = vectorizer.terms_of(text)
        return terms_of
    if hasattr(vectorizer, "term_at") or hasattr(vectorizer, "vocabulary_"):
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
        raise ValueError(f"expected a list of {size} {what} names, got {names!r:.60}")
    rows = list(names)
    if len(rows) != size:
        raise ValueError(f"expected {size} {what} names, got {len(rows)}: name each {what}")
    return rows


def _table(names: Iterable[str], what: str) -> NameTable:
    rows = list(names)
    for position, name in enumerate(rows):
        if not isinstance(name, str):
            raise ValueError(f"names must be strings, but the name of {what} {position} is {name!r}")
    return NameTable.from_names(rows)
