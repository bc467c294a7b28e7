"""Plots for extreme classification: label imbalance, calibration, trees, streams. Needs the extra `ramify[plots]`.

Every function returns a matplotlib Figure. If you pass a path, it also saves the figure as PNG or SVG, by the suffix of
the path. Figures do not use pyplot, so there is no global state, and no window or display is needed.
"""

from ramify.plots.calibration import reliability_diagram
from ramify.plots.labels import label_cover, label_frequency
from ramify.plots.streams import progressive
from ramify.plots.thresholds import f_measure
from ramify.plots.trees import pareto, tree_shape

__all__ = [
    "f_measure",
    "label_cover",
    "label_frequency",
    "pareto",
    "progressive",
    "reliability_diagram",
    "tree_shape",
]
