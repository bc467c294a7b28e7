"""The hierarchical spectral method: a tree that learns which few labels to look at, and a classifier that looks."""

from __future__ import annotations

from ramify.models.spectral.base_classifier import BaseClassifier
from ramify.models.spectral.candidate_tree import CandidateTree, TreeSettings, grow_candidate_tree
from ramify.models.spectral.eigen_split import eigen_split, purity
from ramify.models.spectral.learned_space import SPACES, learn_space
from ramify.models.spectral.scaling import SCALINGS, hellinger, scaled_rows

__all__ = [
    "SCALINGS",
    "SPACES",
    "BaseClassifier",
    "CandidateTree",
    "TreeSettings",
    "eigen_split",
    "grow_candidate_tree",
    "hellinger",
    "learn_space",
    "purity",
    "scaled_rows",
]
