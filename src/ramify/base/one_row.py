"""The short way of one row into an online model: what holds no surprise goes straight to the core.

`partial_fit` looks at everything that a piece of data may bring, which takes many times longer than learning one row.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.base.inputs import finite_values, in_order
from ramify.base.stream_rows import GROWING, MAX_FEATURES, StreamRows


@dataclass(frozen=True)
class Settled:
    """Parameters that were found to be good, and those of this learner: the same objects need no second look."""

    learner: Any
    parameters: tuple[Any, ...]
    n_threads: int


def learn_plain_row(model: Any, x: Mapping[Any, Any], y: Any) -> bool:
    """Learn one row if it is plain: a fitted model, labels it knows, features all named or all numbered.

    False, and nothing has happened: `partial_fit` takes the row, or says what is wrong with it. A model supplies
    `_check_unchanged` (its parameters are good, and those that its learner was made with), `_can_learn(labels)` and
    `_learn_plain(indices, values, labels, n_threads)`.
    """
    if "learner_" not in model.__dict__ or model.verbose is True:
        return False
    with GROWING:
        settled = _settled(model)
        labels = model.label_encoding_.known_columns(y)
        if labels is None or not model._can_learn(labels):
            return False
        row = plain_row(model, x)
        if row is None:
            return False
        indices, values, width, fresh = row
        if fresh:
            model.feature_columns_.update(fresh)
        if width > model.n_features_in_:
            model._widen(width, model.n_labels_)
    model._learn_plain(indices, values, labels, settled.n_threads)
    return True


def _settled(model: Any) -> Settled:
    settled: Settled | None = model.__dict__.get("_settled")
    model_type: Any = type(model)
    parameters = _parameters_of(model_type)(model)
    if (
        settled is None
        or settled.learner is not model.learner_
        or not all(map(operator.is_, parameters, settled.parameters))
    ):
        model._check_unchanged()
        settled = model._settled = Settled(model.learner_, parameters, model._n_threads())
    return settled


@functools.cache
def _parameters_of(model_type: Any) -> Callable[[Any], tuple[Any, ...]]:
    return operator.attrgetter(*model_type._get_param_names())


def plain_row(
    model: StreamRows, x: Mapping[Any, Any]
) -> tuple[NDArray[np.int32], NDArray[np.float32], int, dict[str, int]] | None:
    """Columns in order, values, the width that they need, and the columns of names not met before; None: not plain."""
    known = model.__dict__.get("feature_columns_")
    fresh: dict[str, int] = {}
    if known is not None:
        unknown = [feature for feature in x if feature not in known]
        if unknown:
            if set(map(type, unknown)) != {str}:
                return None
            first = max(model.n_features_in_, len(known))
            fresh = dict(zip(unknown, range(first, first + len(unknown)), strict=True))
            columns = [known[name] if name in known else fresh[name] for name in x]
        else:
            columns = [known[name] for name in x]
    else:
        columns = list(x)
        if not set(map(type, columns)) <= {int}:
            return None
    columns, values = in_order(columns, finite_values(x))
    if columns and (columns[0] < 0 or columns[-1] >= MAX_FEATURES):
        return None
    width = columns[-1] + 1 if columns else 0
    return np.array(columns, dtype=np.int32), values, width, fresh
