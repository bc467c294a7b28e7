"""Plots of label trees: their shape, and their trade-off between speed and precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ramify.plots.drawing import (
    COLOURS,
    MARKERS,
    check_drawable,
    check_number_of_series,
    count_axis,
    finish,
    formatter,
    integers,
    new_figure,
    plural,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Tree(Protocol):
    """The part of `ramify.trees.LabelTree` that the plot needs."""

    @property
    def label(self) -> NDArray[np.int32]: ...
    @property
    def n_children(self) -> NDArray[np.int32]: ...
    @property
    def depth(self) -> NDArray[np.int32]: ...


class Point(Protocol):
    """The part of `ramify.models.plt.pareto.OperatingPoint` that the plot needs."""

    @property
    def lam(self) -> float: ...
    @property
    def precision(self) -> float: ...
    @property
    def expected_depth(self) -> float: ...
    @property
    def microseconds(self) -> float: ...


class ParetoCurve(Protocol):
    """The part of `ramify.models.plt.pareto.ParetoCurve` that the plot needs."""

    @property
    def k(self) -> int: ...
    @property
    def points(self) -> Sequence[Point]: ...
    @property
    def chosen(self) -> Point: ...


def tree_shape(tree: Tree, path: str | PathLike[str] | None = None) -> Figure:
    """Plot the inner nodes and labels of a label tree by depth, and the number of children of its inner nodes."""
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
    # Draw the front bars narrower, so that both stay visible.
    left.bar(depths, inner, width=0.84, color=COLOURS[5], label="inner nodes")
    left.bar(depths, labels, width=0.42, color=COLOURS[0], label="labels (leaves)")
    left.set(yscale="log", xlabel="depth", ylabel="nodes", xlim=(-0.7, height + 0.7))
    left.set_title(
        f"{plural(int(is_leaf.sum()), 'label')} at mean depth {mean_depth:.2f}, {plural(is_leaf.size, 'node')} in total"
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


def pareto(curves: ParetoCurve | Mapping[str, ParetoCurve], path: str | PathLike[str] | None = None) -> Figure:
    """Plot precision at k over expected depth and over time, with a point for each lambda; chosen points have a ring.

    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    figure 2.
    """
    named = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    for curve in named.values():
        check_drawable(curve, "a curve", "one of ramify.models.plt.pareto.pareto_curve", "k", "points", "chosen")
    check_number_of_series(len(named), "curves", "curve")
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
                text = f"{point.lam:g}" + (" (chosen)" if is_chosen else "")
                axes.annotate(text, (at, value), textcoords="offset points", xytext=(5, 6), fontsize=8, color=colour)
    k = next(iter(named.values())).k
    both[0].set(xlabel=f"expected depth at {k}", ylabel=f"precision at {k} in percent")
    both[1].set(xlabel="microseconds per row, one row at a time (median)")
    both[0].set_title("each point is a tree; the number is its lambda")
    if len(named) > 1:
        both[0].legend(loc="best")
    return finish(figure, path)
