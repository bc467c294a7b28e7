"""The metrics of extreme classification, on sparse arrays. No metric builds a dense (rows x labels) array.

Conventions of all metrics:

- `Y_true` is a 0/1 array of shape (n, m), sparse or dense, or a 1-D integer array of classes. `P` is a sparse array of
  shape (n, m) with the scores of the predicted labels. A dense `P` predicts every label.
- Labels are ranked by score; ties go to the lower column. Only stored scores are ranked (stored zeros too), so a row
  with fewer than k stored scores leaves the remaining ranks empty.
- Results are fractions, not percentages. A mean over zero rows is nan.
- Bad input raises a ValueError that says what is wrong and where.
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
