"""The field's pictures: label imbalance, calibration, trees, learning from a stream. Needs the extra `ramify[plots]`.

Every function returns a matplotlib Figure and, given a path, saves it as PNG or SVG by the path's suffix. Figures are
made without pyplot, so nothing global changes, no window opens and no display is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ramify import metrics
from ramify.metrics._inputs import as_indicator, as_positive_integer
from ramify.metrics.probability import calibration_gap
from ramify.plots.drawing import (
    COLOURS,
    GREY,
    MARKERS,
    check_drawable,
    count_axis,
    finish,
    formatter,
    integers,
    new_figure,
    percent,
    plural,
    readable_log_ticks,
    telling_ranks,
    wilson,
)
from ramify.plots.efficiency import label_cover, pareto

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "f_measure",
    "label_cover",
    "label_frequency",
    "pareto",
    "progressive",
    "reliability_diagram",
    "tree_shape",
]


RUN = "a result of ramify.progressive.evaluate"


class Tree(Protocol):
    """What is drawn of a `ramify.trees.LabelTree`."""

    @property
    def label(self) -> NDArray[np.int32]: ...
    @property
    def n_children(self) -> NDArray[np.int32]: ...
    @property
    def depth(self) -> NDArray[np.int32]: ...


class Run(Protocol):
    """What is drawn of a `ramify.progressive.ProgressiveResult`."""

    @property
    def name(self) -> str: ...
    def curve(self, metric: str, cumulative: bool) -> tuple[NDArray[Any], NDArray[Any]]: ...


class FCurve(Protocol):
    """What is drawn of a `ramify.decide.Curve`."""

    @property
    def method(self) -> str: ...
    @property
    def c(self) -> Sequence[float]: ...
    @property
    def validation(self) -> Sequence[float]: ...
    @property
    def test(self) -> Sequence[float]: ...


def label_frequency(Y: Any, path: str | PathLike[str] | None = None) -> Figure:
    """How unequal the labels are: positives of a label over its rank, and the share that the top labels cover.

    `Y` is a 0/1 array, sparse or dense, or a 1-D integer array of classes. Labels without positives are only counted.
    """
    indicator = as_indicator(Y, "Y")
    counts = np.bincount(indicator.indices)
    counts = np.sort(counts[counts > 0])[::-1]
    if counts.size == 0:
        raise ValueError("Y holds no positives, so there is no frequency to draw")
    n_labels = int(indicator.shape[1])
    share = np.cumsum(counts) / counts.sum()
    rank = telling_ranks(counts)

    figure = new_figure(9.6, 3.9, path)
    left, right = figure.subplots(1, 2)
    left.plot(rank, counts[rank - 1], color=COLOURS[0], linewidth=2)
    left.set(xscale="log", yscale="log", xlabel="rank of the label", ylabel="positives of the label")
    few = n_labels - int((counts > 5).sum())
    left.set_title(f"{few:,} of {plural(n_labels, 'label')} have 5 positives or fewer")
    right.plot(rank, share[rank - 1], color=COLOURS[0], linewidth=2)
    for part, colour, marker in ((0.5, COLOURS[1], "o"), (0.9, COLOURS[2], "s")):
        needed = int(np.searchsorted(share, part - 1e-12)) + 1
        words = f"{part:.0%} of positives: {plural(needed, 'label')} ({percent(needed / n_labels)})"
        right.vlines(needed, 0, share[needed - 1], color=colour, linestyle="--", linewidth=1.5)
        right.plot(needed, share[needed - 1], color=colour, marker=marker, linestyle="--", linewidth=1.5, label=words)
    right.set(xscale="log", ylim=(0, 1.02), xlabel="number of top labels", ylabel="share of all positives")
    right.set_title(plural(int(counts.sum()), "positive"))
    right.legend(loc="best")
    right.yaxis.set_major_formatter(formatter(lambda value: f"{value:.0%}"))
    count_axis(left, int(counts[0]), headroom=1.0)
    for axes in (left, right):
        axes.set_xlim(0.75, max(counts.size, 10) * 1.4)
        readable_log_ticks(axes.xaxis)
    return finish(figure, path)


def reliability_diagram(Y_true: Any, P: Any, path: str | PathLike[str] | None = None, *, n_bins: int = 10) -> Figure:
    """Whether probabilities come true: observed frequency over mean probability per bin, and the size of each bin.

    `P` is one array of estimates or a dict from model name to array. Only stored estimates count, see
    `ramify.metrics.reliability_curve`; the legend gives the mean distance from the diagonal, the bars hold the true
    frequency with 95 % confidence (Wilson) as far as estimates are independent.
    """
    n_bins = as_positive_integer(n_bins, "n_bins")
    models = P if isinstance(P, Mapping) else {"model": P}
    if not models:
        raise ValueError("P is an empty dict; give at least one model's probabilities")
    if len(models) > len(COLOURS):
        raise ValueError(f"P names {len(models)} models, but only {len(COLOURS)} can be told apart in one diagram")

    figure = new_figure(5.6, 6.6, path)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3.4, 1])
    bottom.set(xlim=(-0.02, 1.02), yscale="log", autoscaley_on=False)
    bottom.set(xlabel="predicted probability", ylabel="estimates")
    top.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="perfectly calibrated")
    edges = np.linspace(0, 1, n_bins + 1)
    largest = 1
    for (name, estimates), colour, marker in zip(models.items(), COLOURS, MARKERS, strict=False):
        curve = metrics.reliability_curve(Y_true, estimates, n_bins)
        filled = curve.count > 0
        p, frequency, count = curve.mean_probability[filled], curve.frequency[filled], curve.count[filled]
        gap = f"mean gap {calibration_gap(curve):.3f}" if filled.any() else "no estimates"
        low, high = wilson(frequency, count)
        top.vlines(p, low, high, color=colour, linewidth=1.2)
        top.plot(p, frequency, color=colour, marker=marker, markersize=6, linewidth=1.8, label=f"{name} ({gap})")
        largest = max(largest, int(curve.count.max()))
        bottom.stairs(curve.count, edges, baseline=None, color=colour, linewidth=1.8)
    top.plot([], [], color=GREY, marker="|", markersize=11, linestyle="none", label="95% confidence")
    top.set(ylim=(-0.02, 1.02), ylabel="observed frequency")
    top.legend(loc="best")
    count_axis(bottom, largest, headroom=1.0)
    return finish(figure, path)


def tree_shape(tree: Tree, path: str | PathLike[str] | None = None) -> Figure:
    """The shape of a label tree: inner nodes and labels at every depth, and how many children inner nodes have."""
    check_drawable(
        tree, "tree", "a ramify.trees.LabelTree (a trained classifier's `tree_`)", "label", "n_children", "depth"
    )
    is_leaf = tree.label >= 0
    height = int(tree.depth.max())
    labels = np.bincount(tree.depth[is_leaf], minlength=height + 1)
    inner = np.bincount(tree.depth[~is_leaf], minlength=height + 1)
    children = np.bincount(tree.n_children[~is_leaf])
    mean_depth = float(tree.depth[is_leaf].mean())

    figure = new_figure(9.6, 3.9, path)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    depths = np.arange(height + 1)
    # One bar in front of the other, the front one narrow: both stay visible whichever is higher.
    left.bar(depths, inner, width=0.84, color=COLOURS[5], label="inner nodes")
    left.bar(depths, labels, width=0.42, color=COLOURS[0], label="labels (leaves)")
    left.set(yscale="log", xlabel="depth", ylabel="nodes", xlim=(-0.7, height + 0.7))
    left.set_title(
        f"{plural(int(is_leaf.sum()), 'label')} at mean depth {mean_depth:.2f}, {plural(is_leaf.size, 'node')} in all"
    )
    count_axis(left, max(int(labels.max()), int(inner.max())), headroom=1.3)
    left.xaxis.set_major_locator(integers(height))
    left.legend(loc="upper left", ncols=2)

    arity = np.flatnonzero(children)
    if arity.size:
        right.vlines(arity, 0.1, children[arity], color=COLOURS[0], linewidth=2)
        right.plot(arity, children[arity], color=COLOURS[0], marker="o", markersize=5, linestyle="none")
        right.set(yscale="log", xlabel="children of an inner node", ylabel="inner nodes")
        right.set_title(f"{tree.n_children[~is_leaf].mean():,.1f} children on average, at most {arity[-1]:,}")
        right.set_xlim(0, arity[-1] * 1.06 + 0.5)
        count_axis(right, int(children.max()), headroom=1.1)
        right.xaxis.set_major_locator(integers(int(arity[-1])))
        right.xaxis.set_major_formatter(formatter(lambda value: f"{value:,.0f}"))
    else:
        right.set_title("a single leaf, no inner nodes")
        right.set_axis_off()
    return finish(figure, path)


def progressive(
    runs: Run | Sequence[Run] | Mapping[str, Run],
    path: str | PathLike[str] | None = None,
    *,
    metric: str = "entropy_reduction",
    cumulative: bool = True,
) -> Figure:
    """Test-then-train performance against the number of examples, several runs in one picture.

    `runs` are results of `ramify.progressive.evaluate`; a dict gives them other names. `metric` is "entropy_reduction"
    (in bits, over the most frequent label so far), "accuracy" or "P@k"; of all examples so far, or of each window.
    Paper: online-plt, section 5.2, figure 2.
    """
    if isinstance(runs, Mapping):
        named = dict(runs)
        for run in named.values():
            check_drawable(run, "a run", RUN, "curve")
    else:
        several = list(runs) if isinstance(runs, Sequence) else [runs]
        for run in several:
            check_drawable(run, "a run", RUN, "name", "curve")
        named = {run.name: run for run in several}
        if len(named) != len(several):
            raise ValueError("two runs have the same name: give a dict from name to run")
    if not named:
        raise ValueError("runs is empty; give at least one result")
    if len(named) > len(COLOURS):
        raise ValueError(f"there are {len(named)} runs, but only {len(COLOURS)} can be told apart in one picture")

    figure = new_figure(6.8, 4.4, path)
    axes = figure.subplots()
    is_bits = metric == "entropy_reduction"
    for (name, run), colour, marker in zip(named.items(), COLOURS, MARKERS, strict=False):
        examples, values = run.curve(metric, cumulative)
        drawn = np.isfinite(values)
        at_end = f"{values[-1]:.2f}" if is_bits else f"{values[-1]:.1%}"
        axes.plot(
            examples[drawn],
            values[drawn],
            color=colour,
            marker=marker,
            markersize=5,
            markevery=max(1, int(drawn.sum()) // 12),
            linewidth=1.8,
            label=f"{name} (ends at {at_end if drawn[-1:].any() else 'no number'})",
        )
    axes.set_xlabel("examples")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(formatter(lambda value: f"{value:,.0f}"))
    of = "so far" if cumulative else "in each window"
    if is_bits:
        axes.set_ylabel(f"entropy reduction {of} (bits)")
        axes.axhline(0, color=GREY, linestyle="--", linewidth=1.2, label="most frequent label so far")
    else:
        axes.set_ylabel(f"{metric} {of}")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(formatter(lambda value: f"{value:.0%}"))
    axes.set_title("each example is tested before it is learned")
    axes.legend(loc="best")
    return finish(figure, path)


def f_measure(
    curves: Sequence[FCurve], path: str | PathLike[str] | None = None, *, objective: str = "macro_f1"
) -> Figure:
    """An F measure against 1/c for each tuner of thresholds: dashed on the rows tuned on, solid on others.

    `curves` are those of `ramify.decide.f_measure_curves`. Paper: extreme-f-measure, figure 1.
    """
    if not curves:
        raise ValueError("there are no curves to draw")
    for curve in curves:
        check_drawable(curve, "a curve", "one of ramify.decide.f_measure_curves", "method", "c", "validation", "test")
    figure = new_figure(6.5, 4.2, path)
    axes = figure.add_subplot()
    for place, curve in enumerate(curves):
        x = 1.0 / np.asarray(curve.c)
        look: dict[str, Any] = {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "markersize": 4,
        }
        axes.plot(x, 100 * np.asarray(curve.test), label=f"{curve.method.upper()} test", **look)
        validation = 100 * np.asarray(curve.validation)
        axes.plot(x, validation, label=f"{curve.method.upper()} validation", linestyle="--", **look)
    axes.set_xscale("log")
    axes.set_xlabel("1/c: where estimates are cut (STO, FTA), where thresholds begin (OFO)")
    axes.set_ylabel(f"{objective.partition('_')[0]} F in percent")
    axes.legend(fontsize=8, frameon=False)
    return finish(figure, path)
