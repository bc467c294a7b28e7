"""What models of one class a row share: they refuse rows with none or several, and have linear regressors at nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.classifier import ExtremeClassifier
from ramify.common.validation import check_choice, check_flag, check_number

LOSSES = ("squared", "logistic")
LEARNERS = ("adagrad", "sgd")


class OneClassARow(ExtremeClassifier):
    """A classifier that says to scikit-learn's tools that it takes one class a row, and no sets of labels."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


def class_columns(indicator: sparse.csr_array, model_name: str) -> NDArray[np.int32]:
    """The class of each row, if each has exactly one.

    >>> class_columns(sparse.csr_array([[0, 1], [1, 0]]), "LOMTreeClassifier")
    array([1, 0], dtype=int32)
    """
    count = np.diff(indicator.indptr)
    odd = np.flatnonzero(count != 1)
    if len(odd):
        row = int(odd[0])
        raise ValueError(
            f"{model_name} learns exactly one class a row, but row {row} of Y has "
            f"{'no label' if count[row] == 0 else f'{count[row]} labels'}: give one class a row (a 1-D y), "
            "or take a multi-label model, such as PLTClassifier or OnlinePLTClassifier"
        )
    return np.ascontiguousarray(indicator.indices, dtype=np.int32)


def check_regressor(model: Any) -> None:
    """Refuse bad parameters of the nodes' regressors."""
    check_choice("loss", model.loss, LOSSES)
    check_choice("learner", model.learner, LEARNERS)
    check_number("learning_rate", model.learning_rate, above=0)
    check_number("eps", model.eps, above=0)
    check_flag("normalize", model.normalize)
    check_number("bias", model.bias, at_least=0, at_most=1_000_000)


def regressor_parameters(model: Any) -> dict[str, Any]:
    """Arguments of `_core.RegressorSettings`."""
    return {
        "is_logistic": model.loss == "logistic",
        "is_adaptive": model.learner == "adagrad",
        "learning_rate": float(model.learning_rate),
        "eps": float(model.eps),
        "normalize": model.normalize,
        "bias": float(model.bias),
    }


def regressor_settings(parameters: dict[str, Any]) -> _core.RegressorSettings:
    return _core.RegressorSettings(**parameters)
