"""The tuners find the best thresholds, on sparse arrays of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from ramify import decide, metrics
from ramify.decide.estimates import estimates, kappa, lower_bound
from ramify.decide.measures import label_measure
from shared.warm_python import run
from twins.online_f import ofo

EMPTY = {"zero": 0.0, "one": 1.0}
METRIC = {"macro_f1": metrics.macro_f1, "micro_f1": metrics.micro_f1, "example_f1": metrics.example_f1}


@st.composite
def problems(draw, max_rows=12, max_labels=4):
    """Draw probabilities with ties and zeros, and any true labels."""
    shape = (draw(st.integers(1, max_rows)), draw(st.integers(1, max_labels)))
    grid = np.array([0.0, 0.0, 0.05, 0.1, 0.1, 0.3, 0.31, 0.5, 0.8, 1.0], dtype=np.float32)
    P = grid[draw(hnp.arrays(np.int8, shape, elements=st.integers(0, len(grid) - 1)))]
    return sparse.csr_array(P), draw(hnp.arrays(np.int8, shape, elements=st.integers(0, 1)))


def every_threshold(P):
    return np.unique(np.concatenate([P.data, [np.float32(1.5)]]))


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["zero", "one"]))
def test_sto_without_a_cut_equals_exhaustive_search_for_every_label(problem, empty):
    P, Y = problem
    decided = decide.apply_thresholds(P, decide.tune_sto(P, Y, empty=empty))
    for label in range(Y.shape[1]):
        column, truth = P[:, [label]], Y[:, [label]]
        best = max(
            metrics.macro_f1(truth, decide.apply_thresholds(column, t), empty=EMPTY[empty])
            for t in every_threshold(column)
        )
        assert metrics.macro_f1(truth, decided[:, [label]], empty=EMPTY[empty]) == pytest.approx(best, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(["micro_f1", "example_f1"]), st.sampled_from(["zero", "one"]))
def test_the_common_threshold_of_sto_is_the_best_stored_probability(problem, objective, empty):
    P, Y = problem
    thresholds = decide.tune_sto(P, Y, objective=objective, empty=empty)
    assert len(set(thresholds.tolist())) == 1
    measure = METRIC[objective]
    best = max(
        [measure(Y, decide.apply_thresholds(P, t), empty=EMPTY[empty]) for t in np.unique(P.data[P.data > 0])],
        default=measure(Y, np.zeros_like(Y), empty=EMPTY[empty]),
    )
    assert measure(Y, decide.apply_thresholds(P, thresholds), empty=EMPTY[empty]) == pytest.approx(best, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(["zero", "one"]))
def test_fta_finds_the_best_of_its_grid_for_every_label_above_the_bound(problem, empty):
    P, Y = problem
    grid = np.array([0.05, 0.1, 0.2, 0.31, 0.5], dtype=np.float32)
    thresholds = decide.tune_fta(P, Y, grid=grid, cut=0.1, empty=empty)
    bound = lower_bound(Y.mean(axis=0))
    for label, threshold in enumerate(thresholds):
        column, truth = P[:, [label]], Y[:, [label]]
        f = {
            t: metrics.macro_f1(truth, decide.apply_thresholds(column, t), empty=EMPTY[empty])
            for t in grid
            if t >= np.float32(0.1) and t > bound[label]
        }
        assert threshold >= max(np.float32(0.1), bound[label])
        if f and max(f.values()) > 0:
            assert threshold in f
            assert f[threshold] == pytest.approx(max(f.values()), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["macro_f1", "micro_f1", "example_f1"]), st.sampled_from(["zero", "one"]))
def test_the_common_threshold_of_fta_is_the_best_of_its_grid(problem, objective, empty):
    P, Y = problem
    grid = np.array([0.05, 0.1, 0.2, 0.31, 0.5], dtype=np.float32)
    thresholds = decide.tune_fta(P, Y, grid=grid, objective=objective, common=True, empty=empty)
    values = [METRIC[objective](Y, decide.apply_thresholds(P, t), empty=EMPTY[empty]) for t in grid]
    found = METRIC[objective](Y, decide.apply_thresholds(P, thresholds), empty=EMPTY[empty])
    assert found == pytest.approx(max(values), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["macro_f1", "micro_f1", "example_f1"]), st.booleans(), st.integers(1, 5))
def test_fta_over_a_stream_equals_fta_over_all_rows(problem, objective, common, size):
    P, Y = problem
    counted = decide.FixedThresholds(P.shape[1], objective=objective)
    for start in range(0, P.shape[0], size):
        counted.update(P[start : start + size], Y[start : start + size])
    np.testing.assert_array_equal(
        counted.thresholds(common=common, cut=0.05), decide.tune_fta(P, Y, objective=objective, common=common, cut=0.05)
    )


@settings(max_examples=150, deadline=None)
@given(
    problems(max_rows=25),
    st.sampled_from(["macro_f1", "micro_f1"]),
    st.sampled_from([(1.0, 2.0), (1.0, 20.0), (0.0, 1.0)]),
    st.sampled_from([None, "fixed", "causal"]),
)
def test_ofo_equals_its_python_twin(problem, objective, initial, bound):
    P, Y = problem
    a, b = initial
    prior = Y.mean(axis=0) if bound == "fixed" else None
    online = decide.OnlineF(a=a, b=b, objective=objective, bounded=bound is not None, prior=prior).update(P, Y)
    expected = ofo(P.toarray(), Y, a, b, objective, bound, prior)
    np.testing.assert_array_equal(online.a, expected.a)
    np.testing.assert_array_equal(online.b, expected.b)
    np.testing.assert_array_equal(online.thresholds, expected.thresholds)
    for empty, value in EMPTY.items():
        if objective == "macro_f1":
            assert online.f1(empty=empty) == pytest.approx(
                metrics.macro_f1(Y, expected.decisions, empty=value), abs=1e-12
            )


@settings(max_examples=60, deadline=None)
@given(problems(max_rows=25), st.integers(1, 7))
def test_ofo_does_not_depend_on_batch_sizes_or_on_when_labels_appear(problem, size):
    P, Y = problem
    online = decide.OnlineF(b=4)
    for start in range(0, P.shape[0], size):
        rows, truth = P[start : start + size], Y[start : start + size]
        # Leave out the columns after the last one in use, as if their labels had not appeared yet.
        used = np.flatnonzero((rows.toarray() > 0).any(axis=0) | truth.any(axis=0))
        width = max(online.n_labels, used[-1] + 1 if len(used) else 0, 1)
        least = online.least_after(truth.shape[0])
        online.update(rows[:, :width], truth[:, :width])
        assert (online.thresholds[: len(least)] >= least).all()
    whole = decide.OnlineF(b=4).update(P, Y)
    n = online.n_labels
    np.testing.assert_array_equal(online.thresholds, whole.thresholds[:n])


def test_equation_4_holds_after_a_long_stream_of_true_probabilities():
    """F* = 2 tau*: OFO converges to half of the F that STO finds, and STO's own threshold is there too."""
    generator = np.random.default_rng(0)
    p = generator.beta(0.3, 1.5, size=(40_000, 3)).astype(np.float32)
    P, Y = sparse.csr_array(p), generator.random(p.shape) < p
    online, searched = decide.tune_ofo(P, Y, b=10), decide.tune_sto(P, Y)
    best = [metrics.macro_f1(Y[:, [j]], decide.apply_thresholds(P[:, [j]], searched[j])) for j in range(3)]
    np.testing.assert_allclose(online, np.array(best) / 2, atol=0.01)
    # F is flat at its maximum, so the threshold that is best on a sample is less certain than its F.
    p = generator.beta(0.3, 1.5, size=(400_000, 3)).astype(np.float32)
    P, Y = sparse.csr_array(p), generator.random(p.shape) < p
    for ties in ("common", "highest"):
        np.testing.assert_allclose(decide.tune_sto(P, Y, ties=ties), np.array(best) / 2, atol=0.025)


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(["zero", "one"]))
def test_the_tie_rule_of_algorithm_1_takes_the_highest_of_the_best_probabilities(problem, empty):
    P, Y = problem
    thresholds = decide.tune_sto(P, Y, empty=empty, ties="highest")
    for label in range(Y.shape[1]):
        column, truth = P[:, [label]], Y[:, [label]]
        f = {t: metrics.macro_f1(truth, decide.apply_thresholds(column, t), empty=0.0) for t in np.unique(column.data)}
        if f and max(f.values()) > 0:
            assert thresholds[label] == max(t for t, value in f.items() if value == max(f.values()))


