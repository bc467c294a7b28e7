"""Code shared by all plots: colours, axes, style and saving."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito: distinct for all common types of colour blindness. Markers differ too, for grey prints.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#6B6B6B"


def curve_ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ranks (from 1) where the curve bends, and some between: a million labels need far fewer points."""
    bends = np.flatnonzero(np.diff(counts))
    between = np.geomspace(1, counts.size, 400).astype(np.int64)
    return np.unique(np.concatenate([bends + 1, bends + 2, between, [1, counts.size]]))


def wilson(frequency: NDArray[np.float64], count: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the 95 % Wilson interval of a frequency, which is valid for few estimates and near 0 and 1."""
    z = 1.96
    centre = (frequency + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * np.sqrt(frequency * (1 - frequency) / count + (z / (2 * count)) ** 2)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def check_drawable(value: Any, name: str, wanted: str, *attributes: str) -> None:
    """Raise TypeError if an attribute needed for the plot is missing, for example of a classifier instead of a tree."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}")


def check_number_of_series(number: int, name: str, what: str) -> None:
    """Raise if there is nothing to plot, or more series than distinct colours."""
    if number == 0:
        raise ValueError(f"{name} is empty; pass at least one {what}")
    if number > len(COLOURS):
        raise ValueError(f"{name} has {number} {what}s, but a plot can show at most {len(COLOURS)}")


def new_figure(width: float, height: float, path: str | PathLike[str] | None) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib; install it with: pip install 'ramify[plots]'") from error
    if path is not None and Path(path).suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"cannot save a plot as {str(path)!r}: the name must end in .png or .svg")
    return Figure(figsize=(width, height), layout="constrained")


def finish(figure: Figure, path: str | PathLike[str] | None) -> Figure:
    """Apply the common style to all axes, and save the figure if a path is given."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(which="major", color="#DDDDDD", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.title.set_fontsize(10)
        for text in (axes.xaxis.label, axes.yaxis.label):
            text.set_fontsize(10)
        axes.tick_params(labelsize=9)
        legend = axes.get_legend()
        if legend is not None:
            legend.set_frame_on(True)
            legend.get_frame().set(edgecolor="none", alpha=0.85)
            for text in legend.get_texts():
                text.set_fontsize(9)
    if path is not None:
        figure.savefig(path, format=Path(path).suffix.lower()[1:], dpi=200)
    return figure


def count_axis(axes: Axes, largest: int, headroom: float) -> None:
    """Scale a logarithmic axis of counts so that 1 is visible, with room above the largest."""
    axes.set_ylim(0.7, max(largest**headroom * 2, 12))
    readable_log_ticks(axes.yaxis)


def readable_log_ticks(axis: Any) -> None:
    """Write 1,000 instead of 10^3; label 1, 2 and 5 of each decade if there are few decades, else only decades."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    if high < 50 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(formatter(lambda value: f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def formatter(format_value: Any) -> Any:
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _position: format_value(value))


def integers(largest: int) -> Any:
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    return MultipleLocator(1) if largest <= 10 else MaxNLocator(nbins=8, integer=True)


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(part: float) -> str:
    return f"{100 * part:.2g}%" if part < 0.1 else f"{100 * part:.0f}%"
