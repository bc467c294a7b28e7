"""Trees between balanced 2-means and Fano's code: similar labels are close, and frequent labels near the root."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ramify import _core
from ramify.common.validation import check_flag, check_integer, check_number, number_of_threads
from ramify.trees.collapsing import collapse_levels
from ramify.trees.frequency import Frequencies, effective_frequency, marginal_frequency
from ramify.trees.kmeans import PRUNE, kmeans_tree, label_vectors
from ramify.trees.label_tree import LabelTree
from ramify.trees.splitting import Positions, concatenated_ranges, from_splits

DEFAULT_LAM = 1.0


def interpolated_tree(
    X: Any,
    Y: Any,
    *,
    lam: float | None = None,
    lam_prime: float | None = None,
    gamma: float = 0.1,
    arity: int = 2,
    max_leaf: int = 100,
    frequency: str | float = "marginal",
    direct: bool = False,
    literal: bool = False,
    prune: float = PRUNE,
    context_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iterations: int = 20,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> LabelTree:
    """Recursively split the labels by similarity and frequency, until a part has at most `max_leaf` labels.

    `lam` = 0 is the k-means tree, 1 (the default) is 2-means weighted by frequency, and 2 is Fano's code on the
    smoothed f-tilde (which needs no X). You can pass `lam_prime` = lam / (2 - lam), up to infinity, instead. `gamma`
    smooths the frequencies. `frequency` selects f-tilde, see `ramify.trees.effective_frequency`. `direct`
    interpolates directly, without weighted 2-means in the middle. `literal` assigns labels by Lemma 1 as printed; by
    default a label's pull on its own centre is taken off its ratio, as it would hold a heavy label where it happens to
    be. `prune` drops small entries of the PIFA label vectors, 0 keeps all. `context_weight` is the query frequency of
    each row. For an arity above 2, binary splits are collapsed so that frequent labels stay shallow. The tree does not
    depend on `n_jobs`.
    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    section 4.2.

    >>> y = np.repeat([0, 1, 2, 3], [1, 1, 1, 9])
    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])[y]
    >>> interpolated_tree(X, y, lam=0, max_leaf=1, random_state=0).depth_of(3)
    2
    >>> interpolated_tree(X, y, lam=2, max_leaf=1, random_state=0).depth_of(3)
    1
    """
    check_integer("arity", arity, at_least=2)
    check_integer("max_leaf", max_leaf, at_least=1)
    check_integer("max_iterations", max_iterations, at_least=1, at_most=1_000_000)
    check_number("tol", tol, at_least=0)
    check_number("gamma", gamma, at_least=0)
    check_flag("direct", direct)
    check_flag("literal", literal)
    check_number("prune", prune, at_least=0)
    objective = Objective(checked_lam(lam, lam_prime), float(gamma), direct)
    f = marginal_frequency(Y, context_weight)
    f_tilde = effective_frequency(Y, frequency, context_weight)
    if objective.lam == 0:
        settings: dict[str, Any] = {"tol": tol, "max_iterations": max_iterations, "prune": prune, "n_jobs": n_jobs}
        return kmeans_tree(X, Y, arity=arity, max_leaf=max_leaf, random_state=random_state, **settings)
    n_threads = number_of_threads(n_jobs)
    from sklearn.utils import check_random_state

    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if objective.similarity > 0:
        vectors = label_vectors(X, Y, prune=prune, n_jobs=n_threads)
    else:
        vectors = sp.csr_array(np.zeros((len(f), 1), dtype=np.float32))

    def split(order: NDArray[np.int32], starts: Positions, stops: Positions) -> Positions:
        return _core.split_by_objective(
            vectors,
            vectors.shape[1],
            order,
            objective.masses(f, f_tilde, order, starts, stops),
            starts,
            stops,
            similarity=objective.similarity,
            frequency=objective.frequency,
            eps=tol,
            max_iterations=max_iterations,
            seed=seed,
            n_threads=n_threads,
            has_own_pull=literal,
        )

    tree = from_splits(np.arange(len(f)), split, max_leaf=max_leaf)
    if arity == 2:
        return tree
    return collapse_levels(tree, arity, f_tilde / max(f_tilde.sum(), 1) + gamma / len(f))


@dataclass(frozen=True)
class Objective:
    """The weights of similarity and frequency in the paper's equation 4, and the mass of each label."""

    lam: float
    gamma: float
    direct: bool = False

    @property
    def similarity(self) -> float:
        """Weight of the difference between a label's cosines to the two centres, in the ratio of Lemma 1."""
        return (2 - self.lam) / 2

    @property
    def frequency(self) -> float:
        """Weight of a label's share of the mass, in the ratio of Lemma 1."""
        return self.lam / 2 if self.direct else max(self.lam - 1, 0.0)

    def masses(
        self, f: Frequencies, f_tilde: Frequencies, order: NDArray[np.int32], starts: Positions, stops: Positions
    ) -> Frequencies:
        """Return f(lambda) of the labels in every part order[start:stop], up to one factor per part; 0 elsewhere.

        f, f-tilde and L are those of the part. A frequency that is zero for all labels of a part adds nothing.
        """
        sizes = stops - starts
        part = np.repeat(np.arange(len(starts)), sizes)
        at = concatenated_ranges(starts, sizes)
        labels, n_labels = order[at], sizes[part]
        effective = _shares(f_tilde[labels], part)
        if self.direct:
            similar = (2 - self.lam) / 2 / n_labels
        else:
            similar = (2 - self.lam) * _shares(f[labels], part) ** min(self.lam, 1.0)
        mass = np.zeros(len(order))
        mass[at] = similar + self.frequency * effective + self.gamma / n_labels
        return mass


def checked_lam(lam: float | None, lam_prime: float | None) -> float:
    """Return lambda, from `lam` or from `lam_prime` = lambda / (2 - lambda).

    >>> checked_lam(None, 3), checked_lam(None, float("inf")), checked_lam(None, None)
    (1.5, 2.0, 1.0)
    """
    if lam_prime is None:
        return DEFAULT_LAM if lam is None else check_number("lam", lam, at_least=0, at_most=2)
    if lam is not None:
        raise ValueError("lam and lam_prime set the same parameter; pass only one of them")
    if lam_prime == math.inf:
        return 2.0
    lam_prime = check_number("lam_prime", lam_prime, at_least=0)
    return 2 * (lam_prime / (1 + lam_prime))


def _shares(values: Frequencies, part: NDArray[np.int64]) -> Frequencies:
    total = np.bincount(part, weights=values)[part]
    return np.divide(values, total, out=np.zeros_like(values), where=total > 0)
