"""A classifier that predicts each label's share of the training rows: small enough to check by hand."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ramify.base.answers import keep_best
from ramify.base.classifier import ExtremeClassifier


class FrequencyClassifier(ExtremeClassifier):
    def __init__(self, smoothing=0.0, vectorizer=None, n_jobs=None, random_state=None):
        self.smoothing = smoothing
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, data):
        weight = np.ones(data.X.shape[0]) if data.sample_weight is None else data.sample_weight
        frequency = data.Y.T @ weight / weight.sum()
        self.frequency_ = (frequency + self.smoothing).astype(np.float32)
        if self.is_multiclass_:
            self.frequency_ /= self.frequency_.sum()

    def _sparse_probabilities(self, X, query):
        dense = np.tile(self.frequency_, (X.shape[0], 1))
        mask = np.ones(self.n_labels_, dtype=bool)
        if query.labels is not None:
            mask[:] = False
            mask[query.labels] = True
        columns = np.flatnonzero(mask)
        indptr = np.arange(X.shape[0] + 1) * len(columns)
        full = sparse.csr_array(
            (dense[:, columns].ravel(), np.tile(columns, X.shape[0]).astype(np.int32), indptr), shape=dense.shape
        )
        return keep_best(full, query.top_k, query.threshold)

    def _state(self):
        return {}, {"frequency": self.frequency_}

    def _restore(self, metadata, arrays):
        self.frequency_ = arrays["frequency"]
