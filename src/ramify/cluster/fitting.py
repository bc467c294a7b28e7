"""`fit` on a cluster: the same steps as on one machine, with rows in shards."""

from __future__ import annotations

import hashlib
import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ramify.cluster import tasks
from ramify.cluster.checkpoint import Checkpoint
from ramify.cluster.reading import Shards, read_shards, with_rows
from ramify.cluster.rows import ShardedRows
from ramify.cluster.workers import Workers, ray_workers
from ramify.common.progress import in_steps, shown
from ramify.common.validation import check_integer
from ramify.data.columns import Columns
from ramify.models.fastxml.classifier import FastXMLClassifier
from ramify.models.plt.classifier import PLTClassifier
from ramify.models.plt.columns import are_dense
from ramify.models.plt.dense_choice import LEAST_ROWS
from ramify.models.threshold.classifier import ThresholdClassifier
from ramify.trees.label_tree import LabelTree


def fit(
    classifier: Any,
    data: Any,
    *,
    address: str | None = None,
    n_workers: int | None = None,
    n_shards: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    sample_weight: Any = None,
    multiclass: bool = False,
    n_features: int | None = None,
    columns: Columns | None = None,
    workers: Workers | None = None,
) -> Any:
    """Train a classifier on a cluster; the model is, bit for bit, the one of `classifier.fit` on the same rows.

    Parameters
    ----------
    classifier : PLTClassifier, FastXMLClassifier, or a ThresholdClassifier around one of them
        With its parameters; it is fitted in place, and returned.
    data : (X, Y), a list of files, or a Ray Dataset
        (X, Y) as `fit` takes them. Files (XMC text, npz, JSONL, CSV, Parquet, fastText) are read by the workers, so
        every node must see them. A Dataset has the columns text and labels, or indices, values and labels.
    address : str or None
        Of a Ray cluster. None or "auto": a running one, or else a local one is started; "local": always start one.
    n_workers : int or None
        Tasks to plan for, and CPUs of a local cluster. None: all.
    n_shards : int or None
        Pieces that X is cut into. The result does not depend on it, nor on the number of workers and nodes.
    checkpoint : path or None
        A directory for what is done. A run that failed goes on from there.
    sample_weight : array or None
        With (X, Y).
    multiclass : bool
        With files and Datasets: each row has exactly one label.
    n_features : int or None
        With Datasets of indices and values: the number of columns, by default the largest index and one.
    columns : Columns or None
        With tables (CSV, Parquet, JSONL): which columns hold texts and labels, and how these are separated.
    workers : Workers or None
        Who does the work, in place of `address`.
    """
    how = {"sample_weight": sample_weight, "multiclass": multiclass, "n_features": n_features, "n_shards": n_shards}
    how["columns"] = columns
    connected: AbstractContextManager[Workers] = (
        ray_workers(address, n_workers) if workers is None else nullcontext(workers)
    )
    check_fit(classifier, n_workers, n_shards)
    with shown(classifier.verbose), connected as hands:
        fit_with(hands, classifier, data, checkpoint, **how)
    return classifier


def fit_with(
    workers: Workers, classifier: Any, data: Any, checkpoint: str | os.PathLike[str] | None = None, **how: Any
) -> int:
    """`fit` with these workers; returns the number of rows."""
    with in_steps(_steps(classifier)):
        shards = read_shards(workers, classifier, data, **how)
        _refuse_dense(workers, classifier, shards)
        kept = None if checkpoint is None else Checkpoint(checkpoint, _identity(classifier, shards))
        training = with_rows(shards, ShardedRows(workers, shards.rows, shards.facts, kept))
        classifier._set_fitted(classifier._fitted_from(training))
    return int(training.X.shape[0])


def _steps(classifier: Any) -> list[tuple[str, float]]:
    """The phases of `fit` with their shares of the time, roughly: those of a set with 670,000 labels."""
    inner = _trained_inside(classifier)
    if isinstance(inner, PLTClassifier):
        one_tree = [("building the tree", 35.0), ("choosing the solver's settings", 10.0), ("training", 55.0)]
        training = one_tree * inner.n_trees
    else:
        training = [("growing trees", 100.0)]
    if isinstance(classifier, ThresholdClassifier):
        training = [*training, ("tuning thresholds", 20.0), *(training if classifier.refit else [])]
    return [("reading shards", 5.0), ("vectorising", 5.0), *training]


def check_fit(classifier: Any, n_workers: int | None = None, n_shards: int | None = None) -> None:
    """Refuse what a cluster cannot train, before one is started."""
    if not isinstance(_trained_inside(classifier), PLTClassifier | FastXMLClassifier):
        raise ValueError(
            "cluster.fit trains a PLTClassifier, a FastXMLClassifier, or a ThresholdClassifier around one of them, "
            f"got {classifier!r:.80}; use its own fit"
        )
    for name, value in (("n_workers", n_workers), ("n_shards", n_shards)):
        if value is not None:
            check_integer(name, value, at_least=1)
    classifier._check_parameters()


def _trained_inside(classifier: Any) -> Any:
    """What is trained: of a ThresholdClassifier its estimator."""
    return classifier._given() if isinstance(classifier, ThresholdClassifier) else classifier


def _refuse_dense(workers: Workers, classifier: Any, shards: Shards) -> None:
    """For dense rows `fit` compares trees and scales on all rows: the user has to say which, or bits would differ."""
    classifier = _trained_inside(classifier)
    if not isinstance(classifier, PLTClassifier):
        return
    is_open = classifier.hash_bits is None and classifier._solver().optimizer is None
    is_auto = isinstance(classifier.tree, str) and classifier.tree == "auto"
    if not is_open or not (is_auto or classifier.standardize == "auto") or shards.data.schema.vectorizer is not None:
        return
    if shards.data.Y.shape[0] < LEAST_ROWS:  # too few for `fit` to compare anything
        return
    sums = workers.get([workers.submit(tasks.columns_of, shard) for shard in shards.rows])
    count, squares = (np.sum(arrays, axis=0) for arrays in zip(*sums, strict=True))
    if are_dense(count, squares, sum(len(of_shard.lengths) for of_shard in shards.facts)):
        raise ValueError(
            "these rows are dense, and a cluster does not choose for them: give tree='kmeans' (or another) and "
            "standardize=False, or use the classifier's own fit"
        )


def _identity(classifier: Any, shards: Shards) -> dict[str, Any]:
    """What the result depends on."""
    parameters = {
        name: _described(value)
        for name, value in classifier.get_params().items()
        if name.rpartition("__")[2] not in ("n_jobs", "verbose")
    }
    labels = hashlib.blake2b(digest_size=16)
    for array in (shards.data.Y.indptr.astype(np.int64), shards.data.Y.indices, shards.data.sample_weight):
        labels.update(b"" if array is None else np.ascontiguousarray(array).data)
    return {
        "classifier": type(classifier).__name__,
        "parameters": repr(sorted(parameters.items())),
        "seed": shards.data.seed,
        "rows": [of_shard.digest for of_shard in shards.facts],
        "labels": labels.hexdigest(),
    }


def _described(value: Any) -> Any:
    """A parameter as something that is equal in another process; estimators list their parameters themselves."""
    if isinstance(value, LabelTree):
        return value.to_nested()
    if hasattr(value, "get_params"):
        return type(value).__name__
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    return value.tolist() if isinstance(value, np.ndarray) else value
