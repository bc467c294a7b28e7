"""Progressive validation: the test-then-train loop and its statistics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.common.validation import check_integer
from ramify.progressive.result import ProgressiveResult, Score, Window
from ramify.progressive.rows import (
    SeparateRows,
    answers_as_it_learns,
    is_fitted,
    is_one_class_each,
    joined,
    label_rows,
    n_rows,
    part,
    pieces,
)

# Maximum number of rows that a model tests and learns in one call of the core, between updates of the display.
AT_ONCE = 1024


class Evaluation:
    """Incremental progressive validation: call `update` with new rows, and `finish` at the end; see `evaluate`."""

    def __init__(
        self, model: Any, *, block: int = 1, window: int = 1000, k: Sequence[int] = (1, 3, 5), name: str | None = None
    ) -> None:
        for method in ("partial_fit", "predict_labels"):
            if not hasattr(model, method):
                raise ValueError(f"progressive validation needs a model with {method}, got {type(model).__name__}")
        self.model = model
        self.window = check_integer("window", window, at_least=1)
        if not isinstance(k, Iterable):
            raise ValueError(f"k must be a collection of ranks, for example k=(1, 3, 5), got {k!r}")
        cuts = {check_integer("k", at, at_least=1) for at in k}
        block = check_integer("block", block, at_least=1)
        self.result = ProgressiveResult(name or type(model).__name__, tuple(sorted(cuts | {1})), block)
        self.n_examples = 0
        self._counts: Counter[Any] = Counter()
        self._most_frequent: Any = None
        self._total, self._open = _Sums(self.result.k), _Sums(self.result.k)
        self._seconds = 0.0
        self._held: tuple[Any, Any] | None = None

    def update(self, X: Any, y: Any) -> list[Window]:
        """Test and learn more rows, and return the windows they complete. No call crosses the end of a window."""
        if self._held is not None:
            X, y = joined(self._held[0], X), joined(self._held[1], y)
            self._held = None
        size, done = n_rows(X), len(self.result.windows)
        start = 0
        while start < size:
            stop = min(size, start + self.window - self._open.n_rows, start + AT_ONCE)
            taken = self._take(part(X, start, stop), part(y, start, stop))
            if taken == 0:
                # A model cannot start without any label: hold these rows until the first row with one.
                self._held = (part(X, start, size), part(y, start, size))
                break
            start += taken
            if self._open.n_rows >= self.window:
                self._close_window()
        return self.result.windows[done:]

    def finish(self) -> ProgressiveResult:
        """Close the last window, even if it is short, and return the result."""
        if self._held is not None:
            raise ValueError("no row has a label; learning needs at least one")
        if self._open.n_rows:
            self._close_window()
        return self.result

    # --- one batch ------------------------------------------------------------------------------------------------

    def _take(self, X: Any, y: Any) -> int:
        """Test and learn a prefix of these rows; return its length."""
        truth = label_rows(y)
        self.result.is_multiclass = self.result.is_multiclass or is_one_class_each(y)
        began = time.perf_counter()
        deepest = self.result.k[-1]
        if not is_fitted(self.model):
            first = next((row for row, labels in enumerate(truth) if labels), None)
            if first is None:
                return 0
            self._learn(part(X, 0, first + 1), part(y, 0, first + 1))
            truth = truth[: first + 1]
            hits = np.zeros((len(truth), deepest), dtype=bool)
        elif self.result.block == 1 and answers_as_it_learns(self.model) and not isinstance(X, SeparateRows):
            indptr, columns, true = self.model._test_then_learn(X, y, deepest)
            hits = _hits_by_column(indptr, columns, true, deepest)
        else:
            hits = self._in_blocks(X, y, truth)
        self._seconds += time.perf_counter() - began
        constant = self._constant_hits(truth)
        for sums in (self._total, self._open):
            sums.add(hits, constant)
        self.n_examples += len(truth)
        return len(truth)

    def _in_blocks(self, X: Any, y: Any, truth: list[Any]) -> NDArray[np.bool_]:
        deepest, size = self.result.k[-1], self.result.block
        hits = np.zeros((len(truth), deepest), dtype=bool)
        for start in range(0, len(truth), size):
            stop = min(start + size, len(truth))
            for row, predicted in enumerate(self._predict(part(X, start, stop), deepest), start=start):
                for rank, (label, _) in enumerate(predicted):
                    hits[row, rank] = label in truth[row]
            self._learn(part(X, start, stop), part(y, start, stop))
        return hits

    def _predict(self, X: Any, top_k: int) -> list[list[tuple[Any, float]]]:
        if isinstance(X, SeparateRows):
            return [self.model.predict_one(x, top_k=top_k) for x in X]
        predicted: list[list[tuple[Any, float]]] = self.model.predict_labels(X, top_k=top_k)
        return predicted

    def _learn(self, X: Any, y: Any) -> None:
        if not isinstance(X, SeparateRows):
            self.model.partial_fit(X, y)
            return
        for x, labels in zip(X, y, strict=True):
            self.model.learn_one(x, labels)

    def _constant_hits(self, truth: list[Any]) -> int:
        """Count the rows that have the label that was most frequent before them; ties go to the first to get there."""
        counts, best, hits = self._counts, self._most_frequent, 0
        for labels in truth:
            hits += best is not None and best in labels
            for label in labels:
                counts[label] += 1
                if best is None or counts[label] > counts[best]:
                    best = label
        self._most_frequent = best
        return hits

    def _close_window(self) -> None:
        window = Window(
            examples=self.n_examples,
            score=self._open.score(),
            so_far=self._total.score(),
            n_labels=len(self._counts),
            seconds=self._seconds,
            memory=getattr(self.model, "memory_", None),
        )
        self.result.windows.append(window)
        self._open, self._seconds = _Sums(self.result.k), 0.0


class _Sums:
    def __init__(self, k: tuple[int, ...]) -> None:
        self.hits = dict.fromkeys(k, 0)
        self.constant_hits = self.n_rows = 0

    def add(self, hits: NDArray[np.bool_], constant_hits: int) -> None:
        for k in self.hits:
            self.hits[k] += int(np.count_nonzero(hits[:, :k]))
        self.constant_hits += constant_hits
        self.n_rows += len(hits)

    def score(self) -> Score:
        precision = {k: hits / (k * self.n_rows) for k, hits in self.hits.items()}
        return Score(self.n_rows, precision, self.constant_hits / self.n_rows)


def _hits_by_column(indptr: NDArray[np.int64], columns: NDArray[np.int32], truth: Any, depth: int) -> NDArray[np.bool_]:
    """Mark the ranks of each row's prediction with a true label."""
    size = np.diff(indptr)
    row = np.repeat(np.arange(len(size)), size)
    place = np.arange(len(columns)) - np.repeat(indptr[:-1], size)
    true_row = np.repeat(np.arange(len(size)), np.diff(truth.indptr))
    width = np.int64(truth.shape[1])
    is_true = np.isin(row * width + columns, true_row * width + truth.indices)
    hits = np.zeros((len(size), depth), dtype=bool)
    hits[row, place] = is_true
    return hits