def test_of_two_thresholds_with_the_same_f_algorithm_1_takes_the_higher():
    """F is 2/3 both for one right label of one and for two of four; the common threshold, 0.4, takes the lower."""
    P = sparse.csr_array(np.array([[0.9], [0.6], [0.5], [0.4]], dtype=np.float32))
    Y = np.array([[1], [0], [0], [1]])
    assert decide.tune_sto(P, Y, ties="highest")[0] == np.float32(0.9)
    assert decide.tune_sto(P, Y)[0] <= np.float32(0.4)


def measured(objective, truth, decided):
    """A measure of one label, by its definition."""
    tp, n_positive, n_predicted, n = (truth & decided).sum(), truth.sum(), decided.sum(), len(truth)
    if objective == "macro_jaccard":
        return tp / max(n_positive + n_predicted - tp, 1)
    if objective == "macro_g_mean":
        specificity = 1 - (n_predicted - tp) / max(n - n_positive, 1)
        return np.sqrt(tp / max(n_positive, 1) * specificity)
    beta = float(objective.removeprefix("macro_f"))
    precision, recall = tp / max(n_predicted, 1), tp / max(n_positive, 1)
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall) if tp else 0.0


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(["macro_f2", "macro_f0.5", "macro_jaccard", "macro_g_mean"]))
def test_thresholds_for_other_measures_are_the_best_of_all_and_of_the_grid(problem, objective):
    P, Y = problem
    grid = np.array([0.05, 0.1, 0.31, 0.5, 0.8], dtype=np.float32)
    searched = decide.tune_sto(P, Y, objective=objective)
    fixed = decide.tune_fta(P, Y, objective=objective, grid=grid)
    for label in range(Y.shape[1]):
        p, truth = P[:, [label]].toarray().ravel(), Y[:, label].astype(bool)

        def value(t, p=p, truth=truth):
            return measured(objective, truth, (p >= t) & (p > 0))

        best = max((value(t) for t in np.unique(p[p > 0])), default=0.0)
        if best > 0:
            assert value(searched[label]) == pytest.approx(best, abs=1e-9)
        decided = (p >= 0.31) & (p > 0)
        counts = (np.array([n]) for n in ((truth & decided).sum(), decided.sum(), truth.sum()))
        [found] = label_measure(objective).value(*counts, len(truth), 0.0)
        assert found == pytest.approx(value(0.31), abs=1e-9)
        best_of_grid = max(value(t) for t in grid)
        if best_of_grid > 0:
            assert value(fixed[label]) == pytest.approx(best_of_grid, abs=1e-9)


