"""Feature hashing of numbers: a linear map that keeps inner products on average."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline

from ramify import SpectralTreeClassifier
from ramify.data import FeatureHashing
from ramify.data.synthetic import make_multiclass


def test_hashing_is_linear_and_the_same_for_every_batch_and_width():
    generator = np.random.default_rng(0)
    X = sparse.random_array((20, 500), density=0.05, rng=generator, dtype=np.float32, format="csr")
    hashed = FeatureHashing(n_bits=6).transform(X)
    assert hashed.shape == (20, 64)
    doubled = FeatureHashing(n_bits=6).transform(2 * X)
    np.testing.assert_allclose(doubled.toarray(), 2 * hashed.toarray(), rtol=1e-6)
    alone = np.vstack([FeatureHashing(n_bits=6).fit_transform(X[[row]]).toarray() for row in range(20)])
    np.testing.assert_array_equal(alone, hashed.toarray())
    wider = sparse.csr_array((X.data, X.indices, X.indptr), shape=(20, 900))
    np.testing.assert_array_equal(FeatureHashing(n_bits=6).transform(wider).toarray(), hashed.toarray())


def test_inner_products_are_kept_on_average_with_signs_and_grow_without():
    generator = np.random.default_rng(1)
    X = np.abs(generator.normal(size=(200, 4000))).astype(np.float32)
    X *= generator.random(X.shape) < 0.02
    exact = (X[:100] * X[100:]).sum(axis=1)
    error = {}
    for signed in (True, False):
        hashed = FeatureHashing(n_bits=9, signed=signed).transform(X).toarray()
        error[signed] = np.mean((hashed[:100] * hashed[100:]).sum(axis=1) - exact)
    assert abs(error[True]) < 0.15 * np.mean(np.linalg.norm(X, axis=1) ** 2)
    assert error[False] > 3 * abs(error[True])


def test_a_pipeline_trains_on_hashed_columns_with_little_loss():
    train, test = make_multiclass(3000, 40, 5000), make_multiclass(600, 40, 5000, split="test")
    plain = SpectralTreeClassifier(n_candidates=15, random_state=0).fit(train.X, train.y).score(test.X, test.y)
    hashed = make_pipeline(FeatureHashing(n_bits=11), SpectralTreeClassifier(n_candidates=15, random_state=0))
    hashed.fit(train.X, train.y)
    assert hashed[-1].n_features_in_ == 2048
    assert hashed.score(test.X, test.y) > plain - 0.1


@pytest.mark.parametrize("n_bits", [0, 31, "many"])
def test_bad_sizes_are_rejected(n_bits):
    with pytest.raises(ValueError, match="n_bits must be an integer between 1 and 30"):
        FeatureHashing(n_bits=n_bits).fit(np.ones((1, 1)))
