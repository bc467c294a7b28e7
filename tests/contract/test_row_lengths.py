"""Features in any unit: without `normalize`, a classifier learns from them all the same, or warns."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ramify import (
    FastXMLClassifier,
    FilterTreeClassifier,
    LOMTreeClassifier,
    MemoryTreeClassifier,
    OnlinePLTClassifier,
    PLTClassifier,
    SpectralTreeClassifier,
    TreeSoftmaxClassifier,
)
from twins.blocks import thaw

X, y = load_digits(return_X_y=True)
IS_TRAIN = np.arange(len(y)) % 2 == 0
CLASSES = {
    "plt": PLTClassifier,
    "plt ensemble": lambda **settings: PLTClassifier(n_trees=2, **settings),
    "online plt": OnlinePLTClassifier,
    "lomtree": LOMTreeClassifier,
    "filter tree": FilterTreeClassifier,
    "memory tree": MemoryTreeClassifier,
    "fastxml": lambda **settings: FastXMLClassifier(n_trees=10, **settings),
    "spectral": SpectralTreeClassifier,
    "softmax": TreeSoftmaxClassifier,
}


def fitted(name, scale, **settings):
    """A classifier, its accuracy on other rows, and whether it has warned of the length of rows."""
    clf = CLASSES[name](random_state=0, **{"normalize": False, **settings})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X[IS_TRAIN] * scale, y[IS_TRAIN])
    warned = any("rows of X have a length of about" in str(warning.message) for warning in caught)
    return clf, clf.score(X[~IS_TRAIN] * scale, y[~IS_TRAIN]), warned


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**-6, 1.0, 2.0**10])
@pytest.mark.parametrize("name", CLASSES)
def test_features_in_any_unit_are_learned_or_warned_of(name, scale):
    if name == "softmax" and scale > 1:
        with pytest.warns(UserWarning, match="rows of X have a length"), pytest.raises(ValueError, match="diverged"):
            CLASSES[name](random_state=0, normalize=False, learning_rate=100.0).fit(X * scale, y)
        return
    _, accuracy, warned = fitted(name, scale)
    assert accuracy > 0.7 or warned
    if scale == 2.0**-6:  # rows of about unit length
        assert accuracy > 0.7
        assert not warned


@pytest.mark.parametrize("name", ["plt", "plt ensemble"])
def test_a_power_of_two_changes_no_bit_where_rows_are_divided_by_their_length(name):
    one, _, _ = fitted(name, 1.0)
    for scale in (2.0**-20, 2.0**20):
        other, accuracy, warned = fitted(name, scale)
        assert accuracy > 0.9
        assert not warned
        assert (one.predict_proba(X) == other.predict_proba(X * scale)).all()


@pytest.mark.parametrize("name", CLASSES)
def test_rows_of_unit_length_are_not_warned_of(name):
    _, accuracy, warned = fitted(name, 1000.0, normalize=True)
    assert accuracy > 0.7
    assert not warned


def test_the_first_piece_of_a_stream_is_warned_of():
    with pytest.warns(UserWarning, match="rows of X have a length of about 62, .*divide X by 62, or"):
        OnlinePLTClassifier(normalize=False).partial_fit(X[:100], y[:100])


@pytest.mark.parametrize("scale", [2.0**-6, 1.0, 2.0**6])
def test_a_frozen_model_answers_as_the_online_model_does_whatever_the_unit(scale):
    clf, accuracy, _ = fitted("online plt", scale)
    frozen = clf.freeze()
    assert abs(frozen.score(X[~IS_TRAIN] * scale, y[~IS_TRAIN]) - accuracy) < 0.03
    assert clf.freeze(prune=0.1).model_.n_labels == 10


def weights_in_use(clf):
    nodes = thaw(clf.trees_[0].blocks, X.shape[1] + 1)
    return sum(np.count_nonzero(weights) for _, weights in nodes.values())


def test_small_weights_of_normalised_rows_are_dropped_from_a_frozen_model():
    clf, _, _ = fitted("online plt", 1.0, normalize=True)
    used = [weights_in_use(clf.freeze(prune)) for prune in (None, 0.0)]
    assert 0 < used[0] < used[1]
