"""The tree as a user's own policy sees it while it decides where a new label goes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core


class GrowingTree:
    """A tree that is about to get a new leaf, for a policy called as policy(tree, x, label) -> (node, insert).

    `x` is the row as (indices, values), `label` the new label's column. Nodes are numbers; the root is 0. Answer an
    inner node and False to add the leaf to it; an inner node and True to put a new node above its children first; a
    leaf and True to split it. Paper: Jasinska-Kobus et al., "Online probabilistic label trees", algorithm 4 and
    figure 1.

    >>> from ramify import OnlinePLTClassifier
    >>> def beside_the_first(tree, x, label):
    ...     return tree.root, tree.is_leaf(tree.root)
    >>> clf = OnlinePLTClassifier(policy=beside_the_first).partial_fit([[1.0], [2.0], [3.0]], ["a", "b", "c"])
    >>> clf.tree_.to_nested()
    [0, 1, 2]
    """

    root = 0

    def __init__(self, learner: _core.OnlineLearner, indices: NDArray[np.int32], values: NDArray[np.float32]) -> None:
        self._learner = learner
        self._row = indices, values

    def children(self, node: int) -> list[int]:
        """The children of a node; none for a leaf."""
        return self._learner.children(node)

    def is_leaf(self, node: int) -> bool:
        return self._learner.is_leaf(node)

    def n_labels(self, node: int) -> int:
        """How many labels lie at or below a node."""
        return self._learner.n_leaves(node)

    def probabilities(self, node: int) -> list[float]:
        """Probability of each child of a node, given the node, for the row at hand; in the order of `children`."""
        return self._learner.probabilities(node, *self._row)

    @classmethod
    def asker(
        cls, learner: _core.OnlineLearner, policy: Callable[..., tuple[int, bool]]
    ) -> Callable[..., tuple[int, bool]]:
        """What the core calls."""

        def ask(label: int, indices: NDArray[np.int32], values: NDArray[np.float32]) -> tuple[int, bool]:
            answer: Any = policy(cls(learner, indices, values), (indices, values), label)
            try:
                node, insert = answer
                return operator.index(node) if abs(node) < 2**31 else -1, bool(insert)
            except (TypeError, ValueError) as error:
                raise ValueError(f"a policy must answer (node, insert), got {answer!r}") from error

        return ask
