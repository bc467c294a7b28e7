"""Whether two fitted classifiers are the same, bit for bit."""

import numpy as np

from ramify.data.names import NameTable


def check_same_model(one, other):
    """Schema, settings, and every value and array of the model."""
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.n_features_in_ == other.n_features_in_
    assert one.seed_ == other.seed_
    _check_same("model", one.model_.state()._asdict(), other.model_.state()._asdict())
    _check_same("thresholds", one.fitted_.thresholds, other.fitted_.thresholds)


def _check_same(where, one, other):
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.shape == other.shape, where
        assert one.tobytes() == other.tobytes(), where
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            _check_same(f"{where}/{name}", one[name], other[name])
    elif isinstance(one, NameTable):
        assert list(one) == list(other), where
    else:
        assert one == other, where