def test_the_bound_of_f_beta_is_where_predicting_every_row_is_no_longer_beaten():
    """tau* = F* / (1 + beta^2) on true probabilities, so no threshold below that of predicting every row is best."""
    generator = np.random.default_rng(3)
    p = generator.beta(0.5, 1.0, size=(30_000, 1)).astype(np.float32)
    P, Y = sparse.csr_array(p), (generator.random(p.shape) < p).astype(int)
    for beta in (0.5, 2.0):
        objective = f"macro_f{beta:g}"
        threshold = decide.tune_sto(P, Y, objective=objective)[0]
        f = measured(objective, Y[:, 0].astype(bool), p[:, 0] >= threshold)
        assert threshold == pytest.approx(f / (1 + beta**2), abs=0.03)
        assert kappa(1e-9, Y.mean(axis=0), label_measure(objective))[0] < threshold
        assert decide.choose_thresholds(P, Y, method="fta", objective=objective, c=[100]).values[100] == pytest.approx(
            f, abs=0.01
        )


def test_ofo_starts_each_label_at_its_own_a_and_b():
    generator = np.random.default_rng(5)
    p = generator.random((60, 3)).astype(np.float32)
    P, Y = sparse.csr_array(p), (generator.random(p.shape) < 0.3).astype(int)
    a, b = np.array([1.0, 2.0, 0.5]), np.array([4.0, 40.0, 1.0])
    together = decide.OnlineF(a=a, b=b, bounded=False).update(P, Y)
    alone = [decide.OnlineF(a=a[j], b=b[j], bounded=False).update(P[:, [j]], Y[:, [j]]) for j in range(3)]
    assert together.thresholds.tolist() == [one.thresholds[0] for one in alone]
    assert together.f1() == pytest.approx(np.mean([one.f1() for one in alone]))
    np.testing.assert_array_equal(decide.tune_ofo(P, Y, a=a, b=b, bounded=False), together.thresholds)
    with pytest.raises(ValueError, match=r"P has 3 labels .* but a has only 2 entries"):
        decide.OnlineF(a=[1.0, 1.0], b=4).update(P, Y)
    with pytest.raises(ValueError, match="one threshold for all labels"):
        decide.OnlineF(a=a, b=b, objective="micro_f1")


