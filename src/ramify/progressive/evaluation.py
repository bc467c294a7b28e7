"""Test, then train: the loop, and what it keeps count of."""

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
from ramify.progressive.rows import SeparateRows, is_fitted, is_one_class_each, joined, label_rows, n_rows, part, pieces

# Rows that a model tests and learns in one call of the core; the display waits no longer than that.
AT_ONCE = 1024


class Evaluation:
    """Test-then-train as rows come: `update` with what has come, `finish` at the end; see `evaluate`."""

    def __init__(
        self, model: Any, *, block: int = 1, window: int = 1000, k: Sequence[int] = (1, 3, 5), name: str | None = None
    ) -> None:
        for method in ("partial_fit", "predict_labels"):
            if not hasattr(model, method):
                raise ValueError(f"progressive validation needs a model with {method}, got {type(model).__name__}")
        self.model = model
        self.window = check_integer("window", window, at_least=1)
        if not isinstance(k, Iterable):
            raise ValueError(f"k must name where rankings are cut, for example k=(1, 3, 5), got {k!r}")
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
        """Test and learn further rows (never one across the end of a window); the windows that they complete."""
        if self._held is not None:
            X, y = joined(self._held[0], X), joined(self._held[1], y)
            self._held = None
        size, done = n_rows(X), len(self.result.windows)
        start = 0
        while start < size:
            stop = min(size, start + self.window - self._open.n_rows, start + AT_ONCE)
            taken = self._take(part(X, start, stop), part(y, start, stop))
            if taken == 0:
                # Without a single label a model cannot begin: these rows are learned along with the first that has one.
                self._held = (part(X, start, size), part(y, start, size))
                break
            start += taken
            if self._open.n_rows >= self.window:
                self._close_window()
        return self.result.windows[done:]

    def finish(self) -> ProgressiveResult:
        """End the last window, however short; the result."""
        if self._held is not None:
            raise ValueError("no row has a label, so nothing could be learned: at least one must have one")
        if self._open.n_rows:
            self._close_window()
        return self.result

    # --- one piece ------------------------------------------------------------------------------------------------

    def _take(self, X: Any, y: Any) -> int:
        """Test and learn these rows; how many of them."""
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
        elif self.result.block == 1 and hasattr(self.model, "_test_then_learn") and not isinstance(X, SeparateRows):
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
            for row, answer in enumerate(self._ask(part(X, start, stop), deepest), start=start):
                for rank, (label, _) in enumerate(answer):
                    hits[row, rank] = label in truth[row]
            self._learn(part(X, start, stop), part(y, start, stop))
        return hits

    def _ask(self, X: Any, top_k: int) -> list[list[tuple[Any, float]]]:
        if isinstance(X, SeparateRows):
            return [self.model.predict_one(x, top_k=top_k) for x in X]
        answers: list[list[tuple[Any, float]]] = self.model.predict_labels(X, top_k=top_k)
        return answers

    def _learn(self, X: Any, y: Any) -> None:
        if not isinstance(X, SeparateRows):
            self.model.partial_fit(X, y)
            return
        for x, labels in zip(X, y, strict=True):
            self.model.learn_one(x, labels)

    def _constant_hits(self, truth: list[Any]) -> int:
        """How many rows have the label that was the most frequent before them; the first to reach a count keeps it."""
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
    """Which places of each row's answer hold a true label."""
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
    """Test the model on each example, then let it learn it: the model ends as after `partial_fit` of all of them.

    Paper: online-plt, section 5.2.

    Parameters
    ----------
    model
        Anything with `partial_fit` and `predict_labels`; fitted or not.
    X, Y
        Rows and labels as `fit` takes them; or X alone: a file (XMC text, libsvm or JSONL, gzip or not; with
        `multiclass` each row has one label, its class), or an iterable of (x, y), with x as `learn_one` takes it.
        Files and iterables are streams: they need not fit into memory, nor end.
    block : int
        Examples that are tested together before they are learned together. 1 is the definition. More is faster for
        models without a way of their own, and slightly pessimistic: the rows of a block cannot learn from each other.
    window : int
        Examples of a line of the result.
    k : sequence of int
        Where rankings are cut.
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
        raise ValueError("there are no rows to evaluate on")
    return result


@contextmanager
def _shown(evaluation: Evaluation, is_shown: bool) -> Iterator[None]:
    if not is_shown:
        yield
        return
    from ramify.progressive.table import live

    with live(evaluation.result):
        yield
