"""Measure a model on labelled rows, and print the table of metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ramify import metrics
from ramify.cli import output
from ramify.cli.data import LabelledRows, read_for, stacked, truth_for, widen
from ramify.cli.options import n_jobs

# Labels of each row that are ranked and whose probabilities are measured.
DEPTH = 100
PER_K = ("P", "R", "nDCG", "PSP", "PSnDCG", "coverage")


def evaluate_model(
    model: Any, data: LabelledRows, *, ks: list[int], depth: int = DEPTH, train: LabelledRows | None = None
) -> dict[str, Any]:
    """Every metric as a fraction; the propensity-scored ones if `train` is given."""
    answers, found, decided = [], [], []
    has_candidates, is_tuned = hasattr(model, "filter_"), hasattr(model, "thresholds_")
    for X in data.chunks():  # the texts of a file are not all in memory
        answers.append(model.predict_proba(X, top_k=max(depth, *ks)))
        if has_candidates:
            found.append(model.candidates(X))
        if is_tuned:
            decided.append(model.predict(X))
    answer = stacked(answers)
    truth, n_unknown = truth_for(model, data)
    P = widen(answer, max(truth.shape[1], answer.shape[1]))
    truth = widen(truth, P.shape[1])
    propensity = None
    if train is not None:
        seen = truth_for(model, train)[0]
        if seen.shape[1] > P.shape[1]:
            seen = seen[:, : P.shape[1]]  # labels in neither the model nor the test rows
        propensity = metrics.propensities(widen(seen, P.shape[1]))
    report: dict[str, Any] = {
        "rows": data.n_rows,
        "labels_per_row": truth.nnz / data.n_rows,
        "unknown_labels": n_unknown,
        **metrics.evaluate(truth, P, ks=ks, propensity=propensity),
    }
    if has_candidates:
        report["filter_recall"] = metrics.filter_recall(truth, widen(stacked(found), truth.shape[1]))
    chosen = widen(stacked(decided), P.shape[1]) if is_tuned else _at_half(P)
    report["decided"] = "with tuned thresholds" if is_tuned else "at p >= 0.5"
    report["micro_f1"] = metrics.micro_f1(truth, chosen)
    report["macro_f1_empty_1"] = metrics.macro_f1(truth, chosen, empty=1.0)
    report["macro_f1_empty_0"] = metrics.macro_f1(truth, chosen, empty=0.0)
    if model.is_multiclass_:
        report["accuracy"] = report["P@1"] if 1 in ks else metrics.precision_at_k(truth, P, 1)
    return report


def _at_half(P: csr_array) -> csr_array:
    chosen = csr_array(((P.data >= 0.5).astype(np.float32), P.indices, P.indptr), shape=P.shape)
    chosen.eliminate_zeros()
    return chosen


def read_estimates(
    model: Any,
    data: Path,
    format: Any,
    columns: Any,
    threads: int | None,
    tried: tuple[float, ...],
    counter: Any = None,
) -> tuple[csr_array, csr_array]:
    """Probabilities down to the smallest cut, and the truth, for tuning thresholds; unknown labels are left out."""
    from ramify.decide.choice import CANDIDATES

    if model.is_multiclass_:
        raise ValueError("the model predicts one class per row, the most probable one: there are no thresholds to tune")
    rows = read_for(model, data, format, columns, threads=n_jobs(threads), counter=counter)
    answer = stacked([model.predict_proba(X, top_k=CANDIDATES, threshold=1 / max(tried)) for X in rows.chunks()])
    truth, _ = truth_for(model, rows)
    if truth.shape[1] > model.n_labels_:
        truth = truth[:, : model.n_labels_]
    return answer, widen(truth, model.n_labels_)


def print_report(report: dict[str, Any], title: str | None = None) -> None:
    ks = [int(name.partition("@")[2]) for name in report if name.startswith("P@")]
    rows = [
        [name, *(f"{100 * report[f'{name}@{k}']:.2f}" for k in ks)] for name in PER_K if f"{name}@{ks[0]}" in report
    ]
    if title:
        print(title)
    output.print_table(["percent", *(f"@{k}" for k in ks)], rows)
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
        print(f"{output.count(report['unknown_labels'], 'label')} unknown to the model, counted as never found")
