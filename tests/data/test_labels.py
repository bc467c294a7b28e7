"""Y of every type: the column of each label, and what is rejected."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from ramify.data.labels import LabelEncoding, encode_labels, label_indicator


def dense(encoded):
    return encoded.indicator.toarray().astype(int).tolist()


def test_an_indicator_keeps_its_columns_even_if_empty():
    Y = np.array([[0, 1, 0], [0, 1, 0]])
    for form in (Y, Y.astype(bool), Y.astype(float), sparse.csr_matrix(Y), sparse.coo_array(Y), sparse.csc_array(Y)):
        encoded = encode_labels(form)
        assert dense(encoded) == Y.tolist()
        assert encoded.classes is None
        assert not encoded.is_multiclass
        assert encoded.indicator.dtype == np.float32
        assert encoded.indicator.nnz == 2


def test_an_indicator_with_stored_zeros_and_unsorted_indices_is_canonicalised_in_a_copy():
    Y = sparse.csr_matrix((np.array([1, 0, 1]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    encoded = encode_labels(Y)
    assert encoded.indicator.indices.tolist() == [0, 2]
    assert Y.indices.tolist() == [2, 1, 0]
    assert Y.data.tolist() == [1, 0, 1]


def test_labels_of_collections_get_columns_in_order_of_first_appearance():
    encoded = encode_labels([["zebra", "Äpfel, rot"], (), ("bär", "zebra")])
    assert encoded.classes.tolist() == ["zebra", "Äpfel, rot", "bär"]
    assert dense(encoded) == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]


def test_sets_are_sorted_so_columns_do_not_depend_on_hashing():
    assert encode_labels([{"c", "a", "b"}, frozenset({"d"})]).classes.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("wrap", [list, pd.Series, lambda rows: np.array([*rows, None], dtype=object)[:-1]])
def test_collections_can_be_a_list_series_or_object_array(wrap):
    encoded = encode_labels(wrap([["a"], ["b", "a"]]))
    assert dense(encoded) == [[1, 0], [1, 1]]


def test_integer_labels_of_collections_are_names_not_columns():
    encoded = encode_labels([[70, np.int32(7)], np.array([7])])
    assert encoded.classes.tolist() == [70, 7]
    assert encoded.classes.dtype == np.int64
    assert dense(encoded) == [[1, 1], [0, 1]]


def test_a_label_listed_twice_in_a_row_is_one_label():
    assert dense(encode_labels([["a", "a"], ["b"]])) == [[1, 0], [0, 1]]


def test_a_list_of_strings_is_one_class_per_row_and_not_split_into_letters():
    encoded = encode_labels(["ab", "b", "ab"])
    assert encoded.is_multiclass
    assert encoded.classes.tolist() == ["ab", "b"]


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 3]),
        np.array([3.0, 1.0, 3.0]),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        np.array([True, False, True]),
        [3, 1, 3],
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"], dtype="category"),
        pd.Series([3, 1, 3], dtype="Int64"),
        np.array([3, 1, 3], dtype=object),
    ],
    ids=lambda y: f"{type(y).__name__}-{getattr(y, 'dtype', '')}",
)
def test_classes_are_sorted_as_in_scikit_learn(y):
    encoded = encode_labels(y)
    assert encoded.is_multiclass
    assert encoded.classes.tolist() == sorted(set(y))
    assert dense(encoded) == [[0, 1], [1, 0], [0, 1]]


def test_classes_keep_the_type_of_numpy_arrays():
    for y in (np.array(["b", "a"]), np.array(["b", "a"], dtype=object), np.array([2, 1], dtype=np.int16)):
        assert encode_labels(y).classes.dtype == y.dtype


def test_lists_of_zeros_and_ones_of_equal_length_are_an_indicator():
    assert encode_labels([[0, 1, 1], [1, 0, 0]]).classes is None
    assert dense(encode_labels(list(np.eye(3, dtype=int)))) == np.eye(3).tolist()
    assert encode_labels([[0], [1]]).classes.tolist() == [0, 1]
    assert encode_labels([(0, 1), (1, 0)]).classes.tolist() == [0, 1]
    assert encode_labels([[0, 1], [1]]).classes.tolist() == [0, 1]


def test_a_column_of_classes_is_flattened_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert encode_labels(np.array([[2], [0], [1]])).is_multiclass
    assert not encode_labels(np.array([[1], [0]])).is_multiclass  # a single binary label


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (None, "requires y"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.array([[0, 2]]), "only 0 and 1, got 2 in row 0, column 1"),
        (sparse.csr_array(np.array([[0, 1], [-1, 0]])), "got -1 in row 1, column 0"),
        (np.array([[0.5, 1]]), "only 0 and 1"),
        (np.array([[np.nan, 1]]), "only 0 and 1"),
        (sparse.coo_array((np.array([1, 1]), (np.array([0, 0]), np.array([1, 1]))), shape=(1, 2)), "got 2"),
        (np.array([["a", "b"]]), "only 0 and 1, got <U1"),
        (np.array([0.5, 1.5]), "Unknown label type: "),
        (np.array([1.0, np.nan]), "NaN in row 1"),
        (np.array([np.inf, 1.0]), "infinity in row 0"),
        (["a", None], "None in row 1"),
        (["a", float("nan")], "NaN in row 1"),
        (["a", 1], "mixes strings and numbers"),
        (pd.Series(["a", None], dtype="category"), "row 1"),
        (pd.Series([1, None], dtype="Int64"), "row 1"),
        (np.array([1 + 2j]), "Unknown label type"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "Unknown label type"),
        ([["a"], None], "row 1 of Y is None.*write \\[\\]"),
        ([["a"], "bc"], "row 1 of Y is 'bc'.*write \\['bc'\\]"),
        ([["a"], float("nan")], "row 1 of Y is NaN"),
        ([["a"], 3], "row 1 of Y is 3"),
        ([["a", None]], "None in row 0"),
        ([["a"], [], ["b", float("nan")]], "NaN in row 2"),
        ([["a"], [1]], "mixes strings and integers, 'a' in row 0 and 1 in row 1"),
        pytest.param([{"a", 1}], "mixes strings and integers", id="a set of both"),
        ([[1], [-1]], r"between 0 and 2\^63 - 1, got -1 in row 1"),
        ([[2**63]], r"between 0 and 2\^63 - 1, got 9223372036854775808 in row 0"),
        ([[1.5]], "1.5 in row 0"),
        ([["a", ["b"]]], "\\['b'\\] in row 0"),
        ([[True]], "True in row 0"),
        ([np.array(1), np.array(0)], "row 0 of Y"),
        ([np.eye(2), np.eye(2)], "row 0"),
        ("abc", "got a str"),
        ({"a": 1}, "got a dict"),
    ],
    ids=repr,
)
def test_rejected_labels_are_named_with_their_position(Y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(Y)


def test_label_indicator_reads_integers_as_columns():
    assert label_indicator(np.array([2, 0, 2])).toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert label_indicator(sparse.csc_array(np.eye(2))).toarray().tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="at least 0, got -1 in row 1"):
        label_indicator(np.array([0, -1]))
    with pytest.raises(ValueError, match="shape"):
        label_indicator(np.array(["a"]))


@given(st.lists(st.lists(st.text(max_size=3), max_size=4), min_size=1, max_size=12))
def test_decoding_returns_the_labels_of_each_row(rows):
    encoding = LabelEncoding()
    indicator = encoding.extend(rows)
    indptr = indicator.indptr
    for row, labels in enumerate(rows):
        assert set(encoding.names(indicator.indices[indptr[row] : indptr[row + 1]])) == set(labels)
    assert encoding.classes.tolist() == list(dict.fromkeys(label for labels in rows for label in labels))


@given(st.lists(st.lists(st.integers(0, 20), max_size=4), max_size=12), st.integers(0, 12))
def test_labels_encoded_in_two_parts_get_the_same_columns(rows, cut):
    whole, parts = LabelEncoding(), LabelEncoding()
    rows = [tuple(labels) for labels in [[0], *rows]]
    everything = whole.extend(rows)
    first, second = parts.extend(rows[: cut + 1]), parts.extend(rows[cut + 1 :])
    assert parts.classes.tolist() == whole.classes.tolist()
    first.resize(first.shape[0], whole.n_labels)
    assert (sparse.vstack([first, second]) != everything).nnz == 0


def test_classes_that_appear_later_are_appended():
    encoding = LabelEncoding()
    encoding.extend(np.array(["b", "a"]))
    assert encoding.extend(np.array(["c", "0", "a"])).indices.tolist() == [2, 3, 0]
    assert encoding.classes.tolist() == ["a", "b", "c", "0"]


def test_an_indicator_can_widen_and_a_narrow_one_is_padded():
    encoding = LabelEncoding()
    assert encoding.extend(np.eye(2)).shape == (2, 2)
    assert encoding.extend(np.eye(4)).shape == (4, 4)
    assert encoding.extend(np.eye(3)).shape == (3, 4)


def test_a_rejected_extension_changes_nothing():
    encoding = LabelEncoding()
    encoding.extend([["a"]])
    for bad in ([["b"], [3]], [[3]], [["b"], None], np.eye(2), ["b"]):
        with pytest.raises(ValueError):
            encoding.extend(bad)
    assert (encoding.kind, encoding.n_labels, encoding.classes.tolist()) == ("collections", 1, ["a"])


def test_a_known_encoding_marks_rows_with_unknown_labels():
    encoding = LabelEncoding()
    encoding.extend([["a", "b"]])
    indicator, unknown = encoding.encode([["b"], ["b", "z"], [], ["z"]])
    assert indicator.toarray().tolist() == [[0, 1], [0, 1], [0, 0], [0, 0]]
    assert unknown.tolist() == [False, True, False, True]


def test_columns_of_labels_and_the_errors_for_unknown_ones():
    encoding = LabelEncoding()
    encoding.extend([["fever", "cough"]])
    assert encoding.columns(["cough", "fever"]).tolist() == [1, 0]
    with pytest.raises(ValueError, match="'caugh' is not among the 2 known labels; did you mean 'cough'"):
        encoding.columns(["caugh"])
    with pytest.raises(ValueError, match=r"write \['cough'\]"):
        encoding.columns("cough")
    with pytest.raises(ValueError, match="is not among"):
        encoding.columns([["cough"]])
    numbered = LabelEncoding()
    numbered.extend(np.eye(3))
    assert numbered.columns([2]).tolist() == [2]
    for bad in (3, -1, "a", 1.0):
        with pytest.raises(ValueError, match="columns are 0 to 2"):
            numbered.columns([bad])


def test_stored_classes_keep_their_type_even_when_pickled():
    for Y in (np.array(["b", "ü"]), [["b"], ["ü\ud800"]], np.array([4, 2]), np.eye(2), np.array([True, False])):
        encoding = LabelEncoding()
        encoding.extend(Y)
        stored = LabelEncoding.from_stored(encoding.kind, encoding.n_labels, **encoding.stored_classes())
        for again in (stored, pickle.loads(pickle.dumps(stored))):
            assert again.classes.dtype == encoding.classes.dtype
            assert again.classes.tolist() == encoding.classes.tolist()
            assert again.names([1]) == encoding.names([1])
            assert again.columns(encoding.classes[:1]).tolist() == [0]


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "tree", "n_labels": 1},
        {"kind": "classes", "n_labels": 0},
        {"kind": "classes", "n_labels": 2},
        {"kind": "classes", "n_labels": 2, "classes": np.arange(3)},
        {"kind": "classes", "n_labels": 2, "classes": ["a", "b"]},
    ],
    ids=repr,
)
def test_invalid_stored_classes_are_rejected(stored):
    with pytest.raises(ValueError):
        LabelEncoding.from_stored(**stored)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("I219", "I21.9"), ("i21.9", "I21.9"), ("I21,9", "I21.9"), ("J45.90", "J45.9"), ("qqqq", None)],
)
def test_the_label_that_was_meant_is_found_among_all(asked, meant):
    """Only the first 10,000 labels were compared: I219 gave H21.9."""
    letters = "ABCDEFGHIJ"
    names = [f"{letter}{number:02}.{digit}" for letter in letters for number in range(100) for digit in range(10)]
    encoding = LabelEncoding()
    encoding.extend([[f"Z{number}" for number in range(12_000)], names])
    with pytest.raises(ValueError, match="is not among the 22000 known labels") as error:
        encoding.columns([asked])
    assert str(error.value).endswith("known labels" if meant is None else f"; did you mean {meant!r}?")


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_table_with_one_column_of_lists_is_that_column(package):
    table = pytest.importorskip(package)
    rows = {"labels": [["b"], ["a", "b"], []]}
    Y = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[package]
    encoded = encode_labels(getattr(table, Y)(rows))
    assert encoded.classes.tolist() == ["b", "a"]
    assert dense(encoded) == [[1, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("Y", "said"),
    [
        (dict(enumerate("ab")).values(), r"got a dict_values; pass list\(Y\)"),
        ([1, {"a": 1}], r"got \{'a': 1\} in row 1; if rows have several labels"),
        (np.array([b"a", b"b"]), r"got \|S1; use Y.astype\(str\)"),
    ],
)
def test_what_holds_no_labels_is_rejected_with_advice(Y, said):
    with pytest.raises(ValueError, match=said):
        encode_labels(Y)


def test_a_query_of_polars_is_to_be_collected_first():
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"Y is a LazyFrame, which is not read yet: give Y.collect\(\)"):
        encode_labels(polars.LazyFrame({"labels": ["a", "b"]}))


TABLES = ["pandas", "polars", "pyarrow"]


def table_of(package, columns):
    module = pytest.importorskip(package)
    return (module.table if package == "pyarrow" else module.DataFrame)(columns)


@pytest.mark.parametrize("package", TABLES)
def test_a_table_of_0_and_1_names_its_labels(package):
    encoded = encode_labels(table_of(package, {"red": [1, 0], "fruit, round": [True, True], "never": [0.0, 0.0]}))
    assert encoded.classes.tolist() == ["red", "fruit, round", "never"]
    assert dense(encoded) == [[1, 1, 0], [0, 1, 0]]
    assert not encoded.is_multiclass


@pytest.mark.parametrize("package", TABLES)
def test_columns_of_later_tables_go_by_name(package):
    encoding = LabelEncoding()
    encoding.extend(table_of(package, {"a": [1, 0], "b": [0, 1]}))
    later = encoding.extend(table_of(package, {"new": [1, 0], "b": [0, 1]}))
    assert later.toarray().tolist() == [[0, 0, 1], [0, 1, 0]]
    assert encoding.extend([["b", "a"]]).toarray().tolist() == [[1, 1, 0]]
    known, has_unknown = encoding.encode(table_of(package, {"b": [1, 0], "unseen": [0, 1], "a": [1, 0]}))
    assert known.toarray().tolist() == [[1, 1, 0], [0, 0, 0]]
    assert has_unknown.tolist() == [False, True]


def test_a_table_of_0_and_1_is_checked_before_it_changes_anything():
    encoding = LabelEncoding()
    encoding.extend(pd.DataFrame({"a": [1], "b": [0]}))
    with pytest.raises(ValueError, match="a 2-D Y must contain only 0 and 1, got 2 in row 0, column 1"):
        encoding.extend(pd.DataFrame({"a": [1], "c": [2]}))
    assert encoding.classes.tolist() == ["a", "b"]
    twice = pd.DataFrame([[1, 0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Y has two columns called 'a'"):
        encode_labels(twice)
    with pytest.raises(ValueError, match=r"0/1 array, but .* label collections; give a table with named columns"):
        encoding.extend(np.array([[1, 0]]))


def test_tables_without_names_and_models_of_numbered_columns_go_by_place():
    numbered = pd.DataFrame([[1, 0]])
    assert encode_labels(numbered).classes is None
    encoding = LabelEncoding()
    encoding.extend(np.array([[0, 1]]))
    assert encoding.extend(pd.DataFrame({"a": [1], "b": [0]})).toarray().tolist() == [[1, 0]]


def test_labels_named_in_advance_keep_their_columns_before_those_of_a_table():
    encoding = LabelEncoding()
    Y = pd.DataFrame({"b": [1], "a": [0]})
    encoding.name_in_advance(Y, ["a", "b", "c"])
    assert encoding.extend(Y).toarray().tolist() == [[0, 1, 0]]
