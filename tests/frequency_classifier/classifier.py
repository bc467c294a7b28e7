"""Training: count how often each label occurs."""

from __future__ import annotations

import numpy as np

from frequency_classifier.model import FrequencyModel
from ramify.base.classifier import ExtremeClassifier
from ramify.common.validation import check_number


class FrequencyClassifier(ExtremeClassifier):
    def __init__(self, smoothing=0.0, vectorizer=None, n_jobs=None, random_state=None):
        self.smoothing = smoothing
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self):
        check_number("smoothing", self.smoothing, at_least=0)

    def _train(self, data):
        weight = np.ones(data.X.shape[0]) if data.sample_weight is None else data.sample_weight
        frequency = (data.Y.T @ weight / weight.sum() + self.smoothing).astype(np.float32)
        if data.is_multiclass:
            frequency /= frequency.sum()
        return FrequencyModel(frequency, n_features=data.n_features, is_multiclass=data.is_multiclass)
