"""The contextual memory tree: examples are stored, and retrieved in logarithmic time by routers that learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ramify.base.online import OnlineClassifier
from ramify.base.online_model import OnlineModel
from ramify.base.training import TrainingData
from ramify.common.validation import check_choice, check_flag, check_integer, check_jobs, check_number
from ramify.models.memory_tree.model import MemoryTreeModel
from ramify.optimizers import Optimizer, resolve_optimizer

LABEL_SCORERS = ("votes", "one_against_rest")
FORGETTING = ("oldest", "least_useful")
OPTIMIZERS = {"adagrad": {"learning_rate": 1.0, "eps": 0.01}}


class MemoryTreeClassifier(OnlineClassifier):
    """Stores examples in a tree, and answers with the labels of those that a query finds again.

    Insert, update and query take time logarithmic in the number of stored examples; labels and features may appear at
    any time. Paper: Sun, Beygelzimer, Daume, Langford and Mineiro 2019 (contextual memory trees), sections 2 and 3.

    Routers learn where stored examples with a row's labels are, weighed against balance. A full leaf is halved by
    balanced 2-means. A query visits the few most probable leaves, scores their examples by the features that they share
    with the row, each with a learned weight, and lets the best of them vote.

    Parameters
    ----------
    leaf_multiplier : float
        c: a leaf holds at most c log2(n) of n stored examples.
    alpha : float
        Weight of balance against fit where routers decide and learn, above 0 and at most 1. One side of a node never
        grows beyond exp((1 - alpha) / alpha) times the other.
    reroutes : int
        d: stored examples that are removed and inserted again after each row, as the routers have learned since.
    n_leaves : int
        Leaves that a query visits, the most probable first; 1 is the paper's descent.
    n_neighbours : int or None
        Retrieved examples that vote; None: all. 1 answers with the labels of the best one.
    label_scorer : None, "votes" or "one_against_rest"
        Whether the vote is the answer, or is combined with classifiers of the voted labels that learn one against the
        rest of the retrieved ones. None: votes for one class per row, one_against_rest otherwise.
    optimizer : "adagrad" or AdaGrad
        Step sizes of routers and of the labels' classifiers; eps is for routers (`ramify.optimizers`). By default
        AdaGrad(learning_rate=1.0, eps=0.01).
    scorer_rate : float
        Step size of the similarity; 0 leaves it the cosine (of normalised rows).
    max_examples : int or None
        Most examples stored; beyond it each new one replaces another.
    forgetting : "oldest" or "least_useful"
        Which example is dropped: the one learned (or given again) longest ago, or, of some drawn at random, the one
        that was retrieved correctly least often.
    n_epochs, shuffle
        For `fit`: passes, and whether in random order. Later passes go over the stored examples.
    normalize : bool
        Scale rows to unit length.
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts. None is a StreamTextVectorizer, whose vocabulary grows with the stream.
    n_jobs : int or None
        Threads for queries; rows are learned one after the other. The result does not depend on it.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
    verbose : bool
        Show progress on stderr while learning.

    A row that is given again with the same features and labels, and found, adds to the weight of the stored one.

    Examples
    --------
    >>> from ramify import MemoryTreeClassifier
    >>> clf = MemoryTreeClassifier(random_state=0)
    >>> _ = clf.partial_fit(["red round", "yellow long"], ["cherry", "banana"])
    >>> _ = clf.learn_one("green round", "apple")
    >>> clf.predict(["long and yellow", "round and green"]).tolist()
    ['banana', 'apple']
    """

    def __init__(
        self,
        *,
        leaf_multiplier: float = 10.0,
        alpha: float = 0.6,
        reroutes: int = 1,
        n_leaves: int = 8,
        n_neighbours: int | None = 10,
        label_scorer: str | None = None,
        optimizer: str | Optimizer = "adagrad",
        scorer_rate: float = 0.1,
        max_examples: int | None = None,
        forgetting: str = "oldest",
        n_epochs: int = 1,
        shuffle: bool = True,
        normalize: bool = True,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.leaf_multiplier = leaf_multiplier
        self.alpha = alpha
        self.reroutes = reroutes
        self.n_leaves = n_leaves
        self.n_neighbours = n_neighbours
        self.label_scorer = label_scorer
        self.optimizer = optimizer
        self.scorer_rate = scorer_rate
        self.max_examples = max_examples
        self.forgetting = forgetting
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.normalize = normalize
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_number("leaf_multiplier", self.leaf_multiplier, above=0)
        check_number("alpha", self.alpha, above=0, at_most=1)
        check_integer("reroutes", self.reroutes, at_least=0, at_most=1_000_000)
        check_integer("n_leaves", self.n_leaves, at_least=1, at_most=2**31 - 1)
        if self.n_neighbours is not None:
            check_integer("n_neighbours", self.n_neighbours, at_least=1, at_most=2**31 - 1)
        if self.label_scorer is not None:
            check_choice("label_scorer", self.label_scorer, LABEL_SCORERS)
        resolve_optimizer(self.optimizer, OPTIMIZERS)
        check_number("scorer_rate", self.scorer_rate, at_least=0)
        if self.max_examples is not None:
            check_integer("max_examples", self.max_examples, at_least=1, at_most=2**32 - 2)
        check_choice("forgetting", self.forgetting, FORGETTING)
        check_integer("n_epochs", self.n_epochs, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("normalize", self.normalize)
        check_flag("verbose", self.verbose)
        check_jobs(self.n_jobs)

    def _learner_settings(self, *, is_multiclass: bool, seed: int) -> dict[str, Any]:
        default = "votes" if is_multiclass else "one_against_rest"
        _, steps = resolve_optimizer(self.optimizer, OPTIMIZERS)
        return {
            "leaf_multiplier": float(self.leaf_multiplier),
            "alpha": float(self.alpha),
            "reroutes": self.reroutes,
            "n_leaves": self.n_leaves,
            "n_neighbours": self.n_neighbours or 0,
            "learning_rate": steps["learning_rate"],
            "eps": steps["eps"],
            "scorer_rate": float(self.scorer_rate),
            "normalize": self.normalize,
            "is_multiclass": is_multiclass,
            "has_one_against_rest": (self.label_scorer or default) == "one_against_rest",
            "max_examples": self.max_examples or 0,
            "forget": self.forgetting,
            "seed": seed,
        }

    # --- learning -------------------------------------------------------------------------------------------------

    def _new_model(self, data: TrainingData) -> MemoryTreeModel:
        settings = self._learner_settings(is_multiclass=data.is_multiclass, seed=data.seed)
        return MemoryTreeModel(
            settings, n_labels=data.n_labels, n_features=data.n_features, is_multiclass=data.is_multiclass
        )

    def _learn_epochs(self, model: OnlineModel, data: TrainingData) -> None:
        """Later passes go over the stored examples, not over the rows again."""
        assert isinstance(model, MemoryTreeModel)
        generator = np.random.default_rng(data.seed)
        order = generator.permutation(data.X.shape[0]) if self.shuffle else None
        self._learn(model, (data.X, data.Y, data.sample_weight), order)
        for _ in range(self.n_epochs - 1):
            n = model.n_examples
            model.revisit(generator.permutation(n) if self.shuffle else np.arange(n))

    # --- what is stored -------------------------------------------------------------------------------------------

    @property
    def n_examples_(self) -> int:
        """Examples stored; equal rows with equal labels are one, if they were found."""
        return super().n_examples_

    @property
    def n_forgotten_(self) -> int:
        """Examples dropped because of `max_examples`."""
        n: int = self.model_.learner.n_forgotten
        return n
