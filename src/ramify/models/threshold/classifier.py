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
from ramify.base.classifier import ExtremeClassifier, Query, TrainingData
from ramify.base.nested import SHARED, train_inside
from ramify.common.progress import phase, shown
from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.decide import C, OnlineF, choose_thresholds
from ramify.decide.choice import CANDIDATES, METHODS, tried_values
from ramify.decide.estimates import EMPTY, OBJECTIVES, kappa
from ramify.decide.ofo import check_objective
from ramify.models.plt.classifier import PLTClassifier


def _learns_in_pieces(model: ThresholdClassifier) -> bool:
    return model.method == "ofo" and hasattr(model.estimator, "partial_fit")  # the others are not online


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

    _may_know_no_label = True  # before the first label of a stream; the estimator says whether that is so
    estimator_: Any
    online_: dict[float, OnlineF]  # for each c, where `partial_fit` has learned
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
        check_choice("objective", self.objective, OBJECTIVES)
        if self.method == "ofo":
            check_objective(self.objective)
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
        self.estimator_ = self._trained(data.part(rest))
        with phase("tuning thresholds"):
            self._tune(data, held_out)
        if self.refit:
            self.estimator_ = self._trained(data)

    def _trained(self, data: TrainingData) -> Any:
        return train_inside(self, self._new_estimator(), data)

    def _new_estimator(self) -> Any:
        inner = PLTClassifier() if self.estimator is None else clone(self.estimator)
        if self.n_jobs is not None:
            inner.n_jobs = self.n_jobs
        return inner

    def _tune(self, data: TrainingData, held_out: NDArray[np.int64]) -> None:
        prior = np.bincount(data.Y.indices, minlength=self.n_labels_) / data.X.shape[0]
        tried = tried_values(self.c)
        least = kappa(1 / max(tried), prior)
        top_k = None if self.candidates is None else min(self.candidates, self.n_labels_)
        P = self.estimator_._sparse_probabilities(data.X[held_out], Query(top_k, least))
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

    # --- learning in pieces ---------------------------------------------------------------------------------------

    @available_if(_learns_in_pieces)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> ThresholdClassifier:
        """Decide for these rows with what is known, then learn them: the thresholds follow the decisions ("ofo").

        Labels may come up at any time. Every c has thresholds of its own on the way, and those of the best progressive
        F so far are used; `validation_` tells it for each c. The result is that of OFO run afterwards over the same
        probabilities with the bound as it was known at each row. Rows count once, whatever their weight.
        """
        with shown(self.verbose is True):
            self._check_parameters()
            check_consistent_length(X, y)
            X, y = (part.tocsr() if hasattr(part, "tocsr") else part for part in (X, y))
            if "online_" not in self.__dict__:
                with self._unchanged_on_failure():
                    self.estimator_ = self._new_estimator()
                    self.online_ = {one: self._new_online(one) for one in tried_values(self.c)}
                    self._learn_pieces(X, y, classes, sample_weight)
            else:
                self._learn_pieces(X, y, None, sample_weight)
        return self

    def _new_online(self, c: float) -> OnlineF:
        return OnlineF(a=min(self.a, c), b=c, objective=self.objective)

    def _learn_pieces(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        inner, n = self._asked(), len(y) if isinstance(y, list | tuple) else np.shape(y)[0]
        if n > self.block and inner.__sklearn_is_fitted__():  # refuse bad rows before the first of them is learned
            inner._check_rows(X)
            inner._check_piece(inner.label_encoding_.encode(y)[0])
        for start in range(0, n, self.block) if n > self.block else [None]:
            part = slice(start, None if start is None else min(start + self.block, n))
            rows, labels = (X, y) if start is None else (_safe_indexing(X, part), _safe_indexing(y, part))
            weight = sample_weight if sample_weight is None or start is None else np.asarray(sample_weight)[part]
            self._test_then_learn(rows, labels, classes, weight)
        if not self.is_multiclass_ and self.n_labels_:
            self.validation_ = {c: online.f1(empty=self.empty) for c, online in self.online_.items()}
            self.c_ = max(self.validation_, key=self.validation_.__getitem__)
            self.thresholds_ = self.online_[self.c_].thresholds

    def _test_then_learn(self, X: Any, y: Any, classes: Any, weight: Any) -> None:
        inner, answer = self.estimator_, None
        if inner.__sklearn_is_fitted__() and not inner.is_multiclass_:
            rows = inner._check_rows(X)
            answer = inner._answer(rows, Query(threshold=self._least_thresholds(rows.shape[0])))
        inner.partial_fit(X, y, classes=classes, sample_weight=weight)
        for name in (*SHARED, "vectorizer_", "seed_"):
            if name in inner.__dict__:
                setattr(self, name, inner.__dict__[name])
        if inner.is_multiclass_:
            return
        truth, _ = inner.label_encoding_.encode(y)
        answer = no_entries(truth.shape[0], 0) if answer is None else answer
        answer.resize(truth.shape)
        for online in self.online_.values():
            online.update(answer, truth)

    def _least_thresholds(self, n_rows: int) -> NDArray[np.float32]:
        """What no threshold of any c falls below while these rows are decided: all that they can need to know."""
        least = np.full(self.n_labels_, np.inf, dtype=np.float32)
        for c, online in self.online_.items():
            own = np.full(self.n_labels_, min(self.a, c) / (c + 2 * n_rows * self.n_labels_), dtype=np.float32)
            known = online.least_after(n_rows)
            own[: len(known)] = known
            least = np.minimum(least, own)
        return least

    def _check_rows(self, X: Any) -> sparse.csr_array:
        if "online_" not in self.__dict__:
            return super()._check_rows(X)
        rows: sparse.csr_array = self.estimator_._check_rows(X)
        return rows

    def _feature_index(self) -> Any:
        return self.estimator_._feature_index() if "online_" in self.__dict__ else super()._feature_index()

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
        return self._of_estimator("_predict_row")

    @property
    def _explain_row(self) -> Any:
        return self._of_estimator("_explain_row")

    @property
    def _explain_routes(self) -> Any:
        return self._of_estimator("_explain_routes")

    @property
    def _explain_candidates(self) -> Any:
        return self._of_estimator("_explain_candidates")

    @property
    def _explain_memories(self) -> Any:
        return self._of_estimator("_explain_memories")

    def _of_estimator(self, method: str) -> Any:
        return getattr(self.estimator_, method) if "estimator_" in self.__dict__ else None

    # --- model files ----------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        fitted, state = self.estimator_._fitted_state()
        metadata: dict[str, Any] = {"fitted": fitted, "state": state, "has_vectorizer": self.vectorizer is not None}
        if "validation_" in self.__dict__:
            tried = list(self.validation_)
            metadata |= {"c": self.c_, "tried": tried, "values": [self.validation_[one] for one in tried]}
        if "online_" in self.__dict__:
            online = self.online_.values()
            counts = [{"a": one.a, "b": one.b, "positives": one.positives, "n_seen": one.n_seen} for one in online]
            metadata["online"] = counts
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
        if "online" in metadata:
            self.online_ = {one: self._new_online(one) for one in tried_values(self.c)}
            for online, counts in zip(self.online_.values(), metadata["online"], strict=True):
                online.restore(**counts)
        if "c" in metadata:
            self.c_ = metadata["c"]
            self.validation_ = dict(zip(metadata["tried"], metadata["values"], strict=True))
