"""The default classifier behind the candidate tree, as a parameter of `SpectralTreeClassifier`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from ramify.common.validation import check_choice, check_flag, check_integer
from ramify.models.spectral.base_classifier import WEIGHTS
from ramify.optimizers import Optimizer, resolve_optimizer

OPTIMIZERS = {"adagrad": {"learning_rate": 0.3, "eps": 1e-3}}


class CandidateScorer(BaseEstimator):  # type: ignore[misc]
    """Logistic regression that sees only candidates: softmax for one class per row, else a logistic link per label.

    Parameters
    ----------
    weights : "low_rank", "full" or "hashed"
        `rank` weights per label in a space that all labels share, one per label and feature, or these hashed into
        2**hash_bits.
    rank, hash_bits : int
    output_weights : "shared" or "leaf"
        A label's weights are the same in all leaves, or each leaf has its own: instead of the shared ones (low rank),
        or beside them in the same table (hashed: multi-task hashing of leaf x feature).
    leaf_bias : bool
        Each leaf has its own bias for each of its candidates.
    optimizer : "adagrad" or AdaGrad
        By default AdaGrad(learning_rate=0.3, eps=1e-3).
    n_epochs, shuffle
        Passes over the rows, and whether in random order.
    sampled_paths : bool
        Rows take a random path while the classifier learns; otherwise the one that prediction takes.

    >>> from ramify import SpectralTreeClassifier
    >>> SpectralTreeClassifier(estimator=CandidateScorer(rank=32)).get_params()["estimator__rank"]
    32
    """

    def __init__(
        self,
        *,
        weights: str = "low_rank",
        rank: int = 64,
        hash_bits: int = 22,
        output_weights: str = "shared",
        leaf_bias: bool = True,
        optimizer: str | Optimizer = "adagrad",
        n_epochs: int = 10,
        shuffle: bool = True,
        sampled_paths: bool = True,
    ) -> None:
        self.weights = weights
        self.rank = rank
        self.hash_bits = hash_bits
        self.output_weights = output_weights
        self.leaf_bias = leaf_bias
        self.optimizer = optimizer
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.sampled_paths = sampled_paths

    def check_parameters(self) -> None:
        """Reject bad parameters by name, value and range."""
        check_choice("weights", self.weights, WEIGHTS)
        check_integer("rank", self.rank, at_least=1, at_most=2**16)
        check_integer("hash_bits", self.hash_bits, at_least=0, at_most=30)
        check_choice("output_weights", self.output_weights, ["shared", "leaf"])
        if self.output_weights == "leaf" and self.weights == "full":
            raise ValueError("output_weights='leaf' needs weights='low_rank' or 'hashed', got weights='full'")
        check_flag("leaf_bias", self.leaf_bias)
        check_integer("n_epochs", self.n_epochs, at_least=1, at_most=2**31 - 1)
        check_flag("shuffle", self.shuffle)
        check_flag("sampled_paths", self.sampled_paths)
        self.steps()

    def steps(self) -> dict[str, float]:
        """Learning rate and eps of AdaGrad."""
        return resolve_optimizer(self.optimizer, OPTIMIZERS)[1]
