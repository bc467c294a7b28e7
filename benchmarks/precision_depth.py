"""Precision against expected depth, a point a lambda: figures 2 to 5 of Baharav et al. 2021."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ramify.plots.drawing import COLOURS, finish, new_figure


class Point(NamedTuple):
    depth: float
    precision: float
    name: str


def draw(title: str, curves: dict[int, Sequence[Point]], path: Path, other: Point | None = None) -> None:
    """One panel for each k of `curves`; `other` is a point apart from the curve, such as Huffman's tree."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = new_figure(4.5 * len(curves), 3.6, path)
    for axis, (k, points) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        axis.plot(
            [point.depth for point in points],
            [point.precision for point in points],
            "o-",
            color=COLOURS[0],
            label="interpolated trees",
        )
        shown: list[Point] = []
        for point in points:
            if all(_apart(point, one, points) for one in shown):  # names on top of each other cannot be read
                axis.annotate(point.name, point[:2], xytext=(6, -10), textcoords="offset points", fontsize=8)
                shown.append(point)
        if other is not None:
            axis.plot([other.depth], [other.precision], "s", color=COLOURS[1], label=other.name)
            axis.legend()
        axis.margins(0.16)
        axis.set(title=title, xlabel=f"expected depth at {k}", ylabel=f"precision at {k} (%)")
    finish(figure, path)
    print(f"wrote {path}", flush=True)


def _apart(one: Point, other: Point, points: Sequence[Point]) -> bool:
    """Whether names at the two points would not overlap in a panel that shows all of them."""
    width = max(point.depth for point in points) - min(point.depth for point in points)
    height = max(point.precision for point in points) - min(point.precision for point in points)
    return abs(one.depth - other.depth) > 0.13 * width or abs(one.precision - other.precision) > 0.06 * height


def lambda_prime(lam: float) -> str:
    """lambda / (2 - lambda), the scale of the paper's section 5.4, as a name of a point."""
    return "\N{GREEK SMALL LETTER LAMDA}' = " + (f"{lam / (2 - lam):.4g}" if lam < 2 else "inf")
