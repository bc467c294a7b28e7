"""What each of the five papers reports, and the commands that make our counterpart; see reproduce.py."""

from __future__ import annotations

from benchmarks.papers import f_measure, interpolated_trees, logarithmic_time, online_label_trees, spectral_method
from benchmarks.papers.items import Item, Step

PAPERS: dict[str, tuple[str, dict[str, Item]]] = {
    "jasinska-kobus-2021": (online_label_trees.TITLE, online_label_trees.ITEMS),
    "jasinska-2016": (f_measure.TITLE, f_measure.ITEMS),
    "choromanska-2015": (logarithmic_time.TITLE, logarithmic_time.ITEMS),
    "baharav-2021": (interpolated_trees.TITLE, interpolated_trees.ITEMS),
    "mineiro-2015": (spectral_method.TITLE, spectral_method.ITEMS),
}

__all__ = ["PAPERS", "Item", "Step"]
