"""What suits dense rows: standardised columns, and a tree of one level, tried on held-out rows.

Sparse rows (texts) have comparable columns, and their labels cluster. Dense ones may have columns of any unit, and
labels that do not cluster: then no node near the root can tell its children apart, and one level is better. Both are
tried on a sample of the labels with their rows, and taken if held-out rows say so clearly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.training import TrainingData
from ramify.common.progress import phase
from ramify.data.remote_rows import RemoteRows
from ramify.models.plt.columns import Columns, is_dense, spreads_differ
from ramify.models.plt.fit_report import Tried
from ramify.models.plt.solver import PLTSolver
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees.kmeans import n_children

if TYPE_CHECKING:
    from ramify.models.plt.classifier import PLTClassifier

# Labels and rows of the sample; with few rows every one is held out once, in this many folds.
SAMPLED_LABELS, SAMPLED_ROWS, FEW_ROWS, FOLDS = 256, 3072, 1024, 5
# Least rows to decide anything on; how many standard errors make a clear difference, and the least gain in accuracy.
LEAST_ROWS, CLEAR, LEAST_GAIN = 50, 2.0, 0.005
# The least gain of one level, which takes many times the work of a tree.
ONE_LEVEL_GAIN = 0.03
# One level scores every label: it is tried only if that takes at most this many times as many products as the tree.
MOST_WORK = 64.0

# The solver's settings while trying, where none are given: cost and weight of positives by loss, and epochs.
QUICK, QUICK_EPOCHS = {"squared_hinge": (1.0, 2.0), "logistic": (10.0, 1.0)}, 5
# Up to this many products in an epoch, they are chosen each time.
SMALL_WORK = 5e6

Hits = NDArray[np.float64]


def label_sample(data: TrainingData) -> TrainingData | None:
    """Some labels with all their rows; None if there are too few rows or labels to decide anything."""
    generator = np.random.default_rng(data.seed)
    frequency = np.bincount(data.Y.indices, minlength=data.Y.shape[1])
    usable = np.flatnonzero(frequency >= 2)
    if len(usable) < 2:
        return None
    labels = np.sort(generator.permutation(usable)[:SAMPLED_LABELS])
    Y = sparse.csr_array(data.Y.tocsc()[:, labels].tocsr())
    rows = np.flatnonzero(np.diff(Y.indptr))
    rows = np.sort(generator.permutation(rows)[:SAMPLED_ROWS])
    if len(rows) < LEAST_ROWS:
        return None
    weight = None if data.sample_weight is None else data.sample_weight[rows]
    return replace(data, X=data.X[rows], Y=sparse.csr_array(Y[rows]), sample_weight=weight)


def held_out_hits(sample: TrainingData, train: Callable[[TrainingData], TrainedTree], columns: bool) -> Hits:
    """For each held-out row whether its best label is true, of trees that were trained without the row."""
    n = sample.X.shape[0]
    fold = np.random.default_rng(sample.seed + 1).permutation(n) % FOLDS
    hits = []
    for k in range(FOLDS if n <= FEW_ROWS else 1):
        learned, asked = sample.part(np.flatnonzero(fold != k)), sample.part(np.flatnonzero(fold == k))
        X = asked.X
        if columns:
            known = Columns.of(learned.X, learned.sample_weight)
            learned, X = replace(learned, X=known.rows(learned.X)), known.rows(X)
        best = train(learned).search(X, top_k=1, threshold=0.0, n_threads=sample.n_threads)
        hits.append(np.asarray((best > 0).multiply(asked.Y > 0).sum(axis=1), dtype=np.float64))
    return np.concatenate(hits)


def compared(what: str, before: Hits, after: Hits, is_possible: bool = True) -> Tried:
    """Whether a change is clearly better, row by row."""
    difference = after - before
    error = float(difference.std() / np.sqrt(len(difference)))
    gain = float(difference.mean())
    is_taken = bool(is_possible) and gain > max(LEAST_GAIN, CLEAR * error)
    return Tried(what, float(before.mean()), float(after.mean()), is_taken)


# --- the whole choice -------------------------------------------------------------------------------------------------


class TreeSize(NamedTuple):
    """Children of an inner node, and most labels below a node whose children are leaves."""

    arity: int
    max_leaf: int


class Plan(NamedTuple):
    """How a label tree is to be trained: its shape and size, columns, solver, lengths of rows; and what was tried."""

    tree: Any
    size: TreeSize
    columns: Columns | None
    solver: PLTSolver
    normalize: bool
    choices: tuple[Tried, ...] = ()


def plan_for(classifier: PLTClassifier, data: TrainingData) -> Plan:
    """The plan for these rows; only for dense ones is there anything to try."""
    given, solver = classifier.tree, classifier._solver()
    is_auto = isinstance(given, str) and given == "auto"
    shape: Any = "kmeans" if is_auto else given
    if isinstance(data.X, RemoteRows):  # read by text or from sparse files: there is nothing to choose
        if classifier.standardize is True:
            raise ValueError(
                "standardize=True needs the rows in one process; scale the columns yourself, or leave it out"
            )
        return Plan(shape, classifier._tree_size(data.is_multiclass, False), None, solver, classifier.normalize)
    wants_columns = classifier.standardize is True
    has_dense_rows = is_dense(data.X)
    size = classifier._tree_size(data.is_multiclass, has_dense_rows)
    is_open = classifier.hash_bits is None and solver.optimizer is None and has_dense_rows
    sample = label_sample(data) if is_open and (is_auto or classifier.standardize == "auto") else None
    if sample is None:
        columns = Columns.of(data.X, data.sample_weight) if wants_columns else None
        return Plan(shape, size, columns, solver, classifier.normalize)
    quick, choices = _quick(solver, sample), []
    tried = shape if isinstance(shape, str) else "kmeans"  # a given tree has all labels, the sample only some
    # As many labels below a node of the sample, in proportion, as there will be below one of the tree.
    of_sample = size._replace(max_leaf=max(2, -(-size.max_leaf * sample.Y.shape[1] // data.n_labels)))

    def hits(shape: Any, columns: bool, normalize: bool, settings: PLTSolver = quick) -> Hits:
        def train(part: TrainingData) -> TrainedTree:
            return classifier._train_tree(part, part.seed % 2**32, settings, shape, of_sample, normalize)

        return held_out_hits(sample, train, columns)

    normalize = classifier.normalize
    with phase("choosing for dense rows"):
        if classifier.standardize == "auto" and spreads_differ(sample.X):
            so_far = before = hits(tried, wants_columns, normalize)
            for keeps_length in (False, True) if normalize else (True,):
                standardized = hits(tried, True, not keeps_length)
                what = "standardized columns" + (", lengths of rows kept" if keeps_length and normalize else "")
                # The second way must beat the first too.
                choices.append(compared(what, before, standardized, standardized.mean() > so_far.mean()))
                if choices[-1].is_taken:
                    wants_columns, so_far = True, standardized
                    normalize = normalize and not keeps_length
        if is_auto and 1 < one_level_work(data.n_labels, *size) <= MOST_WORK:
            # The tree at its best settings: it is many times cheaper, so it is left only for a large gain.
            of_tree, of_level = (
                hits(tried, wants_columns, normalize, solver),
                hits("one_level", wants_columns, normalize),
            )
            is_large = of_level.mean() - of_tree.mean() >= ONE_LEVEL_GAIN
            choices.append(compared("one level", of_tree, of_level, is_large))
            if choices[-1].is_taken:
                shape, solver = "one_level", quick  # as it was tried
    columns = Columns.of(data.X, data.sample_weight) if wants_columns else None
    return Plan(shape, size, columns, solver, normalize, tuple(choices))


def one_level_work(n_labels: int, arity: int, max_leaf: int) -> float:
    """Products of a row with one level, for each one that it needs in a tree where it opens one node per level.

    >>> one_level_work(100, 32, 200), round(one_level_work(3200, 32, 100), 1)
    (1.0, 24.2)
    """
    size, products = n_labels, 0.0
    while size > max_leaf:
        children = int(n_children(np.array([size]), arity, max_leaf)[0])
        products += children
        size = -(-size // children)
    return n_labels / (products + size)


def _quick(given: PLTSolver, sample: TrainingData) -> PLTSolver:
    """The solver as given; where the sample is not small, with usual settings for those that are left to be chosen."""
    from sklearn.base import clone

    if sample.X.nnz * sample.Y.shape[1] <= SMALL_WORK:
        return given
    C, weight = QUICK[given.loss]
    usual = {"C": C, "positive_weight": weight, "n_epochs": QUICK_EPOCHS}
    left = {name: value for name, value in usual.items() if getattr(given, name) is None}
    quick: PLTSolver = clone(given).set_params(**left)
    return quick
