"""What an answer cost, and what a search that does not look everywhere may have missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True)
class SearchReport:
    """The answer to some rows, with its price.

    Paper: efficiency-precision label trees, section 6, asks for a search that stops when it is done.
    """

    #: What `predict_proba` answers.
    answer: sparse.csr_array
    #: Blocks scored for each row, in all trees.
    blocks: NDArray[np.int64]
    #: For each row the probability of the likeliest path not followed that could have led into the answer. A label that
    #: is missing has at most this probability in its tree; 0 says that the answer is exact.
    given_up: NDArray[np.float32]

    @property
    def mean_blocks(self) -> float:
        """Blocks scored for a row, on average."""
        return float(self.blocks.mean()) if len(self.blocks) else float("nan")

    @property
    def exact_rows(self) -> float:
        """The share of the rows whose answer is certainly that of an exact search."""
        return float((self.given_up == 0).mean()) if len(self.given_up) else float("nan")
