"""FastXML: an ensemble of instance trees whose splits are driven by ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.base.classifier import ExtremeClassifier
from ramify.base.training import TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.data.remote_rows import RemoteRows
from ramify.models.fastxml.model import FastXMLModel

# Newton steps of a separator; in practice `tol` stops it earlier.
MAX_NEWTON = 20


class FastXMLClassifier(ExtremeClassifier):
    """Trees over rows: a node halves its rows so that each half's own ranking of labels has the best nDCG.

    A sparse logistic separator learns the halves and routes new rows; leaves hold the mean of their rows' labels, and
    a label's probability is the mean over the trees. Papers: Prabhu and Varma 2014, sections 4 and 5 (FastXML);
    Jasinska et al., "Extreme F-Measure Maximization using Sparse Probability Estimates", section 5.3; Jain et al. 2016,
    section 5 (the propensity-scored loss of PfastreXML).

    Parameters
    ----------
    n_trees : int
        Trees in the ensemble, each from its own seed.
    max_leaf : int
        A node with at most this many training rows (or this much weight) is a leaf.
    C : float
        Cost of a row on the wrong side against the L1 norm of the separator's weights; both sides count the same.
    tol : float
        A separator is solved until its optimality is violated by at most this share of the violation at the start.
    max_iterations : int
        Rounds of ranking and assigning at a node; fewer if no row changes sides.
    propensity : None, (A, B), or an array with a propensity in (0, 1] for each label
        Count a label 1/propensity in the nDCG, so that rare labels have a say; (A, B) takes `metrics.propensities`.
        Only the splits change: probabilities stay probabilities.
    labels_per_leaf : int
        The most probable labels of a leaf that are kept; for one class a row, all are.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts.
    n_jobs : int or None
        Trees grown, and rows answered, at the same time; the result does not depend on it.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import FastXMLClassifier
    >>> texts = ["red apple", "green apple", "red cherry", "green pear"] * 5
    >>> tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 5
    >>> clf = FastXMLClassifier(n_trees=10, max_leaf=5, random_state=0).fit(texts, tags)
    >>> sorted(label for label, _ in clf.predict_one("red apple", top_k=2))
    ['apple', 'red']
    """

    _row_lengths = (1 / 32, float("inf"))  # a separator with a fixed C stays zero on short rows

    def __init__(
        self,
        *,
        n_trees: int = 50,
        max_leaf: int = 10,
        C: float = 0.6,
        tol: float = 0.01,
        max_iterations: int = 100,
        propensity: tuple[float, float] | ArrayLike | None = None,
        labels_per_leaf: int = 100,
        normalize: bool = False,
        bias: float = 1.0,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.C = C
        self.tol = tol
        self.max_iterations = max_iterations
        self.propensity = propensity
        self.labels_per_leaf = labels_per_leaf
        self.normalize = normalize
        self.bias = bias
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_integer("n_trees", self.n_trees, at_least=1, at_most=1_000_000)
        check_integer("max_leaf", self.max_leaf, at_least=1)
        check_number("C", self.C, above=0)
        check_number("tol", self.tol, at_least=0)
        check_integer("max_iterations", self.max_iterations, at_least=1, at_most=2**31 - 1)
        check_integer("labels_per_leaf", self.labels_per_leaf, at_least=1)
        check_flag("normalize", self.normalize)
        check_number("bias", self.bias, at_least=0)
        check_flag("verbose", self.verbose)

    def _train(self, data: TrainingData) -> FastXMLModel:
        n_labels, n_features = data.n_labels, data.n_features
        settings = {
            "n_trees": self.n_trees,
            "max_leaf": self.max_leaf,
            # Rows of a multi-class answer sum to one, so no leaf may lose a class.
            "labels_per_leaf": n_labels if data.is_multiclass else self.labels_per_leaf,
            "max_iterations": self.max_iterations,
            "C": self.C,
            "eps": self.tol,
            "max_newton": MAX_NEWTON,
        }
        gain = label_gain(self.propensity, data.Y, data.sample_weight)
        features = _core.FeatureSettings(n_features, self.normalize, self.bias)
        return FastXMLModel(
            _grown(data, gain, features, settings),
            normalize=self.normalize,
            bias=self.bias,
            n_labels=n_labels,
            n_features=n_features,
            is_multiclass=data.is_multiclass,
        )


def _grown(
    data: TrainingData, gain: NDArray[np.float32] | None, features: _core.FeatureSettings, settings: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """The arrays of the forest."""
    if isinstance(data.X, RemoteRows):
        return data.X.grow_forest(data, gain, features, settings)
    progress = _core.Progress()
    with phase("growing trees", progress):
        return _core.grow_forest(
            data.X,
            data.Y,
            data.n_labels,
            gain,
            data.sample_weight,
            features,
            _core.ForestSettings(**settings),
            data.seed,
            data.n_threads,
            progress,
        )


def label_gain(
    propensity: Any, Y: sparse.csr_array, sample_weight: NDArray[np.float32] | None = None
) -> NDArray[np.float32] | None:
    """What each label counts in the nDCG: the inverse of its propensity, or None for one each.

    >>> label_gain((0.55, 1.5), sparse.csr_array(np.eye(4, 3))).round(3)
    array([1.386, 1.386, 1.386], dtype=float32)
    """
    if propensity is None:
        return None
    if isinstance(propensity, tuple) and len(propensity) == 2:
        A, B = (
            check_number(f"propensity {name}", value, above=0) for name, value in zip("AB", propensity, strict=True)
        )
        weight = np.ones(Y.shape[0]) if sample_weight is None else sample_weight.astype(np.float64)
        count = np.bincount(Y.indices, np.repeat(weight, np.diff(Y.indptr)), minlength=Y.shape[1])
        # The model of Jain et al., as in `metrics.propensities`; with so few rows that its factor is below zero, all
        # labels are sure to be seen.
        factor = max(0.0, np.log(weight.sum()) - 1) * (B + 1) ** A
        return np.asarray(1 + factor * (count + B) ** -A, dtype=np.float32)
    allowed = f"None, a tuple (A, B), or an array with a number for each of the {Y.shape[1]} labels"
    try:
        values = np.asarray(propensity, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"propensity must be {allowed}, got {propensity!r}") from error
    if values.shape != (Y.shape[1],):
        raise ValueError(f"propensity must be {allowed}, got shape {values.shape}")
    if not ((values > 0) & (values <= 1)).all():
        raise ValueError("propensity must be above 0 and at most 1 for every label")
    return np.ascontiguousarray(1 / values, dtype=np.float32)
