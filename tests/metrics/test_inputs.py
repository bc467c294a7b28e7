"""Bad input of the metrics is rejected with a message that names it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from ramify import metrics

NAN = float("nan")


def broken(array, attribute, position, value):
    """Return a copy with one entry of `indices` or `indptr` overwritten, which scipy does not notice."""
    array = array.copy()
    getattr(array, attribute)[position] = value
    return array


GOOD_Y, GOOD_P = csr_array([[1, 0, 1], [0, 1, 0]]), csr_array([[0.5, 0.0, 0.2], [0.0, 0.9, 0.0]])
RANKING = [metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k, metrics.coverage_at_k]
PROBABILITY = [metrics.log_loss, metrics.brier_score, metrics.expected_calibration_error, metrics.reliability_curve]


@pytest.mark.parametrize("metric", [*RANKING, *PROBABILITY, metrics.evaluate])
@pytest.mark.parametrize(
    ("Y", "P", "message"),
    [
        (GOOD_Y, GOOD_P[:1], r"Y_true has shape \(2, 3\), but P has shape \(1, 3\); the number of rows must be equal"),
        (GOOD_Y, GOOD_P[:, :2], r"Y_true has shape \(2, 3\), but P has shape \(2, 2\); the number of labels"),
        (GOOD_Y, csr_array([[0, NAN, 0], [0, 0, 0]]), "P must contain finite scores, but row 0, column 1 is nan"),
        (GOOD_Y, np.array([[0, 0, 0], [0, 0, -np.inf]]), "P must contain finite scores, but row 1, column 2 is -inf"),
        (csr_array([[1, 0, 2], [0, 1, 0]]), GOOD_P, "Y_true must contain only 0 and 1, but row 0, column 2 is 2"),
        (np.array([[1, 0, 0], [0, NAN, 0]]), GOOD_P, "Y_true must contain only 0 and 1, but row 1, column 1 is nan"),
        (np.array([0, 3]), GOOD_P, "Y_true must contain classes from 0 to 2, but row 1 is 3"),
        (np.array([-1, 0]), GOOD_P, "Y_true must contain classes from 0 to 2, but row 0 is -1"),
        (np.array([0.0, 1.0]), GOOD_P, "Y_true is one-dimensional, so it must contain integer classes, .* float64"),
        (np.zeros((2, 3, 1)), GOOD_P, r"Y_true must have two dimensions \(rows, labels\), got shape \(2, 3, 1\)"),
        (GOOD_Y, np.array([0.1, 0.2]), r"P must have two dimensions \(rows, labels\), got shape \(2,\)"),
        (GOOD_Y, np.full((2, 3), "a"), "P must contain real numbers, got dtype <U1"),
        (GOOD_Y, GOOD_P.astype(complex), "P must contain real numbers, got dtype complex128"),
        (
            broken(GOOD_Y, "indices", 2, 2**30),
            GOOD_P,
            "Y_true is a broken sparse matrix: row 1 has column index 1073741",
        ),
        (GOOD_Y, broken(GOOD_P, "indices", 0, -1), "P is a broken sparse matrix: row 0 has column index -1"),
        (GOOD_Y, broken(GOOD_P, "indices", 1, 3), "P .* row 0 has column index 3, but must be between 0 and 2"),
        (GOOD_Y, broken(GOOD_P, "indptr", 1, 7), "P .* indptr decreases from 7 to 3 at row 1"),
        (broken(GOOD_Y, "indptr", 2, 7), GOOD_P, "Y_true .* indptr ends at 7, but there are 3 indices and 3 values"),
    ],
)
def test_bad_arrays_are_rejected_with_their_position(metric, Y, P, message):
    with pytest.raises(ValueError, match=message):
        metric(Y, P)


@pytest.mark.parametrize("metric", RANKING)
@pytest.mark.parametrize("k", [0, -1, 2.0, True, "5"])
def test_k_must_be_an_integer_of_at_least_1(metric, k):
    with pytest.raises(ValueError, match="k must be an integer of at least 1, got"):
        metric(GOOD_Y, GOOD_P, k)


@pytest.mark.parametrize("metric", PROBABILITY)
def test_raw_scores_are_rejected_as_probabilities(metric):
    with pytest.raises(ValueError, match=r"P must contain probabilities in \[0, 1\], but row 1, column 1 is 1.5"):
        metric(GOOD_Y, csr_array([[0.5, 0.0, 0.2], [0.0, 1.5, 0.0]]))


@pytest.mark.parametrize("metric", [metrics.psp_at_k, metrics.psndcg_at_k])
@pytest.mark.parametrize(
    ("propensity", "message"),
    [
        ([0.5, 0.5], r"propensity must have shape \(3,\), one entry per label, got \(2,\)"),
        ([0.5, 0.0, 0.5], "propensity must be above 0 and at most 1, but label 1 has 0.0"),
        ([0.5, 0.5, NAN], "propensity must be above 0 and at most 1, but label 2 has nan"),
    ],
)
def test_invalid_propensities_are_rejected(metric, propensity, message):
    with pytest.raises(ValueError, match=message):
        metric(GOOD_Y, GOOD_P, propensity)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.propensities(GOOD_Y), "propensities need at least 3 training rows .*, got 2"),
        (lambda: metrics.propensities(GOOD_Y, A=-1), "A must be a positive number, got -1"),
        (lambda: metrics.propensities(GOOD_Y, B="high"), "B must be a positive number, got 'high'"),
        (lambda: metrics.psp_at_k(GOOD_Y, GOOD_P, {}), "propensity must be an array with one entry per label"),
        (lambda: metrics.macro_f1(GOOD_Y, GOOD_Y, empty=None), "empty must be a number from 0 to 1"),
        (lambda: metrics.log_loss(GOOD_Y, GOOD_P, eps="small"), "eps must be a number above 0 and below 0.5, got 'sm"),
        (lambda: metrics.evaluate(GOOD_Y, GOOD_P, ks=3), r"ks must be a collection .* ks=\(1, 3, 5\), got 3"),
        (lambda: metrics.ndcg_at_k(GOOD_Y, GOOD_P, 2**70), "k must be an integer of at most 2147483647"),
        (lambda: metrics.propensities(GOOD_Y, B=NAN), "B must be a positive number, got nan"),
        (lambda: metrics.propensities(GOOD_Y, n_labels=5), "Y_train has 3 labels .*, but n_labels is 5"),
        (lambda: metrics.macro_f1(GOOD_Y, GOOD_Y, empty=2), "empty must be a number from 0 to 1"),
        (lambda: metrics.macro_f1(GOOD_Y, GOOD_P), "Y_pred must contain only 0 and 1, but row 0, column 0 is 0.5"),
        (lambda: metrics.micro_f1(GOOD_Y, GOOD_Y[:1]), "Y_true has shape .*, but Y_pred has shape"),
        (lambda: metrics.log_loss(GOOD_Y, GOOD_P, eps=0), "eps must be a number above 0 and below 0.5, got 0"),
        (lambda: metrics.log_loss(GOOD_Y, GOOD_P, multiclass=True), r"exactly one label \(class\) .* row 0 has 2"),
        (lambda: metrics.accuracy(GOOD_Y, GOOD_P), r"exactly one label \(class\) per row, but row 0 has 2"),
        (lambda: metrics.accuracy([0, 1], [0, 1, 2]), "the number of rows must be equal"),
        (lambda: metrics.macro_f1(GOOD_Y, broken(GOOD_Y, "indices", 0, -1)), "Y_pred is a broken .* index -1"),
        (lambda: metrics.filter_recall(GOOD_Y, broken(GOOD_P, "indices", 0, 3)), "candidates is a broken .* index 3"),
        (lambda: metrics.labels_needed(broken(GOOD_Y, "indices", 2, 3)), "Y is a broken .* row 1 .* index 3"),
        (lambda: metrics.reliability_curve(GOOD_Y, GOOD_P, n_bins=0), "n_bins must be an integer of at least 1"),
        (lambda: metrics.evaluate(GOOD_Y, GOOD_P, ks=()), "ks is empty"),
        (lambda: metrics.evaluate(GOOD_Y, GOOD_P, ks=(1, 0)), "every k of ks must be an integer of at least 1, got 0"),
    ],
)
def test_bad_parameters_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
