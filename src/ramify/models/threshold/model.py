"""A fitted model with tuned thresholds: what was tuned, around the model that estimates probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.model import Model, Query, RowAnswer, State
from ramify.common.validation import check_number
from ramify.decide import OnlineF

if TYPE_CHECKING:
    from typing_extensions import Self

    from ramify.base.nested import Nested
    from ramify.base.schema import Schema
    from ramify.explain.score import RawExplanation


class ThresholdModel(Model):
    """Queries go to the inner model; `tried` holds the validated value of each c, `c` the best of them.

    `online` holds for each c the counts of online F-measure optimisation, where the thresholds follow a stream.
    """

    def __init__(
        self,
        estimator: Nested,
        *,
        c: float | None = None,
        tried: dict[float, float] | None = None,
        online: dict[float, OnlineF] | None = None,
    ) -> None:
        self.estimator = estimator
        self.c = c
        self.tried = {} if tried is None else tried
        self.online = online

    @property
    def inner(self) -> Model:
        """The model that estimates probabilities."""
        return self.estimator.fitted.model

    @property
    def n_labels(self) -> int:  # type: ignore[override]
        return self.inner.n_labels

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.inner.n_features

    @property
    def is_multiclass(self) -> bool:  # type: ignore[override]
        return self.inner.is_multiclass

    def _asked(self, query: Query) -> Query:
        """The query with the inner classifier's own search options."""
        return query._replace(options=self.estimator.fitted.options)

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        return self.inner.search(X, self._asked(query))

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        return self.inner.search_row(indices, values, self._asked(query))

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return self.inner.named(X, candidates, self._asked(query))

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawExplanation:
        return self.inner.explain(indices, values, column, self._asked(query))

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        return self.inner.n_inner_products(X, self._asked(query))

    def take_schema(self, schema: Schema) -> None:
        inner = self.estimator.fitted
        if self.online is not None:  # learning goes on with the estimator's schema, which is the outer one's
            if type(inner.schema) is not type(schema) or (inner.schema.vectorizer is None) != (
                schema.vectorizer is None
            ):
                raise ValueError("the estimator reads other rows than the classifier around it")
            inner.schema = schema

    def state(self) -> State:
        values: dict[str, Any] = {
            "estimator": self.estimator.state(),
            "c": self.c,
            "tried": list(self.tried),
            "values": list(self.tried.values()),
        }
        if self.online is not None:
            values["online"] = [{"c": c, **_counts(online)} for c, online in self.online.items()]
        return State(values, {})

    @classmethod
    def from_state(cls, state: State) -> Self:
        from ramify.base.nested import Nested

        values = state.values
        online = None
        if "online" in values:
            online = {check_number("c", saved["c"]): _from_counts(saved) for saved in values["online"]}
            if not online:
                raise ValueError("the saved counts of online F-measure optimisation have no value of c")
        c = None if values["c"] is None else check_number("c", values["c"])
        tried = [check_number("c", tried) for tried in values["tried"]]
        return cls(
            Nested.from_state(values["estimator"]),
            c=c,
            tried=dict(zip(tried, map(_check_value, values["values"]), strict=True)),
            online=online,
        )


def _check_value(value: Any) -> float:
    """A validated value: a number, or NaN where nothing was decided."""
    return value if isinstance(value, float) and np.isnan(value) else check_number("a validated value", value)


def _counts(online: OnlineF) -> dict[str, Any]:
    return {
        "a": online.a,
        "b": online.b,
        "positives": online.positives,
        "n_seen": online.n_seen,
        "first": [online.first_a, online.first_b],
        "objective": online.objective,
    }


def _from_counts(saved: dict[str, Any]) -> OnlineF:
    first_a, first_b = (check_number(name, first) for name, first in zip("ab", saved["first"], strict=True))
    online = OnlineF(a=first_a, b=first_b, objective=saved["objective"])
    online.restore(saved["a"], saved["b"], saved["positives"], saved["n_seen"])
    return online
