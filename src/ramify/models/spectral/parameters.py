"""The parameters of the hierarchical spectral method: what is allowed, and what of it the tree is grown with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramify.base.classifier import ExtremeClassifier
from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.models.spectral.base_classifier import WEIGHTS
from ramify.models.spectral.candidate_tree import DEVIATIONS, TreeSettings
from ramify.models.spectral.eigen_split import SOLVERS
from ramify.models.spectral.learned_space import SPACES
from ramify.models.spectral.scaling import SCALINGS

if TYPE_CHECKING:
    from ramify.models.spectral.classifier import SpectralTreeClassifier

# Deeper than any tree that data could fill.
MOST_DEPTH = 60
# As many leaves as the core looks at for one row.
MOST_WAYS = 65_536


def check_parameters(model: SpectralTreeClassifier) -> None:
    """Refuse what is out of range, each by its name."""
    if isinstance(model.depth, str):
        if model.depth != "auto":
            raise ValueError(f"depth must be an integer between 0 and {MOST_DEPTH}, or 'auto', got {model.depth!r}")
    else:
        check_integer("depth", model.depth, at_least=0, at_most=MOST_DEPTH)
    check_integer("n_candidates", model.n_candidates, at_least=1, at_most=2**30)
    if check_integer("ways", model.ways, at_least=1, at_most=MOST_WAYS) > 1 and model.output_weights == "leaf":
        raise ValueError("output_weights='leaf' answer for one leaf: give ways=1, or output_weights='shared'")
    check_choice("space", model.space, SPACES)
    check_integer("sampled_labels", model.sampled_labels, at_least=1, at_most=2**30)
    check_number("recall", model.recall, at_least=0, at_most=1)
    check_number("noise", model.noise, at_least=0)
    check_choice("deviation", model.deviation, DEVIATIONS)
    check_number("min_path", model.min_path, above=0, at_most=1)
    if check_number("prune", model.prune, at_least=0, at_most=1) == 1:
        raise ValueError("prune must leave some weights: give a number below 1")
    check_choice("solver", model.solver, SOLVERS)
    check_integer("max_iterations", model.max_iterations, at_least=1, at_most=2**31 - 1)
    check_number("tolerance", model.tolerance, at_least=0)
    check_integer("cg_iterations", model.cg_iterations, at_least=1, at_most=2**31 - 1)
    check_integer("head", model.head, at_least=0)
    if model.base is not None and not isinstance(model.base, ExtremeClassifier):
        raise ValueError(
            f"base must be None or a classifier of ramify, which can score named labels, got {model.base!r}"
        )
    check_choice("weights", model.weights, WEIGHTS)
    check_integer("rank", model.rank, at_least=1, at_most=2**16)
    check_integer("hash_bits", model.hash_bits, at_least=0, at_most=30)
    check_choice("output_weights", model.output_weights, ["shared", "leaf"])
    if model.output_weights == "leaf" and model.weights != "low_rank":
        raise ValueError(f"output_weights='leaf' needs weights='low_rank', got weights={model.weights!r}")
    check_flag("leaf_bias", model.leaf_bias)
    check_number("learning_rate", model.learning_rate, above=0)
    check_number("eps", model.eps, above=0)
    check_integer("passes", model.passes, at_least=1, at_most=2**31 - 1)
    check_flag("shuffle", model.shuffle)
    check_flag("sampled_paths", model.sampled_paths)
    if model.scaling is not None:
        check_choice("scaling", model.scaling, SCALINGS)
    if check_number("held_out", model.held_out, above=0, at_most=1) == 1:
        raise ValueError("held_out must leave rows to grow the tree from: give a number below 1")
    check_flag("verbose", model.verbose)


def tree_settings(model: SpectralTreeClassifier, depth: int) -> TreeSettings:
    """How the tree is grown, to this depth."""
    return TreeSettings(
        depth=depth,
        n_candidates=model.n_candidates,
        recall=model.recall,
        noise=model.noise,
        deviation=model.deviation,
        min_path=model.min_path,
        prune=model.prune,
        solver=model.solver,
        max_iterations=model.max_iterations,
        tolerance=model.tolerance,
        cg_iterations=model.cg_iterations,
    )
