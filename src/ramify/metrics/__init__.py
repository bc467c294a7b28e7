"""Every metric of the field, on sparse arrays; nothing of size rows x labels is ever made.

Conventions that hold for all of them:

- `Y_true` is a 0/1 array of shape (n, m), sparse or dense, or a 1-D integer array of classes. `P` holds the scores of
  the labels that a model named, sparse, shape (n, m). A dense `P` names every label.
- Labels are ranked by score; of equal scores the lower column comes first. Only stored scores are ranked (a stored
  zero too), so a row with fewer than k of them misses the remaining places.
- Answers are fractions, not percent. Over zero rows a mean is undefined: the answer is nan.
- Bad input is refused with a ValueError that says what is wrong and where.
"""

from __future__ import annotations

from ramify.metrics.decisions import example_f1, macro_f1, micro_f1
from ramify.metrics.efficiency import expected_depth_at_k, labels_needed
from ramify.metrics.filtering import filter_recall
from ramify.metrics.multiclass import accuracy, entropy_reduction
from ramify.metrics.partition import PartitionQuality, leaf_entropy, partition_quality
from ramify.metrics.probability import (
    ReliabilityCurve,
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability_curve,
)
from ramify.metrics.ranking import (
    coverage_at_k,
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)
from ramify.metrics.report import evaluate

__all__ = [
    "PartitionQuality",
    "ReliabilityCurve",
    "accuracy",
    "brier_score",
    "coverage_at_k",
    "entropy_reduction",
    "evaluate",
    "example_f1",
    "expected_calibration_error",
    "expected_depth_at_k",
    "filter_recall",
    "labels_needed",
    "leaf_entropy",
    "log_loss",
    "macro_f1",
    "micro_f1",
    "ndcg_at_k",
    "partition_quality",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "reliability_curve",
]
