"""Plots of calibration."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify import metrics
from ramify.metrics._inputs import as_positive_integer
from ramify.metrics.probability import calibration_gap
from ramify.plots.drawing import (
    COLOURS,
    GREY,
    MARKERS,
    check_number_of_series,
    count_axis,
    finish,
    new_figure,
    wilson,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def reliability_diagram(Y_true: Any, P: Any, path: str | PathLike[str] | None = None, *, n_bins: int = 10) -> Figure:
    """Plot the observed frequency over the mean probability of each bin, and the size of each bin.

    `P` is one array of estimates or a dict from model name to array. Only stored estimates count, see
    `ramify.metrics.reliability_curve`. The legend shows the mean distance from the diagonal; the bars are 95 % Wilson
    confidence intervals, which assume independent estimates.
    """
    n_bins = as_positive_integer(n_bins, "n_bins")
    models = P if isinstance(P, Mapping) else {"model": P}
    check_number_of_series(len(models), "P", "model")

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
