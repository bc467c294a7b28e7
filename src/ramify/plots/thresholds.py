"""Plots of tuned thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ramify.plots.drawing import (
    COLOURS,
    MARKERS,
    check_drawable,
    finish,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class FCurve(Protocol):
    """The part of `ramify.decide.Curve` that the plot needs."""

    @property
    def method(self) -> str: ...
    @property
    def c(self) -> Sequence[float]: ...
    @property
    def validation(self) -> Sequence[float]: ...
    @property
    def test(self) -> Sequence[float]: ...


def f_measure(
    curves: Sequence[FCurve], path: str | PathLike[str] | None = None, *, objective: str = "macro_f1"
) -> Figure:
    """Plot an F measure over 1/c for each tuner of thresholds: validation rows dashed, test rows solid.

    `curves` come from `ramify.decide.f_measure_curves`.
    Paper: Jasinska et al. 2016, "Extreme F-Measure Maximization using Sparse Probability Estimates", figure 1.
    """
    if not curves:
        raise ValueError("curves is empty; pass at least one curve")
    for curve in curves:
        check_drawable(curve, "a curve", "one of ramify.decide.f_measure_curves", "method", "c", "validation", "test")
    figure = new_figure(6.5, 4.2, path)
    axes = figure.add_subplot()
    for place, curve in enumerate(curves):
        x = 1.0 / np.asarray(curve.c)
        style: dict[str, Any] = {
            "color": COLOURS[place % len(COLOURS)],
            "marker": MARKERS[place % len(MARKERS)],
            "markersize": 4,
        }
        axes.plot(x, 100 * np.asarray(curve.test), label=f"{curve.method.upper()} test", **style)
        validation = 100 * np.asarray(curve.validation)
        axes.plot(x, validation, label=f"{curve.method.upper()} validation", linestyle="--", **style)
    axes.set_xscale("log")
    axes.set_xlabel("1/c: cut of the estimates (STO, FTA), initial threshold (OFO)")
    axes.set_ylabel(f"{objective.partition('_')[0]} F in percent")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=len(curves))  # below: curves may be anywhere
    return finish(figure, path)
