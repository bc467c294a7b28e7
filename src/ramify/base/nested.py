"""A classifier inside another: trained on its rows as its own `fit` would, with the other's labels and features."""

from __future__ import annotations

from typing import Any

from ramify.base.classifier import ExtremeClassifier, TrainingData
from ramify.common.validation import check_jobs

# What both have in common.
SHARED = ("label_encoding_", "n_labels_", "is_multiclass_", "n_features_in_", "feature_names_in_")


def train_inside(outer: ExtremeClassifier, inner: Any, data: TrainingData) -> Any:
    """Train `inner` on data that `outer` has checked; a seed of its own comes first."""
    inner._check_parameters()
    check_jobs(inner.n_jobs)
    for name in SHARED:
        if name in outer.__dict__:
            setattr(inner, name, outer.__dict__[name])
    inner.seed_ = data.seed if inner.random_state is None else inner._draw_seed()
    inner._fit(data)
    return inner
