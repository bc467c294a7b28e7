"""Probabilistic label trees that learn from a stream, and grow with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core, trees
from ramify.base.classifier import Query
from ramify.base.online import BestLabels, OnlineClassifier
from ramify.base.stream_rows import Piece
from ramify.common.progress import phase
from ramify.common.validation import check_choice, check_flag, check_integer, check_jobs, check_number
from ramify.data.csr import csr_parts, csr_rows, label_parts
from ramify.models.online_plt.freeze import frozen_model, learner_settings
from ramify.models.online_plt.policy import GrowingTree
from ramify.models.plt.classifier import PLTClassifier
from ramify.trees.label_tree import LabelTree

POLICIES = ("fair", "best", "balanced", "random", "cpt")
# Most children of inner and of pre-leaf nodes (b, b_max): the paper's trees are binary, wider ones faster and better.
ARITIES = {"fair": (24, 127)}
PAPERS_ARITIES = (2, 100)
# Weight of balance against fit (alpha).
ALPHAS = {"fair": 0.2}
PAPERS_ALPHA = 0.75

TreeSpecification = str | LabelTree | Callable[..., LabelTree]
PolicySpecification = str | Callable[..., tuple[int, bool]] | None


class OnlinePLTClassifier(OnlineClassifier):
    """Online probabilistic label tree: new labels and new features at any time, no knowledge of either beforehand.

    The classifiers are those of an incremental PLT that knew the tree from the start, bit for bit, whatever the batch
    sizes and the number of threads. Paper: online-plt, sections 3 and 4 (algorithms 1 to 8).

    Parameters
    ----------
    policy : "fair", "best", "balanced", "random", "cpt", a callable, or None
        Where a new label goes. "best" (best-greedy) and "random" are the paper's; "balanced" is best-greedy with the
        balance that napkinXC computes, whose trees are shallower; "cpt" is the conditional probability tree's, which
        only splits leaves. "fair" goes by the score of "balanced" too, but never to a child that has more than its fair
        share of labels, so that the depth stays logarithmic. A callable is asked as policy(tree, x, label) and answers
        (node, insert): see `GrowingTree`. None, with `tree`, is the incremental PLT: other labels are refused.
    tree : None, LabelTree, builder's name or builder
        The tree to begin with; a builder builds it from the first rows. None begins with nothing.
    b, b_max : int or None
        Most children of an inner node, and of a node whose children are leaves; None: 24 and 127 for "fair", for the
        others the paper's 2 and 100.
    alpha : float or None
        Weight of balance against fit, between 0 and 1; None: 0.2 for "fair", for the others the paper's 0.75.
    fair_share : float
        "fair": how many times the average of its siblings' labels a child may have, at least 1.
    learner : "adagrad" or "fobos"
        Update rule of the node classifiers: AdaGrad, or descent with an L2 regulariser (extreme-f-measure, section 6).
    learning_rate, eps, decay
        AdaGrad's step is learning_rate * g / (sqrt(s) + decay * s + eps), with s the sum of the squares of the
        gradients g: quick while little is known, and steadier later on. The paper has 1, 0.01, 0, and a bias of 1.
    l2 : float
        Strength of FOBOS's regulariser.
    passes, shuffle
        For `fit`: how often the rows are gone over, and whether in random order. `partial_fit` takes rows as they come.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    memory_budget : int or None
        Bytes that the learned weights may take; near it the features of least weight are given up.
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts. None hashes words, so that new ones can come at any time; a TfidfVectorizer keeps the
        vocabulary of the first texts.
    verbose : bool
        Show progress on stderr while learning.

    Examples
    --------
    >>> from ramify import OnlinePLTClassifier
    >>> clf = OnlinePLTClassifier(random_state=0)
    >>> _ = clf.partial_fit(["red apple", "green apple"] * 5, [["red", "apple"], ["green", "apple"]] * 5)
    >>> _ = clf.partial_fit(["red cherry"] * 5, [["red", "cherry"]] * 5)
    >>> clf.classes_.tolist()
    ['red', 'apple', 'green', 'cherry']
    >>> sorted(label for label, _ in clf.predict_one("a red cherry", top_k=2))
    ['cherry', 'red']
    """

    learner_: _core.OnlineLearner

    def __init__(
        self,
        *,
        policy: PolicySpecification = "fair",
        tree: TreeSpecification | None = None,
        b: int | None = None,
        b_max: int | None = None,
        alpha: float | None = None,
        fair_share: float = 3.0,
        learner: str = "adagrad",
        learning_rate: float = 2.0,
        eps: float = 0.2,
        decay: float = 0.5,
        l2: float = 1e-6,
        passes: int = 1,
        shuffle: bool = True,
        normalize: bool = True,
        bias: float = 0.2,
        memory_budget: int | None = None,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.policy = policy
        self.tree = tree
        self.b = b
        self.b_max = b_max
        self.alpha = alpha
        self.fair_share = fair_share
        self.learner = learner
        self.learning_rate = learning_rate
        self.eps = eps
        self.decay = decay
        self.l2 = l2
        self.passes = passes
        self.shuffle = shuffle
        self.normalize = normalize
        self.bias = bias
        self.memory_budget = memory_budget
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.policy is not None and not callable(self.policy):
            check_choice("policy", self.policy, POLICIES)
        if self.b is not None:
            check_integer("b", self.b, at_least=2, at_most=2**31 - 1)
        if self.b_max is not None:
            check_integer("b_max", self.b_max, at_least=self._arities()[0], at_most=2**31 - 1)
        if self.alpha is not None:
            check_number("alpha", self.alpha, at_least=0, at_most=1)
        check_number("fair_share", self.fair_share, at_least=1)
        check_choice("learner", self.learner, ["adagrad", "fobos"])
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("eps", self.eps, above=0)
        check_number("decay", self.decay, at_least=0)
        check_number("l2", self.l2, at_least=0)
        check_integer("passes", self.passes, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("normalize", self.normalize)
        check_number("bias", self.bias, at_least=0)
        if self.memory_budget is not None:
            check_integer("memory_budget", self.memory_budget, at_least=1, at_most=2**62)
        check_flag("verbose", self.verbose)
        check_jobs(self.n_jobs)

    def _alpha(self) -> float:
        return ALPHAS.get(str(self.policy), PAPERS_ALPHA) if self.alpha is None else self.alpha

    def _arities(self) -> tuple[int, int]:
        b, b_max = ARITIES.get(str(self.policy), PAPERS_ARITIES)
        b = b if self.b is None else self.b
        return b, max(b, b_max) if self.b_max is None else self.b_max

    # --- learning -------------------------------------------------------------------------------------------------

    def warm_start(self, X: Any, y: Any, tree_builder: TreeSpecification = "kmeans") -> OnlinePLTClassifier:
        """Begin anew with a tree built on a sample (or given), learned on that sample; then go on online.

        Paper: online-plt, section 5.1 (OPLT-W), whose tree is balanced 2-means on a tenth of the rows.
        """
        given = self.tree
        try:
            self.tree = tree_builder
            self.fit(X, y)
        finally:
            self.tree = given
        return self

    def _begin(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        """A learner with the tree to begin with."""
        if self.policy is None and self.tree is None:
            raise ValueError("policy=None never adds a label, so it needs a tree: give tree=, or a policy")
        super()._begin(X, Y)
        if self.tree is not None:
            with phase("building the tree"):
                tree = self._first_tree(self.tree, X, Y)
            if tree is not None:
                self.learner_.adopt(tree.parent, tree.first_child, tree.n_children, tree.label, tree.n_labels)
        self._check_piece(Y)
        self.is_over_budget_ = False

    def _first_tree(self, given: TreeSpecification, X: sparse.csr_array, Y: sparse.csr_array) -> LabelTree | None:
        if isinstance(given, LabelTree):
            self._make_room_for(given)
            return LabelTree(given.parent, given.label, n_labels=self.n_labels_)
        arity, max_leaf = self._arities()
        settings: dict[str, Any] = {
            "arity": arity,
            "max_leaf": max_leaf,
            "random_state": self.seed_,
            "n_jobs": self._n_threads(),
        }
        # A growing tree has leaves for labels with examples only: the others come when they come.
        columns = np.arange(Y.shape[1]) if self.policy is None else np.unique(Y.indices)
        if len(columns) == 0:
            return None
        tree = trees.resolve(given, X, Y[:, columns], **settings)
        label = np.where(tree.label >= 0, columns[np.maximum(tree.label, 0)], -1).astype(np.int32)
        return LabelTree(tree.parent, label, n_labels=Y.shape[1])

    def _make_room_for(self, tree: LabelTree) -> None:
        """A given tree may have labels that come later: columns of a 0/1 array, or labels named in advance."""
        n_needed = int(tree.label.max()) + 1
        if n_needed > self.n_labels_ and self.label_encoding_.kind != "indicator":
            raise ValueError(
                f"the given tree has a leaf for label column {n_needed - 1}, but only {self.n_labels_} labels are "
                "known: name them all, in the tree's order, with partial_fit(..., classes=...)"
            )
        self.label_encoding_.widen(n_needed)
        self.n_labels_ = self.label_encoding_.n_labels

    def _learn(self, piece: Piece, order: NDArray[np.int64] | None, progress: _core.Progress | None) -> None:
        X, Y, weight = piece
        own, threads = self._own_policy(), self._n_threads()
        self.learner_.learn(*csr_parts(X), *label_parts(Y), weight, order, threads, own, progress)
        self._warn_of_budget()

    def _test_and_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int) -> BestLabels:
        answer = self.learner_.test_then_learn(
            *csr_parts(X), *label_parts(Y), top_k, self._n_threads(), self._own_policy()
        )
        self._warn_of_budget()
        return answer

    def _own_policy(self) -> Any:
        return GrowingTree.asker(self.learner_, self.policy) if callable(self.policy) else None

    def _can_learn(self, labels: NDArray[np.int32]) -> bool:
        return self.policy is not None or self.learner_.first_without_leaf(labels) < 0

    def _learn_plain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], labels: NDArray[np.int32], n_threads: int
    ) -> None:
        own = self._own_policy()
        x_bounds, y_bounds = np.array([0, len(indices)]), np.array([0, len(labels)])
        self.learner_.learn(x_bounds, indices, values, y_bounds, labels, None, None, n_threads, own, None)
        if self.memory_budget is not None:
            self._warn_of_budget(stacklevel=5)

    def _warn_of_budget(self, stacklevel: int = 5) -> None:
        if self.learner_.n_evicted_rows and not self.is_over_budget_:
            self.is_over_budget_ = True
            warnings.warn(
                f"memory_budget of {self.memory_budget:,} bytes is used up: from now on the features of least weight "
                "are given up to stay within it (see n_evicted_rows_); a larger budget keeps them",
                stacklevel=stacklevel,
            )

    def _check_piece(self, indicator: sparse.csr_array) -> None:
        if self.policy is not None:
            return
        outside = self.learner_.first_without_leaf(indicator.indices)
        if outside >= 0:
            name = self.label_encoding_.names([outside])[0]
            raise ValueError(
                f"label {name!r} has no leaf in the tree, and policy=None adds none: choose a policy, such as 'fair'"
            )

    # --- what is learned ------------------------------------------------------------------------------------------

    @property
    def tree_(self) -> LabelTree:
        """The tree as it stands; labels that were never seen have no leaf."""
        if "learner_" not in self.__dict__ or not self.learner_.has_labels:
            raise AttributeError("no label has been seen yet, so there is no tree_")
        parent, label = self.learner_.tree()
        return LabelTree(parent, label, n_labels=self.n_labels_)

    @property
    def n_evicted_rows_(self) -> int:
        """How many (node, feature) rows were given up for the memory budget."""
        return self.learner_.n_evicted_rows

    def freeze(self, prune: float = 0.1) -> PLTClassifier:
        """A serving model that answers the same questions, smaller and faster, and learns no more.

        Weights of at most `prune` are dropped, and the others rounded to bytes.
        """
        self._check_fitted()
        check_number("prune", prune, at_least=0)
        return frozen_model(self, prune)

    # --- answers --------------------------------------------------------------------------------------------------

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        n, threads = X.shape[0], self._n_threads()
        if query.labels is not None:
            indptr = np.arange(n + 1, dtype=np.int64) * len(query.labels)
            labels = np.tile(query.labels, n).astype(np.int32)
            found = self.learner_.named(*csr_parts(X), indptr, labels, threads)
            return csr_rows(found, labels, indptr, (n, self.n_labels_))
        indptr, labels, probabilities, _ = self.learner_.search(*csr_parts(X), query.top_k, *query.thresholds, threads)
        # The width comes last: another thread may have learned new labels meanwhile.
        return csr_rows(probabilities, labels, indptr, (n, self.n_labels_))

    def _n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """What an answer costs."""
        return self.learner_.search(*csr_parts(X), query.top_k, *query.thresholds, self._n_threads())[3]

    def _predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int | None, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.learner_.search_row(indices, values, self.n_labels_ if top_k is None else top_k, threshold)

    def _explain_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int
    ) -> list[tuple[LabelTree, list[Any]]]:
        steps = self.learner_.explain(indices, values, column)
        bias = self.n_features_in_  # as in batch models
        return [(self.tree_, [(node, p, np.where(f < 0, bias, f), added) for node, p, f, added in steps])]

    # --- model files ----------------------------------------------------------------------------------------------

    def _learner_settings(self) -> dict[str, Any]:
        return learner_settings(self)

    def _new_learner(self) -> _core.OnlineLearner:
        settings = dict(self.learner_settings_)
        settings["is_multiclass"] = settings.pop("one_of")  # saved models keep the old name
        return _core.OnlineLearner(**settings)

    def _learner_state(self) -> dict[str, NDArray[Any]]:
        return self.learner_.state(self._n_threads())

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata, arrays = super()._state()
        return {"is_over_budget": self.is_over_budget_, **metadata}, arrays

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.is_over_budget_ = bool(metadata["is_over_budget"])
        super()._restore(metadata, arrays)
