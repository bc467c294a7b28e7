"""LOMtree: logarithmic-time online multi-class learning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import same_columns
from ramify.base.classifier import Query
from ramify.base.one_class import (
    OneClassARow,
    check_regressor,
    class_columns,
    regressor_parameters,
    regressor_settings,
)
from ramify.base.online import BestLabels, OnlineClassifier
from ramify.base.stream_rows import Piece
from ramify.common.validation import check_flag, check_integer, check_jobs, check_number
from ramify.data.csr import csr_parts, csr_rows
from ramify.explain.row_path import RawStep


class LOMTreeClassifier(OneClassARow, OnlineClassifier):
    """Online decision tree for very many classes: a node sends each class to one side, and to both sides as many rows.

    Training and prediction take time in the depth of the tree, which is about the logarithm of the classes; classes and
    features need not be announced. Leaves that turn out useless are recycled where they are needed.
    Paper: lomtree, section 3 (algorithm 1).

    Parameters
    ----------
    max_nodes : int or None
        Most inner nodes (T). None: `nodes_per_class` for each class seen so far.
    nodes_per_class : float
        Inner nodes for each class where `max_nodes` is None; the paper tries 1, 2, 4, ... 64.
    swap_resistance : float
        How many times as large as the smallest leaf, its majority class aside, a leaf has to be before it takes that
        leaf's node (R_S). From 4 on no node is moved more often than the logarithm of the examples, with `max_nodes`.
    forgetting : float
        By how much scores count less, with each later one, for the expected score of a class and of a node. 0 is the
        paper's mean of all scores since the first; regressors that still move are followed better with a little.
    loss : "squared" or "logistic"
        What the regressors minimise, towards -1 on the left and +1 on the right.
    learner : "adagrad" or "sgd"
        Step sizes: each feature's own, from its gradients so far, or one for all.
    learning_rate, eps
        Step size, and what AdaGrad adds to the root of the summed squares.
    passes, shuffle
        For `fit`: how often the rows are gone over, and whether in random order. `partial_fit` takes rows as they come.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts. None hashes words, so that new ones can come at any time.
    n_jobs : int or None
        Threads that answer. One row is learned after the other.
    verbose : bool
        Show progress on stderr while learning.

    Examples
    --------
    >>> from ramify import LOMTreeClassifier
    >>> clf = LOMTreeClassifier(random_state=0)
    >>> _ = clf.partial_fit(["red apple", "green pear"] * 5, ["apple", "pear"] * 5)
    >>> _ = clf.partial_fit(["red cherry"] * 5, ["cherry"] * 5)
    >>> clf.predict(["a green pear", "a cherry"]).tolist()
    ['pear', 'cherry']
    >>> clf.n_nodes_
    5
    """

    learner_: _core.LomTree

    def __init__(
        self,
        *,
        max_nodes: int | None = None,
        nodes_per_class: float = 4.0,
        swap_resistance: float = 4.0,
        forgetting: float = 0.03,
        loss: str = "squared",
        learner: str = "adagrad",
        learning_rate: float = 0.5,
        eps: float = 0.001,
        passes: int = 1,
        shuffle: bool = True,
        normalize: bool = True,
        bias: float = 0.3,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.max_nodes = max_nodes
        self.nodes_per_class = nodes_per_class
        self.swap_resistance = swap_resistance
        self.forgetting = forgetting
        self.loss = loss
        self.learner = learner
        self.learning_rate = learning_rate
        self.eps = eps
        self.passes = passes
        self.shuffle = shuffle
        self.normalize = normalize
        self.bias = bias
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.max_nodes is not None:
            check_integer("max_nodes", self.max_nodes, at_least=0, at_most=2**30)
        check_number("nodes_per_class", self.nodes_per_class, above=0, at_most=1_000_000)
        check_number("swap_resistance", self.swap_resistance, at_least=0)
        check_number("forgetting", self.forgetting, at_least=0, at_most=0.999)
        check_regressor(self)
        check_integer("passes", self.passes, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("verbose", self.verbose)
        check_jobs(self.n_jobs)

    def _learner_settings(self) -> dict[str, Any]:
        return {
            "max_nodes": -1 if self.max_nodes is None else int(self.max_nodes),
            "nodes_per_class": float(self.nodes_per_class),
            "swap_resistance": float(self.swap_resistance),
            "forgetting": float(self.forgetting),
            **regressor_parameters(self),
        }

    # --- learning -------------------------------------------------------------------------------------------------

    def _begin(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        self._check_piece(Y)
        super()._begin(X, Y)

    def _learn(self, piece: Piece, order: NDArray[np.int64] | None, progress: _core.Progress | None) -> None:
        X, Y, weight = piece
        self.learner_.learn(*csr_parts(X), class_columns(Y, type(self).__name__), weight, order, progress)

    def _test_and_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int) -> BestLabels:
        return self.learner_.test_then_learn(*csr_parts(X), class_columns(Y, type(self).__name__), top_k)

    def _new_learner(self) -> _core.LomTree:
        given = dict(self.learner_settings_)
        of_tree = ("max_nodes", "nodes_per_class", "swap_resistance", "forgetting")
        own = {name: given.pop(name) for name in of_tree}
        return _core.LomTree(regressor=regressor_settings(given), **own)

    def _check_piece(self, indicator: sparse.csr_array) -> None:
        class_columns(indicator, type(self).__name__)

    def _can_learn(self, labels: NDArray[np.int32]) -> bool:
        return len(labels) == 1

    def _learn_plain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], labels: NDArray[np.int32], n_threads: int
    ) -> None:
        self.learner_.learn(np.array([0, len(indices)]), indices, values, labels)

    # --- what is learned ------------------------------------------------------------------------------------------

    @property
    def n_nodes_(self) -> int:
        """Nodes of the tree, inner ones and leaves."""
        return 2 * self.learner_.n_inner + 1

    @property
    def n_swaps_(self) -> int:
        """How often a leaf and its parent were moved to where they are needed more."""
        return self.learner_.n_swaps

    @property
    def depth_(self) -> int:
        """Steps from the root to the deepest leaf."""
        parent = self.learner_.state()["parent"]
        depth, level = 0, np.flatnonzero(parent == 0)
        while len(level):
            depth, level = depth + 1, np.flatnonzero(np.isin(parent, level))
        return depth

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf that each row reaches, as scikit-learn's trees tell it."""
        return self.learner_.leaves(*csr_parts(self._check_rows(X)), self._n_threads())

    # --- answers --------------------------------------------------------------------------------------------------

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        threads, n_labels = self._n_threads(), self.n_labels_
        if query.labels is not None:
            labels = query.labels.astype(np.int32, copy=False)
            return same_columns(self.learner_.named(*csr_parts(X), labels, threads), labels, n_labels)
        indptr, labels, probabilities = self.learner_.predict(
            *csr_parts(X), n_labels, query.top_k, *query.thresholds, threads
        )
        return csr_rows(probabilities, labels, indptr, (X.shape[0], n_labels))

    def _predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int | None, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        n_labels = self.n_labels_
        return self.learner_.predict_row(indices, values, n_labels, n_labels if top_k is None else top_k, threshold)

    def _explain_routes(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int
    ) -> list[list[RawStep]]:
        bias = self.n_features_in_  # as in the other models
        route = self.learner_.route(indices, values, column)
        return [
            [
                (node, mass, share, score, np.where(f < 0, bias, f), added)
                for node, mass, share, score, f, added in route
            ]
        ]
