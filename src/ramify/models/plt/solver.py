"""The solver of a label tree's linear classifiers, as a parameter of `PLTClassifier`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.optimizers import FOBOS, resolve_optimizer

LOSSES = ("squared_hinge", "logistic")
OPTIMIZERS = {"fobos": {"learning_rate": 1.0, "l2": 1e-6}}


class PLTSolver(BaseEstimator):  # type: ignore[misc]
    """Dual coordinate descent on all children of a node together.

    Parameters
    ----------
    loss : "squared_hinge" or "logistic"
    C : float or None
        Cost of errors. None: chosen on held-out rows by the Brier score, for each level of the tree.
    positive_weight : float or None
        Multiplies C for positive examples. None: chosen along with C.
    gap : float or None
        How far to converge: the last pass over a node's rows is the one after the first whose duality gap is at most
        this share of the first pass's. None: chosen along with C, or 0 if `n_epochs` is given.
    n_epochs : int or None
        Most passes over a node's rows; fewer if no dual variable moves by more than `tol`. None: 40, or, where the gap
        cannot be measured because nodes share their weights (`hash_bits`), chosen along with C.
    tol : float
        Dual steps below this are not taken.
    prune : float
        Weights of at most this size are dropped; none where every row has every feature, which would save nothing.
    packed : bool
        Store weights in 12 bits each where a node has many, near the leaves of large trees: the model takes about a
        third less room, on disk and in memory, and answers take about a third longer.
    optimizer : None or FOBOS
        None: dual coordinate descent. FOBOS: stochastic gradient descent with an L2 regulariser on the logistic loss,
        as in Jasinska et al. 2016, appendix B; for weights that nodes share by hashing (`hash_bits`), not calibrated.

    >>> from ramify import PLTClassifier
    >>> PLTClassifier(solver=PLTSolver(C=4, n_epochs=20)).get_params()["solver__C"]
    4
    """

    def __init__(
        self,
        *,
        loss: str = "squared_hinge",
        C: float | None = None,
        positive_weight: float | None = None,
        gap: float | None = None,
        n_epochs: int | None = None,
        tol: float = 0.01,
        prune: float = 0.1,
        packed: bool = False,
        optimizer: FOBOS | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.positive_weight = positive_weight
        self.gap = gap
        self.n_epochs = n_epochs
        self.tol = tol
        self.prune = prune
        self.packed = packed
        self.optimizer = optimizer

    def check_parameters(self) -> None:
        """Reject bad parameters by name, value and range."""
        check_choice("loss", self.loss, LOSSES)
        for name in ("C", "positive_weight"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)
        if self.gap is not None and not 0 <= check_number("gap", self.gap) < 1:
            raise ValueError(f"gap must be a number of at least 0 and below 1, got {self.gap!r}")
        if self.n_epochs is not None:
            check_integer("n_epochs", self.n_epochs, at_least=1)
        check_number("tol", self.tol, at_least=0)
        check_number("prune", self.prune, at_least=0)
        check_flag("packed", self.packed)
        if self.optimizer is not None and self.loss != "logistic":
            raise ValueError(
                f"optimizer=FOBOS(...) minimises the logistic loss: give loss='logistic', got {self.loss!r}"
            )
        self.steps()

    def steps(self) -> dict[str, float]:
        """Rate and regulariser of FOBOS; a rate of 0 stands for dual coordinate descent."""
        if self.optimizer is None:
            return {"learning_rate": 0.0, "l2": 0.0}
        return resolve_optimizer(self.optimizer, OPTIMIZERS)[1]
