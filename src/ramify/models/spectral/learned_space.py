"""A space in which rows of like labels lie close together: there a tree may split them, not among the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.common.validation import check_choice
from ramify.models.spectral.base_classifier import BaseClassifier

SPACES = ("features", "learned")


def check_space(space: Any) -> None:
    """One of SPACES, or a linear map as an array."""
    if not isinstance(space, np.ndarray):
        check_choice("space", space, SPACES)
    elif space.ndim != 2 or 0 in space.shape or space.dtype.kind not in "fiu" or not np.isfinite(space).all():
        raise ValueError(
            f"space must be 'features', 'learned' or a finite array (features x dimensions), got shape {space.shape}"
        )


def given_space(space: NDArray[Any], n_features: int) -> NDArray[np.float32]:
    """A given map as the core takes it: rows of a multiple of eight numbers, one row per feature.

    >>> given_space(np.ones((2, 3)), 2).shape
    (16,)
    """
    if space.shape[0] != n_features:
        raise ValueError(f"space must have one row for each of the {n_features} features, got {space.shape[0]}")
    padded = np.zeros((n_features, -(-space.shape[1] // 8) * 8), dtype=np.float32)
    padded[:, : space.shape[1]] = space
    return padded.ravel()


def learn_space(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    *,
    rank: int,
    group_size: int,
    is_multiclass: bool,
    normalize: bool = True,
    sample_weight: NDArray[np.float32] | None = None,
    learning_rate: float = 0.3,
    eps: float = 1e-3,
    n_epochs: int = 10,
    shuffle: bool = True,
    seed: int = 0,
    n_threads: int = 1,
    progress: _core.Progress | None = None,
) -> BaseClassifier:
    """A logistic regression of low rank over all labels, each row trained against a random group of them.

    The labels are parted anew in each pass; a label that is not the row's counts for as many as there are groups, by
    which the most frequent of classes come out too probable: few groups are better than many. What
    the features are projected to is the space; the weights of the labels are those that the classifier behind a tree
    can begin with. Where hyperplanes of the features find no labels, Mineiro and Karampatziakis 2015 propose to drive
    the tree by a representation that was learned on a smaller problem (its discussion); here that is a random group.

    >>> X = sparse.csr_array(np.eye(4, dtype=np.float32)[[0, 1, 2, 3] * 8])
    >>> Y = sparse.csr_array(np.eye(2, dtype=np.float32)[[0, 0, 1, 1] * 8])
    >>> space = learn_space(X, Y, rank=2, group_size=2, is_multiclass=True)
    >>> place = space.arrays["input"].reshape(4, -1)
    >>> close, far = np.linalg.norm(place[0] - place[1]), np.linalg.norm(place[0] - place[2])
    >>> bool(close < far)
    True
    """
    space = BaseClassifier.begin(
        weights="low_rank",
        rank=rank,
        hash_bits=0,
        has_slot_weights=False,
        n_features=X.shape[1],
        n_labels=Y.shape[1],
        n_slots=0,
        seed=seed,
    )
    _core.train_against_groups(
        space.arrays,
        X,
        Y,
        sample_weight,
        _core.FeatureSettings(X.shape[1], normalize, 0.0),
        is_multiclass=is_multiclass,
        n_labels=Y.shape[1],
        rank=space.rank,
        learning_rate=learning_rate,
        eps=eps,
        group_size=group_size,
        passes=n_epochs,
        is_shuffled=shuffle,
        seed=seed,
        n_threads=n_threads,
        progress=progress,
    )
    if not np.isfinite(space.arrays["input"]).all():
        raise ValueError(
            "learning the space diverged: give a smaller learning_rate, or rows of similar lengths (normalize)"
        )
    return space
