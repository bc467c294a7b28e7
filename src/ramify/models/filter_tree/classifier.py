"""The filter tree: a tournament of classes, the baseline that LOMtree is measured against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import keep_best, same_columns
from ramify.base.classifier import Query, TrainingData
from ramify.base.one_class import (
    OneClassARow,
    check_regressor,
    class_columns,
    regressor_parameters,
    regressor_settings,
)
from ramify.common.progress import phase
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.data.csr import csr_parts, csr_rows


class FilterTreeClassifier(OneClassARow):
    """Knock-out tournament of classes in random order: a match learns from the examples whose class came that far.

    Training and prediction take time in the logarithm of the classes. A tournament has a winner and no probabilities:
    the winner is given the share of training rows whose class won just before they were learned, the others the rest.
    Papers: lomtree, section 1.1 and table 4; Beygelzimer, Langford and Ravikumar 2009.

    Parameters
    ----------
    loss, learner, learning_rate, eps
        The matches' linear regressors, as in `LOMTreeClassifier`.
    passes, shuffle
        How often the rows are gone over, and whether in random order.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts.
    n_jobs : int or None
        Threads that answer.
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import FilterTreeClassifier
    >>> clf = FilterTreeClassifier(passes=5, random_state=0)
    >>> _ = clf.fit(["red apple", "green pear", "black cherry"] * 5, ["apple", "pear", "cherry"] * 5)
    >>> clf.predict(["a green pear", "a cherry"]).tolist()
    ['pear', 'cherry']
    """

    tournament_: _core.FilterTree
    order_: NDArray[np.int32]
    settings_: dict[str, Any]
    won_: float

    def __init__(
        self,
        *,
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
        check_regressor(self)
        check_integer("passes", self.passes, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("verbose", self.verbose)

    def _fit(self, data: TrainingData) -> None:
        labels = class_columns(data.Y, type(self).__name__)
        generator = np.random.default_rng(data.seed)
        self.settings_ = regressor_parameters(self)
        self.order_ = generator.permutation(self.n_labels_).astype(np.int32)
        self.tournament_ = _core.FilterTree(regressor_settings(self.settings_), self.order_)
        total = float(data.X.shape[0] if data.sample_weight is None else data.sample_weight.sum(dtype=np.float64))
        progress = _core.Progress()
        for _ in range(self.passes):
            order = generator.permutation(data.X.shape[0]) if self.shuffle else None
            with phase("learning", progress):
                won = self.tournament_.learn(*csr_parts(data.X), labels, data.sample_weight, order, progress)
        # Never so little that another class would be more probable, nor certain.
        self.won_ = max((won + 1) / (total + 2), 2 / (self.n_labels_ + 1)) if self.n_labels_ > 1 else 1.0

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        n, n_labels = X.shape[0], self.n_labels_
        winners = self.tournament_.winners(*csr_parts(X), self._n_threads())
        rest = np.float32((1 - self.won_) / max(n_labels - 1, 1))
        if query.labels is not None:
            given = np.where(winners[:, None] == query.labels, np.float32(self.won_), rest)
            return same_columns(given, query.labels, n_labels)
        needs_few = query.top_k == 1 or (not isinstance(query.threshold, np.ndarray) and rest < query.threshold)
        if needs_few:
            answer = csr_rows(np.full(n, self.won_, np.float32), winners, np.arange(n + 1), (n, n_labels))
            return keep_best(answer, query.top_k, query.threshold)
        everything = np.full((n, n_labels), rest, dtype=np.float32)
        everything[np.arange(n), winners] = self.won_
        answer = same_columns(everything, np.arange(n_labels), n_labels)
        return keep_best(answer, query.top_k, query.threshold)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"settings": self.settings_, "won": self.won_}, {"order": self.order_, **self.tournament_.state()}

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.settings_ = metadata["settings"]
        self.won_ = check_number("won", metadata["won"], above=0, at_most=1)
        self._restore_tournament(arrays)

    def _restore_tournament(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.order_ = arrays["order"]
        if len(self.order_) != self.n_labels_:
            raise ValueError("the tournament does not fit the classes")
        tournament = _core.FilterTree(regressor_settings(self.settings_), self.order_)
        tournament.restore(arrays)
        self.tournament_ = tournament

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "tournament_" in state:
            state["tournament_"] = {"order": self.order_, **self.tournament_.state()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("tournament_", None)
        super().__setstate__(state)
        if arrays is not None:
            self._restore_tournament(arrays)
