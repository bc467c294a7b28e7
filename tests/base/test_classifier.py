"""The parts of the shared base that no classifier's answers show."""

from __future__ import annotations

import os

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from frequency_classifier import FrequencyClassifier
from frequency_classifier.model import FrequencyModel
from ramify.base.answers import keep_best
from ramify.base.rows import as_texts, canonical_rows, plain_row
from ramify.common.validation import check_choice, check_flag, check_integer, check_number, number_of_threads

X = sparse.csr_array(np.arange(12, dtype=np.float32).reshape(4, 3))
Y = [["a", "b"], ["b"], [], ["c"]]


class RowModel(FrequencyModel):
    """With a search of its own for one row; counts how often it is used."""

    taken = 0

    def search_row(self, indices, values, query):
        assert indices.dtype == np.int32
        assert values.dtype == np.float32
        self.taken += 1
        order = np.lexsort((np.arange(self.n_labels), -self.frequency))[: query.top_k]
        order = order[self.frequency[order] >= np.float32(query.threshold)]
        return order.astype(np.int32), self.frequency[order]


class RowClassifier(FrequencyClassifier):
    def _train(self, data):
        return RowModel.from_state(super()._train(data).state())


def untidy(data, indices, shape=(1, 3)):
    return sparse.csr_array((np.array(data), np.array(indices, dtype=np.int32), np.array([0, len(data)])), shape=shape)


@pytest.mark.parametrize(
    ("row", "is_short"),
    [
        (untidy([1.0, 2.0], [0, 2]), True),
        (untidy(np.float32([1.0, 2.0]), [0, 2]), True),
        (sparse.csr_matrix(untidy([1.0, 2.0], [0, 2])), True),
        (untidy(np.zeros(0), []), True),
        (untidy([1, 2], [0, 2]), False),
        (untidy([1.0, 2.0], [2, 0]), False),
        (untidy([1.0, 2.0], [1, 1]), False),
        (untidy(np.float32([3e38, 1.0]), [0, 1]), True),
    ],
)
def test_only_a_tidy_row_takes_the_short_way_and_both_ways_agree(row, is_short):
    clf, plain = RowClassifier().fit(X, Y), FrequencyClassifier().fit(X, Y)
    for arguments in ({}, {"top_k": 1}, {"top_k": None, "threshold": 0.3}):
        assert clf.predict_labels(row, **arguments) == plain.predict_labels(row, **arguments)
    assert clf.model_.taken == (3 if is_short else 0)
    for arguments in ({}, {"top_k": 1}, {"top_k": None, "threshold": 0.3}):
        assert clf.predict_one(row, **arguments) == plain.predict_one(row, **arguments)
    assert clf.model_.taken == (6 if is_short else 3)


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf, 1.0], [1e39, 1.0], [-np.inf, np.inf]])
def test_the_short_way_refuses_what_the_long_way_refuses(values):
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        RowClassifier().fit(X, Y).predict_labels(untidy(values, [0, 1]))


def test_the_short_way_reads_no_row_beyond_its_end():
    clf = RowClassifier().fit(X, Y)
    for indices in ([0, 3], [-1, 2]):
        row = untidy([1.0, 2.0], [0, 1])
        row.indices[:] = indices
        with pytest.raises(ValueError, match=r"broken sparse matrix|indices"):
            clf.predict_labels(row)
    assert plain_row(untidy([1.0], [0]), n_features=4) is None


def test_a_dict_takes_the_short_way():
    clf = RowClassifier().fit(X, Y)
    assert clf.predict_one({0: 1.0}) == FrequencyClassifier().fit(X, Y).predict_one({0: 1.0})
    assert clf.model_.taken == 1


@given(
    st.lists(st.lists(st.floats(0, 1, width=32), min_size=5, max_size=5), min_size=1, max_size=6),
    st.none() | st.integers(1, 6),
    st.floats(0, 1, width=32),
)
def test_keep_best_equals_sorting_each_row(rows, top_k, threshold):
    dense = np.array(rows, dtype=np.float32)
    full = sparse.csr_array(
        (dense.ravel(), np.tile(np.arange(5, dtype=np.int32), len(rows)), np.arange(len(rows) + 1) * 5),
        shape=dense.shape,
    )
    kept = keep_best(full, top_k, threshold)
    for row, values in enumerate(dense):
        best = sorted(range(5), key=lambda column: (-values[column], column))[:top_k]
        expected = sorted(column for column in best if values[column] >= np.float32(threshold))
        assert kept.indices[kept.indptr[row] : kept.indptr[row + 1]].tolist() == expected
    per_label = keep_best(full, top_k, np.full(5, threshold, dtype=np.float32))
    assert per_label.indices.tolist() == kept.indices.tolist()


