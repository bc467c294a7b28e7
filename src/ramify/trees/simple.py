"""Trees that use neither features nor frequencies: complete, random and one-level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.common.validation import check_integer
from ramify.trees.frequency import checked_indicator
from ramify.trees.label_tree import LabelTree
from ramify.trees.splitting import Positions, even_cuts, from_splits


def complete_tree(X: Any, Y: Any, *, arity: int = 2, max_leaf: int = 1, random_state: Any = None) -> LabelTree:
    """Build a balanced tree of the given arity with the labels in column order.

    X and random_state are ignored.
    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", section 3 (complete trees).

    >>> complete_tree(None, np.arange(5)).to_nested()
    [[0, 1], [2, [3, 4]]]
    """
    return _evenly_split(np.arange(checked_indicator(Y).shape[1]), arity, max_leaf)


def random_tree(X: Any, Y: Any, *, arity: int = 2, max_leaf: int = 1, random_state: Any = None) -> LabelTree:
    """Build a complete tree with the labels in random order. X is ignored.

    >>> sorted(random_tree(None, np.arange(5), random_state=0).label)[-5:] == [0, 1, 2, 3, 4]
    True
    """
    from sklearn.utils import check_random_state

    order = check_random_state(random_state).permutation(checked_indicator(Y).shape[1])
    return _evenly_split(order, arity, max_leaf)


def one_level_tree(X: Any, Y: Any, *, max_leaf: int | None = None, random_state: Any = None) -> LabelTree:
    """Put all labels directly below the root, which makes the label tree a one-against-all classifier.

    X, max_leaf and random_state are ignored.

    >>> one_level_tree(None, np.arange(3)).to_nested()
    [0, 1, 2]
    """
    n_labels = checked_indicator(Y).shape[1]
    if n_labels == 1:
        return LabelTree([-1], [0])
    return LabelTree(np.append(-1, np.zeros(n_labels, dtype=np.int32)), np.arange(-1, n_labels))


def _evenly_split(order: NDArray[np.int64], arity: int, max_leaf: int) -> LabelTree:
    check_integer("arity", arity, at_least=2)

    def split(_: NDArray[np.int32], starts: Positions, stops: Positions) -> Positions:
        return even_cuts(starts, stops, arity)

    return from_splits(order, split, max_leaf=max_leaf)
