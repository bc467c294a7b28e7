"""Any classifier of the library with decisions tuned for an F measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from ramify.decide import C, choose_thresholds
from ramify.decide.choice import METHODS
from ramify.decide.estimates import EMPTY, OBJECTIVES, kappa
from ramify.decide.ofo import check_objective
from ramify.estimator import ExtremeClassifier, Query, TrainingData
from ramify.models.plt import PLTClassifier
from ramify.progress import phase
from ramify.validation import check_choice, check_flag, check_integer, check_jobs, check_number

# What the classifier inside has in common with this one: it is trained on the same labels and features.
_SHARED = ("label_encoding_", "n_labels_", "is_multiclass_", "n_features_in_", "feature_names_in_")


class ThresholdClassifier(ExtremeClassifier):
    """Trains a classifier on most of the rows and, on the rest, tunes from which probability on each label is given.

    Prediction costs no more than the thresholds need: label trees are searched down to the least threshold of each
    subtree. With one class a row there is nothing to decide: the estimator is trained on all rows and `predict` gives
    the most probable class. Paper: extreme-f-measure, sections 4 and 6.2.

    Parameters
    ----------
    estimator : classifier of the library or None
        What estimates the probabilities; None: `PLTClassifier()`.
    method : "ofo", "fta" or "sto"
        Online F-measure optimisation, fixed thresholds, or search by sorting: see `ramify.decide`.
    objective : "macro_f1", "micro_f1" or "example_f1"
        For the last two a single threshold is best, and that is what they get; "ofo" has no rule for the last.
    c : number or sequence of numbers
        Where estimates are cut (1/c: "fta", "sto") or thresholds begin (a/c: "ofo"); of several the best is chosen by
        validation on the rows held out.
    a : float
        First count of true positives in "ofo"; a/c must not exceed 1 (it is lowered to c).
    common : bool
        "fta": one threshold for all labels.
    empty : "zero" or "one"
        What a label counts that has neither positives nor decisions: 0 as in scikit-learn, 1 as in the paper.
    held_out : float
        Share of the rows that are held out to tune on.
    folds : int
        For the choice of c each part of the rows held out is decided with thresholds tuned on the other parts; 1
        measures c on the very rows it was tuned on, as the paper does, which favours thresholds that are too low.
    refit : bool
        Train the estimator once more, on all rows, with the thresholds that were found: better, for a second training.
        Without it, the rows held out are used for nothing else, as in the paper.
    n_jobs, random_state
        Given to the estimator where not None; random_state also draws the rows that are held out.
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import PLTClassifier, ThresholdClassifier
    >>> from ramify.data.synthetic import make_multilabel
    >>> data = make_multilabel(2000, 50, 500, random_state=0)
    >>> clf = ThresholdClassifier(PLTClassifier(), method="ofo", random_state=0).fit(data.X, data.Y)
    >>> clf.thresholds_.shape, clf.c_ in clf.validation_
    ((50,), True)
    """

    estimator_: Any
    c_: float
    validation_: dict[float, float]

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "ofo",
        objective: str = "macro_f1",
        c: float | Sequence[float] = C,
        a: float = 1.0,
        common: bool = False,
        empty: str = "zero",
        held_out: float = 0.2,
        folds: int = 2,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.objective = objective
        self.c = c
        self.a = a
        self.common = common
        self.empty = empty
        self.held_out = held_out
        self.folds = folds
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        given = self.estimator
        if given is not None and (not isinstance(given, ExtremeClassifier) or isinstance(given, ThresholdClassifier)):
            raise ValueError(f"estimator must be a classifier of ramify without thresholds, got {given!r}")
        check_choice("method", self.method, METHODS)
        check_choice("objective", self.objective, OBJECTIVES)
        if self.method == "ofo":
            check_objective(self.objective)
        for one in self._tried():
            check_number("c", one, at_least=1)
        check_number("a", self.a, at_least=0)
        check_flag("common", self.common)
        check_choice("empty", self.empty, EMPTY)
        if check_number("held_out", self.held_out, above=0, at_most=1) == 1:
            raise ValueError("held_out must leave rows to train on: give a number below 1")
        check_integer("folds", self.folds, at_least=1)
        check_flag("refit", self.refit)
        check_flag("verbose", self.verbose)

    def _tried(self) -> list[float]:
        values = [self.c] if isinstance(self.c, int | float | np.number) else list(self.c)
        if not values:
            raise ValueError("c must name at least one value")
        return values

    # --- training -------------------------------------------------------------------------------------------------

    def _fit(self, data: TrainingData) -> None:
        if self.is_multiclass_:
            self.estimator_ = self._trained(data)
            return
        n = data.X.shape[0]
        n_held_out = min(max(1, round(n * self.held_out)), n - 1)
        if n_held_out == 0:
            self.estimator_ = self._trained(data)  # a single row says nothing about thresholds: they stay at a half
            return
        order = check_random_state(data.seed).permutation(n)
        held_out, rest = order[:n_held_out], np.sort(order[n_held_out:])
        self.estimator_ = self._trained(_rows(data, rest))
        with phase("tuning thresholds"):
            self._tune(data, held_out)
        if self.refit:
            self.estimator_ = self._trained(data)

    def _trained(self, data: TrainingData) -> Any:
        """The estimator, trained on these rows as its own `fit` would, with this one's labels and features."""
        inner = self._new_estimator()
        inner._check_parameters()
        check_jobs(inner.n_jobs)
        for name in _SHARED:
            if name in self.__dict__:
                setattr(inner, name, self.__dict__[name])
        inner.seed_ = data.seed if inner.random_state is None else inner._draw_seed()
        inner._fit(data)
        return inner

    def _new_estimator(self) -> Any:
        inner = PLTClassifier() if self.estimator is None else clone(self.estimator)
        if self.n_jobs is not None:
            inner.n_jobs = self.n_jobs
        return inner

    def _tune(self, data: TrainingData, held_out: NDArray[np.int64]) -> None:
        prior = np.bincount(data.Y.indices, minlength=self.n_labels_) / data.X.shape[0]
        tried = self._tried()
        least = kappa(1 / max(tried), prior)
        P = self.estimator_._sparse_probabilities(data.X[held_out], Query(threshold=least))
        choice = choose_thresholds(
            P,
            data.Y[held_out],
            method=self.method,
            objective=self.objective,
            c=tried,
            a=self.a,
            common=self.common,
            prior=prior,
            empty=self.empty,
            folds=min(self.folds, len(held_out)),
        )
        self.thresholds_, self.c_, self.validation_ = choice.thresholds, choice.c, choice.values

    # --- the estimator, asked -------------------------------------------------------------------------------------

    @property
    def vectorizer(self) -> Any:
        """The estimator's: texts are turned into numbers once, before rows are held out."""
        return getattr(self.estimator, "vectorizer", None)

    @property
    def tree_(self) -> Any:
        """The label tree of the estimator, if it has one."""
        if "estimator_" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no tree_")
        return self.estimator_.tree_

    def _asked(self) -> Any:
        if self.n_jobs is not None:
            self.estimator_.n_jobs = self.n_jobs
        return self.estimator_

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        answer: sparse.csr_array = self._asked()._sparse_probabilities(X, query)
        return answer

    def _dense_probabilities(self, X: sparse.csr_array) -> NDArray[np.float32]:
        answer: NDArray[np.float32] = self._asked()._dense_probabilities(X)
        return answer

    def _n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        n: int = self._asked()._n_inner_products(X, query)
        return n

    @property
    def _predict_row(self) -> Any:
        return self.estimator_._predict_row if "estimator_" in self.__dict__ else None

    @property
    def _explain_row(self) -> Any:
        return self.estimator_._explain_row if "estimator_" in self.__dict__ else None

    # --- model files ----------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        fitted, state = self.estimator_._fitted_state()
        metadata: dict[str, Any] = {"fitted": fitted, "state": state, "has_vectorizer": self.vectorizer is not None}
        if "validation_" in self.__dict__:
            tried = list(self.validation_)
            metadata |= {"c": self.c_, "tried": tried, "values": [self.validation_[one] for one in tried]}
        return metadata, {}

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._check_parameters()
        inner = self._new_estimator()
        inner._restore_fitted(metadata["fitted"], metadata["state"])
        if (inner.n_labels_, inner.n_features_in_) != (self.n_labels_, self.n_features_in_):
            raise ValueError("the estimator inside has other labels or features")
        self.estimator_ = inner
        if metadata["has_vectorizer"]:
            self.estimator.vectorizer = clone(self.vectorizer_)
        if "c" in metadata:
            self.c_ = metadata["c"]
            self.validation_ = dict(zip(metadata["tried"], metadata["values"], strict=True))


def _rows(data: TrainingData, rows: NDArray[np.int64]) -> TrainingData:
    weight = None if data.sample_weight is None else data.sample_weight[rows]
    return TrainingData(data.X[rows], data.Y[rows], weight, data.seed, data.n_threads)