def test_kappa_is_the_larger_of_the_cut_and_the_bound_and_a_cut_of_0_disables_both():
    np.testing.assert_allclose(kappa(0.1, [0.0, 0.25, 0.05]), [0.1, 0.2, 0.1], rtol=1e-6)
    assert kappa(0, [0.5, 1.0]).tolist() == [0.0, 0.0]
    P, Y = sparse.csr_array(np.array([[0.3], [0.2], [0.1]], np.float32)), np.array([[1], [1], [0]])
    assert decide.tune_sto(P, Y)[0] <= np.float32(0.2)
    # The prior is 2/3, so only thresholds of at least 0.4 are tried and no positive is found.
    assert decide.tune_sto(P, Y, cut=0.01)[0] >= np.float32(0.4)


def test_conventions_for_empty_labels_lead_to_different_thresholds():
    P = sparse.csr_array(np.array([[0.6, 0.7], [0.6, 0.0]], dtype=np.float32))
    Y = np.array([[1, 0], [1, 0]])  # the second label has no positive, but a probability of 0.7
    with_zero, with_one = (decide.tune_sto(P, Y, empty=empty) for empty in ("zero", "one"))
    assert with_zero[1] <= 0.7 < with_one[1]
    for empty, thresholds in (("zero", with_zero), ("one", with_one)):
        choice = decide.choose_thresholds(P, Y, method="sto", c=[100], empty=empty)
        np.testing.assert_array_equal(choice.thresholds[:1], thresholds[:1])


@pytest.mark.parametrize("method", ["ofo", "fta", "sto"])
def test_choice_values_equal_the_metric_and_the_best_is_returned(method):
    generator = np.random.default_rng(1)
    p = (generator.beta(0.2, 2, size=(400, 6)) * (generator.random((400, 6)) < 0.6)).astype(np.float32)
    Y = (generator.random(p.shape) < p).astype(int)
    P = sparse.csr_array(p)
    choice = decide.choose_thresholds(P, Y, method=method, c=(1000, 20, 5, 2))
    assert choice.values[choice.c] == max(choice.values.values())
    decided = decide.apply_thresholds(P, choice.thresholds)
    assert choice.values[choice.c] == pytest.approx(metrics.macro_f1(Y, decided, empty=0.0))
    validated = decide.choose_thresholds(P, Y, method=method, c=(1000, 20, 5, 2), folds=4)
    assert all(validated.values[c] <= choice.values[c] + 0.05 for c in validated.values)


def test_estimates_of_any_type_and_order_are_canonicalised():
    P = sparse.csr_matrix(np.array([[0.5, 0.25, 0.0], [0.0, 0.75, 0.125]]))
    shuffled = sparse.csr_matrix((P.data[[1, 0, 3, 2]], P.indices[[1, 0, 3, 2]], P.indptr), shape=P.shape)
    Y = np.array([[1, 0, 0], [0, 1, 0]])
    for tune in (decide.tune_sto, decide.tune_fta, decide.tune_ofo):
        np.testing.assert_array_equal(tune(shuffled, Y), tune(P, Y))
        np.testing.assert_array_equal(tune(P.toarray(), sparse.csc_array(Y)), tune(P, Y))
    assert estimates(P, Y).is_hit.tolist() == [True, False, True, False]


@pytest.mark.parametrize("tune", [decide.tune_sto, decide.tune_fta, decide.tune_ofo])
@pytest.mark.parametrize(
    ("P", "Y", "message"),
    [
        ([[0.5]], [[1, 0]], "shape"),
        ([[0.5]], [[2]], "0 and 1"),
        ([[np.nan]], [[1]], "finite"),
        ([[-0.5]], [[1]], "P must contain probabilities, but row 0, column 0 is -0.5"),
    ],
)
def test_bad_input_is_rejected(tune, P, Y, message):
    with pytest.raises(ValueError, match=message):
        tune(np.array(P), np.array(Y))


