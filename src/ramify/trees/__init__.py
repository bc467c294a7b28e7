"""Label trees and their builders. Every builder is called as ``builder(X, Y, *, max_leaf, random_state, …)``."""

from ramify.trees.coding import fano_tree, huffman_tree
from ramify.trees.costs import LabelCosts, label_costs
from ramify.trees.frequency import effective_frequency, marginal_frequency
from ramify.trees.interpolated import interpolated_tree
from ramify.trees.kmeans import kmeans_tree
from ramify.trees.label_tree import LabelTree
from ramify.trees.resolving import resolve
from ramify.trees.simple import complete_tree, one_level_tree, random_tree

__all__ = [
    "LabelCosts",
    "LabelTree",
    "complete_tree",
    "effective_frequency",
    "fano_tree",
    "huffman_tree",
    "interpolated_tree",
    "kmeans_tree",
    "label_costs",
    "marginal_frequency",
    "one_level_tree",
    "random_tree",
    "resolve",
]
