"""Measuring a model on labelled rows, and the table of what came out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ramify import metrics
from ramify.cli import output
from ramify.cli.labelled import LabelledRows, as_wide_as, truth_for

# Labels of each row that are ranked and whose probabilities are judged.
DEPTH = 100
PER_K = ("P", "R", "nDCG", "PSP", "PSnDCG", "coverage")


def evaluate_model(
    model: Any, data: LabelledRows, *, ks: list[int], depth: int = DEPTH, train: LabelledRows | None = None
) -> dict[str, Any]:
    """Every metric, as fractions; the propensity-scored ones if the training data are given."""
    truth, n_unknown = truth_for(model, data)
    answer = model.predict_proba(data.X, top_k=max(depth, *ks))
    P = as_wide_as(answer, max(truth.shape[1], answer.shape[1]))
    truth = as_wide_as(truth, P.shape[1])
    propensity = None
    if train is not None:
        seen = truth_for(model, train)[0]
        if seen.shape[1] > P.shape[1]:
            seen = seen[:, : P.shape[1]]  # labels that neither the model nor the test rows have
        propensity = metrics.propensities(as_wide_as(seen, P.shape[1]))
    report: dict[str, Any] = {
        "rows": data.n_rows,
        "labels_per_row": truth.nnz / data.n_rows,
        "unknown_labels": n_unknown,
        **metrics.evaluate(truth, P, ks=ks, propensity=propensity),
    }
    if hasattr(model, "filter_"):
        report["filter_recall"] = metrics.filter_recall(truth, as_wide_as(model.candidates(data.X), truth.shape[1]))
    is_tuned = hasattr(model, "thresholds_")
    decided = as_wide_as(model.predict(data.X), P.shape[1]) if is_tuned else _more_likely_than_not(P)
    report["decided"] = "with tuned thresholds" if is_tuned else "at p >= 0.5"
    report["micro_f1"] = metrics.micro_f1(truth, decided)
    report["macro_f1_empty_1"] = metrics.macro_f1(truth, decided, empty=1.0)
    report["macro_f1_empty_0"] = metrics.macro_f1(truth, decided, empty=0.0)
    if model.is_multiclass_:
        report["accuracy"] = report["P@1"] if 1 in ks else metrics.precision_at_k(truth, P, 1)
    return report


def _more_likely_than_not(P: csr_array) -> csr_array:
    chosen = csr_array(((P.data >= 0.5).astype(np.float32), P.indices, P.indptr), shape=P.shape)
    chosen.eliminate_zeros()
    return chosen


def print_report(report: dict[str, Any], title: str | None = None) -> None:
    ks = [int(name.partition("@")[2]) for name in report if name.startswith("P@")]
    rows = [
        [name, *(f"{100 * report[f'{name}@{k}']:.2f}" for k in ks)] for name in PER_K if f"{name}@{ks[0]}" in report
    ]
    if title:
        print(title)
    output.print_table(None, ["percent", *(f"@{k}" for k in ks)], rows)
    print(
        f"log loss {report['log_loss']:.4f}   Brier {report['brier']:.4f}   calibration error (ECE) {report['ece']:.4f}"
    )
    print(
        f"{report['decided']}: micro F {100 * report['micro_f1']:.2f}, macro F {100 * report['macro_f1_empty_1']:.2f} "
        f"(labels neither true nor predicted count 1) or {100 * report['macro_f1_empty_0']:.2f} (count 0)"
    )
    if "filter_recall" in report:
        print(f"recall of the candidates {100 * report['filter_recall']:.2f}")
    if report["unknown_labels"]:
        print(f"{output.count(report['unknown_labels'], 'label')} unknown to the model: counted as never found")
