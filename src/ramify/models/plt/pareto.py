"""Time against precision: trees of several lambda on held-out rows, and the choice among them by a rule."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from ramify.common.progress import phase
from ramify.common.validation import check_integer, check_number
from ramify.data.csr import check_csr
from ramify.metrics import expected_depth_at_k, precision_at_k

LAMS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 1.9, 2.0)
#: Rows asked one at a time, and how often: the median over rows of the fastest call.
TIMED_ROWS, ROUNDS = 500, 3
#: Of texts that are read from a file, so many are held in memory for the time in batch, which must not count reading.
TIMED_TEXTS = 4096


@dataclass(frozen=True)
class OperatingPoint:
    """What a tree of one lambda gives, and what it takes."""

    lam: float
    precision: float
    expected_depth: float
    blocks: float
    microseconds: float
    batch_microseconds: float


@dataclass(frozen=True)
class ParetoCurve:
    """Operating points by rising lambda, the rule, and the point that it chooses.

    Paper: Baharav et al., "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    figure 2.
    """

    k: int
    points: tuple[OperatingPoint, ...]
    rule: str
    chosen: OperatingPoint

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `from_dict` takes them back."""
        return {"k": self.k, "rule": self.rule, "chosen": self.chosen.lam, "points": [asdict(p) for p in self.points]}

    @classmethod
    def from_dict(cls, values: Any) -> ParetoCurve:
        """Take back what `to_dict` gave; anything else is a ValueError."""
        try:
            points = tuple(OperatingPoint(**{name: float(v) for name, v in p.items()}) for p in values["points"])
            chosen = next(point for point in points if point.lam == values["chosen"])
            return cls(check_integer("k", values["k"], at_least=1), points, str(values["rule"]), chosen)
        except (AttributeError, KeyError, StopIteration, TypeError) as error:
            raise ValueError(f"not a curve of operating points: {type(error).__name__} {error}") from None


def pareto_curve(
    classifier: Any,
    X: Any,
    y: Any,
    *,
    lams: Sequence[float] = LAMS,
    k: int = 1,
    rule: str = "P@1 loss at most 0.1",
    validation: float = 0.2,
    random_state: int = 0,
) -> ParetoCurve:
    """Train trees of every lambda on a part of the rows, measure them on the rest, and choose by the rule.

    `classifier` is a `PLTClassifier`, fitted or not, whose parameters count but for `tree`; lambda 0 is always among
    those tried. Rules are those of `choose`. If all trees are the same, there is none to choose, which is an error.
    Times are of this machine as it is: nothing else should run on it. The texts of a file (`ramify.data.TextFile`) are
    read again for every tree, so that they need not fit into memory.

    >>> from ramify import PLTClassifier
    >>> texts, fruits = ["red round", "yellow long", "green round"] * 5, ["cherry", "banana", "apple"] * 5
    >>> curve = pareto_curve(PLTClassifier(arity=2, max_leaf=1), texts, fruits, lams=[2], rule="P@1 loss at most 50")
    >>> [point.lam for point in curve.points], curve.points[0].precision
    ([0.0, 2.0], 1.0)
    """
    check_integer("k", k, at_least=1)
    check_number("validation", validation, above=0, at_most=0.9)
    lams = sorted({0.0, *(check_number("every lambda", lam, at_least=0, at_most=2) for lam in lams)})
    parsed = parse_rule(rule)
    if not hasattr(X, "text_chunks"):
        check_consistent_length(X, y)
    X, y = (check_csr(name, part) if sparse.issparse(part) else part for name, part in (("X", X), ("y", y)))
    n_rows = _num_samples(y)
    held_out, rest = np.split(
        np.random.default_rng(random_state).permutation(n_rows), [max(1, round(validation * n_rows))]
    )
    if len(rest) == 0:
        raise ValueError(f"{n_rows} rows are too few to hold some out")
    train_X, train_y = _rows_at(X, np.sort(rest)), _safe_indexing(y, np.sort(rest))
    models = []
    for lam in lams:
        with phase(f"training with lambda {lam:g}"):
            models.append(with_lam(classifier, lam).fit(train_X, train_y))
    if len(lams) > 1 and all(model.trees_[0].tree == models[0].trees_[0].tree for model in models):
        raise ValueError(
            f"every lambda gives the same tree of {models[0].n_labels_} labels, so there is none to choose: "
            "train with a smaller arity or max_leaf, such as arity=4, max_leaf=10, or with more labels or rows"
        )
    with phase("measuring"):
        if hasattr(X, "text_chunks"):
            times = _times(models, list(_rows_at(X, held_out[:TIMED_TEXTS])), k)
            held_out = np.sort(held_out)
            test_X = models[0].schema_.rows(_rows_at(X, held_out))  # all have the same features: read once
        else:
            test_X = _rows_at(X, held_out)
            times = _times(models, test_X, k)
        points = tuple(_measured(models, lams, test_X, _safe_indexing(y, held_out), k, times))
    return ParetoCurve(k, points, rule, choose(points, parsed))


