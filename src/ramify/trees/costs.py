"""The search cost of each label of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.trees.label_tree import LabelTree


@dataclass(frozen=True)
class LabelCosts:
    """The cost of each label's path, by label column; -1 for a label without a leaf."""

    #: Blocks scored on the path: the depth of the label's leaf.
    blocks: NDArray[np.int32]
    #: Children scored in these blocks, each an inner product with the row.
    products: NDArray[np.int64]

    def order(self) -> NDArray[np.int64]:
        """Return the labels that have a leaf, cheapest first: by blocks, then products, then column."""
        ranked = np.lexsort((self.products, self.blocks))
        return ranked[self.blocks[ranked] >= 0]


def label_costs(tree: LabelTree) -> LabelCosts:
    """Return the minimum cost of finding each label: the cost of scoring only its own path.

    >>> costs = label_costs(LabelTree.from_nested([0, [1, 2, 3]]))
    >>> costs.blocks.tolist(), costs.products.tolist(), costs.order().tolist()
    ([1, 2, 2, 2], [2, 5, 5, 5], [0, 1, 2, 3])
    """
    # An only child has its parent's probability, so it needs no inner product.
    products = np.where(tree.n_children == 1, 0, tree.n_children).astype(np.int64)
    on_path = np.zeros(tree.n_nodes, dtype=np.int64)
    for level in tree.levels()[1:]:
        above = tree.parent[level]
        on_path[level] = on_path[above] + products[above]
    return LabelCosts(tree.label_depth, np.where(tree.leaf_of < 0, -1, on_path[tree.leaf_of]))
