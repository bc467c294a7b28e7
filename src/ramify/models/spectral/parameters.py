"""The parameters of the hierarchical spectral method: their ranges, and the settings of the tree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ramify.base.classifier import ExtremeClassifier
from ramify.base.nested import check_no_hierarchy
from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.models.spectral.candidate_scorer import CandidateScorer
from ramify.models.spectral.candidate_tree import DEVIATIONS, TreeSettings
from ramify.models.spectral.eigen_split import SOLVERS
from ramify.models.spectral.learned_space import check_space
from ramify.models.spectral.scaling import check_normalization

if TYPE_CHECKING:
    from ramify.models.spectral.classifier import SpectralTreeClassifier

# Deeper than any tree that data could fill.
MAX_DEPTH = 60
# As many leaves as the core visits for one row.
MAX_LEAVES = 65_536


@dataclass(frozen=True)
class TreeOptions:
    """How the candidate tree is grown: `SpectralTreeClassifier(tree_options={...})`.

    recall: a node whose candidates cover this share of its training labels is a leaf (phi in the paper).
    noise: multiplies the deviation of the routing; 0 sends every row one way while growing.
    deviation: how far a row like the given one may lie from it: the eigenvalue over the importance ("eigenvalue", as in
    the paper), or the root of the variance that the labels leave unexplained ("within"), on the rows' own scale.
    min_path: rows do not follow paths that are less probable than this.
    prune: weights of a node below this share of its largest are dropped.
    solver: eigenvectors by randomised PCA ("randomised", eight directions at once) or by power iteration ("power").
    max_iterations, tol: the solver stops after that many steps, or when the eigenvalue grows by less than this share.
    cg_iterations: steps of conjugate gradients for the hat matrix, where rows have several labels.
    held_out: share of the rows that is held out to choose the depth.
    squares_frequency: one class per row: classes count by the square of their frequency, as the paper's equation 1 is
    printed; otherwise by their frequency, as in equation 2. No difference for rows with several labels.
    """

    recall: float = 0.999
    noise: float = 1.0
    deviation: str = "eigenvalue"
    min_path: float = 0.05
    prune: float = 0.0
    solver: str = "randomised"
    max_iterations: int = 6
    tol: float = 0.01
    cg_iterations: int = 8
    held_out: float = 0.1
    squares_frequency: bool = False

    def check(self) -> None:
        """Reject bad options by name, value and range."""
        check_number("recall", self.recall, at_least=0, at_most=1)
        check_number("noise", self.noise, at_least=0)
        check_choice("deviation", self.deviation, DEVIATIONS)
        check_number("min_path", self.min_path, above=0, at_most=1)
        if check_number("prune", self.prune, at_least=0, at_most=1) == 1:
            raise ValueError("prune must leave some weights: give a number below 1")
        check_choice("solver", self.solver, SOLVERS)
        check_integer("max_iterations", self.max_iterations, at_least=1, at_most=2**31 - 1)
        check_number("tol", self.tol, at_least=0)
        check_integer("cg_iterations", self.cg_iterations, at_least=1, at_most=2**31 - 1)
        if check_number("held_out", self.held_out, above=0, at_most=1) == 1:
            raise ValueError("held_out must leave rows to grow the tree from: give a number below 1")
        check_flag("squares_frequency", self.squares_frequency)


def read_tree_options(given: Any) -> TreeOptions:
    """The options of the tree with their defaults."""
    if given is not None and not isinstance(given, dict):
        raise ValueError(f"tree_options must be a dict from option to value, got {given!r}")
    known = asdict(TreeOptions())
    for name in given or {}:
        if name not in known:
            raise ValueError(f"tree_options has no {name!r}; it has {', '.join(known)}")
    return TreeOptions(**(given or {}))


def check_parameters(classifier: SpectralTreeClassifier) -> None:
    """Reject bad parameters by name, value and range."""
    if isinstance(classifier.depth, str):
        if classifier.depth != "auto":
            raise ValueError(f"depth must be an integer between 0 and {MAX_DEPTH}, or 'auto', got {classifier.depth!r}")
    else:
        check_integer("depth", classifier.depth, at_least=0, at_most=MAX_DEPTH)
    check_integer("n_candidates", classifier.n_candidates, at_least=1, at_most=2**30)
    check_integer("n_leaves", classifier.n_leaves, at_least=1, at_most=MAX_LEAVES)
    check_space(classifier.space)
    check_integer("sampled_labels", classifier.sampled_labels, at_least=1, at_most=2**30)
    check_integer("head", classifier.head, at_least=0)
    read_tree_options(classifier.tree_options).check()
    given = classifier.estimator
    if given is not None and not isinstance(given, CandidateScorer | ExtremeClassifier):
        raise ValueError(f"estimator must be None, a CandidateScorer or a classifier of ramify, got {given!r}")
    check_no_hierarchy(type(classifier).__name__, given)
    scorer = classifier._scorer()
    scorer.check_parameters()
    if classifier.n_leaves > 1 and scorer.output_weights == "leaf":
        raise ValueError("output_weights='leaf' answer for one leaf: give n_leaves=1, or output_weights='shared'")
    check_normalization(classifier.normalize)
    check_flag("verbose", classifier.verbose)


def tree_settings(classifier: SpectralTreeClassifier, depth: int) -> TreeSettings:
    """How the tree is grown, to this depth."""
    options = asdict(read_tree_options(classifier.tree_options))
    del options["held_out"]
    return TreeSettings(depth=depth, n_candidates=classifier.n_candidates, **options)