def _rows_at(X: Any, rows: NDArray[np.integer]) -> Any:
    return X.rows_at(rows) if hasattr(X, "text_chunks") else _safe_indexing(X, rows)


def with_lam(classifier: Any, lam: float) -> Any:
    """An unfitted classifier that differs in its tree: interpolated, with this lambda."""
    options = {name: v for name, v in (classifier.tree_options or {}).items() if name not in ("lam", "lam_prime")}
    is_interpolated = classifier.tree == "interpolated"
    return clone(classifier).set_params(
        tree="interpolated", tree_options={**(options if is_interpolated else {}), "lam": float(lam)}
    )


@dataclass(frozen=True)
class Rule:
    """What a user asks for: a limit to the loss of precision (in percent), or to microseconds a row."""

    limits: Literal["loss", "microseconds"]
    to: float


def parse_rule(text: str) -> Rule:
    """The rule that the words say.

    >>> parse_rule("P@1 loss at most 0.1"), parse_rule("microseconds at most 30")
    (Rule(limits='loss', to=0.1), Rule(limits='microseconds', to=30.0))
    """
    found = re.fullmatch(r"\s*(P@\d+ loss|microseconds) at most (\d+\.?\d*|\.\d+)\s*", text, re.IGNORECASE)
    if found is None:
        raise ValueError(f"a rule reads 'P@1 loss at most 0.1' (percent) or 'microseconds at most 30', got {text!r}")
    return Rule("microseconds" if found[1].lower() == "microseconds" else "loss", float(found[2]))


def choose(points: Sequence[OperatingPoint], rule: Rule) -> OperatingPoint:
    """The fastest point that loses no more precision against lambda 0, or the most precise one that is fast enough.

    >>> slow, fast = OperatingPoint(0, 0.8, 9, 9, 30, 20), OperatingPoint(1, 0.7995, 6, 6, 20, 15)
    >>> choose([slow, fast], Rule("loss", 0.1)).lam, choose([slow, fast], Rule("loss", 0.01)).lam
    (1, 0)
    >>> choose([slow, fast], Rule("microseconds", 25)).lam
    1
    """
    if rule.limits == "microseconds":
        quick = [point for point in points if point.microseconds <= rule.to]
        if not quick:
            least = min(point.microseconds for point in points)
            raise ValueError(f"no tree answers within {rule.to:g} microseconds; the fastest takes {least:.1f}")
        return max(quick, key=lambda point: (point.precision, -point.microseconds))
    least = min(points, key=lambda point: point.lam).precision - rule.to / 100 - 1e-12
    return min((p for p in points if p.precision >= least), key=lambda p: (p.microseconds, p.expected_depth, p.lam))


def _measured(
    models: list[Any], lams: Sequence[float], X: Any, y: Any, k: int, times: tuple[list[float], list[float]]
) -> list[OperatingPoint]:
    single, batch = times
    points = []
    for place, (model, lam) in enumerate(zip(models, lams, strict=True)):
        report = model.search_report(X, top_k=k)
        truth, _ = model.schema_.labels.encode(y)
        points.append(
            OperatingPoint(
                lam=lam,
                precision=precision_at_k(truth, report.answer, k),
                expected_depth=expected_depth_at_k(report.answer, model.tree_.label_depth, k),
                blocks=report.mean_blocks,
                microseconds=single[place],
                batch_microseconds=batch[place],
            )
        )
    return points


def _times(models: list[Any], X: Any, k: int) -> tuple[list[float], list[float]]:
    """Microseconds a row, one at a time and in batch. The models take turns, as a machine's speed drifts.

    Models of the same tree get the same times, those of the first: differences between them are noise.
    """
    n_rows = _num_samples(X)
    rows = [_safe_indexing(X, np.array([i])) for i in range(min(n_rows, TIMED_ROWS))]
    fastest = np.full((len(models), len(rows)), np.inf)
    batch = np.full(len(models), np.inf)
    for _ in range(ROUNDS):
        for place, model in enumerate(models):
            for i, row in enumerate(rows):
                start = time.perf_counter_ns()
                model.predict_labels(row, top_k=k)
                fastest[place, i] = min(fastest[place, i], (time.perf_counter_ns() - start) / 1e3)
            start = time.perf_counter_ns()
            model.predict_proba(X, top_k=k)
            batch[place] = min(batch[place], (time.perf_counter_ns() - start) / 1e3 / n_rows)
    single = np.median(fastest, axis=1)
    trees = [model.trees_[0].tree for model in models]
    first = [trees.index(tree) for tree in trees]
    return single[first].tolist(), batch[first].tolist()
