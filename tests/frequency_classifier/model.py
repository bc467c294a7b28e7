"""What was learned: one probability per label, the same for every row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify.base.answers import keep_best, same_columns
from ramify.base.model import Model, State, shape_of
from ramify.explain.score import ExplainedLabel


class FrequencyModel(Model):
    def __init__(self, frequency, *, n_features, is_multiclass):
        self.frequency = frequency
        self.n_labels = len(frequency)
        self.n_features = n_features
        self.is_multiclass = is_multiclass

    def search(self, X, query):
        every_label = same_columns(np.tile(self.frequency, (X.shape[0], 1)), np.arange(self.n_labels), self.n_labels)
        return keep_best(every_label, query.top_k, query.threshold)

    def named(self, X, candidates, query):
        return self.frequency[candidates.indices]

    def explain(self, indices, values, column, query):
        return RawFrequency(float(self.frequency[column]))

    def state(self):
        return State(self.shape_values(), {"frequency": self.frequency})

    @classmethod
    def from_state(cls, state):
        shape, frequency = shape_of(state.values), state.arrays["frequency"]
        if frequency.dtype != np.float32 or frequency.shape != (shape.pop("n_labels"),):
            raise ValueError(f"expected one float32 per label, got {frequency.dtype} of shape {frequency.shape}")
        return cls(frequency, **shape)


@dataclass(frozen=True)
class RawFrequency:
    """No feature of the row matters, so there is nothing to explain but the probability."""

    probability: float

    def describe(self, wording, column):
        return ExplainedLabel(**wording.head(column, self.probability))
