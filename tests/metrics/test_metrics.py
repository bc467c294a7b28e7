"""Every metric equals a naive implementation over rows and labels, and rejects bad input."""

from __future__ import annotations

import bisect
import doctest
import importlib
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from sklearn.metrics import f1_score, ndcg_score

from ramify import metrics

NAN = float("nan")
# Few values, so most cases have ties; 0 and 1 are the extremes.
SCORES = [0.0, 0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0]


class Case(NamedTuple):
    """The same data twice: arrays for the library, sets and dicts per row for the naive implementation."""

    Y: csr_array
    P: csr_array
    true: list[set[int]]
    named: list[dict[int, float]]
    m: int


@st.composite
def cases(draw, values=SCORES, least_labels=0):
    n, m = draw(st.integers(0, 6)), draw(st.integers(least_labels, 7))
    Y = draw(arrays(np.float32, (n, m), elements=st.sampled_from([0.0, 1.0]), fill=st.nothing()))
    stored = draw(arrays(np.bool_, (n, m), elements=st.booleans(), fill=st.nothing()))
    scores = draw(arrays(np.float32, (n, m), elements=st.sampled_from(values).map(np.float32), fill=st.nothing()))
    rows, columns = np.nonzero(stored)
    P = csr_array((scores[stored], (rows, columns)), shape=(n, m))
    assert P.nnz == stored.sum()  # stored zeros are predictions too
    named = [{int(j): float(scores[i, j]) for j in np.flatnonzero(stored[i])} for i in range(n)]
    return Case(csr_array(Y), P, [set(np.flatnonzero(row).tolist()) for row in Y], named, m)


def first(row, k):
    return sorted(row, key=lambda label: (-row[label], label))[:k]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else NAN


def same(measured, expected):
    assert isinstance(measured, float)
    assert measured == pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True)


def gain(relevances):
    return sum(r / math.log2(place + 2) for place, r in enumerate(relevances))


def ideal(true, k):
    return gain([1] * min(len(true), k))


@given(cases(), st.integers(1, 9))
def test_precision_is_hits_over_k(case, k):
    expected = mean(len(t & set(first(row, k))) / k for t, row in zip(case.true, case.named, strict=True))
    same(metrics.precision_at_k(case.Y, case.P, k), expected)


@given(cases(), st.integers(1, 9))
def test_recall_is_hits_over_true_labels_and_zero_without_any(case, k):
    expected = mean(len(t & set(first(row, k))) / max(len(t), 1) for t, row in zip(case.true, case.named, strict=True))
    same(metrics.recall_at_k(case.Y, case.P, k), expected)


@given(cases(), st.integers(1, 9))
def test_ndcg_is_gain_over_ideal_gain(case, k):
    rows = zip(case.true, case.named, strict=True)
    expected = mean(gain([x in t for x in first(row, k)]) / ideal(t, k) if t else 0.0 for t, row in rows)
    same(metrics.ndcg_at_k(case.Y, case.P, k), expected)


@given(cases(), st.integers(1, 9))
def test_coverage_counts_labels_found_at_least_once(case, k):
    found, present = set(), set().union(*case.true)
    for t, row in zip(case.true, case.named, strict=True):
        found |= t & set(first(row, k))
    same(metrics.coverage_at_k(case.Y, case.P, k), NAN if not case.true else len(found) / max(len(present), 1))


@given(cases(), st.integers(1, 9), st.data())
def test_propensity_scored_metrics_are_divided_by_the_best_attainable(case, k, data):
    p = data.draw(st.lists(st.floats(0.01, 1.0), min_size=case.m, max_size=case.m))
    precision = best_precision = ndcg = best_ndcg = 0.0
    for t, row in zip(case.true, case.named, strict=True):
        gained = [1 / p[x] if x in t else 0.0 for x in first(row, k)]
        attainable = sorted((1 / p[x] for x in t), reverse=True)[:k]
        precision, best_precision = precision + sum(gained), best_precision + sum(attainable)
        if t:
            ndcg, best_ndcg = ndcg + gain(gained) / ideal(t, k), best_ndcg + gain(attainable) / ideal(t, k)
    undefined = not case.true
    same(metrics.psp_at_k(case.Y, case.P, p, k), NAN if undefined else precision / (best_precision or 1))
    same(metrics.psndcg_at_k(case.Y, case.P, p, k), NAN if undefined else ndcg / (best_ndcg or 1))


