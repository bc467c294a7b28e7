"""Plots of progressive validation on streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ramify.plots.drawing import (
    COLOURS,
    GREY,
    MARKERS,
    check_drawable,
    check_number_of_series,
    finish,
    formatter,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RUN = "a result of ramify.progressive.evaluate"


class Run(Protocol):
    """The part of `ramify.progressive.ProgressiveResult` that the plot needs."""

    @property
    def name(self) -> str: ...
    def curve(self, metric: str, cumulative: bool) -> tuple[NDArray[Any], NDArray[Any]]: ...


def progressive(
    runs: Run | Sequence[Run] | Mapping[str, Run],
    path: str | PathLike[str] | None = None,
    *,
    metric: str = "entropy_reduction",
    cumulative: bool = True,
) -> Figure:
    """Plot the test-then-train performance of one or more runs over the number of examples.

    `runs` are results of `ramify.progressive.evaluate`; pass a dict to rename them. `metric` is "entropy_reduction"
    (in bits, relative to the most frequent label so far), "accuracy" or "P@k", of all examples so far or, unless
    `cumulative`, of each window.
    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", section 5.2, figure 2.
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
            raise ValueError("two runs have the same name; pass a dict from name to run")
    check_number_of_series(len(named), "runs", "run")

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
