"""The hierarchical spectral method: a tree finds candidate labels, a classifier scores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ramify.models.spectral.base_classifier import BaseClassifier
from ramify.models.spectral.candidate_tree import CandidateTree, TreeSettings, grow_candidate_tree
from ramify.models.spectral.eigen_split import eigen_split, purity
from ramify.models.spectral.learned_space import learn_space
from ramify.models.spectral.scaling import hellinger

if TYPE_CHECKING:
    from ramify.models.spectral.candidate_scorer import CandidateScorer

__all__ = [
    "BaseClassifier",
    "CandidateScorer",
    "CandidateTree",
    "TreeSettings",
    "eigen_split",
    "grow_candidate_tree",
    "hellinger",
    "learn_space",
    "purity",
]


def __getattr__(name: str) -> Any:  # a saved model is queried without scikit-learn, which the scorer's class needs
    if name == "CandidateScorer":
        from ramify.models.spectral.candidate_scorer import CandidateScorer

        return CandidateScorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
