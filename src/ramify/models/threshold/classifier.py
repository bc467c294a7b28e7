"""Any classifier of the library with decisions tuned for an F measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length

from ramify.base.answers import no_entries
from ramify.base.classifier import ExtremeClassifier
from ramify.base.fitted import FittedModel
from ramify.base.model import Query
from ramify.base.nested import Nested, train_inside
from ramify.base.online import OnlineClassifier
from ramify.base.training import TrainingData
from ramify.common.progress import phase, shown
from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.data.csr import check_csr
from ramify.data.remote_rows import RemoteRows
from ramify.decide import C, OnlineF, choose_thresholds
from ramify.decide.choice import CANDIDATES, METHODS, Choice, tried_values
from ramify.decide.estimates import EMPTY, kappa
from ramify.decide.measures import check_objective, label_measure
from ramify.decide.ofo import check_ofo_objective
from ramify.models.plt.classifier import PLTClassifier
from ramify.models.threshold.model import ThresholdModel


def _learns_in_pieces(classifier: ThresholdClassifier) -> bool:
    return classifier.method == "ofo" and hasattr(classifier.estimator, "partial_fit")  # other methods are not online


class ThresholdClassifier(ExtremeClassifier):
    """Trains a classifier on most of the rows and, on the rest, tunes the threshold of each label for an F measure.

    Prediction costs no more than the thresholds need: label trees are searched down to the least threshold of each
    subtree. With one class per row there is nothing to decide: the estimator is trained on all rows and `predict`
    returns the most probable class. Paper: Jasinska et al., "Extreme F-Measure Maximization using Sparse Probability
    Estimates", sections 4 and 6.2.

    Parameters
    ----------
    estimator : classifier of the library or None
        What estimates the probabilities; None: `PLTClassifier()`.
    method : "ofo", "fta" or "sto"
        Online F-measure optimisation, fixed thresholds, or search by sorting: see `ramify.decide`.
    objective : "macro_f1", "macro_f2" (any beta), "macro_jaccard", "macro_g_mean", "micro_f1" or "example_f1"
        For the last two a single threshold is best, and that is what they get; "ofo" has rules for "macro_f1" and
        "micro_f1" only.
    c : number or sequence of numbers
        Where estimates are cut (1/c: "fta", "sto") or thresholds begin (a/c: "ofo"); of several the best is chosen by
        validation on the rows held out.
    a : float
        First count of true positives in "ofo"; a/c must not exceed 1 (it is lowered to c).
    common : bool
        "fta": one threshold for all labels.
    empty : "zero" or "one"
        What a label counts that has neither positives nor decisions: 0 as in scikit-learn, 1 as in the paper.
    candidates : int or None
        Most labels of a row that are looked at while tuning, the most probable ones; None: all that reach the cut.
    held_out : float
        Share of the rows that are held out to tune on.
    folds : int
        For the choice of c each part of the rows held out is decided with thresholds tuned on the other parts; 1
        measures c on the very rows it was tuned on, as the paper does, which favours thresholds that are too low.
    refit : bool
        Train the estimator once more, on all rows, with the thresholds that were found: better, for a second training.
        Without it, the rows held out are used for nothing else, as in the paper.
    block : int
        For `partial_fit`: rows that are decided together before they are learned together. 1 is the definition of
        test-then-train; more is faster, and slightly pessimistic.
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
        candidates: int | None = CANDIDATES,
        held_out: float = 0.2,
        folds: int = 2,
        refit: bool = True,
        block: int = 32,
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
        self.candidates = candidates
        self.held_out = held_out
        self.folds = folds
        self.refit = refit
        self.block = block
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        given = self.estimator
        if given is not None and (not isinstance(given, ExtremeClassifier) or isinstance(given, ThresholdClassifier)):
            raise ValueError(f"estimator must be a classifier of ramify without thresholds, got {given!r}")
        check_choice("method", self.method, METHODS)
        check_objective(self.objective)
        if self.method == "ofo":
            check_ofo_objective(self.objective)
        tried_values(self.c)
        check_number("a", self.a, at_least=0)
        check_flag("common", self.common)
        check_choice("empty", self.empty, EMPTY)
        if self.candidates is not None:
            check_integer("candidates", self.candidates, at_least=1)
        if check_number("held_out", self.held_out, above=0, at_most=1) == 1:
            raise ValueError("held_out must leave rows to train on: give a number below 1")
        check_integer("folds", self.folds, at_least=1)
        check_flag("refit", self.refit)
        check_integer("block", self.block, at_least=1)
        check_flag("verbose", self.verbose)

    # --- training -------------------------------------------------------------------------------------------------

    def _fitted_from(self, data: TrainingData) -> FittedModel:
        hierarchy = self._hierarchy_of(data.schema)
        model, thresholds = self._tuned(data)
        return FittedModel(data.schema, model, seed=data.seed, thresholds=thresholds, hierarchy=hierarchy)

    def _train(self, data: TrainingData) -> ThresholdModel:
        return self._tuned(data)[0]

    def _tuned(self, data: TrainingData) -> tuple[ThresholdModel, NDArray[np.float32] | None]:
        """The trained and tuned model, and its thresholds: none for one class per row, or for a single row."""
        n = data.X.shape[0]
        n_held_out = min(max(1, round(n * self.held_out)), n - 1)
        if data.is_multiclass or n_held_out == 0:
            return ThresholdModel(self._trained(data)), None
        order = check_random_state(data.seed).permutation(n)
        held_out, rest = order[:n_held_out], np.sort(order[n_held_out:])
        nested = self._trained(data.part(rest))
        with phase("tuning thresholds"):
            choice = self._choose(nested, data, held_out)
        if self.refit:
            nested = self._trained(data)
        return ThresholdModel(nested, c=choice.c, tried=choice.values), choice.thresholds

    def _trained(self, data: TrainingData) -> Nested:
        return train_inside(self._given(), self.n_jobs, data)

    def _given(self) -> ExtremeClassifier:
        return PLTClassifier() if self.estimator is None else self.estimator

    def _choose(self, nested: Nested, data: TrainingData, held_out: NDArray[np.int64]) -> Choice:
        prior = np.bincount(data.Y.indices, minlength=data.n_labels) / data.X.shape[0]
        tried = tried_values(self.c)
        least = kappa(1 / max(tried), prior, label_measure(self.objective))
        top_k = None if self.candidates is None else min(self.candidates, data.n_labels)
        hierarchy, options = self._hierarchy_of(data.schema), nested.fitted.options
        tuned = FittedModel(data.schema, nested.fitted.model, seed=data.seed, hierarchy=hierarchy)
        query = Query(top_k, least, self._n_threads(), options)
        settings: dict[str, Any] = {
            "method": self.method,
            "objective": self.objective,
            "c": tried,
            "a": self.a,
            "common": self.common,
            "prior": prior,
            "empty": self.empty,
            "folds": min(self.folds, len(held_out)),
        }
        if isinstance(data.X, RemoteRows):
            choice: Choice = data.X.choose_thresholds(tuned, held_out, data.Y[held_out], query, settings)
            return choice
        return choose_thresholds(tuned.search(data.X[held_out], query), data.Y[held_out], **settings)

    # --- learning in pieces ---------------------------------------------------------------------------------------

    @available_if(_learns_in_pieces)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ThresholdClassifier:
        """Decide for these rows with what is known, then learn them: the thresholds follow the decisions ("ofo").

        Labels may appear at any time. Every c has thresholds of its own on the way, and those of the best progressive F
        so far are used; `validation_` holds it for each c. The result is that of OFO run afterwards over the same
        probabilities with the bound as it was known at each row. Rows count once, whatever their weight.
        After `fit`, the estimator keeps what it has learned, and the stream's thresholds replace those of `fit`.
        """
        with shown(self.verbose is True), self._lock():
            self._check_parameters()
            for name, part in (("X", X), ("Y", y)):
                is_one = isinstance(part, str | bytes) or getattr(part, "shape", None) == ()
                if is_one or (part is not None and not hasattr(part, "__len__") and not hasattr(part, "shape")):
                    wanted = "an array or a list with one entry per row"
                    raise ValueError(f"{name} must be {wanted}, got a {type(part).__name__}")
            check_consistent_length(X, y)
            X, y = (check_csr(name, part) if sparse.issparse(part) else part for name, part in (("X", X), ("Y", y)))
            model = self.__dict__["fitted_"].model if "fitted_" in self.__dict__ else None
            if model is not None:
                if model.online is None:  # in `fit` this classifier read the texts; from now on the estimator does
                    model.estimator.fitted.schema.vectorizer = self.schema_.vectorizer
                online = self._new_counts() if model.online is None else model.online
                self._learn_pieces(self.estimator_, online, X, y, None, sample_weight)
            else:
                inner: Any = clone(self._given())
                for name in ("n_jobs", "random_state"):
                    if getattr(self, name) is not None and getattr(inner, name) is None:
                        setattr(inner, name, getattr(self, name))
                self._learn_pieces(inner, self._new_counts(), X, y, classes, sample_weight)
        return self

    def _new_counts(self) -> dict[float, OnlineF]:
        """OFO's a and b per label before the first row, for every c."""
        return {c: OnlineF(a=min(self.a, c), b=c, objective=self.objective) for c in tried_values(self.c)}

    def _learn_pieces(
        self, inner: Any, online: dict[float, OnlineF], X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> None:
        n = len(y) if isinstance(y, list | tuple) else (*np.shape(y), 0)[0]
        if n > self.block and inner.__sklearn_is_fitted__():  # reject bad rows before the first of them is learned
            rows = inner.schema_.rows(X)
            labels, _ = inner.schema_.labels.encode(y)
            if isinstance(inner, OnlineClassifier):
                inner._accept((rows, labels, None))
        for start in range(0, n, self.block) if n > self.block else [None]:
            part = slice(start, None if start is None else min(start + self.block, n))
            rows, labels = (X, y) if start is None else (_safe_indexing(X, part), _safe_indexing(y, part))
            weight = sample_weight if sample_weight is None or start is None else np.asarray(sample_weight)[part]
            self._decide_then_learn(inner, online, rows, labels, classes, weight)
        self._set_fitted(self._following(inner, online))

    def _following(self, inner: Any, online: dict[float, OnlineF]) -> FittedModel:
        """The inner model with the thresholds of the best c so far."""
        nested = Nested(type(inner).__name__, inner.fitted_)
        schema, seed, hierarchy = inner.fitted_.schema, inner.fitted_.seed, inner.fitted_.hierarchy
        if schema.is_multiclass or not schema.n_labels:
            return FittedModel(schema, ThresholdModel(nested, online=online), seed=seed, hierarchy=hierarchy)
        tried = {c: counts.f1(empty=self.empty) for c, counts in online.items()}
        best = max(tried, key=tried.__getitem__)
        model = ThresholdModel(nested, c=best, tried=tried, online=online)
        return FittedModel(schema, model, seed=seed, thresholds=online[best].thresholds, hierarchy=hierarchy)

    def _decide_then_learn(
        self, inner: Any, online: dict[float, OnlineF], X: Any, y: Any, classes: Any, weight: Any
    ) -> None:
        answer = None
        if inner.__sklearn_is_fitted__() and not inner.is_multiclass_:
            fitted = inner._answering()
            rows = fitted.schema.rows(X)
            least = self._least_thresholds(online, fitted.schema.n_labels, rows.shape[0])
            answer = fitted.search(rows, fitted.query(threshold=least))
        inner.partial_fit(X, y, classes=classes, sample_weight=weight)
        if inner.is_multiclass_:
            return
        truth, _ = inner.schema_.labels.encode(y)
        answer = no_entries(truth.shape[0], 0) if answer is None else answer
        answer.resize(truth.shape)
        for counts in online.values():
            counts.update(answer, truth)

    def _least_thresholds(self, online: dict[float, OnlineF], n_labels: int, n_rows: int) -> NDArray[np.float32]:
        """No threshold of any c falls below these while the rows are decided, so no lower estimates are needed."""
        least = np.full(n_labels, np.inf, dtype=np.float32)
        for c, counts in online.items():
            own = np.full(n_labels, min(self.a, c) / (c + 2 * n_rows * n_labels), dtype=np.float32)
            known = counts.least_after(n_rows)
            own[: len(known)] = known
            least = np.minimum(least, own)
        return least

    # --- the trained model ----------------------------------------------------------------------------------------

    @property
    def vectorizer(self) -> Any:
        """The estimator's: texts are turned into numbers once, before rows are held out."""
        return getattr(self.estimator, "vectorizer", None)

    @property
    def hierarchy(self) -> Any:
        """The estimator's: thresholds are tuned on probabilities that agree with it."""
        return getattr(self.estimator, "hierarchy", None)

    @property
    def estimator_(self) -> Any:
        """The trained estimator."""
        nested: Nested = self.model_.estimator
        return nested.classifier(self._given(), self.n_jobs)

    @property
    def tree_(self) -> Any:
        """The label tree of the estimator, if it has one."""
        return self.estimator_.tree_

    @property
    def c_(self) -> float:
        """The c with the best validated value."""
        c: float | None = self.model_.c
        if c is None:
            raise AttributeError("no thresholds were tuned, so there is no c_")
        return c

    @property
    def validation_(self) -> dict[float, float]:
        """The validated value of each c."""
        if self.model_.c is None:
            raise AttributeError("no thresholds were tuned, so there is no validation_")
        tried: dict[float, float] = self.model_.tried
        return tried

    @property
    def online_(self) -> dict[float, OnlineF]:
        """For each c the counts of online F-measure optimisation, where `partial_fit` has learned."""
        online: dict[float, OnlineF] | None = self.model_.online
        if online is None:
            raise AttributeError("the thresholds do not follow a stream, so there is no online_")
        return online
