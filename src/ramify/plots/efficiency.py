"""Pictures of the trade between time and precision, and of the imbalance that makes it worth while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ramify.metrics._inputs import as_indicator
from ramify.metrics.efficiency import labels_needed
from ramify.plots.drawing import COLOURS, GREY, MARKERS, check_drawable, finish, formatter, new_figure, percent, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Point(Protocol):
    """What is drawn of a `ramify.models.plt.pareto.OperatingPoint`."""

    @property
    def lam(self) -> float: ...
    @property
    def precision(self) -> float: ...
    @property
    def expected_depth(self) -> float: ...
    @property
    def microseconds(self) -> float: ...


class ParetoCurve(Protocol):
    """What is drawn of a `ramify.models.plt.pareto.ParetoCurve`."""

    @property
    def k(self) -> int: ...
    @property
    def points(self) -> Sequence[Point]: ...
    @property
    def chosen(self) -> Point: ...


def label_cover(Y: Any, path: str | PathLike[str] | None = None, *, at: Sequence[int | None] = (1, 3, None)) -> Figure:
    """The share of rows that have 1, 3 or all of their labels among the most frequent ones, over how many those are.

    `at` names the numbers of labels that a row asks for; None is all of them. Rows without labels are left out.
    Paper: efficiency-precision label trees, figures 1 and 6.
    """
    indicator = as_indicator(Y, "Y")
    if indicator.nnz == 0:
        raise ValueError("Y holds no positives, so there is nothing to cover")
    if not 0 < len(at) <= len(COLOURS):
        raise ValueError(f"at must name between 1 and {len(COLOURS)} numbers of labels, got {len(at)}")
    n_labels = int(indicator.shape[1])
    figure = new_figure(6.4, 4.2, path)
    axes = figure.subplots()
    for k, colour, marker in zip(at, COLOURS, MARKERS, strict=False):
        needed = np.sort(labels_needed(indicator, k))
        n_top = np.unique(np.concatenate([np.geomspace(1, n_labels, 400).astype(np.int64), needed[:1], needed[-1:]]))
        share = np.searchsorted(needed, n_top, side="right") / len(needed)
        half = int(needed[(len(needed) - 1) // 2])
        words = "all labels" if k is None else f"{plural(k, 'label')} (or all)" if k > 1 else "1 label"
        axes.plot(
            n_top / n_labels,
            share,
            color=colour,
            linewidth=2,
            label=f"{words}: half the rows by {percent(half / n_labels)} of the labels",
        )
        axes.plot(half / n_labels, 0.5, color=colour, marker=marker, markersize=6)
    axes.axhline(0.5, color=GREY, linestyle="--", linewidth=1)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="share of the labels, the most frequent first")
    axes.set_ylabel("share of the rows that are covered")
    axes.set_title(f"{plural(int((np.diff(indicator.indptr) > 0).sum()), 'row')}, {plural(n_labels, 'label')}")
    axes.xaxis.set_major_formatter(formatter(percent))
    axes.yaxis.set_major_formatter(formatter(lambda value: f"{value:.0%}"))
    axes.legend(loc="best")
    return finish(figure, path)


def pareto(curves: ParetoCurve | Mapping[str, ParetoCurve], path: str | PathLike[str] | None = None) -> Figure:
    """Precision at k over expected depth and over time, a point for each lambda; chosen points are ringed.

    Paper: efficiency-precision label trees, figure 2.
    """
    named = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    for curve in named.values():
        check_drawable(curve, "a curve", "one of ramify.models.plt.pareto.pareto_curve", "k", "points", "chosen")
    if not 0 < len(named) <= len(COLOURS):
        raise ValueError(f"between 1 and {len(COLOURS)} curves can be told apart in one picture, got {len(named)}")
    figure = new_figure(9.6, 4.2, path)
    both = figure.subplots(1, 2, sharey=True)
    for (name, curve), colour, marker in zip(named.items(), COLOURS, MARKERS, strict=False):
        precision = [100 * point.precision for point in curve.points]
        for axes, x in zip(
            both,
            ([p.expected_depth for p in curve.points], [p.microseconds for p in curve.points]),
            strict=True,
        ):
            axes.plot(x, precision, color=colour, marker=marker, markersize=5, linewidth=1.5, label=name or None)
            for at, value, point in zip(x, precision, curve.points, strict=True):
                is_chosen = point.lam == curve.chosen.lam
                if is_chosen:
                    axes.plot(at, value, marker="o", markersize=13, markerfacecolor="none", color=colour)
                words = f"{point.lam:g}" + (" (chosen)" if is_chosen else "")
                axes.annotate(words, (at, value), textcoords="offset points", xytext=(5, 6), fontsize=8, color=colour)
    k = next(iter(named.values())).k
    both[0].set(xlabel=f"expected depth at {k}", ylabel=f"precision at {k} in percent")
    both[1].set(xlabel="microseconds a row, one row at a time (median)")
    both[0].set_title("each point is a tree; the number is its lambda")
    if len(named) > 1:
        both[0].legend(loc="best")
    return finish(figure, path)
