"""What each of the five papers reports, and the commands that make our counterpart; see reproduce.py."""

from __future__ import annotations

from benchmarks.papers import f_measure, interpolated_trees, logarithmic_time, online_label_trees, spectral_method
from benchmarks.papers.items import Item, Step

KINDS = ("table", "figure", "theorem", "appendix")


def in_order(items: dict[str, Item]) -> dict[str, Item]:
    """Tables first, then figures, theorems and appendices, each by number."""
    return {name: items[name] for name in sorted(items, key=lambda name: (KINDS.index(name.split()[0]), name))}


PAPERS: dict[str, tuple[str, dict[str, Item]]] = {
    "jasinska-kobus-2021": (online_label_trees.TITLE, in_order(online_label_trees.ITEMS)),
    "jasinska-2016": (f_measure.TITLE, in_order(f_measure.ITEMS)),
    "choromanska-2015": (logarithmic_time.TITLE, in_order(logarithmic_time.ITEMS)),
    "baharav-2021": (interpolated_trees.TITLE, in_order(interpolated_trees.ITEMS)),
    "mineiro-2015": (spectral_method.TITLE, in_order(spectral_method.ITEMS)),
}

__all__ = ["KINDS", "PAPERS", "Item", "Step"]