@pytest.mark.parametrize("tune", [decide.tune_sto, decide.tune_fta, decide.tune_ofo, decide.choose_thresholds])
@pytest.mark.parametrize(
    ("attribute", "position", "value", "message"),
    [
        ("indices", 3, 2**30, "row 1 has column index 1073741824, but must be between 0 and 2"),
        ("indices", 0, -1, "row 0 has column index -1, but must be between 0 and 2"),
        ("indices", 1, 3, "row 0 has column index 3, but must be between 0 and 2"),
        ("indptr", 1, 9, "indptr decreases from 9 to 4 at row 1"),
        ("indptr", 2, 9, "indptr ends at 9, but there are 4 indices and 4 values"),
        ("indptr", 0, 1, "indptr starts at 1, but must start at 0"),
    ],
)
def test_broken_sparse_arrays_are_rejected(tune, attribute, position, value, message):
    P = sparse.csr_array(np.array([[0.5, 0.25, 0.0], [0.0, 0.75, 0.125]], dtype=np.float32))
    Y = sparse.csr_array(np.array([[1, 0, 1], [0, 1, 1]]))
    for name in ("P", "Y"):
        arrays = {"P": P.copy(), "Y": Y.copy()}
        getattr(arrays[name], attribute)[position] = value
        with pytest.raises(ValueError, match=f"{name} is a broken sparse matrix: {message}"):
            tune(**arrays)


def test_bad_parameters_are_rejected_by_name():
    P, Y = np.array([[0.5]]), np.array([[1]])
    for call, message in [
        (lambda: decide.tune_sto(P, Y, objective="accuracy"), "objective must be"),
        (lambda: decide.tune_sto(P, Y, cut=2), "cut must be"),
        (lambda: decide.tune_sto(P, Y, empty="half"), "empty must be 'zero' or 'one'"),
        (lambda: decide.tune_sto(P, Y, prior=[2.0], cut=0.1), r"prior must have shape \(1,\)"),
        (lambda: decide.tune_fta(P, Y, grid=[0.0]), r"grid must be a list of thresholds .* got \[0.0\]"),
        (lambda: decide.tune_ofo(P, Y, objective="example_f1"), "'ofo' has no rule for objective='example_f1'"),
        (lambda: decide.tune_ofo(P, Y, a=3, b=2), "a must be at most b"),
        (lambda: decide.choose_thresholds(P, Y, method="best"), "method must be"),
        (lambda: decide.choose_thresholds(P, Y, c=[]), "c is empty; pass at least one value"),
        (lambda: decide.choose_thresholds(P, Y, c=None), "c must be a number of at least 1, got None"),
        (lambda: decide.choose_thresholds(P, Y, a="one"), "a must be a number of at least 0, got 'one'"),
        (lambda: decide.f_measure_curves(P, Y, P, Y, c="10"), "c must be a number of at least 1, got '10'"),
        (lambda: decide.apply_thresholds(P, [0.5, 0.5]), "one for each of the 1 labels"),
        (lambda: decide.FixedThresholds(2).update(P, Y), r"P must have 2 labels \(columns\), got 1"),
        (lambda: decide.OnlineF().update(np.ones((1, 2)), np.ones((1, 2))).update(P, Y), "at least 2 labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


LARGE = """
import resource, sys
import numpy as np
from scipy import sparse
from ramify import decide

resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
n, m, k = 30_000, 300_000, 5
generator = np.random.default_rng(0)
labels = np.sort(generator.integers(0, m // k, (n, k)) * k + np.arange(k), axis=1).astype(np.int32)
p = generator.random((n, k)).astype(np.float32) ** 3
P = sparse.csr_array((p.ravel(), labels.ravel(), np.arange(n + 1, dtype=np.int32) * k), shape=(n, m))
is_true = generator.random(P.nnz) < P.data
indptr = np.concatenate([[0], np.cumsum(is_true)])[P.indptr].astype(np.int32)
Y = sparse.csr_array((np.ones(is_true.sum(), np.float32), P.indices[is_true], indptr), shape=P.shape)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tune, settings = sys.argv[1], dict(argument.split("=") for argument in sys.argv[2:])
thresholds = getattr(decide, tune)(P, Y, **settings)
assert thresholds.shape == (m,) and thresholds.dtype == np.float32
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune_sto"],
        ["tune_fta"],
        ["tune_ofo"],
        ["choose_thresholds_of", "method=sto"],
        ["tune_sto", "objective=example_f1"],
        ["tune_fta", "objective=micro_f1"],
    ],
    ids=" ".join,
)
def test_30_000_rows_of_300_000_labels_fit_into_memory(arguments):
    """A dense float32 array of this shape takes 36 GB, one byte per entry 9 GB; the limit here is 3 GB."""
    code = LARGE.replace(
        "thresholds = getattr(decide, tune)(P, Y, **settings)",
        "choose = lambda P, Y, **settings: decide.choose_thresholds(P, Y, c=(100,), folds=2, **settings).thresholds\n"
        "thresholds = (choose if tune == 'choose_thresholds_of' else getattr(decide, tune))(P, Y, **settings)",
    )
    assert int(run(code, *arguments)) < 250  # megabytes
