"""Show progressive validation as a table in the terminal, live or at the end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from ramify.progressive.result import ProgressiveResult, Window

# Number of windows in the live table; the result has all of them.
SHOWN = 15


def columns(result: ProgressiveResult) -> list[str]:
    """Return the headings of `cells`: scores of the window, and with "all" of every example so far."""
    first = "acc." if result.is_multiclass else "P@1"
    further = [] if result.is_multiclass else [f"P@{k}" for k in result.k[1:]]
    return ["examples", "labels", first, *further, f"all {first}", "bits", "all bits", "ex./s", "memory"]


def cells(result: ProgressiveResult, window: Window) -> list[str]:
    """Return a line of the table: precision in percent, entropy reduction in bits, speed and memory."""
    ks = (1,) if result.is_multiclass else result.k
    return [
        f"{window.examples:,}",
        f"{window.n_labels:,}",
        *(f"{100 * window.score.precision[k]:.1f}" for k in ks),
        f"{100 * window.so_far.accuracy:.1f}",
        _bits(window.score.entropy_reduction),
        _bits(window.so_far.entropy_reduction),
        f"{window.examples_per_second:,.0f}",
        "" if window.memory is None else _megabytes(window.memory),
    ]


def table(result: ProgressiveResult, last: int | None = None) -> Table:
    made = Table(title=result.name, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns(result):
        made.add_column(name, justify="right", header_style="dim", no_wrap=True)
    windows = result.windows if last is None else result.windows[-last:]
    for window in windows:
        made.add_row(*cells(result, window))
    return made


@contextmanager
def live(result: ProgressiveResult) -> Iterator[None]:
    """Show the last windows on stderr, and leave them there at the end."""

    class Watched:
        def __rich__(self) -> Any:
            return table(result, SHOWN)

    console = Console(stderr=True, markup=False, highlight=False)
    with Live(Watched(), console=console, refresh_per_second=4):
        yield


def _bits(value: float) -> str:
    return f"{value:+.2f}" if math.isfinite(value) else "" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB" if n_bytes >= 1e7 else f"{n_bytes / 1e6:.1f} MB"
