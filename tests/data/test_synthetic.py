"""Synthetic data: reproducible, of the requested size, learnable, with a long tail."""

from __future__ import annotations

import numpy as np
import pytest

from ramify.data.synthetic import make_dense, make_multiclass, make_multilabel

MAKERS = {
    "multilabel": lambda **options: make_multilabel(1500, 100, 1000, **options),
    "multiclass": lambda **options: make_multiclass(1500, 100, 1000, **options),
    "dense": lambda **options: make_dense(1500, 100, 40, **options),
}


def bits(data):
    return [a.tobytes() for m in (data.X, data.Y) for a in (m.indptr, m.indices, m.data)]


def one_neighbour(train, test):
    """Return the training row nearest to each test row, a simple baseline classifier."""
    return np.asarray((test.X @ train.X.T).toarray().argmax(axis=1))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestEveryMaker:
    def test_the_same_seed_gives_the_same_bits_and_another_does_not(self, make):
        assert bits(make(random_state=3)) == bits(make(random_state=3))
        assert bits(make(random_state=3)) != bits(make(random_state=4))

    def test_splits_have_different_rows_of_the_same_distribution(self, make):
        train, test = make(random_state=1), make(random_state=1, split="test")
        other_seed = make(random_state=2, split="test")
        assert bits(train) != bits(test)

        def hits(data):
            return float(train.Y[one_neighbour(train, data)].multiply(data.Y).sum()) / data.n_rows

        assert hits(test) > 5 * hits(other_seed)

    def test_arrays_are_canonical_float32_with_32_bit_indices(self, make):
        data = make()
        for array in (data.X, data.Y):
            assert array.dtype == np.float32
            assert array.indices.dtype == array.indptr.dtype == np.int32
            assert type(array)((array.data, array.indices, array.indptr), shape=array.shape).has_canonical_format
        assert np.all(data.Y.data == 1)
        assert np.allclose(np.asarray(data.X.multiply(data.X).sum(axis=1)), 1, atol=1e-5)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"split": "dev"}, "split must be one of"),
            ({"random_state": -1}, "random_state"),
            ({"random_state": None}, "random_state"),
        ],
    )
    def test_bad_parameters_are_rejected(self, make, options, message):
        with pytest.raises(ValueError, match=message):
            make(**options)


def test_means_are_as_requested():
    data = make_multilabel(20_000, 1000, 5000, labels_per_row=4, features_per_row=30)
    assert data.Y.nnz / data.n_rows == pytest.approx(4, rel=0.03)
    assert data.X.nnz / data.n_rows == pytest.approx(30, rel=0.03)


def test_label_frequencies_follow_a_power_law_that_columns_do_not_reveal():
    data = make_multilabel(30_000, 2000, 5000)
    counts = np.bincount(data.Y.indices, minlength=2000)
    falling = np.sort(counts)[::-1]
    assert falling[0] > 20 * falling[1000]
    assert abs(np.corrcoef(np.arange(2000), counts)[0, 1]) < 0.1


def test_labels_of_one_topic_occur_together():
    data = make_multilabel(20_000, 1000, 5000, label_noise=0.0)
    together = (data.Y.T @ data.Y).tocsr()
    together.setdiag(0)
    frequency = np.bincount(data.Y.indices, minlength=1000)
    expected = np.outer(frequency, frequency) / data.n_rows
    most = together.toarray().max(axis=1)
    assert np.median(most / np.maximum(expected.max(axis=1), 1e-9)) > 3


def test_noise_makes_labels_unpredictable():
    def hits(noise):
        train, test = (make_multilabel(1500, 100, 1000, label_noise=noise, split=s) for s in ("train", "test"))
        return float(train.Y[one_neighbour(train, test)].multiply(test.Y).sum())

    assert hits(0.0) > 1.2 * hits(0.5) > 1.2 * hits(1.0)


def test_some_rows_have_no_labels_if_requested():
    empty = np.diff(make_multilabel(10_000, 100, 1000, empty_share=0.2).Y.indptr) == 0
    assert 0.18 < empty.mean() < 0.22
    assert np.diff(make_multilabel(10_000, 100, 1000).Y.indptr).min() >= 1


def test_few_shot_classes_are_equally_frequent():
    data = make_multiclass(3000, 1000, 5000)
    assert np.bincount(data.y, minlength=1000).tolist() == [3] * 1000


def test_a_million_labels():
    data = make_multilabel(2000, 1_000_000, 100_000)
    assert data.Y.shape == (2000, 1_000_000)
    assert len(np.unique(data.Y.indices)) > 5000


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 2, 3), (3, 17, 4)])
def test_the_smallest_sizes_work(sizes):
    assert make_multilabel(*sizes).Y.shape == (sizes[0], sizes[1])
    assert make_multiclass(*sizes).n_rows == sizes[0]
    assert make_dense(*sizes).n_features == sizes[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_rows": 0}, "n_rows must be an integer of at least 1, got 0"),
        ({"n_labels": 2.5}, "n_labels must be an integer"),
        ({"n_features": 2**31}, "n_features must be an integer"),
        ({"labels_per_row": 0.5}, "labels_per_row must be at least 1"),
        ({"features_per_row": float("nan")}, "features_per_row must be at least 1"),
        ({"label_noise": 1.5}, "label_noise must be between 0 and 1"),
        ({"exponent": -1}, "exponent must be between 0 and 3"),
    ],
)
def test_bad_sizes_and_shares_are_rejected(options, message):
    with pytest.raises(ValueError, match=message):
        make_multilabel(**{"n_rows": 10, "n_labels": 10, "n_features": 10, **options})
