"""What every classifier shares: training that is all or nothing, and the contract of sparse probability estimates."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight

from ramify.base import save_load
from ramify.base.fitted import FittedModel
from ramify.base.fitted_attributes import FittedAttributes
from ramify.base.label_texts import with_label_texts
from ramify.base.model import NO_OPTIONS, Model
from ramify.base.model_lock import ModelLock
from ramify.base.row_length import warn_of_length
from ramify.base.schema import Schema, no_label_in
from ramify.base.stream_schema import StreamSchema
from ramify.base.training import TrainingData, draw_seed, weighted_rows
from ramify.common.progress import shown
from ramify.common.validation import briefly, check_jobs, number_of_threads
from ramify.data.hierarchy import Hierarchy
from ramify.data.masked import check_no_mask
from ramify.decide.decisions import check_thresholds
from ramify.explain.score import ExplainedLabel
from ramify.registry import make_classifier, presets_of

_WRONG_VECTORIZER = "vectorizer must be None, a TextVectorizer(), a HashingTextVectorizer() or alike, got {}"


class ExtremeClassifier(FittedAttributes, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all classifiers: scikit-learn's interface around a `Schema` and a `Model`.

    A method supplies `_train(data)`, which returns its trained `Model`, and may supply `_check_parameters`,
    `_search_options` and `_default_vectorizer`. Fitted classifiers have `schema_` and `model_`.
    """

    #: Typical lengths of rows that the method learns well from without `normalize`.
    _row_lengths: tuple[float, float] = (1 / 32, 32.0)
    #: What reads X and Y.
    _schema_class: type[Schema] = Schema

    # --- what a method supplies -----------------------------------------------------------------------------------

    @abstractmethod
    def _train(self, data: TrainingData) -> Model:
        """Learn a model from checked data; changes nothing of the classifier."""

    def _check_parameters(self) -> None:
        """Reject bad parameters; called first in `fit`."""

    def _search_options(self) -> Mapping[str, Any]:
        """Parameters that queries use and that may change after training, such as a beam."""
        return NO_OPTIONS

    def _default_vectorizer(self) -> Any:
        """The vectorizer for texts where `vectorizer` is None."""
        from ramify.data.text import default_vectorizer

        return default_vectorizer()

    # --- training -------------------------------------------------------------------------------------------------

    @classmethod
    def from_paper(cls, preset: str | None = None, **changes: Any) -> Any:
        """A classifier as the authors of its paper ran it, instead of with this library's defaults.

        `preset` is one of `ramify.registry.presets_of(name of the class)`, by default the first; `changes` replace its
        settings. docs/papers.md lists what differs from the paper all the same.
        """
        names = presets_of(cls.__name__)
        if not names:
            raise ValueError(f"{cls.__name__} has no preset of a paper")
        if preset is not None and preset not in names:
            raise ValueError(f"preset must be one of {', '.join(names)}, got {preset!r}")
        return make_classifier(names[0] if preset is None else preset, **changes)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        label_texts: Mapping[Any, str | Sequence[str]] | None = None,
    ) -> Any:
        """Train on rows X with labels y; a failed fit leaves the classifier as it was.

        X: numpy array, any scipy sparse array, DataFrame, or texts (a list, Series or 1-D array of strings).
        y: a 0/1 array (sparse or not), a list of label collections, or a 1-D array of classes.
        label_texts: with X as texts, names or descriptions by label. Each is one more row, so that labels with few or
        no rows are found.
        """
        if label_texts is not None:
            X, y, sample_weight = with_label_texts(X, y, sample_weight, label_texts)
        with shown(getattr(self, "verbose", False) is True):
            self._set_fitted(self._fitted_on(X, y, sample_weight))
        return self

    def _fitted_on(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, classes: ArrayLike | None = None
    ) -> FittedModel:
        data = self._read_training_data(X, y, sample_weight, classes)
        return self._fitted_from(data)

    def _fitted_from(self, data: TrainingData) -> FittedModel:
        hierarchy = self._hierarchy_of(data.schema)  # before the training, so that it fails early
        return FittedModel(data.schema, self._train(data), seed=data.seed, hierarchy=hierarchy)

    def _hierarchy_of(self, schema: Schema) -> Hierarchy | None:
        """The checked `hierarchy`; only a stream may mention labels that are not known yet."""
        given = getattr(self, "hierarchy", None)
        if given is None:
            return None
        hierarchy = Hierarchy.from_mapping(given)
        if schema.is_multiclass:
            raise ValueError(
                "hierarchy needs label collections: with one class a row, a label and its parent exclude each other. "
                "Give each row a list of its labels, the parents among them"
            )
        if not isinstance(schema, StreamSchema):
            hierarchy.check_known(schema.labels)
        return hierarchy

    def _accept(self, piece: Any) -> Any:
        """Reject a later piece of a stream whose labels the model cannot learn; classifiers that learn use it."""
        return piece

    def _set_fitted(self, fitted: FittedModel) -> None:
        fitted.lock = self._lock()
        self.fitted_ = fitted

    def _lock(self) -> ModelLock:
        """One lock per classifier: whoever learns or saves holds it."""
        lock: ModelLock | None = self.__dict__.get("_own_lock")
        return self.__dict__.setdefault("_own_lock", ModelLock()) if lock is None else lock

    def _read_training_data(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, classes: ArrayLike | None = None
    ) -> TrainingData:
        self._check_parameters()
        check_jobs(getattr(self, "n_jobs", None))
        self._check_vectorizer()
        schema = self._schema_class(type(self).__name__)
        if y is None:
            schema.read_training_labels(y, 0)
        rows = schema.read_training_rows(X, self._new_vectorizer)
        indicator = schema.read_training_labels(y, rows.shape[0], classes)
        if schema.n_labels == 0:
            raise no_label_in(y)
        schema.warn_of_doubtful_labels()
        rows, indicator, weight = weighted_rows(rows, indicator, sample_weight)
        self._warn_of_length(rows)
        return TrainingData(rows, indicator, weight, self._draw_seed(), self._n_threads(), schema)

    def _warn_of_length(self, rows: sparse.csr_array) -> None:
        if getattr(self, "normalize", True) is False:
            warn_of_length(rows, type(self).__name__, *self._row_lengths)

    def _check_vectorizer(self) -> None:
        """Also where X holds numbers: a wrong one is no surprise of a later `fit`."""
        given = getattr(self, "vectorizer", None)
        if given is not None and (isinstance(given, type) or not hasattr(given, "transform")):
            raise ValueError(_WRONG_VECTORIZER.format(briefly(given)))

    def _new_vectorizer(self) -> Any:
        given = getattr(self, "vectorizer", None)
        try:
            if given is None:
                return self._default_vectorizer().set_params(n_jobs=getattr(self, "n_jobs", None))
            return clone(given)
        except TypeError as error:
            raise ValueError(_WRONG_VECTORIZER.format(briefly(given))) from error

    def _draw_seed(self) -> int:
        return draw_seed(getattr(self, "random_state", None))

    def _n_threads(self) -> int:
        return number_of_threads(getattr(self, "n_jobs", None))

    # --- prediction -----------------------------------------------------------------------------------------------

    def predict_proba(
        self,
        X: Any,
        top_k: int | None = None,
        threshold: float | ArrayLike | None = None,
        labels: Iterable[Any] | None = None,
    ) -> Any:
        """Probabilities of the labels that matter, as a csr_array of shape (n, n_labels_).

        `top_k` and `threshold` (one number, or one per label) together: at most k labels, each at least the threshold.
        `labels`: exactly these labels. With none of them, a multi-label answer holds what is at least 0.01, and a
        multi-class answer is scikit-learn's dense array, rows summing to one.
        """
        return self._answering(X).predict_proba(X, top_k, threshold, labels)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, or for multi-label a csr_array of 0 and 1: the labels with p >= 0.5.

        A model with tuned thresholds (`thresholds_`) uses those.
        """
        return self._answering(X).predict(X)

    def predict_labels(
        self, X: Any, top_k: int | None = 5, threshold: float | ArrayLike | None = None
    ) -> list[list[tuple[Any, float]]]:
        """Per row, (label, probability) pairs, best first."""
        return self._answering(X).predict_labels(X, top_k, threshold)

    def predict_one(self, x: Any, top_k: int | None = 5, threshold: float | None = None) -> list[tuple[Any, float]]:
        """(label, probability) pairs of one row, best first; x is a dict feature -> value, a one-row array or a text.

        Features of a dict are column numbers, or names where the model knows them; unknown ones are left out.
        """
        return self._fitted().view(1, self._search_options()).predict_one(x, top_k, threshold)

    def explain(self, x: Any, label: Any = None, *, top: int = 5) -> ExplainedLabel:
        """Why a label (the most probable one, if none is given) has its probability for the row x."""
        return self._answering().explain(x, label, top=top)

    def n_inner_products(self, X: Any, top_k: int | None = None, threshold: float | ArrayLike | None = None) -> int:
        """Inner products that `predict_proba` computes for these rows, where the method counts them."""
        fitted = self._answering()
        return fitted.model.n_inner_products(fitted.schema.rows(X), fitted.query(top_k, threshold))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of rows whose class, or whose whole set of labels, is predicted exactly."""
        predicted, labels = self.predict(X), self.schema_.labels
        if self.is_multiclass_:
            predicted = labels.encode(predicted)[0]
        truth, has_unknown = labels.encode(y)
        if truth.shape[0] != predicted.shape[0]:
            raise ValueError(f"X has {predicted.shape[0]} rows, but Y has {truth.shape[0]}")
        if truth.shape[0] == 0:
            raise ValueError("score needs at least one row, got none")
        differs = (truth != predicted).astype(np.int64).sum(axis=1) > 0
        weights = None
        if sample_weight is not None:
            check_no_mask("sample_weight", sample_weight)
            weights = _check_sample_weight(sample_weight, predicted, dtype=np.float64, ensure_non_negative=True)
            if not weights.sum() > 0:
                raise ValueError("sample_weight is zero for every row: at least one weight must be above zero")
        return float(np.average(~(differs | has_unknown), weights=weights))

    def _fitted(self) -> FittedModel:
        fitted: FittedModel | None = self.__dict__.get("fitted_")
        if fitted is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call 'fit' first, or load a model"
            )
        return fitted

    def _answering(self, X: Any = None) -> FittedModel:
        """The fitted model with the present number of threads (one for one row) and search options."""
        is_one_row = getattr(X, "shape", (0,))[:1] == (1,)
        return self._fitted().view(1 if is_one_row else self._n_threads(), self._search_options())

    # --- names, decisions, files ----------------------------------------------------------------------------------

    def set_names(
        self, *, labels: Mapping[Any, str] | Sequence[str] | None = None, features: Sequence[str] | None = None
    ) -> Any:
        """Set the names of labels (in column order, or as label -> name) and of feature columns.

        Explanations and the command line show them, and they are saved with the model; a new `fit` forgets them.
        """
        fitted = self._fitted()
        with fitted.lock:
            fitted.schema.set_names(labels, features)
        return self

    def set_thresholds(self, thresholds: float | ArrayLike | None) -> Any:
        """Set the probability at which `predict` returns a label: one number, or one per label; None: 0.5.

        `ramify.decide` tunes them. They are saved with the model; a new `fit` forgets them.
        """
        fitted = self._fitted()
        if self.is_multiclass_:
            raise ValueError("with one class a row there is nothing to decide: `predict` returns the most probable one")
        with fitted.lock:
            if thresholds is None:
                fitted.thresholds = None
            else:
                checked = check_thresholds(thresholds, self.n_labels_)
                fitted.thresholds = np.broadcast_to(checked, self.n_labels_).copy()
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a directory; `ramify.load` brings it back."""
        self._fitted()
        save_load.save(self, path)

    # --- scikit-learn ---------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "fitted_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = getattr(self, "vectorizer", None) is not None
        tags.classifier_tags.multi_label = True
        return tags

    def __copy__(self) -> Any:
        """A copy that may learn, or get names and thresholds, without changing this classifier."""
        other = type(self).__new__(type(self))
        state = self.__getstate__()
        if "fitted_" in state:
            state["fitted_"] = copy.copy(state["fitted_"])
        other.__setstate__(state)
        return other

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_own_lock", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "fitted_" in self.__dict__:
            self._set_fitted(self.fitted_)
