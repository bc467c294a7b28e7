"""Nearest rows: the labels of the training rows that are most similar by cosine, found exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.classifier import ExtremeClassifier
from ramify.base.training import TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.data.csr import csr_rows
from ramify.models.nearest_rows.model import NearestRowsModel


def centroid_arrays(data: TrainingData) -> dict[str, NDArray[Any]]:
    """The mean of each label's rows at unit length, stored as a row with that label."""
    n_rows = data.X.shape[0]
    weight = np.ones(n_rows) if data.sample_weight is None else data.sample_weight.astype(np.float64)
    X = csr_rows(data.X.data.astype(np.float64), data.X.indices, data.X.indptr, data.X.shape)
    length = np.sqrt(np.bincount(np.repeat(np.arange(n_rows), np.diff(X.indptr)), X.data**2, minlength=n_rows))
    scaled = sparse.diags_array(weight / np.where(length > 0, length, 1)) @ X
    total = sparse.csr_array(sparse.csr_array(data.Y.T).astype(np.float64) @ scaled)
    total.sort_indices()
    largest = np.abs(total.data).max(initial=0)  # only directions count: float32 must hold them
    means = csr_rows((total.data / (largest or 1)).astype(np.float32), total.indices, total.indptr, total.shape)
    own = sparse.csr_array(sparse.eye_array(data.n_labels, dtype=np.float32, format="csr"))
    arrays = _core.store_rows(means, own, data.n_features, data.n_labels, None)
    arrays["frequency"] = np.asarray(data.Y.T @ weight / weight.sum(), dtype=np.float32)
    return arrays


class NearestRowsClassifier(ExtremeClassifier):
    """Stores the training rows and lets the nearest of them vote, by cosine over sparse rows.

    The search is exact: an index of rounded values bounds the similarities of all rows, and those that may be among the
    nearest are compared in full. Good where labels have few rows, and as a part of a `MixtureClassifier`.

    Parameters
    ----------
    k : int
        Rows that vote; rows without a feature in common, or with a negative similarity, never do. If none is left,
        labels get their share of the training rows.
    power : float
        A row votes with similarity ** power; 0: all the same.
    centroids : bool
        Store one row for each label, the mean of its rows at unit length, instead of the rows: smaller and faster, and
        a stronger part of a mixture where labels have few rows.
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts.
    n_jobs : int or None
        Threads for queries; the result does not depend on it.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
    verbose : bool
        Show progress on stderr while training.

    `k` and `power` may change after training. A sample weight of two is a row given twice: it takes two places of k.

    Examples
    --------
    >>> from ramify import NearestRowsClassifier
    >>> texts = ["red round cherry", "red round apple", "yellow long banana"]
    >>> clf = NearestRowsClassifier(k=2).fit(texts, ["cherry", "apple", "banana"])
    >>> clf.predict(["a long yellow one", "a red apple"]).tolist()
    ['banana', 'apple']
    """

    def __init__(
        self,
        *,
        k: int = 20,
        power: float = 3.0,
        centroids: bool = False,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.k = k
        self.power = power
        self.centroids = centroids
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        self._search_options()
        check_flag("centroids", self.centroids)
        check_flag("verbose", self.verbose)

    def _search_options(self) -> Mapping[str, Any]:
        return {
            "k": check_integer("k", self.k, at_least=1, at_most=2**31 - 1),
            "power": check_number("power", self.power, at_least=0),
        }

    def _train(self, data: TrainingData) -> NearestRowsModel:
        with phase("storing rows"):
            if self.centroids:
                arrays = centroid_arrays(data)
            else:
                arrays = _core.store_rows(data.X, data.Y, data.n_features, data.n_labels, data.sample_weight)
        return NearestRowsModel(
            arrays,
            n_labels=data.n_labels,
            n_features=data.n_features,
            is_multiclass=data.is_multiclass,
            is_of_centroids=bool(self.centroids),
        )

    @property
    def n_examples_(self) -> int:
        """Rows stored; of centroids, one for each label."""
        n: int = self.model_.n_rows
        return n