@given(arrays(np.bool_, st.tuples(st.integers(3, 20), st.integers(1, 5))), st.floats(0.1, 2), st.floats(0.1, 5))
def test_propensities_follow_the_model(Y, A, B):
    C = (math.log(len(Y)) - 1) * (B + 1) ** A
    expected = [1 / (1 + C * math.exp(-A * math.log(count + B))) for count in Y.sum(axis=0)]
    np.testing.assert_allclose(metrics.propensities(csr_array(Y), A, B), expected)


def test_a_frequent_label_has_the_higher_propensity():
    rare, frequent, unseen = metrics.propensities(np.array([1] * 99 + [0]), n_labels=3)
    assert 0 < unseen < rare < frequent < 1


@given(cases(), st.sampled_from([0.0, 1.0]))
def test_f_measures_equal_counting_each_decision(case, empty):
    predicted = [{x for x in row if row[x] >= 0.3} for row in case.named]
    Y_pred = csr_array(case.P.toarray() >= np.float32(0.3))
    pairs = list(zip(case.true, predicted, strict=True))

    def f(pairs):
        total = sum(len(t) + len(q) for t, q in pairs)
        return 2 * sum(len(t & q) for t, q in pairs) / total if total else empty

    per_label = [f([(t & {j}, q & {j}) for t, q in pairs]) for j in range(case.m)]
    same(metrics.macro_f1(case.Y, Y_pred, empty=empty), mean(per_label))
    same(metrics.micro_f1(case.Y, Y_pred, empty=empty), f(pairs))
    same(metrics.example_f1(case.Y, Y_pred, empty=empty), mean(f([pair]) for pair in pairs))


def test_the_empty_convention_can_reverse_an_order_and_0_equals_scikit_learn():
    Y = np.array([[1, 0, 0], [1, 0, 0]])
    careful, eager = np.array([[0, 0, 0], [1, 0, 0]]), np.array([[1, 1, 1], [1, 1, 1]])
    assert metrics.macro_f1(Y, careful, empty=1.0) > metrics.macro_f1(Y, eager, empty=1.0)
    assert metrics.macro_f1(Y, careful, empty=0.0) < metrics.macro_f1(Y, eager, empty=0.0)
    for average, ours in {"macro": metrics.macro_f1, "micro": metrics.micro_f1, "samples": metrics.example_f1}.items():
        same(ours(Y, careful, empty=0.0), float(f1_score(Y, careful, average=average, zero_division=0.0)))


@given(cases(), st.sampled_from([1e-7, 1e-3, 0.2]))
def test_log_loss_sums_over_all_labels_and_clips_absent_ones(case, eps):
    def loss(t, row):
        clipped = [min(max(row.get(j, 0.0), eps), 1 - eps) for j in range(case.m)]
        return -sum(math.log(p) if j in t else math.log1p(-p) for j, p in enumerate(clipped))

    same(metrics.log_loss(case.Y, case.P, eps=eps), mean(map(loss, case.true, case.named)))


@given(cases(least_labels=1), st.data())
def test_multiclass_log_loss_uses_only_the_true_class(case, data):
    n = len(case.named)
    classes = data.draw(st.lists(st.integers(0, case.m - 1), min_size=n, max_size=n))
    clipped = [min(max(row.get(y, 0.0), 1e-7), 1 - 1e-7) for y, row in zip(classes, case.named, strict=True)]
    expected = mean(-math.log(p) for p in clipped)
    same(metrics.log_loss(np.array(classes, dtype=int), case.P, multiclass=True), expected)


@given(cases())
def test_brier_score_sums_squared_errors(case):
    def squares(t, row):
        return sum(((j in t) - row.get(j, 0.0)) ** 2 for j in range(case.m))

    same(metrics.brier_score(case.Y, case.P), mean(map(squares, case.true, case.named)))


