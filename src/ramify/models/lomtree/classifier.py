"""LOMtree: online multi-class classification in logarithmic time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.base.one_class import OneClassARow, check_regressor, class_columns, regressor_parameters
from ramify.base.online import OnlineClassifier
from ramify.base.stream_schema import Piece
from ramify.base.training import TrainingData
from ramify.common.validation import check_flag, check_integer, check_jobs, check_number
from ramify.models.lomtree.model import LOMTreeModel
from ramify.optimizers import Optimizer


class LOMTreeClassifier(OneClassARow, OnlineClassifier):
    """Online decision tree for very many classes: a node separates the classes and sends as many rows left as right.

    Training and prediction take time logarithmic in the number of classes; classes and features need not be announced.
    Leaves that turn out useless are recycled where they are needed. Paper: Choromanska and Langford, "Logarithmic Time
    Online Multiclass prediction", section 3 (algorithm 1).

    Parameters
    ----------
    max_nodes : int or None
        Most inner nodes (T). None: `nodes_per_class` for each class seen so far.
    nodes_per_class : float
        Inner nodes for each class where `max_nodes` is None; the paper tries 1, 2, 4, ... 64.
    swap_resistance : float
        How many times as large as the smallest leaf, its majority class aside, a leaf must be to take that leaf's node
        (R_S). From 4 on, with `max_nodes`, no node moves more often than the logarithm of the examples.
    forgetting : float
        Decay of old scores in the expected score of a class and of a node. 0 is the paper's mean of all scores; a
        little decay follows regressors that still move.
    loss : "squared" or "logistic"
        What the regressors minimise, towards -1 on the left and +1 on the right.
    optimizer : "adagrad", "sgd", AdaGrad or SGD
        Step sizes: one per feature from its gradients so far, or one for all (`ramify.optimizers`). By default
        AdaGrad(learning_rate=0.5, eps=0.001).
    n_epochs, shuffle
        For `fit`: passes over the rows, and whether in random order. `partial_fit` takes rows in their order.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts. None is a StreamTextVectorizer, whose vocabulary grows with the stream.
    n_jobs : int or None
        Threads for queries. Rows are learned one after the other.
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

    def __init__(
        self,
        *,
        max_nodes: int | None = None,
        nodes_per_class: float = 4.0,
        swap_resistance: float = 4.0,
        forgetting: float = 0.03,
        loss: str = "squared",
        optimizer: str | Optimizer = "adagrad",
        n_epochs: int = 1,
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
        self.optimizer = optimizer
        self.n_epochs = n_epochs
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
        check_integer("n_epochs", self.n_epochs, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("verbose", self.verbose)
        check_jobs(self.n_jobs)

    def _learner_settings(self, *, is_multiclass: bool, seed: int) -> dict[str, Any]:
        return {
            "max_nodes": -1 if self.max_nodes is None else int(self.max_nodes),
            "nodes_per_class": float(self.nodes_per_class),
            "swap_resistance": float(self.swap_resistance),
            "forgetting": float(self.forgetting),
            **regressor_parameters(self),
        }

    def _new_model(self, data: TrainingData) -> LOMTreeModel:
        class_columns(data.Y, type(self).__name__)
        settings = self._learner_settings(is_multiclass=data.is_multiclass, seed=data.seed)
        return LOMTreeModel(
            settings, n_labels=data.n_labels, n_features=data.n_features, is_multiclass=data.is_multiclass
        )

    def _accept(self, piece: Piece) -> Piece:
        class_columns(piece[1], type(self).__name__)
        return piece

    # --- what is learned ------------------------------------------------------------------------------------------

    @property
    def n_nodes_(self) -> int:
        """Nodes of the tree, inner ones and leaves."""
        n: int = 2 * self.model_.learner.n_inner + 1
        return n

    @property
    def n_swaps_(self) -> int:
        """How often a leaf and its parent were moved to where they are needed more."""
        n: int = self.model_.learner.n_swaps
        return n

    @property
    def depth_(self) -> int:
        """Steps from the root to the deepest leaf."""
        n: int = self.model_.depth
        return n

    def apply(self, X: Any) -> NDArray[np.int32]:
        """The leaf that each row reaches, as in scikit-learn's trees."""
        fitted = self._fitted()
        assert isinstance(fitted.model, LOMTreeModel)
        return fitted.model.leaves(fitted.schema.rows(X), self._n_threads())
