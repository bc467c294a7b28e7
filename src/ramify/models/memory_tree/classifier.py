"""The contextual memory tree: examples are stored, and found again in logarithmic time by routers that learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import same_columns
from ramify.base.classifier import Query, TrainingData
from ramify.base.online import BestLabels, OnlineClassifier
from ramify.base.stream_rows import Piece
from ramify.common.progress import phase
from ramify.common.validation import check_choice, check_flag, check_integer, check_jobs, check_number
from ramify.data.csr import csr_parts, csr_rows, label_parts

LABEL_SCORERS = ("votes", "one_against_rest")
FORGETTING = ("oldest", "least_useful")
# Names in `learner_settings_`, which saved models keep, and the core's names for them.
CORE_NAMES = {"one_of": "is_multiclass", "has_label_rest": "has_one_against_rest"}


class MemoryTreeClassifier(OnlineClassifier):
    """Stores examples in a tree, and answers with the labels of those that a query finds again.

    Insert, update and query take time logarithmic in the number of stored examples; labels and features may come up at
    any time. Paper: Sun, Beygelzimer, Daume, Langford and Mineiro 2019 (contextual memory trees), sections 2 and 3; the
    comparator of online-plt, section 5.

    Routers learn where stored examples with a row's labels are, with a say for balance. A leaf that is full is halved
    by balanced 2-means. A query visits the few most probable leaves, scores their examples by the features that they
    share with the row, each with a learned weight, and lets the best of them vote.

    Parameters
    ----------
    leaf_multiplier : float
        c: a leaf holds at most c log2(n) of n stored examples.
    alpha : float
        Weight of balance against fit where routers decide and learn, above 0 and at most 1. One side of a node never
        grows beyond exp((1 - alpha) / alpha) times the other.
    reroutes : int
        d: stored examples that are taken out and put in again after each row, as the routers have learned since.
    n_leaves : int
        Leaves that a query visits, the most probable first; 1 is the paper's descent.
    n_neighbours : int or None
        Retrieved examples that vote; None: all that are looked at. 1 answers with the labels of the best one.
    label_scorer : None, "votes" or "one_against_rest"
        Whether the vote is the answer, or classifiers of the voted labels have a say, too, that learn one against the
        rest of what is retrieved. None: votes for one class a row, one_against_rest otherwise.
    learning_rate, eps
        Step size of routers and of labels' classifiers (AdaGrad), and, for routers, what is added to the root of the
        summed squares.
    scorer_rate : float
        Step size of the similarity; 0 leaves it the cosine (of normalised rows).
    max_examples : int or None
        Most examples that are stored; beyond it one leaves for each that comes.
    forget : "oldest" or "least_useful"
        Who leaves: the one learned (or given again) longest ago, or, of some drawn at random, the one that was
        retrieved rightly least often.
    passes, shuffle
        For `fit`: how often the rows are gone over, and whether in random order. Later passes go over what is stored.
    normalize : bool
        Scale rows to unit length.
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts. None hashes words, so that new ones can come at any time.
    n_jobs : int or None
        Threads that answer; learning takes one row after the other. The result does not depend on it.
    verbose : bool
        Show progress on stderr while learning.

    A row that is given again, features and labels alike, and found, adds to the weight of the stored one.

    Examples
    --------
    >>> from ramify import MemoryTreeClassifier
    >>> clf = MemoryTreeClassifier(random_state=0)
    >>> _ = clf.partial_fit(["red round", "yellow long"], ["cherry", "banana"])
    >>> _ = clf.learn_one("green round", "apple")
    >>> clf.predict(["long and yellow", "round and green"]).tolist()
    ['banana', 'apple']
    """

    learner_: _core.MemoryTree

    def __init__(
        self,
        *,
        leaf_multiplier: float = 10.0,
        alpha: float = 0.6,
        reroutes: int = 1,
        n_leaves: int = 8,
        n_neighbours: int | None = 10,
        label_scorer: str | None = None,
        learning_rate: float = 1.0,
        eps: float = 0.01,
        scorer_rate: float = 0.1,
        max_examples: int | None = None,
        forget: str = "oldest",
        passes: int = 1,
        shuffle: bool = True,
        normalize: bool = True,
        vectorizer: Any = None,
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
        self.learning_rate = learning_rate
        self.eps = eps
        self.scorer_rate = scorer_rate
        self.max_examples = max_examples
        self.forget = forget
        self.passes = passes
        self.shuffle = shuffle
        self.normalize = normalize
        self.vectorizer = vectorizer
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
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("eps", self.eps, above=0)
        check_number("scorer_rate", self.scorer_rate, at_least=0)
        if self.max_examples is not None:
            check_integer("max_examples", self.max_examples, at_least=1, at_most=2**32 - 2)
        check_choice("forget", self.forget, FORGETTING)
        check_integer("passes", self.passes, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("normalize", self.normalize)
        check_flag("verbose", self.verbose)
        check_jobs(self.n_jobs)

    def _learner_settings(self) -> dict[str, Any]:
        """Arguments of `_core.MemoryTree`; a model keeps those that its tree was made with."""
        default = "votes" if self.is_multiclass_ else "one_against_rest"
        return {
            "leaf_multiplier": float(self.leaf_multiplier),
            "alpha": float(self.alpha),
            "reroutes": self.reroutes,
            "n_leaves": self.n_leaves,
            "n_neighbours": self.n_neighbours or 0,
            "learning_rate": float(self.learning_rate),
            "eps": float(self.eps),
            "scorer_rate": float(self.scorer_rate),
            "normalize": self.normalize,
            "one_of": self.is_multiclass_,
            "has_label_rest": (self.label_scorer or default) == "one_against_rest",
            "max_examples": self.max_examples or 0,
            "forget": self.forget,
            "seed": self.seed_,
        }

    # --- learning -------------------------------------------------------------------------------------------------

    def _fit(self, data: TrainingData) -> None:
        """Later passes go over what is stored, not over the rows again."""
        self._begin(data.X, data.Y)
        generator = np.random.default_rng(data.seed)
        order = generator.permutation(data.X.shape[0]) if self.shuffle else None
        with phase("learning", progress := _core.Progress()):
            self._learn((data.X, data.Y, data.sample_weight), order, progress)
        for _ in range(self.passes - 1):
            n = self.learner_.n_examples
            order = generator.permutation(n) if self.shuffle else np.arange(n)
            with phase("another pass", progress := _core.Progress()):
                self.learner_.revisit(order, progress)

    def _new_learner(self) -> _core.MemoryTree:
        return _core.MemoryTree(**{CORE_NAMES.get(name, name): value for name, value in self.learner_settings_.items()})

    def _learn(self, piece: Piece, order: NDArray[np.int64] | None, progress: _core.Progress | None) -> None:
        X, Y, weight = piece
        self.learner_.learn(*csr_parts(X), *label_parts(Y), weight, order, progress)

    def _test_and_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int) -> BestLabels:
        return self.learner_.test_then_learn(*csr_parts(X), *label_parts(Y), top_k)

    def _learn_plain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], labels: NDArray[np.int32], n_threads: int
    ) -> None:
        x_bounds, y_bounds = np.array([0, len(indices)]), np.array([0, len(labels)])
        self.learner_.learn(x_bounds, indices, values, y_bounds, np.sort(labels), None, None, None)

    # --- what is stored -------------------------------------------------------------------------------------------

    @property
    def n_examples_(self) -> int:
        """Examples stored; equal rows with equal labels are one, if they were found."""
        return self.learner_.n_examples

    @property
    def n_forgotten_(self) -> int:
        """Examples that left because of `max_examples`."""
        return self.learner_.n_forgotten

    # --- answers --------------------------------------------------------------------------------------------------

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        shape, threads = (X.shape[0], self.n_labels_), self._n_threads()
        if query.labels is not None:
            labels = query.labels.astype(np.int32, copy=False)
            return same_columns(self.learner_.named(*csr_parts(X), shape[1], labels, threads), labels, shape[1])
        indptr, indices, data, *_ = self._query(X, shape[1], query)
        return csr_rows(data, indices, indptr, shape)

    def _query(self, X: sparse.csr_array, n_labels: int, query: Query) -> tuple[Any, Any, Any, int, int]:
        """CSR parts of the answer, and how many nodes and examples were looked at."""
        return self.learner_.query(*csr_parts(X), n_labels, query.top_k, *query.thresholds, self._n_threads())

    def _predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int | None, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return self.learner_.query_row(indices, values, self.n_labels_, top_k, threshold)

    def _explain_memories(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int
    ) -> tuple[float, list[Any], list[Any]]:
        bounds, label = np.array([0, len(indices)]), np.array([column], dtype=np.int32)
        probability = self.learner_.named(bounds, indices, values, self.n_labels_, label, 1)[0, 0]
        neighbours = self.learner_.neighbours(indices, values)
        best = next((found for found in neighbours if column in found[5]), neighbours[0] if neighbours else None)
        route = [] if best is None else self.learner_.route(indices, values, best[0], column)
        return float(probability), neighbours, route