@given(cases(), st.integers(1, 12), st.booleans())
def test_reliability_curve_and_calibration_error_equal_naive_binning(case, n_bins, absent):
    edges = [float(edge) for edge in np.linspace(0, 1, n_bins + 1)]

    def bins(absent):
        answer = [[] for _ in range(n_bins)]
        for t, row in zip(case.true, case.named, strict=True):
            for j in set(row) | (t if absent else set()):
                p = row.get(j, 0.0)
                answer[min(bisect.bisect_right(edges, p) - 1, n_bins - 1)].append((p, j in t))
        return answer

    curve = metrics.reliability_curve(case.Y, case.P, n_bins, absent_positives=absent)
    expected = bins(absent)
    assert curve.count.tolist() == [len(entries) for entries in expected]
    np.testing.assert_allclose(curve.mean_probability, [mean(p for p, _ in entries) for entries in expected])
    np.testing.assert_allclose(curve.frequency, [mean(y for _, y in entries) for entries in expected])

    filled = [entries for entries in bins(True) if entries]
    gaps = [abs(mean(p for p, _ in b) - mean(y for _, y in b)) * len(b) for b in filled]
    total = sum(map(len, filled))
    same(metrics.expected_calibration_error(case.Y, case.P, n_bins), sum(gaps) / total if total else NAN)


@given(cases(least_labels=1), st.data())
def test_accuracy_and_entropy_reduction_for_classes(case, data):
    n = len(case.named)
    classes = data.draw(st.lists(st.integers(0, case.m - 1), min_size=n, max_size=n))
    right = mean(first(row, 1) == [y] for y, row in zip(classes, case.named, strict=True))
    same(metrics.accuracy(np.array(classes, dtype=int), case.P), right)
    constant = mean(y == max(set(classes), key=classes.count) for y in classes) if n else NAN
    expected = NAN if not n else -math.inf if right == 0 else math.log2(right) - math.log2(constant)
    same(metrics.entropy_reduction(np.array(classes, dtype=int), case.P), expected)


def test_entropy_reduction_against_a_given_constant():
    assert metrics.entropy_reduction([0, 0, 0, 1], [0, 0, 0, 1], constant=1) == 2.0
    with pytest.raises(ValueError, match="constant 2 never occurs in Y_true"):
        metrics.entropy_reduction([0, 1], csr_array((2, 3)), constant=2)
    with pytest.raises(ValueError, match="constant must be a class from 0 to 1, got 7"):
        metrics.entropy_reduction([0, 1], [0, 1], constant=7)


@given(cases(), st.sets(st.integers(1, 9), min_size=1, max_size=3))
def test_the_report_equals_the_single_metrics(case, ks):
    p = np.linspace(0.1, 1.0, case.m)
    report = metrics.evaluate(case.Y, case.P, ks, propensity=p)
    expected = {
        "log_loss": metrics.log_loss(case.Y, case.P),
        "brier": metrics.brier_score(case.Y, case.P),
        "ece": metrics.expected_calibration_error(case.Y, case.P),
    }
    for k in ks:
        expected[f"P@{k}"] = metrics.precision_at_k(case.Y, case.P, k)
        expected[f"R@{k}"] = metrics.recall_at_k(case.Y, case.P, k)
        expected[f"nDCG@{k}"] = metrics.ndcg_at_k(case.Y, case.P, k)
        expected[f"PSP@{k}"] = metrics.psp_at_k(case.Y, case.P, p, k)
        expected[f"PSnDCG@{k}"] = metrics.psndcg_at_k(case.Y, case.P, p, k)
        expected[f"coverage@{k}"] = metrics.coverage_at_k(case.Y, case.P, k)
    assert report == pytest.approx(expected, nan_ok=True)


def test_the_report_of_raw_scores_omits_metrics_of_probabilities():
    report = metrics.evaluate([[1, 0]], csr_array([[-2.5, 1.5]]), ks=(1,))
    assert list(report) == ["P@1", "R@1", "nDCG@1", "coverage@1"]


