"""A schema and a model together: the whole of prediction, without scikit-learn."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import (
    Threshold,
    best_columns,
    best_first,
    keep_best,
    no_entries,
    one_row,
    row_by_column,
    same_columns,
)
from ramify.base.coherent import CoherentAnswers
from ramify.base.model import NO_OPTIONS, Model, Query, State
from ramify.base.model_lock import ModelLock
from ramify.base.schema import Row, Schema
from ramify.base.stream_schema import StreamSchema, schema_from_state
from ramify.common.validation import check_integer, check_number
from ramify.data.csr import csr_rows
from ramify.data.hierarchy import Hierarchy
from ramify.data.masked import check_no_mask
from ramify.decide.decisions import check_thresholds
from ramify.explain.score import ExplainedLabel, RaisedBy, Span, Wording
from ramify.explain.spans import rows_without, strongest, weighed_spans

# Multi-label answers hold at least this probability when nothing is asked for; `predict` returns labels from a half on.
DEFAULT_MIN_PROBABILITY = 0.01
DECISION_THRESHOLD = 0.5


class FittedModel:
    """Reads queries by the schema, asks the model, and names the labels of the answer.

    `n_threads` and `options` (of the method's search) apply where a call gives none. With a `hierarchy`, no label is
    less probable than one below it. `lock` is held while the schema or the model change, and while they are saved.
    """

    def __init__(
        self,
        schema: Schema,
        model: Model,
        *,
        seed: int,
        thresholds: NDArray[np.float32] | None = None,
        options: Mapping[str, Any] = NO_OPTIONS,
        hierarchy: Hierarchy | None = None,
    ) -> None:
        self.schema = schema
        self.model = model
        self.seed = seed
        self.thresholds = thresholds  # of `predict`, one per label, if they were tuned
        self.options = options
        self.hierarchy = hierarchy
        self.n_threads = 1
        self.lock = ModelLock()

    # --- queries --------------------------------------------------------------------------------------------------

    def predict_proba(
        self,
        X: Any,
        top_k: int | None = None,
        threshold: float | ArrayLike | None = None,
        labels: Iterable[Any] | None = None,
    ) -> Any:
        """Probabilities as a csr_array of shape (n, n_labels): see `ExtremeClassifier.predict_proba`."""
        if labels is None and (threshold is None or isinstance(threshold, float)):
            row = self.schema.plain_row(X)
            if row is not None:
                return self._probabilities_of_row(row, top_k, threshold)
        rows = self.schema.rows(X)
        if top_k is None and threshold is None and labels is None:
            if self.schema.is_multiclass:
                return self.search(rows, self.query()).toarray()
            threshold = DEFAULT_MIN_PROBABILITY
        query = self.query(top_k, threshold)
        if labels is None:
            return self.search(rows, query)
        found = self.search_named(rows, np.unique(self.schema.labels.columns(labels)), query)
        keep = keep_best if self.coherent is None else self.coherent.keep_best
        return keep(found, query.top_k, query.threshold)

    def predict(self, X: Any) -> Any:
        """The most probable class of each row, or a csr_array of 0 and 1 with the labels that reach their threshold."""
        rows = self.schema.rows(X)
        if self.schema.is_multiclass:
            return self.schema.labels.classes[best_columns(self.search(rows, self.query(1)))]
        answer = self.search(rows, self.query(threshold=self.decision_threshold()))
        return csr_rows(np.ones(answer.nnz, dtype=np.int64), answer.indices, answer.indptr, answer.shape)

    def predict_labels(
        self, X: Any, top_k: int | None = 5, threshold: float | ArrayLike | None = None
    ) -> list[list[tuple[Any, float]]]:
        """Per row, (label, probability) pairs, best first."""
        if threshold is None or isinstance(threshold, float):
            row = self.schema.plain_row(X)
            if row is not None:
                return [self.label_row(row, top_k, threshold)]
        return self.pairs(self.search(self.schema.rows(X), self.query(top_k, threshold)))

    def pairs(self, answer: sparse.csr_array) -> list[list[tuple[Any, float]]]:
        """The (label, probability) pairs of each row of an answer, best first."""
        order = best_first(answer) if self.coherent is None else self.coherent.best_first(answer)
        labels = self.schema.labels_of(answer.indices[order])
        indptr, found = answer.indptr.astype(np.int64, copy=False), answer.data[order].astype(np.float32, copy=False)
        return _core.label_pairs(indptr, labels, found)

    def predict_one(self, x: Any, top_k: int | None = 5, threshold: float | None = None) -> list[tuple[Any, float]]:
        """(label, probability) pairs of one row, best first."""
        return self.label_row(self.schema.row(x), top_k, threshold)

    def explain(self, x: Any, label: Any = None, *, top: int = 5) -> ExplainedLabel:
        """Why a label (by default the most probable one) has its probability for the row x."""
        check_integer("top", top, at_least=1)
        row = self.schema.row(x)
        if label is None:
            best = self.label_row(row, 1, None)
            if not best:
                raise ValueError("no label is possible for this row, so there is none to explain; name one")
            label = best[0][0]
        column = int(self.schema.labels.columns([label])[0])
        raw = self.model.explain(*row, column, self.query())
        explanation: ExplainedLabel = raw.describe(Wording(self.schema, self.schema.terms_of(x), top), column)
        if self.coherent is not None:
            raised = self.coherent.source(*row, column, self.query())
            if raised.column != column:
                column = raised.column
                by = RaisedBy(self.schema.label_of(column), self.schema.label_name(column), raised.own)
                explanation = replace(explanation, probability=raised.probability, raised_by=by)
        spans = self._spans(x, row, column)
        if not spans:
            return explanation
        text = x if isinstance(x, str) else x[0]  # one row may be given as a list of one text
        return replace(explanation, text=text, spans=spans)

    def _spans(self, x: Any, row: Row, column: int) -> list[Span]:
        """The places of a text that speak for or against the label: see `Span`."""
        found = self.schema.occurrences(x)
        if not found or not len(row[0]):
            return []
        columns, values = row
        places = strongest(values)

        def probabilities(rows: sparse.csr_array) -> NDArray[np.float32]:
            label = same_columns(np.ones((rows.shape[0], 1), np.float32), np.array([column]), self.schema.n_labels)
            return self.model.named(rows, label, self.query())

        whole = probabilities(one_row(columns, values, self.model.n_features))
        without = [probabilities(rows) for rows in rows_without(columns, values, places, self.model.n_features)]
        return weighed_spans(found, columns[places], float(whole[0]), np.concatenate(without))

    # --- steps of a query -----------------------------------------------------------------------------------------

    def query(self, top_k: Any = None, threshold: Any = None) -> Query:
        """A checked query."""
        if top_k is not None:
            top_k = top_k if type(top_k) is int and top_k >= 1 else check_integer("top_k", top_k, at_least=1)
            top_k = min(top_k, self.schema.n_labels)
        return Query(top_k, self._check_threshold(threshold), self.n_threads, self.options)

    @property
    def coherent(self) -> CoherentAnswers | None:
        """The model's answers as the hierarchy wants them; None without one."""
        if self.hierarchy is None:
            return None
        return CoherentAnswers(self.model, self.hierarchy, self.schema.labels)

    @property
    def answers(self) -> Model | CoherentAnswers:
        """What answers queries: the model, or the model as the hierarchy wants it."""
        return self.model if self.hierarchy is None else CoherentAnswers(self.model, self.hierarchy, self.schema.labels)

    def search(self, rows: sparse.csr_array, query: Query) -> sparse.csr_array:
        """`Model.search`, for no rows too."""
        return self.answers.search(rows, query) if rows.shape[0] else no_entries(0, self.schema.n_labels)

    def search_named(self, rows: sparse.csr_array, columns: NDArray[np.int32], query: Query) -> sparse.csr_array:
        """Probabilities of the same labels for every row."""
        n = rows.shape[0]
        every_row = same_columns(np.ones((n, len(columns)), dtype=np.float32), columns, self.schema.n_labels)
        if n:
            every_row.data = self.answers.named(rows, every_row, query)
        return every_row

    def label_row(self, row: Row, top_k: Any, threshold: Any) -> list[tuple[Any, float]]:
        """The answer for one row of columns and values."""
        if top_k is not None:
            # Before the first label of a stream there is none to ask for, which is no error.
            top_k = top_k if type(top_k) is int and top_k >= 1 else check_integer("top_k", top_k, at_least=1)
            top_k = min(top_k, max(self.schema.n_labels, 1))
        threshold = 0.0 if threshold is None else check_number("threshold", threshold, at_least=0, at_most=1)
        columns, probabilities = self.answers.search_row(*row, Query(top_k, threshold, self.n_threads, self.options))
        return list(zip(self.schema.labels.names(columns), probabilities.tolist(), strict=True))

    def _probabilities_of_row(self, row: Row, top_k: int | None, threshold: float | None) -> Any:
        """`predict_proba` of one row, without sparse arrays on the way."""
        is_dense = top_k is None and threshold is None and self.schema.is_multiclass
        if top_k is None and threshold is None and not is_dense:
            threshold = DEFAULT_MIN_PROBABILITY
        columns, probabilities = self.answers.search_row(*row, self.query(top_k, threshold))
        if is_dense:
            answer = np.zeros((1, self.schema.n_labels), dtype=np.float32)
            answer[0, columns] = probabilities
            return answer
        return row_by_column(columns, probabilities, self.schema.n_labels)

    def decision_threshold(self) -> Threshold:
        """The probability at which `predict` returns a label: tuned thresholds, a half for labels without."""
        if self.thresholds is None:
            return DECISION_THRESHOLD
        later = np.full(self.schema.n_labels - len(self.thresholds), DECISION_THRESHOLD, dtype=np.float32)
        return np.concatenate([self.thresholds, later])

    def _check_threshold(self, threshold: Any) -> Threshold:
        if threshold is None:
            return 0.0
        if np.ndim(threshold) == 0:
            return check_number("threshold", threshold, at_least=0, at_most=1)
        n_labels = self.schema.n_labels
        check_no_mask("threshold", threshold)
        try:
            per_label = np.ascontiguousarray(threshold, dtype=np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"threshold must be one number or one per label ({n_labels}), got {threshold!r}") from None
        if per_label.shape != (n_labels,):
            raise ValueError(f"threshold must be one number or one per label ({n_labels}), got shape {per_label.shape}")
        if not (per_label >= 0).all():
            raise ValueError(
                f"threshold must not be negative or NaN, got {threshold[int(np.argmin(per_label >= 0))]!r}"
            )
        return per_label

    # --- views and copies -----------------------------------------------------------------------------------------

    def view(self, n_threads: int, options: Mapping[str, Any]) -> FittedModel:
        """The same schema and model, asked with these settings."""
        if n_threads == self.n_threads and options == self.options:
            return self
        view = copy.copy(self.__dict__)
        view.update(n_threads=n_threads, options=options)
        other = FittedModel.__new__(FittedModel)
        other.__dict__ = view
        return other

    def values(self) -> dict[str, Any]:
        """All but the model, for a model file."""
        values = {"schema": self.schema.state(), "seed": self.seed, "options": dict(self.options)}
        if self.hierarchy is not None:
            values["hierarchy"] = self.hierarchy.state()
        return values if self.thresholds is None else {**values, "thresholds": self.thresholds}

    @classmethod
    def restore(
        cls, owner: str, fitted: Mapping[str, Any], model_class: type[Model], model: Mapping[str, Any]
    ) -> FittedModel:
        """What a model file holds, checked."""
        schema = schema_from_state(owner, fitted["schema"])
        for name, array in model["arrays"].items():
            if not isinstance(array, np.ndarray):
                raise ValueError(f"{name} must be an array, got {array!r:.60}")
        restored = model_class.from_state(State(model["values"], model["arrays"]))
        if restored.learns_on and not isinstance(schema, StreamSchema):
            raise ValueError("the model learns from streams, but its schema does not")
        for what in ("n_labels", "n_features"):
            of_model, of_schema = getattr(restored, what), getattr(schema, what)
            if of_model != of_schema:
                raise ValueError(f"the model has {what}={of_model}, but its schema {of_schema}")
        restored.take_schema(schema)
        thresholds = fitted.get("thresholds")
        if thresholds is not None:
            if not isinstance(thresholds, np.ndarray) or thresholds.ndim != 1 or len(thresholds) > schema.n_labels:
                raise ValueError(f"expected thresholds of at most {schema.n_labels} labels, got {thresholds!r:.60}")
            thresholds = check_thresholds(thresholds, len(thresholds))
        hierarchy = Hierarchy.from_state(fitted["hierarchy"]) if "hierarchy" in fitted else None
        return cls(
            schema,
            restored,
            seed=check_integer("seed", fitted["seed"], at_least=0),
            thresholds=thresholds,
            options=checked_options(fitted["options"], restored),
            hierarchy=hierarchy,
        )

    def __getstate__(self) -> dict[str, Any]:
        with self.lock.reading():  # a schema that grows and its model must be copied at the same moment
            state = {name: value for name, value in self.__dict__.items() if name not in ("lock", "model")}
            state["schema"] = self.schema.snapshot()
            state["model"] = type(self.model), self.model.state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        cls, model_state = state.pop("model")
        state.setdefault("hierarchy", None)  # pickles of older versions have none
        self.__dict__.update(state, model=cls.from_state(model_state), lock=ModelLock())


# Search options that are no counts, with the greatest value of each.
_FRACTIONS = {"slack": 1.0, "power": None}


def checked_options(options: Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Search options of a file: numbers such as `slack`, or counts of at least one."""
    for name in model.needed_options:
        if name not in options:
            raise ValueError(f"the search option {name} is missing")
    return {name: _checked_option(name, value) for name, value in options.items()}


def _checked_option(name: str, value: Any) -> Any:
    if value is None and name == "beam":
        return None
    if name in _FRACTIONS:
        return check_number(name, value, at_least=0, at_most=_FRACTIONS[name])
    return check_integer(name, value, at_least=1, at_most=2**31 - 1)
