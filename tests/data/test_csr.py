"""Sparse arrays from users: those with broken index arrays are rejected before they can corrupt memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ramify import PLTClassifier, metrics
from ramify.data.csr import check_csr, csr_rows
from ramify.data.dataset import as_features, as_indicator
from ramify.data.labels import encode_labels, label_indicator
from ramify.trees import huffman_tree, kmeans_tree

FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]
READERS = {
    "check_csr": lambda Y: check_csr("Y", Y),
    "encode_labels": encode_labels,
    "label_indicator": label_indicator,
    "as_indicator": as_indicator,
    "huffman_tree": lambda Y: huffman_tree(None, Y),
}


def labels(format="csr"):
    return sparse.csr_array(np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]])).asformat(format)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("of", [sparse.csr_array, sparse.csr_matrix])
def test_every_format_is_converted(format, of):
    given = of(labels()).asformat(format)
    result = check_csr("Y", given)
    assert isinstance(result, sparse.csr_array)
    assert result.toarray().tolist() == labels().toarray().tolist()


def overwritten(attribute, position, value):
    def change(Y):
        getattr(Y, attribute)[position] = value

    return change


def replaced(attribute, value):
    def change(Y):
        setattr(Y, attribute, np.array(value, dtype=np.int32))

    return change


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (overwritten("indices", 3, 2**30), "row 2 has column index 1073741824, but must be between 0 and 3"),
        (overwritten("indices", 3, -1), "row 2 has column index -1, but must be between 0 and 3"),
        (overwritten("indices", 0, 4), "row 0 has column index 4, but must be between 0 and 3"),
        (overwritten("indptr", 1, 9), "indptr decreases from 9 to 3 at row 1"),
        (overwritten("indptr", 1, -1), "indptr decreases from 0 to -1 at row 0"),
        (overwritten("indptr", 0, 1), "indptr starts at 1, but must start at 0"),
        (overwritten("indptr", 3, 99), "indptr ends at 99, but there are 5 indices and 5 values"),
        (replaced("indptr", [0, 3, 5]), "indptr has 3 entries, but needs 4, one per row and one more"),
        (replaced("indptr", [0, 3, 3, 5, 5]), "indptr has 5 entries, but needs 4, one per row and one more"),
        (replaced("indptr", []), "indptr has 0 entries, but needs 4"),
        (replaced("indices", [0, 2, 3]), "indptr ends at 5, but there are 3 indices and 5 values"),
        (replaced("data", [1, 1]), "indptr ends at 5, but there are 5 indices and 2 values"),
    ],
)
def test_broken_rows_are_rejected(read, change, message):
    Y = labels()
    change(Y)
    with pytest.raises(ValueError, match=f"Y is a broken sparse matrix: {message}"):
        read(Y)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("format", "change", "message"),
    [
        ("csc", overwritten("indices", 2, 3), "column 2 has row index 3, but must be between 0 and 2"),
        ("csc", overwritten("indices", 0, -5), "column 0 has row index -5"),
        ("csc", overwritten("indptr", 4, 60), "indptr ends at 60, but there are 5 indices and 5 values"),
        ("csc", replaced("indptr", [0, 1, 2, 5]), "indptr has 4 entries, but needs 5, one per column and one more"),
        ("coo", overwritten("row", 1, 2**30), "entry 1 has row index 1073741824, but must be between 0 and 2"),
        ("coo", overwritten("col", 4, -1), "entry 4 has column index -1, but must be between 0 and 3"),
        ("bsr", overwritten("indices", 0, 7), "row 0 has column index 7"),
        ("lil", lambda Y: Y.rows[0].__setitem__(0, 9), "row 0 has column index 9, but must be between 0 and 3"),
    ],
)
def test_other_broken_formats_are_rejected(read, format, change, message):
    Y = labels(format)
    change(Y)
    with pytest.raises(ValueError, match=f"Y is a broken sparse matrix: {message}"):
        read(Y)


def test_broken_features_are_named():
    X = labels().astype(np.float32)
    X.indices[4] = 7
    with pytest.raises(ValueError, match="X is a broken sparse matrix: row 2 has column index 7"):
        as_features(X)


def test_an_index_of_an_array_without_columns_is_rejected():
    Y = sparse.csr_array((1, 0))
    Y.indices, Y.data, Y.indptr = np.zeros(1, np.int32), np.ones(1), np.array([0, 1])
    with pytest.raises(ValueError, match="row 0 has column index 0, but its size is 0"):
        check_csr("Y", Y)


def test_an_array_with_one_dimension_is_rejected():
    with pytest.raises(ValueError, match="Y must have two dimensions, got 1"):
        check_csr("Y", sparse.coo_array([1, 0]))


def test_unused_space_at_the_end_is_cut_off_without_changing_the_original():
    Y = labels()
    Y.indices, Y.data = np.append(Y.indices, [99, -1]).astype(np.int32), np.append(Y.data, [1, 1])
    result = check_csr("Y", Y)
    assert len(result.indices) == len(result.data) == 5
    assert len(Y.indices) == 7
    assert encode_labels(Y).indicator.toarray().tolist() == labels().toarray().tolist()


def test_rows_have_32_bit_indices_where_they_fit():
    rows = csr_rows(np.ones(1), np.array([2]), np.array([0, 1]), (1, 3))
    assert rows.indices.dtype == rows.indptr.dtype == np.int32
    wide = csr_rows(np.ones(1), np.array([2**40]), np.array([0, 1]), (1, 2**41))
    assert wide.indices.tolist() == [2**40]


@pytest.mark.parametrize(
    "value", [None, "x", [1, 2], np.float32(1), np.zeros((3, 2))], ids=lambda value: repr(value)[:12]
)
@pytest.mark.parametrize("part", ["indptr", "indices", "data"])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_array_in_place_of_a_part_is_rejected_with_its_name(reader, part, value):
    """scipy takes the dtype of a sparse array from its values, so asking for that failed first."""
    Y = labels()
    setattr(Y, part, value)
    with pytest.raises(ValueError, match=f"is a broken sparse matrix: its {part} must be a 1-D array"):
        READERS[reader](Y)


@pytest.mark.parametrize(
    ("part", "value"), [("indptr", np.zeros(1, int)), ("indptr", None), ("indices", "x"), ("data", 3)]
)
def test_a_single_row_with_a_broken_part_is_rejected(part, value):
    X = labels()[:1].astype(np.float32)
    clf = PLTClassifier(random_state=0).fit(np.eye(4), [0, 1, 2, 3])
    setattr(X, part, value)
    for ask in (clf.predict_proba, clf.predict_one, clf.explain):
        with pytest.raises(ValueError, match="X is a broken sparse matrix: "):
            ask(X)


@pytest.mark.parametrize("part", ["indptr", "indices", "data"])
def test_a_part_that_is_no_array_is_rejected_as_rows_and_as_scores_too(part):
    X = labels().astype(np.float32)
    clf = PLTClassifier(random_state=0).fit(np.eye(4), [0, 1, 2, 3])
    setattr(X, part, None)
    for ask in (clf.predict_proba, clf.predict_one, lambda X: metrics.precision_at_k(labels(), X, 1)):
        with pytest.raises(ValueError, match=f"is a broken sparse matrix: its {part} must be a 1-D array"):
            ask(X)


def test_a_sparse_array_is_no_list_of_labels():
    clf = PLTClassifier(random_state=0).fit(np.eye(4), [0, 1, 2, 3])
    with pytest.raises(ValueError, match="labels must be a list of labels, the same for every row, got a sparse array"):
        clf.predict_proba(np.eye(4), labels=labels())


def test_rows_of_values_that_are_no_numbers_are_refused_outside_a_model_too():
    X = np.array([[1.0, object()], [0.0, 2.0]], dtype=object)
    with pytest.raises(ValueError, match="X must be an array or a sparse matrix of numbers"):
        kmeans_tree(X, np.eye(2))
