"""Loading any format, and texts as JSON lines."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import HashingVectorizer

from ramify.data import DataError, Dataset, iter_jsonl, load_data, load_jsonl, save_npz
from ramify.data.dataset import as_features, as_indicator
from ramify.data.load import find_format

TEXTS = '{"text": "acute chest pain", "labels": ["b, c", "ü"]}\n\n{"text": "chest wall", "labels": [], "id": 3}\r\n'


def write(folder, name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


# Formats


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "2 3 4\n0 1:1\n\n", "xmc"),
        ("a.txt", gzip.compress(b"2 3 4\n0 1:1\n\n", mtime=0), "xmc"),
        ("a.data", "\ufeff2 3 4\n0 1:1\n\n", "xmc"),
        ("a.txt", "0 1:1 2:0.5\n", "libsvm"),
        ("a.txt", "1:1\n", "libsvm"),
        ("a.txt", "no idea", "xmc"),
        ("a.SVM", "0 1:1\n", "libsvm"),
        ("a.txt", '\n {"text": "x", "labels": []}', "jsonl"),
        ("a.jsonl.gz", gzip.compress(b"broken", mtime=0), "jsonl"),
        ("a.bin", b"PK\x03\x04rest", "npz"),
    ],
)
def test_the_format_is_detected_from_name_and_content(tmp_path, name, content, expected):
    assert find_format(write(tmp_path, name, content)) == expected


def test_every_format_loads_the_same_data(tmp_path):
    X, Y = [[0.0, 0.5, 0.0], [0.25, 0.0, 2.0]], [[1, 1], [0, 1]]
    save_npz(tmp_path / "a.npz", X, Y)
    paths = [
        tmp_path / "a.npz",
        write(tmp_path, "a.txt", "2 3 2\n0,1 1:0.5\n1 0:0.25 2:2"),
        write(tmp_path, "a.txt.gz", gzip.compress(b"2 3 2\n0,1 1:0.5\n1 0:0.25 2:2")),
        write(tmp_path, "a.svm", "0,1 1:0.5\n1 0:0.25 2:2"),
    ]
    for path in paths:
        data = load_data(path)
        assert data.X.toarray().tolist() == X
        assert data.Y.toarray().tolist() == Y


def test_the_format_can_be_passed(tmp_path):
    path = write(tmp_path, "a.txt", "0 1:1\n")
    with pytest.raises(DataError, match="the header holds '1:1'"):
        load_data(path, "xmc")
    assert load_data(path, "libsvm", zero_based=True, n_features=7, n_labels=3).X.shape == (1, 7)
    with pytest.raises(ValueError, match=r"format must be one of xmc, libsvm, jsonl, fasttext, npz, csv, .*got 'xls'"):
        load_data(path, "xls")


def test_names_can_be_lists_or_files(tmp_path):
    path = write(tmp_path, "a.txt", "1 3 2\n0,1 1:0.5\n")
    labels = write(tmp_path, "labels.txt.gz", gzip.compress("Äpfel\nBirnen, grün\n".encode()))
    data = load_data(path, label_names=labels, feature_names=["x", "y", "z"])
    assert data.label_names == ["Äpfel", "Birnen, grün"]
    assert data.feature_names == ["x", "y", "z"]
    with pytest.raises(DataError, match="expected 3 feature names, got 2"):
        load_data(path, feature_names=labels)


# Texts


def test_texts_become_features_and_labels_get_columns_in_order_of_appearance(tmp_path):
    train = load_data(write(tmp_path, "train.jsonl", TEXTS))
    assert train.texts == ["acute chest pain", "chest wall"]
    assert train.label_names == ["b, c", "ü"]
    assert train.feature_names == ["acute", "chest", "pain", "wall"]
    assert train.Y.toarray().tolist() == [[1, 1], [0, 0]]
    assert train.X.dtype == np.float32
    assert np.allclose((train.X.toarray() ** 2).sum(axis=1), 1)


def test_a_test_set_uses_the_columns_of_its_training_set_and_new_labels_come_last(tmp_path):
    train = load_data(write(tmp_path, "train.jsonl", TEXTS))
    path = write(tmp_path, "test.jsonl", '{"text": "chest unknown", "labels": ["new", "ü", "ü"]}')
    test = load_data(path, vectorizer=train.vectorizer, label_names=train.label_names)
    assert test.feature_names == train.feature_names
    assert test.X.indices.tolist() == [1]
    assert test.label_names == ["b, c", "ü", "new"]
    assert test.Y.toarray().tolist() == [[0, 1, 1]]


def test_texts_can_be_hashed(tmp_path):
    vectorizer = HashingVectorizer(n_features=64)
    data = load_data(write(tmp_path, "a.jsonl", TEXTS), vectorizer=vectorizer)
    assert data.X.shape == (2, 64)
    assert data.feature_names is None
    assert data.X.has_sorted_indices


def test_bad_names_and_empty_files_of_texts_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="feature_names must be None for texts"):
        load_data(write(tmp_path, "a.jsonl", TEXTS), feature_names=["a"])
    with pytest.raises(ValueError, match="label_names contains a name twice"):
        load_data(write(tmp_path, "a.jsonl", TEXTS), label_names=["a", "a"])
    with pytest.raises(DataError, match="the file has no rows"):
        load_data(write(tmp_path, "b.jsonl", "\n\n"))


rows = st.lists(st.tuples(st.text(), st.lists(st.text())))


@given(rows, st.booleans(), st.booleans())
def test_json_lines_are_read_back(tmp_path_factory, rows, is_packed, is_ascii):
    lines = [json.dumps({"labels": labels, "text": text}, ensure_ascii=is_ascii) for text, labels in rows]
    content = "\n".join([*lines, " "]).encode()
    path = write(tmp_path_factory.mktemp("jsonl"), "a", gzip.compress(content) if is_packed else content)
    assert list(zip(*load_jsonl(path), strict=True)) == rows


def test_reading_is_lazy(tmp_path):
    records = iter_jsonl(write(tmp_path, "a.jsonl", TEXTS + "broken"))
    assert next(records).labels == ["b, c", "ü"]
    assert next(records) == ("chest wall", [])
    with pytest.raises(DataError, match="line 4, column 1: invalid JSON"):
        next(records)


def test_labels_can_be_missing_unless_required(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "x"}')
    assert load_jsonl(path, labels_required=False) == (["x"], [[]])
    with pytest.raises(DataError, match=r'no "labels"\nhint: write "labels": \[\] for a row without labels'):
        load_jsonl(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "x", "labels": ["a"}', "column 29: invalid JSON"),
        ("text", "invalid JSON"),
        ("[" * 200_000, "cannot parse this JSON|invalid JSON"),
        ('{"text": ' + "9" * 5000 + "}", 'cannot parse this JSON|"text" must be a string, got the number'),
        ('["x"]', "expected a JSON object, got a list"),
        ("3", "expected a JSON object, got the number 3"),
        ('"x"', "expected a JSON object, got a string"),
        ('{"txt": "x", "labels": []}', 'the object has no "text"\nhint: a line looks like {"text"'),
        ('{"text": null, "labels": []}', '"text" must be a string, got null'),
        ('{"text": true, "labels": []}', '"text" must be a string, got true'),
        ('{"text": "x", "labels": {"a": 1}}', '"labels" must hold strings or numbers, got an object'),
        ('{"text": "x", "labels": true}', '"labels" must hold strings or numbers, got true'),
        ('{"text": "x", "labels": [null]}', '"labels" must hold strings or numbers, got null'),
        ('{"text": "x", "labels": [["a"]]}', '"labels" must hold strings or numbers, got a list'),
        (r'{"text": "\ud800", "labels": []}', '"text" contains half of a surrogate pair'),
        (r'{"text": "x", "labels": ["\udfff"]}', '"labels" contains half of a surrogate pair'),
    ],
)
def test_bad_lines_are_rejected_with_their_number(tmp_path, line, message):
    path = write(tmp_path, "a.jsonl", '{"text": "fine", "labels": []}\n\n' + line + "\n")
    with pytest.raises(DataError, match=message) as caught:
        load_jsonl(path)
    assert caught.value.line == 3
    assert caught.value.path == str(path)
    assert caught.value.hint


# The data set itself


def test_a_dataset_rejects_parts_of_different_sizes():
    X, Y = as_features([[1.0, 0.0]]), as_indicator([[1], [0]])
    with pytest.raises(ValueError, match="X has 1 rows, but Y has 2"):
        Dataset(X, Y)
    with pytest.raises(ValueError, match="feature_names must have 2 entries, one per column of X, got 1"):
        Dataset(X, as_indicator([[1]]), feature_names=["a"])


def test_classes_of_multiclass_data():
    X = as_features([[1.0], [1.0]])
    assert Dataset(X, as_indicator([[0, 1], [1, 0]])).y.tolist() == [1, 0]
    with pytest.raises(ValueError, match="row 1 has 2 labels"):
        _ = Dataset(X, as_indicator([[0, 1], [1, 1]])).y


def test_matrices_are_canonicalised():
    wide = csr_array((np.ones(2), np.array([3, 1]), np.array([0, 2])), shape=(1, 4))
    assert as_features(wide).indices.tolist() == [1, 3]
    assert as_features(wide).indices.dtype == np.int32
    assert as_indicator(wide).indices.tolist() == [1, 3]
    assert as_indicator(csr_array(([1.0, 0.0], [0, 1], [0, 2]), shape=(1, 2))).nnz == 1
    with pytest.raises(ValueError, match="twice"):
        as_indicator(csr_array(([1.0, 1.0], [1, 1], [0, 2]), shape=(1, 2)))


def test_text_that_is_no_known_format_is_shown_with_advice(tmp_path):
    (tmp_path / "a.txt").write_text("title|tags\nred|colour\n")
    with pytest.raises(DataError, match=r"line 1: this is no format .* 'title\|tags'\nhint: .*--text-column"):
        load_data(tmp_path / "a.txt")


def test_a_single_numpy_array_is_no_data_set(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    with pytest.raises(DataError, match=r"a.npy: this is one numpy array, without labels\nhint: ramify.data.save_npz"):
        load_data(tmp_path / "a.npy")
