"""Plots of label imbalance."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.metrics._inputs import as_indicator
from ramify.metrics.efficiency import labels_needed
from ramify.plots.drawing import (
    COLOURS,
    GREY,
    MARKERS,
    check_number_of_series,
    count_axis,
    curve_ranks,
    finish,
    formatter,
    new_figure,
    percent,
    plural,
    readable_log_ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def label_frequency(Y: Any, path: str | PathLike[str] | None = None) -> Figure:
    """Plot the positives of each label over its rank, and the fraction of all positives that the top labels cover.

    `Y` is a 0/1 array, sparse or dense, or a 1-D integer array of classes. Labels without positives are only counted.
    """
    indicator = as_indicator(Y, "Y")
    counts = np.bincount(indicator.indices)
    counts = np.sort(counts[counts > 0])[::-1]
    if counts.size == 0:
        raise ValueError("Y contains no positives, so there is no frequency to plot")
    n_labels = int(indicator.shape[1])
    share = np.cumsum(counts) / counts.sum()
    rank = curve_ranks(counts)

    figure = new_figure(9.6, 3.9, path)
    left, right = figure.subplots(1, 2)
    shown: dict[str, Any] = {"color": COLOURS[0], "linewidth": 2, "marker": "o" if len(rank) == 1 else None}
    left.plot(rank, counts[rank - 1], **shown)
    left.set(xscale="log", yscale="log", xlabel="rank of the label", ylabel="positives of the label")
    few = n_labels - int((counts > 5).sum())
    have = "has" if n_labels == 1 else "have"
    left.set_title(f"{few:,} of {plural(n_labels, 'label')} {have} 5 positives or fewer")
    right.plot(rank, share[rank - 1], **shown)
    for part, colour, marker in ((0.5, COLOURS[1], "o"), (0.9, COLOURS[2], "s")):
        needed = int(np.searchsorted(share, part - 1e-12)) + 1
        text = f"{part:.0%} of positives: {plural(needed, 'label')} ({percent(needed / n_labels)})"
        right.vlines(needed, 0, share[needed - 1], color=colour, linestyle="--", linewidth=1.5)
        right.plot(needed, share[needed - 1], color=colour, marker=marker, linestyle="--", linewidth=1.5, label=text)
    right.set(xscale="log", ylim=(0, 1.02), xlabel="number of top labels", ylabel="share of all positives")
    right.set_title(plural(int(counts.sum()), "positive"))
    right.legend(loc="best")
    right.yaxis.set_major_formatter(formatter(lambda value: f"{value:.0%}"))
    count_axis(left, int(counts[0]), headroom=1.0)
    for axes in (left, right):
        axes.set_xlim(0.75, max(counts.size, 10) * 1.4)
        readable_log_ticks(axes.xaxis)
    return finish(figure, path)


def label_cover(Y: Any, path: str | PathLike[str] | None = None, *, at: Sequence[int | None] = (1, 3, None)) -> Figure:
    """Plot the fraction of rows that have 1, 3 or all of their labels among the most frequent labels.

    `at` contains the numbers of labels to cover in each row; None means all of them. Rows without labels do not count.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    figures 1 and 6.
    """
    indicator = as_indicator(Y, "Y")
    if indicator.nnz == 0:
        raise ValueError("Y contains no positives, so there is nothing to cover")
    check_number_of_series(len(at), "at", "number of labels")
    n_labels = int(indicator.shape[1])
    figure = new_figure(6.4, 4.2, path)
    axes = figure.subplots()
    for k, colour, marker in zip(at, COLOURS, MARKERS, strict=False):
        needed = np.sort(labels_needed(indicator, k))
        n_top = np.unique(np.concatenate([np.geomspace(1, n_labels, 400).astype(np.int64), needed[:1], needed[-1:]]))
        share = np.searchsorted(needed, n_top, side="right") / len(needed)
        half = int(needed[(len(needed) - 1) // 2])
        text = "all labels" if k is None else f"{plural(k, 'label')} (or all)" if k > 1 else "1 label"
        axes.plot(
            n_top / n_labels,
            share,
            color=colour,
            linewidth=2,
            label=f"{text}: half the rows by {percent(half / n_labels)} of the labels",
        )
        axes.plot(half / n_labels, 0.5, color=colour, marker=marker, markersize=6)
    axes.axhline(0.5, color=GREY, linestyle="--", linewidth=1)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="share of labels, most frequent first")
    axes.set_ylabel("share of rows covered")
    axes.set_title(f"{plural(int((np.diff(indicator.indptr) > 0).sum()), 'row')}, {plural(n_labels, 'label')}")
    axes.xaxis.set_major_formatter(formatter(percent))
    axes.yaxis.set_major_formatter(formatter(lambda value: f"{value:.0%}"))
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14))  # below: the curves use all of the plot
    return finish(figure, path)