def evaluate(
    model: Any,
    X: Any,
    Y: Any = None,
    *,
    block: int = 1,
    window: int = 1000,
    k: Sequence[int] = (1, 3, 5),
    name: str | None = None,
    multiclass: bool = False,
    verbose: bool = False,
) -> ProgressiveResult:
    """Test the model on each example, then train it on that example. The final model equals `partial_fit` on all.

    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", section 5.2.

    Parameters
    ----------
    model
        A model with `partial_fit` and `predict_labels`, fitted or not.
    X, Y
        Rows and labels as for `fit`; or only X: a file (XMC text, libsvm or JSONL, plain or gzip; with `multiclass`
        each row has one label, its class), or an iterable of (x, y), with x as for `learn_one`. Files and iterables
        are streams: they need not fit into memory, and iterables may be endless.
    block : int
        Number of examples that are tested together, then learned together. Progressive validation means 1. Larger
        blocks are faster for models without a fast test-then-learn method, and slightly pessimistic.
    window : int
        Number of examples per window of the result.
    k : sequence of int
        Ranks at which precision is measured.
    name : str or None
        Name of the run; by default the class of the model.
    multiclass : bool
        Whether each row of a file has exactly one label, its class.
    verbose : bool
        Show a live table on stderr.

    Examples
    --------
    >>> from ramify import OnlinePLTClassifier, progressive
    >>> from ramify.data.synthetic import make_multilabel
    >>> data = make_multilabel(2000, 50, 500, random_state=0)
    >>> clf = OnlinePLTClassifier(random_state=0)
    >>> result = progressive.evaluate(clf, data.X, data.Y, window=1000)
    >>> [window.examples for window in result.windows], result.windows[1].score.accuracy > 0.4
    ([1000, 2000], True)
    """
    evaluation = Evaluation(model, block=block, window=window, k=k, name=name)
    with _shown(evaluation, verbose):
        for rows, labels in pieces(X, Y, multiclass):
            evaluation.update(rows, labels)
        result = evaluation.finish()
    if not result.windows:
        raise ValueError("the stream has no rows")
    return result


@contextmanager
def _shown(evaluation: Evaluation, is_shown: bool) -> Iterator[None]:
    if not is_shown:
        yield
        return
    from ramify.progressive.table import live

    with live(evaluation.result):
        yield
