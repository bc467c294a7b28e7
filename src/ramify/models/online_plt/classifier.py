"""Probabilistic label trees that learn from a stream, and grow with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from ramify import trees
from ramify.base.fitted import FittedModel
from ramify.base.online import OnlineClassifier
from ramify.base.online_model import OnlineModel
from ramify.base.schema import Schema
from ramify.base.stream_schema import Piece, StreamSchema
from ramify.base.training import TrainingData
from ramify.common.progress import phase, shown
from ramify.common.validation import check_choice, check_flag, check_integer, check_jobs, check_number
from ramify.models.online_plt.model import OnlinePLTModel
from ramify.models.online_plt.policy import GrowingTree
from ramify.models.plt.classifier import PLTClassifier
from ramify.models.plt.solver import PLTSolver
from ramify.optimizers import Optimizer, resolve_optimizer
from ramify.trees.label_tree import LabelTree

POLICIES = ("fair", "best", "balanced", "random", "cpt")
# Most children of inner and of pre-leaf nodes: the paper's trees are binary, wider ones are faster and better.
ARITIES = {"fair": (24, 127)}
PAPERS_ARITIES = (2, 100)
# Weight of balance against fit (alpha).
ALPHAS = {"fair": 0.2}
PAPERS_ALPHA = 0.75
OPTIMIZERS = {
    "adagrad": {"learning_rate": 2.0, "eps": 0.2, "decay": 0.5, "eps_in_root": False},
    "fobos": {"learning_rate": 2.0, "l2": 1e-6},
}
# Features of rows that wait to be learned; fewer with a budget, which is checked when they are learned.
BUFFER_ENTRIES = 2**22
LEAST_BUFFER = 1024
# Weights of at most this size are dropped from a frozen model.
FROZEN_PRUNE = 0.1
BUDGET_SHARE = 4096

TreeSpecification = str | LabelTree | Callable[..., LabelTree]
PolicySpecification = str | Callable[..., tuple[int, bool]] | None


class OnlinePLTClassifier(OnlineClassifier):
    """Online probabilistic label tree: new labels and new features at any time, no knowledge of either beforehand.

    The classifiers are those of an incremental PLT that knew the tree from the start, bit for bit, for any batch sizes
    and number of threads. Paper: Jasinska-Kobus et al., "Online probabilistic label trees", sections 3 and 4.

    Parameters
    ----------
    policy : "fair", "best", "balanced", "random", "cpt", a callable, or None
        Where a new label goes. "best" (best-greedy) and "random" are the paper's; "balanced" is best-greedy with the
        balance that napkinXC computes, whose trees are shallower; "cpt" is the conditional probability tree's, which
        only splits leaves. "fair" uses the score of "balanced" too, but never descends to a child with more than its
        fair share of labels, so that the depth stays logarithmic. A callable is called as policy(tree, x, label) and
        returns (node, insert): see `GrowingTree`. None, with `tree`, is the incremental PLT: other labels are rejected.
    tree : None, LabelTree, builder's name or builder
        The tree to start with; a builder builds it from the first rows. None starts with nothing.
    arity, max_leaf : int or None
        Most children of an inner node, and of a node whose children are leaves (b and b_max in the paper); None: 24 and
        127 for "fair", for the others the paper's 2 and 100.
    alpha : float or None
        Weight of balance against fit, between 0 and 1; None: 0.2 for "fair", for the others the paper's 0.75.
    fair_share : float
        "fair": how many times the average of its siblings' labels a child may have, at least 1.
    optimizer : "adagrad", "fobos", AdaGrad or FOBOS
        Update rule of the node classifiers, with its settings (`ramify.optimizers`). By default
        AdaGrad(learning_rate=2.0, eps=0.2, decay=0.5); the paper's are in `from_paper`.
    n_epochs, shuffle
        For `fit`: passes over the rows, and whether in random order. `partial_fit` takes rows in their order.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    normalize_siblings : bool
        With 1-D y, exactly one child of a node holds the class: probabilities of siblings are proportional to their
        odds and sum to one, in predictions and in the policy's score. False: each child has its own probability, as in
        the paper, and those of a row need not sum to one. Labels given as collections always have their own.
    beam : int or None
        Nodes kept per level while searching; None searches exactly, 1 is greedy descent. Fixed when learning begins.
    memory_budget : int or None
        Bytes that weights and rows that wait to be learned may take; near it the features of least weight are dropped.
        Labels are never dropped, so nodes, the labels' places and their names are not bounded by it (`memory_`).
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts. None is a StreamTextVectorizer, whose vocabulary grows with the stream; a TextVectorizer
        keeps the vocabulary of the first texts.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
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

    def __init__(
        self,
        *,
        policy: PolicySpecification = "fair",
        tree: TreeSpecification | None = None,
        arity: int | None = None,
        max_leaf: int | None = None,
        alpha: float | None = None,
        fair_share: float = 3.0,
        optimizer: str | Optimizer = "adagrad",
        n_epochs: int = 1,
        shuffle: bool = True,
        normalize: bool = True,
        bias: float = 0.2,
        normalize_siblings: bool = True,
        beam: int | None = None,
        memory_budget: int | None = None,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.policy = policy
        self.tree = tree
        self.arity = arity
        self.max_leaf = max_leaf
        self.alpha = alpha
        self.fair_share = fair_share
        self.optimizer = optimizer
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.normalize = normalize
        self.bias = bias
        self.normalize_siblings = normalize_siblings
        self.beam = beam
        self.memory_budget = memory_budget
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.policy is not None and not callable(self.policy):
            check_choice("policy", self.policy, POLICIES)
        if self.arity is not None:
            check_integer("arity", self.arity, at_least=2, at_most=2**31 - 1)
        if self.max_leaf is not None:
            check_integer("max_leaf", self.max_leaf, at_least=self._arities()[0], at_most=2**31 - 1)
        if self.alpha is not None:
            check_number("alpha", self.alpha, at_least=0, at_most=1)
        check_number("fair_share", self.fair_share, at_least=1)
        resolve_optimizer(self.optimizer, OPTIMIZERS)
        check_integer("n_epochs", self.n_epochs, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("normalize", self.normalize)
        check_flag("normalize_siblings", self.normalize_siblings)
        if self.beam is not None:
            check_integer("beam", self.beam, at_least=1, at_most=2**31 - 1)
        check_number("bias", self.bias, at_least=0)
        if self.memory_budget is not None:
            check_integer("memory_budget", self.memory_budget, at_least=1, at_most=2**62)
        check_flag("verbose", self.verbose)
        check_jobs(self.n_jobs)

    def _alpha(self) -> float:
        return ALPHAS.get(str(self.policy), PAPERS_ALPHA) if self.alpha is None else self.alpha

    def _arities(self) -> tuple[int, int]:
        arity, max_leaf = ARITIES.get(str(self.policy), PAPERS_ARITIES)
        arity = arity if self.arity is None else self.arity
        return arity, max(arity, max_leaf) if self.max_leaf is None else self.max_leaf

    def _learner_settings(self, *, is_multiclass: bool, seed: int) -> dict[str, Any]:
        arity, max_leaf = self._arities()
        rule, steps = resolve_optimizer(self.optimizer, OPTIMIZERS)
        steps = {"eps": 0.2, "decay": 0.5, "eps_in_root": False, "l2": 1e-6} | steps  # those of the other rule: unused
        budget = self.memory_budget or 0
        return {
            "rule": rule,
            "learning_rate": steps["learning_rate"],
            "eps": steps["eps"],
            "eps_in_root": steps["eps_in_root"],
            "decay": steps["decay"],
            "l2": steps["l2"],
            "normalize": self.normalize,
            "bias": float(self.bias),
            "is_multiclass": is_multiclass and self.normalize_siblings,
            "buffer_entries": min(BUFFER_ENTRIES, max(LEAST_BUFFER, budget // BUDGET_SHARE))
            if budget
            else BUFFER_ENTRIES,
            "memory_budget": budget,
            "policy": "none" if self.policy is None else self.policy if isinstance(self.policy, str) else "callable",
            "alpha": float(self._alpha()),
            "fair_share": float(self.fair_share),
            "arity": arity,
            "pre_leaf_arity": max_leaf,
            "beam": self.beam or 0,
            "seed": seed,
        }

    # --- learning -------------------------------------------------------------------------------------------------

    def warm_start(self, X: Any, y: Any, tree_builder: TreeSpecification = "kmeans") -> OnlinePLTClassifier:
        """Start again with a tree built on a sample (or given), learned on that sample; then continue online.

        Paper: "Online probabilistic label trees", section 5.1 (OPLT-W; balanced 2-means on a tenth of the rows).
        """
        with shown(self.verbose is True):
            data = self._read_training_data(X, y, None)
            hierarchy, model = self._hierarchy_of(data.schema), self._new_model(data, tree_builder)
            self._learn_epochs(model, data)
            self._set_fitted(FittedModel(data.schema, model, seed=data.seed, hierarchy=hierarchy))
        return self

    def _new_model(self, data: TrainingData, start: TreeSpecification | None = None) -> OnlinePLTModel:
        """A model with the tree to start with."""
        start = self.tree if start is None else start
        if self.policy is None and start is None:
            raise ValueError("policy=None never adds a label, so it needs a tree: give tree=, or a policy")
        tree = None
        if start is not None:
            with phase("building the tree"):
                tree = self._first_tree(start, data)
        settings = self._learner_settings(is_multiclass=data.is_multiclass, seed=data.seed)
        model = OnlinePLTModel(
            settings, n_labels=data.n_labels, n_features=data.schema.n_features, is_multiclass=data.is_multiclass
        )
        if tree is not None:
            model.adopt(tree)
        self._check_leaves(model, data.schema, data.Y)
        return model

    def _first_tree(self, given: TreeSpecification, data: TrainingData) -> LabelTree | None:
        if isinstance(given, LabelTree):
            _make_room_for(given, data.schema)
            return LabelTree(given.parent, given.label, n_labels=data.n_labels)
        arity, max_leaf = self._arities()
        Y = data.Y
        # A growing tree has leaves for labels with examples only; the others are added when they appear.
        columns = np.arange(Y.shape[1]) if self.policy is None else np.unique(Y.indices)
        if len(columns) == 0:
            return None
        tree = trees.resolve(
            given,
            data.X,
            Y[:, columns],
            arity=arity,
            max_leaf=max_leaf,
            random_state=data.seed,
            n_jobs=data.n_threads,
        )
        label = np.where(tree.label >= 0, columns[np.maximum(tree.label, 0)], -1).astype(np.int32)
        return LabelTree(tree.parent, label, n_labels=Y.shape[1])

    def _policy(self, model: OnlineModel) -> Any:
        return GrowingTree.asker(model.learner, self.policy) if callable(self.policy) else None

    def _accept(self, piece: Piece) -> Piece:
        fitted = self.fitted_
        assert isinstance(fitted.model, OnlinePLTModel)
        self._check_leaves(fitted.model, fitted.schema, piece[1])
        return piece

    def _check_leaves(self, model: OnlinePLTModel, schema: Schema, Y: sparse.csr_array) -> None:
        if self.policy is not None:
            return
        outside = model.first_without_leaf(Y.indices)
        if outside >= 0:
            raise ValueError(
                f"label {schema.label_of(outside)!r} has no leaf in the tree, and policy=None adds none: "
                "choose a policy, such as 'fair'"
            )

    # --- what is learned ------------------------------------------------------------------------------------------

    @property
    def tree_(self) -> LabelTree:
        """The tree as it stands; labels that were never seen have no leaf."""
        tree: LabelTree | None = self.model_.tree if "fitted_" in self.__dict__ else None
        if tree is None:
            raise AttributeError("no label has been seen yet, so there is no tree_")
        return tree

    @property
    def memory_(self) -> int:
        """Bytes of everything learned: `weights_memory_`, and about 50 to 80 bytes for each label and node.

        The names of labels and features are not part of it.
        """
        n: int = self.model_.memory
        return n

    @property
    def weights_memory_(self) -> int:
        """Bytes of what `memory_budget` bounds: weights, and rows that wait to be learned."""
        n: int = self.model_.learner.weight_memory
        return n

    @property
    def n_evicted_rows_(self) -> int:
        """How many (node, feature) rows were dropped for the memory budget."""
        n: int = self.model_.learner.n_evicted_rows
        return n

    def freeze(self, prune: float | None = None) -> PLTClassifier:
        """A serving model that answers the same queries, smaller and faster, and learns no more.

        Weights of at most `prune` are dropped, and the others rounded to bytes. None: 0.1 where rows have unit length;
        without `normalize` the size of weights depends on the unit of the features, and only zeros are dropped.
        """
        fitted = self._fitted()
        if prune is None:
            prune = FROZEN_PRUNE if self.normalize else 0.0
        check_number("prune", prune, at_least=0)
        schema, model = fitted.schema, fitted.model
        assert isinstance(schema, StreamSchema)
        assert isinstance(model, OnlinePLTModel)
        with fitted.lock.reading():
            frozen_model = model.frozen(prune, self._n_threads())
            frozen_schema = schema.frozen(PLTClassifier.__name__)
        frozen = PLTClassifier(
            tree=frozen_model.trees[0].tree,
            solver=PLTSolver(loss="logistic", prune=prune),
            calibrate=False,
            normalize=model.settings["normalize"],
            bias=frozen_model.trees[0].bias,
            beam=self.beam,
            vectorizer=self.vectorizer,
            hierarchy=self.hierarchy,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        of_fitted: dict[str, Any] = {"thresholds": fitted.thresholds, "hierarchy": fitted.hierarchy}
        frozen._set_fitted(FittedModel(frozen_schema, frozen_model, seed=fitted.seed, **of_fitted))
        return frozen


def _make_room_for(tree: LabelTree, schema: Schema) -> None:
    """A given tree may have labels that come later: columns of a 0/1 array, or labels named in advance."""
    n_needed = int(tree.label.max()) + 1
    if n_needed > schema.n_labels and schema.labels.kind != "indicator":
        raise ValueError(
            f"the given tree has a leaf for label column {n_needed - 1}, but only {schema.n_labels} labels are "
            "known: name them all, in the tree's order, with partial_fit(..., classes=...)"
        )
    schema.labels.widen(n_needed)
