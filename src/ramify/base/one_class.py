"""Methods for one class per row: they reject rows with none or several, and have linear regressors at their nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.classifier import ExtremeClassifier
from ramify.common.validation import check_choice, check_flag, check_number
from ramify.optimizers import resolve_optimizer

LOSSES = ("squared", "logistic")
OPTIMIZERS = {"adagrad": {"learning_rate": 0.5, "eps": 0.001}, "sgd": {"learning_rate": 0.5, "invariant": True}}


class OneClassARow(ExtremeClassifier):
    """A classifier for one class per row; scikit-learn's tools are informed by its tags."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


def class_columns(indicator: sparse.csr_array, model_name: str) -> NDArray[np.int32]:
    """The class of each row; rows with none or several are rejected.

    >>> class_columns(sparse.csr_array([[0, 1], [1, 0]]), "LOMTreeClassifier")
    array([1, 0], dtype=int32)
    """
    count = np.diff(indicator.indptr)
    odd = np.flatnonzero(count != 1)
    if len(odd):
        row = int(odd[0])
        raise ValueError(
            f"{model_name} learns exactly one class per row, but row {row} of Y has "
            f"{'no label' if count[row] == 0 else f'{count[row]} labels'}: give one class per row (a 1-D y), "
            "or use a multi-label classifier, such as PLTClassifier or OnlinePLTClassifier"
        )
    return np.ascontiguousarray(indicator.indices, dtype=np.int32)


def check_regressor(classifier: Any) -> None:
    """Reject bad parameters of the nodes' regressors."""
    check_choice("loss", classifier.loss, LOSSES)
    resolve_optimizer(classifier.optimizer, OPTIMIZERS)
    check_flag("normalize", classifier.normalize)
    check_number("bias", classifier.bias, at_least=0, at_most=1_000_000)


def regressor_parameters(classifier: Any) -> dict[str, Any]:
    """Arguments of `_core.RegressorSettings`."""
    rule, steps = resolve_optimizer(classifier.optimizer, OPTIMIZERS)
    return {
        "is_logistic": classifier.loss == "logistic",
        "is_adaptive": rule == "adagrad",
        "is_invariant": steps.get("invariant", True),
        "learning_rate": steps["learning_rate"],
        "eps": steps.get("eps", OPTIMIZERS["adagrad"]["eps"]),
        "normalize": classifier.normalize,
        "bias": float(classifier.bias),
    }
