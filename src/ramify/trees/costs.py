"""Which labels of a tree are cheap to find and which are dear."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ramify.trees.label_tree import LabelTree


@dataclass(frozen=True)
class LabelCosts:
    """What the path of each label takes, by label column; -1 for a label without a leaf."""

    #: Blocks scored on the way: the depth of the label's leaf.
    blocks: NDArray[np.int32]
    #: Children scored in them, each an inner product with the row.
    products: NDArray[np.int64]

    def order(self) -> NDArray[np.int64]:
        """The labels that have a leaf, the cheapest first: fewest blocks, then fewest products, then by column."""
        ranked = np.lexsort((self.products, self.blocks))
        return ranked[self.blocks[ranked] >= 0]


def label_costs(tree: LabelTree) -> LabelCosts:
    """What finding each label takes at least, when nothing but its own path is followed.

    >>> costs = label_costs(LabelTree.from_nested([0, [1, 2, 3]]))
    >>> costs.blocks.tolist(), costs.products.tolist(), costs.order().tolist()
    ([1, 2, 2, 2], [2, 5, 5, 5], [0, 1, 2, 3])
    """
    # An only child is as probable as its parent: nothing is multiplied for it.
    products = np.where(tree.n_children == 1, 0, tree.n_children).astype(np.int64)
    on_path = np.zeros(tree.n_nodes, dtype=np.int64)
    stops = np.concatenate(([0], np.cumsum(tree.nodes_per_depth))).tolist()
    for start, stop in list(pairwise(stops))[1:]:
        above = tree.parent[start:stop]
        on_path[start:stop] = on_path[above] + products[above]
    return LabelCosts(tree.label_depth, np.where(tree.leaf_of < 0, -1, on_path[tree.leaf_of]))
