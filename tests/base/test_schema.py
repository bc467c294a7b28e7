"""Schemas alone: what they learn from data, what they read afterwards, and what a file holds of them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from ramify.base.schema import Schema
from ramify.base.stream_schema import DictRow, StreamSchema, schema_from_state
from ramify.data.ngrams import WordNgramVectorizer
from ramify.files.packing import pack, unpack

X = np.arange(12.0).reshape(4, 3)
COLLECTIONS = [["a", "b, c"], ["ü"], [], ["a"]]
LABELS = {
    "collections": COLLECTIONS,
    "numbers": [[7, 3], [3], [], [11]],
    "indicator": sparse.csr_array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 0, 0]]),
    "classes": np.array(["b", "a", "b", "ü"]),
    "integers": np.array([5, -2, 5, 9]),
}
TEXTS = ["red apple", "green apple", "red cherry", "old car"]


def learned(schema_class=Schema, rows=X, labels=COLLECTIONS, vectorizer=None):
    schema = schema_class("Owner")
    read = schema.read_training_rows(rows, lambda: vectorizer)
    return schema, read, schema.read_training_labels(labels, read.shape[0])


def through_a_file(schema):
    """The schema that a model file would bring back: values through JSON, arrays apart."""
    arrays: dict[str, np.ndarray] = {}
    packed = json.loads(json.dumps(pack(schema.state(), "schema", arrays), allow_nan=False))
    return schema_from_state("Owner", unpack(packed, arrays))


def accept(rows, indicator):
    return rows, indicator, None


def content(schema):
    """All that a schema knows, as values that can be compared."""
    return {
        "labels": schema.labels.classes.tolist(),
        "kind": schema.labels.kind,
        "n_features": schema.n_features,
        "named_columns": None if schema.feature_index is None else dict(schema.feature_index),
        "feature_names": None if schema.feature_names is None else schema.feature_names.tolist(),
        "label_names": None if schema.label_names is None else schema.label_names.tolist(),
        "column_names": None if schema.column_names is None else schema.column_names.tolist(),
        "source_format": getattr(schema, "source_format", None),
    }


# --- the state -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema_class", [Schema, StreamSchema])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_from_a_file(schema_class, kind):
    schema, _, indicator = learned(schema_class, labels=LABELS[kind])
    schema.set_names(labels=[f"name {k}" for k in range(schema.n_labels)], features=["x", "y", "z"])
    again = through_a_file(schema)
    assert type(again) is schema_class
    assert content(again) == content(schema)
    assert again.labels.classes.dtype == schema.labels.classes.dtype
    assert again.is_multiclass == schema.is_multiclass == (kind in ("classes", "integers"))
    assert again.labels_of(range(schema.n_labels)) == schema.labels_of(range(schema.n_labels))
    assert [again.label_name(k) for k in range(schema.n_labels)] == schema.label_names.tolist()
    assert (again.labels.encode(LABELS[kind])[0] != indicator).nnz == 0
    np.testing.assert_array_equal(again.rows(X).toarray(), X)


@pytest.mark.parametrize("schema_class", [Schema, StreamSchema])
@pytest.mark.parametrize(
    "vectorizer",
    [TfidfVectorizer(), HashingVectorizer(n_features=32), WordNgramVectorizer(n_buckets=8, word_ngrams=2)],
    ids=lambda vectorizer: type(vectorizer).__name__,
)
def test_texts_are_read_alike_after_a_file(schema_class, vectorizer):
    schema, rows, _ = learned(schema_class, TEXTS, vectorizer=vectorizer)
    again = through_a_file(schema)
    for found in (schema.rows(TEXTS), again.rows(TEXTS)):
        assert (found != rows).nnz == 0
        assert found.dtype == np.float32
    for read in zip(schema.row("red car"), again.row("red car"), strict=True):
        np.testing.assert_array_equal(*read)
    assert again.terms_of("red car") == schema.terms_of("red car")


def test_columns_of_a_table_come_back_from_a_file():
    table = pd.DataFrame(X, columns=["Größe", "age", "weight"])
    schema, _, _ = learned(rows=table)
    again = through_a_file(schema)
    assert content(again) == content(schema)
    assert [part.tolist() for part in again.row({"weight": 2.0, "unknown": 1.0})] == [[2], [2.0]]
    with pytest.raises(ValueError, match="feature names should match"):
        again.rows(table[["age", "Größe", "weight"]])


def test_a_stream_and_its_named_features_come_back_from_a_file():
    schema = StreamSchema("Owner")
    schema.start(DictRow({"red": 1.0, "apple": 2.0}), [["fruit"]], None, None)
    schema.source_format = "jsonl"
    again = through_a_file(schema)
    assert content(again) == content(schema)
    assert content(again)["named_columns"] == {"red": 0, "apple": 1}
    for one in (schema, again):  # both grow on in the same way
        one.extend(DictRow({"car": 1.0, "red": 3.0}), [["car"]], accept)
    assert content(again) == content(schema)


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": -1},
        {"n_features": "3"},
        {"labels": {"kind": "collections", "n_labels": 2}},
        {"labels": {"kind": "no kind", "n_labels": 3}},
        {"label_names": ["a"]},
        {"feature_column_names": ["a"]},
        {"vectorizer": ({"class": "os"}, {})},
        {"named_columns": {"names": np.array(["a", "b"]), "columns": np.array([0, 0])}},
        {"named_columns": {"names": np.array(["a", "b"]), "columns": np.array([0, 3])}},
        {"named_columns": {"names": np.array(["a", "b"]), "columns": np.array([0.0, 1.0])}},
        {"named_columns": {"names": np.array(["a", "a"]), "columns": np.array([0, 1])}},
    ],
    ids=repr,
)
def test_a_damaged_state_is_rejected(change):
    state = learned(StreamSchema)[0].state()
    with pytest.raises((ValueError, TypeError)):
        schema_from_state("Owner", {**state, **change})


# --- growth ----------------------------------------------------------------------------------------------------------


def test_a_stream_grows_by_wider_rows_and_new_labels():
    schema, _, _ = learned(StreamSchema)
    schema.set_names(labels=["A", "B", "U"], features=["x", "y", "z"])
    rows, indicator, weight = schema.extend(np.ones((2, 5)), [["new", "a"], []], accept)
    assert (rows.shape, indicator.shape, weight) == ((2, 5), (2, 4), None)
    assert (schema.n_features, schema.n_labels) == (5, 4)
    assert schema.labels_of([3]) == ["new"]
    assert schema.label_names.tolist() == ["A", "B", "U", ""]
    assert schema.column_names.tolist() == ["x", "y", "z", "", ""]
    assert schema.rows(X).shape == (4, 3)  # a narrow query stays narrow; the model knows its width
    assert schema.rows(np.ones((1, 9))).shape == (1, 5)


def test_a_stream_of_tables_grows_by_new_columns_at_the_end():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    schema, _, _ = learned(StreamSchema, table)
    schema.extend(table.assign(d=1.0), COLLECTIONS, accept)
    assert schema.feature_names.tolist() == ["a", "b", "c", "d"]
    assert schema.feature_index == {"a": 0, "b": 1, "c": 2, "d": 3}
    with pytest.raises(ValueError, match="feature names should match"):
        schema.extend(table[["b", "a", "c"]], COLLECTIONS, accept)


def test_new_names_of_dicts_get_the_next_columns():
    schema, _, _ = learned(StreamSchema, pd.DataFrame(X, columns=["a", "b", "c"]))
    rows, _, _ = schema.extend(DictRow({"new": 2.0, "b": 1.0}), [["a"]], accept)
    assert (rows.indices.tolist(), rows.data.tolist(), rows.shape) == ([1, 3], [1.0, 2.0], (1, 4))
    assert schema.named_columns == {"a": 0, "b": 1, "c": 2, "new": 3}


def test_a_frozen_schema_keeps_names_and_grows_no_more():
    schema = StreamSchema("Owner")
    schema.start(DictRow({"red": 1.0}), [["fruit"]], None, None)
    frozen = schema.frozen("Batch")
    schema.extend(DictRow({"car": 1.0}), [["car"]], accept)
    assert type(frozen) is Schema
    assert (frozen.owner, frozen.n_features, frozen.labels.classes.tolist()) == ("Batch", 1, ["fruit"])
    assert frozen.feature_names_of(np.array([0])) == ["red"]


def test_a_snapshot_does_not_grow_with_its_schema():
    schema, _, _ = learned(StreamSchema)
    snapshot = schema.snapshot()
    before = content(snapshot)
    schema.extend(np.ones((1, 7)), [["new"]], accept)
    assert content(snapshot) == before != content(schema)


# --- rejections ------------------------------------------------------------------------------------------------------


def refuse(rows, indicator):
    raise ValueError("refused")


REJECTED = {
    "NaN": (np.full((1, 5), np.nan), [["new"]], accept, "NaN"),
    "too few labels": (np.ones((2, 5)), [["new"]], accept, "X has 2 rows, but Y has 1"),
    "labels of another kind": (np.ones((1, 5)), np.array([1.5]), accept, "Unknown label type|labels"),
    "a text": (["text"], [["new"]], accept, "trained on numbers"),
    "a dict with a bad value": (DictRow({1: "x"}), [["new"]], accept, "feature 1 is 'x'"),
    "named features": (DictRow({"a": 1.0}), [["new"]], accept, "learned from numbered ones"),
    "a feature number that is too large": (DictRow({2**31: 1.0}), [["new"]], accept, "must be below"),
    "what the model refuses": (np.ones((1, 5)), [["new"]], refuse, "refused"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_rejected_piece_changes_nothing(case):
    rows, labels, accepts, said = REJECTED[case]
    schema, _, _ = learned(StreamSchema)
    schema.set_names(labels=["A", "B", "U"])
    before, attributes = content(schema), dict(schema.__dict__)
    with pytest.raises(ValueError, match=said):
        schema.extend(rows, labels, accepts)
    assert content(schema) == before
    assert schema.__dict__.keys() == attributes.keys()
    rows, indicator, _ = schema.extend(np.ones((1, 3)), [["later"]], accept)
    assert (rows.shape, indicator.indices.tolist()) == ((1, 3), [3])  # no column was lost to the rejected piece


def test_a_rejected_dict_names_no_feature():
    schema = StreamSchema("Owner")
    schema.start(DictRow({"red": 1.0}), [["fruit"]], None, None)
    for x, accepts in (({"new": float("nan")}, accept), ({"new": 1.0}, refuse), ({3: 1.0}, accept)):
        with pytest.raises(ValueError):
            schema.extend(DictRow(x), [["car"]], accepts)
    assert schema.named_columns == {"red": 0}
    assert schema.labels.classes.tolist() == ["fruit"]


def test_reading_a_query_changes_nothing():
    for schema_class in (Schema, StreamSchema):
        schema, _, _ = learned(schema_class, pd.DataFrame(X, columns=["a", "b", "c"]))
        before = content(schema)
        schema.row({"a": 1.0, "unknown": 2.0})
        schema.rows(pd.DataFrame(X, columns=["a", "b", "c"]))
        assert content(schema) == before
