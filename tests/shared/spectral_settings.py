"""Small spectral classifiers for tests, by flat settings."""

from __future__ import annotations

from dataclasses import asdict

from ramify import SpectralTreeClassifier
from ramify.models.spectral import CandidateScorer
from ramify.models.spectral.parameters import TreeOptions

SMALL = {"n_candidates": 12, "depth": 5, "rank": 16, "n_epochs": 5, "random_state": 0}
LEARNED = {"space": "learned", "deviation": "within", "n_leaves": 3}
KINDS = [{}, {"output_weights": "leaf"}, {"weights": "full"}, {"weights": "hashed"}, {"n_leaves": 3}, LEARNED]
OF_SCORER = CandidateScorer().get_params()
OF_TREE = asdict(TreeOptions())


def spectral(**settings):
    """A SpectralTreeClassifier; the settings of its scorer and of its tree are given among the others."""
    scorer = CandidateScorer(**{name: value for name, value in settings.items() if name in OF_SCORER})
    options = {name: value for name, value in settings.items() if name in OF_TREE}
    others = {name: value for name, value in settings.items() if name not in OF_SCORER | OF_TREE}
    return SpectralTreeClassifier(**{"estimator": scorer, "tree_options": options, **others})
