"""Pieces of a stream that a spectral tree may get."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import ramify
from shared.spectral_settings import SMALL, spectral


def test_an_empty_piece_with_more_columns_leaves_a_model_that_loads(data, tmp_path):
    clf = spectral(**SMALL).fit(data.X[:300], data.Y[:300])
    before = clf.predict_proba(data.X[:20], top_k=3)
    clf.partial_fit(data.X[:0], sparse.csr_array((0, data.Y.shape[1] + 4)))
    assert clf.n_labels_ == data.Y.shape[1] + 4
    clf.save(tmp_path / "model")
    after = ramify.load(tmp_path / "model").predict_proba(data.X[:20], top_k=3)
    assert np.array_equal(after.indices, before.indices)