@given(st.data())
def test_canonical_rows_equal_the_dense_array(data):
    shape = (data.draw(st.integers(0, 4)), data.draw(st.integers(1, 5)))
    n_entries = data.draw(st.integers(0, 12)) if shape[0] else 0
    rows = sorted(data.draw(st.lists(st.integers(0, max(shape[0] - 1, 0)), min_size=n_entries, max_size=n_entries)))
    columns = data.draw(st.lists(st.integers(0, shape[1] - 1), min_size=n_entries, max_size=n_entries))
    values = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n_entries, max_size=n_entries)), dtype=np.float32)
    indptr = np.searchsorted(rows, np.arange(shape[0] + 1))
    untidy_rows = sparse.csr_matrix((values, np.array(columns, dtype=np.int64), indptr), shape=shape)
    expected = untidy_rows.toarray()
    tidy = canonical_rows(untidy_rows)
    assert isinstance(tidy, sparse.csr_array)
    assert tidy.indices.dtype == np.int32
    assert tidy.dtype == np.float32
    assert 0 not in tidy.data
    for row in range(shape[0]):
        assert (np.diff(tidy.indices[tidy.indptr[row] : tidy.indptr[row + 1]]) > 0).all()
    np.testing.assert_array_equal(tidy.toarray(), expected)
    np.testing.assert_array_equal(untidy_rows.data, values)


@pytest.mark.parametrize(
    "breakage",
    [
        lambda rows: rows.indptr.__setitem__(1, 100),
        lambda rows: rows.indptr.__setitem__(1, -1),
        lambda rows: rows.indptr.__setitem__(-1, 100),
        lambda rows: rows.indptr.__setitem__(0, 1),
        lambda rows: rows.indices.__setitem__(0, 3),
        lambda rows: rows.indices.__setitem__(0, -1),
    ],
)
def test_a_sparse_matrix_whose_arrays_contradict_each_other_is_refused(breakage):
    rows = X.copy()
    breakage(rows)
    with pytest.raises(ValueError, match=r"broken sparse matrix|index pointer"):
        canonical_rows(rows)


def test_a_matrix_sorted_once_and_then_written_to_is_looked_at_again():
    rows = X.copy()
    assert rows.has_canonical_format
    rows.indices[-3:] = [2, 1, 0]
    np.testing.assert_array_equal(canonical_rows(rows).toarray()[-1], [11, 10, 9])


def test_repeated_features_that_add_up_beyond_float32_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        canonical_rows(untidy(np.float32([3e38, 3e38]), [1, 1]))


def test_numbers_are_no_texts():
    for rows in (np.zeros(3), [1, 2], [[1, 2]], X, [], np.array([1, 2], dtype=object)):
        assert as_texts(rows) is None
    assert as_texts(np.array(["a"])) == ["a"]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda: check_integer("arity", 1, at_least=2), "arity must be an integer of at least 2, got 1"),
        (lambda: check_integer("arity", 2.0, at_least=2), "arity must be an integer of at least 2, got 2.0"),
        (lambda: check_integer("arity", True), "arity must be an integer, got True"),
        (lambda: check_integer("bits", 99, at_least=1, at_most=32), "bits must be an integer between 1 and 32, got 99"),
        (lambda: check_integer("bits", 99, at_most=32), "bits must be an integer of at most 32, got 99"),
        (lambda: check_number("C", 0, above=0), "C must be a number above 0, got 0"),
        (lambda: check_number("C", float("nan"), above=0), "C must be a number above 0, got nan"),
        (lambda: check_number("C", "1"), "C must be a number, got '1'"),
        (lambda: check_number("rate", 2, above=0, at_most=1), "rate must be a number above 0 and at most 1, got 2"),
        (lambda: check_choice("loss", None, ["hinge"]), "loss must be 'hinge', got None"),
        (lambda: check_choice("loss", "x", ["a", "b", "c"]), "loss must be 'a', 'b' or 'c', got 'x'"),
        (lambda: check_flag("verbose", 1), "verbose must be True or False, got 1"),
    ],
)
def test_refused_parameters_say_name_range_and_value(check, said):
    with pytest.raises(ValueError) as caught:
        check()
    assert str(caught.value) == said


def test_parameters_within_their_range_come_back_as_plain_python():
    assert type(check_integer("arity", np.int32(2), at_least=2)) is int
    assert type(check_number("C", np.float32(1), above=0)) is float
    assert check_flag("verbose", np.bool_(True)) is True
    assert check_choice("loss", "hinge", ["hinge"]) == "hinge"


def test_jobs_mean_threads_as_in_scikit_learn():
    assert number_of_threads(None) == 1
    assert number_of_threads(3) == 3
    cores = len(os.sched_getaffinity(0))
    assert number_of_threads(-1) == cores
    assert number_of_threads(-1000) == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert number_of_threads(None) == min(2, cores)


def test_the_seed_is_the_given_integer_or_drawn_from_the_generator():
    assert FrequencyClassifier(random_state=7).fit(X, Y).seed_ == 7
    drawn = [FrequencyClassifier(random_state=np.random.RandomState(3)).fit(X, Y).seed_ for _ in range(2)]
    assert drawn[0] == drawn[1]
    with pytest.raises(ValueError, match=r"random_state must be None, an integer or a numpy\.random\.RandomState"):
        FrequencyClassifier(random_state="seven").fit(X, Y)
