"""The cost of an answer, and what a search with a beam or with slack may have missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True)
class SearchReport:
    """An answer with its cost.

    Paper: Baharav et al. 2021, "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    section 6 (searches that stop early).
    """

    #: The result of `predict_proba`.
    answer: sparse.csr_array
    #: Blocks scored for each row, in all trees.
    blocks: NDArray[np.int64]
    #: For each row the probability of the best path left out that could have entered the answer. A missing label has at
    #: most this probability in its tree; 0 means that the answer is exact.
    missed_probability: NDArray[np.float32]

    @property
    def mean_blocks(self) -> float:
        """Mean number of blocks scored per row."""
        return float(self.blocks.mean()) if len(self.blocks) else float("nan")

    @property
    def exact_rows(self) -> float:
        """The share of the rows whose answer is certainly exact."""
        return float((self.missed_probability == 0).mean()) if len(self.missed_probability) else float("nan")