@given(cases(values=[-3.0, -1.0, -0.5, 0.0, 2.0, 7.5]), st.integers(1, 9))
def test_raw_scores_are_ranked_even_if_negative(case, k):
    expected = mean(len(t & set(first(row, k))) / k for t, row in zip(case.true, case.named, strict=True))
    same(metrics.precision_at_k(case.Y, case.P, k), expected)


@given(cases(), st.integers(1, 5))
def test_any_format_of_the_same_arrays_gives_the_same_result_and_is_not_modified(case, k):
    expected = metrics.ndcg_at_k(case.Y, case.P, k)
    unsorted = case.P.copy()
    for start, stop in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[start:stop] = unsorted.indices[start:stop][::-1].copy()
        unsorted.data[start:stop] = unsorted.data[start:stop][::-1].copy()
    unsorted = csr_array((unsorted.data, unsorted.indices, unsorted.indptr), shape=unsorted.shape)
    before = unsorted.indices.copy()
    for Y in (case.Y.toarray(), csr_matrix(case.Y), csc_array(case.Y), case.Y.astype(bool)):
        for P in (csr_matrix(case.P), csc_array(case.P), coo_array(unsorted), unsorted):
            same(metrics.ndcg_at_k(Y, P, k), expected)
    np.testing.assert_array_equal(unsorted.indices, before)


def test_a_stored_zero_in_the_truth_is_not_a_label():
    Y = csr_array((np.array([0.0, 1.0]), ([0, 0], [0, 1])), shape=(1, 2))
    assert metrics.precision_at_k(Y, csr_array([[0.9, 0.8]]), 1) == 0.0
    assert metrics.recall_at_k(Y, csr_array([[0.9, 0.8]]), 2) == 1.0
    assert Y.nnz == 2


def test_a_dense_score_array_predicts_every_label():
    Y, P = np.array([[0, 1, 0], [1, 0, 0]]), np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.8]])
    assert metrics.precision_at_k(Y, P, 2) == 0.5  # in row 0 columns 0 and 1 win the tie
    assert metrics.precision_at_k(Y, csr_array(P), 2) == 0.25  # sparse: row 0 has no predictions
    scores = np.random.default_rng(0).random((20, 8))
    truth = np.random.default_rng(1).random((20, 8)) < 0.3
    same(metrics.ndcg_at_k(truth, scores, 4), float(ndcg_score(truth, scores, k=4)))


def test_classes_are_one_hot_rows():
    P = csr_array([[0.1, 0.9], [0.8, 0.2]])
    assert metrics.precision_at_k(np.array([1, 1]), P, 1) == 0.5
    assert metrics.macro_f1([0, 1, 3], [0, 1, 1], empty=0.0) == pytest.approx((1 + 2 / 3) / 4)
    assert metrics.accuracy([0, 3], [0, 1]) == 0.5
    assert metrics.accuracy(csr_array([[1, 0], [0, 1]]), [0, 0]) == 0.5


def test_probabilities_above_1_by_rounding_count_as_1():
    P = csr_array(np.array([[1.000001, 0.5]], dtype=np.float32))
    assert P.data[0] > 1
    assert metrics.brier_score([[1, 0]], P) == 0.25


def test_rows_of_very_different_length_are_ranked_correctly():
    rng = np.random.default_rng(3)
    lengths = [0, 1, 2, 3, 300, 7, 8, 9, 1, 0, 63, 64, 65]
    rows = [dict(zip(rng.permutation(300)[:n].tolist(), rng.integers(0, 20, n) / 20, strict=True)) for n in lengths]
    i, j, p = map(np.array, zip(*[(i, j, p) for i, row in enumerate(rows) for j, p in row.items()], strict=True))
    P = csr_array((p, (i, j)), shape=(len(rows), 300))
    Y = rng.random(P.shape) < 0.1
    for k in (1, 5, 100, 1000):
        same(metrics.precision_at_k(Y, P, k), mean(float(Y[i, first(r, k)].sum()) / k for i, r in enumerate(rows)))


@pytest.mark.parametrize("module", ["ranking", "decisions", "multiclass", "probability", "report"])
def test_the_examples_in_the_docstrings_are_correct(module):
    results = doctest.testmod(importlib.import_module(f"ramify.metrics.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
