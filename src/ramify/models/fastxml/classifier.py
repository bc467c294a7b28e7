"""FastXML: an ensemble of instance trees whose splits are driven by ranking."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import same_columns
from ramify.base.classifier import ExtremeClassifier, Query, TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.data.csr import csr_parts, csr_rows, label_parts
from ramify.explain.row_path import RawStep


class Forest:
    """The flat arrays of grown trees, maybe memory-mapped, and their reader: see core/forest/instance_forest.hpp."""

    def __init__(
        self, arrays: dict[str, NDArray[Any]], *, n_labels: int, n_features: int, normalize: bool, bias: float
    ) -> None:
        self.arrays = arrays
        self.n_labels = n_labels
        self.n_features = n_features
        self.normalize = normalize
        self.bias = bias

    @cached_property
    def core(self) -> _core.InstanceForest:
        """The compiled reader; checks the arrays when it is built, and is never stored."""
        features = _core.FeatureSettings(self.n_features, self.normalize, self.bias)
        return _core.InstanceForest(self.arrays, self.n_labels, features)

    @property
    def n_trees(self) -> int:
        return len(self.arrays["tree_begin"]) - 1

    def label_share(self, column: int) -> NDArray[np.float64]:
        """For each node the share of its training rows that have a label, as its leaves remember it."""
        child, mass = self.arrays["child"], self.arrays["mass"]
        counted = np.zeros(len(child), dtype=np.float64)
        entries = np.flatnonzero(self.arrays["label"] == column)
        leaves = np.searchsorted(self.arrays["label_begin"], entries, side="right") - 1
        counted[leaves] = self.arrays["probability"][entries] * mass[leaves].astype(np.float64)
        # Children come after their parents, and a level of a tree lies together: from the deepest level up.
        for inner in reversed(self._levels()):
            counted[inner] = counted[child[inner]] + counted[child[inner] + 1]
        share: NDArray[np.float64] = counted / mass
        return share

    def _levels(self) -> list[NDArray[np.int64]]:
        child = self.arrays["child"]
        levels, level = [], self.arrays["tree_begin"][:-1]
        while len(level := level[child[level] >= 0]):
            levels.append(level)
            level = np.concatenate((child[level], child[level] + 1))
        return levels

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "core"}


class FastXMLClassifier(ExtremeClassifier):
    """Trees over rows: a node halves its rows so that each half's own ranking of labels has the best nDCG.

    A sparse logistic separator learns the halves and routes new rows; leaves hold the mean of their rows' labels, and
    a label's probability is the mean over the trees. Papers: Prabhu and Varma 2014, sections 4 and 5 (FastXML);
    extreme-f-measure, section 5.3; Jain et al. 2016, section 5 (the propensity-scored loss of PfastreXML).

    Parameters
    ----------
    n_trees : int
        Trees in the ensemble, each from its own seed.
    max_leaf : int
        A node with at most so many training rows (or so much weight) is a leaf.
    C : float
        Cost of a row on the wrong side against the L1 norm of the separator's weights; both sides count the same.
    eps : float
        A separator is solved until its optimum is violated by at most this share of what it was at the start.
    max_iterations : int
        Rounds of rankings and sides at a node; it stops sooner when no row changes sides.
    propensity : None, (A, B), or an array with a propensity in (0, 1] for each label
        Count a label 1/propensity in the nDCG, so that rare labels have a say; (A, B) takes `metrics.propensities`.
        Only the splits change: probabilities stay probabilities.
    labels_per_leaf : int
        The most probable labels of a leaf that are kept; for one class a row, all are.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts.
    n_jobs : int or None
        Trees grown, and rows answered, at the same time; the result does not depend on it.
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

    forest_: Forest

    def __init__(
        self,
        *,
        n_trees: int = 50,
        max_leaf: int = 10,
        C: float = 0.6,
        eps: float = 0.01,
        max_iterations: int = 100,
        propensity: tuple[float, float] | ArrayLike | None = None,
        labels_per_leaf: int = 100,
        normalize: bool = False,
        bias: float = 1.0,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.C = C
        self.eps = eps
        self.max_iterations = max_iterations
        self.propensity = propensity
        self.labels_per_leaf = labels_per_leaf
        self.normalize = normalize
        self.bias = bias
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_integer("n_trees", self.n_trees, at_least=1, at_most=1_000_000)
        check_integer("max_leaf", self.max_leaf, at_least=1)
        check_number("C", self.C, above=0)
        check_number("eps", self.eps, at_least=0)
        check_integer("max_iterations", self.max_iterations, at_least=1, at_most=2**31 - 1)
        check_integer("labels_per_leaf", self.labels_per_leaf, at_least=1)
        check_flag("normalize", self.normalize)
        check_number("bias", self.bias, at_least=0)
        check_flag("verbose", self.verbose)

    def _fit(self, data: TrainingData) -> None:
        settings = _core.ForestSettings(
            n_trees=self.n_trees,
            max_leaf=self.max_leaf,
            # Rows of a multi-class answer sum to one, so no leaf may lose a class.
            labels_per_leaf=self.n_labels_ if self.is_multiclass_ else self.labels_per_leaf,
            max_iterations=self.max_iterations,
            C=self.C,
            eps=self.eps,
            max_newton=MAX_NEWTON,
        )
        n_features = data.X.shape[1]
        progress = _core.Progress()
        with phase("growing trees", progress):
            arrays = _core.grow_forest(
                *csr_parts(data.X),
                *label_parts(data.Y),
                self.n_labels_,
                label_gain(self.propensity, data.Y, data.sample_weight),
                data.sample_weight,
                _core.FeatureSettings(n_features, self.normalize, self.bias),
                settings,
                data.seed,
                data.n_threads,
                progress,
            )
        self.forest_ = Forest(
            arrays, n_labels=self.n_labels_, n_features=n_features, normalize=self.normalize, bias=self.bias
        )

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        if query.labels is not None:
            labels = query.labels.astype(np.int32, copy=False)
            named = self.forest_.core.named(*csr_parts(X), labels, self._n_threads())
            return same_columns(named, labels, self.n_labels_)
        indptr, indices, data, _ = self._answered(X, query)
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels_))

    def _n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        return self._answered(X, query)[3]

    def _answered(self, X: sparse.csr_array, query: Query) -> tuple[Any, Any, Any, int]:
        """CSR parts of the answer, and the number of separators asked."""
        return self.forest_.core.predict(*csr_parts(X), query.top_k, *query.thresholds, self._n_threads())

    def _predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int | None, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.forest_.core.predict_row(indices, values, self.n_labels_ if top_k is None else top_k, threshold)

    def _explain_routes(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int
    ) -> list[list[RawStep]]:
        share, mass = self.forest_.label_share(column), self.forest_.arrays["mass"]
        routes = (self.forest_.core.route(indices, values, tree) for tree in range(self.forest_.n_trees))
        return [
            [
                (node, float(mass[node]), float(share[node]), score, features, added)
                for node, score, features, added in route
            ]
            for route in routes
        ]

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"normalize": self.forest_.normalize, "bias": self.forest_.bias}, self.forest_.arrays

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.forest_ = Forest(
            arrays,
            n_labels=self.n_labels_,
            n_features=self.n_features_in_,
            normalize=check_flag("normalize", metadata["normalize"]),
            bias=check_number("bias", metadata["bias"]),
        )
        _ = self.forest_.core  # checks the arrays now, not at the first question


# Separators need few steps: what stops them is eps.
MAX_NEWTON = 20


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
