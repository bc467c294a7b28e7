"""Rows of X that are not in this process: what training asks of them, instead of reading them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class RemoteRows(ABC):
    """The rows of a training set that lie elsewhere, in order and in pieces, such as on the nodes of a cluster.

    Each method gives, bit for bit, what the library computes on the same rows in memory.
    """

    shape: tuple[int, int]

    @abstractmethod
    def __getitem__(self, rows: NDArray[np.integer]) -> RemoteRows:
        """Some rows, by number in rising order."""

    @abstractmethod
    def gather(self, rows: NDArray[np.integer]) -> sparse.csr_array:
        """Some rows, by number in rising order, brought into this process."""

    @abstractmethod
    def label_vectors(self, Y: sparse.csr_array, prune: float, max_entries: int | None) -> sparse.csr_array:
        """The sums of `ramify.trees.kmeans.label_vectors`."""

    @abstractmethod
    def split_labels(self, vectors: sparse.csr_array, *arguments: Any, **settings: Any) -> None:
        """`_core.split_labels` on vectors that `label_vectors` returned."""

    @abstractmethod
    def squared_lengths(self) -> NDArray[np.float64]:
        """The squared length of each row."""

    @abstractmethod
    def kept_tree(self, seed: int, build: Callable[[], Any]) -> Any:
        """The label tree of a seed: of an earlier, interrupted run, or else built now."""

    @abstractmethod
    def block_trainer(self, data: Any, tree: Any, features: Any, seed: int) -> Any:
        """What `_core.BlockTrainer` does for rows in memory."""

    @abstractmethod
    def grow_forest(self, data: Any, label_gain: Any, features: Any, settings: dict[str, Any]) -> dict[str, Any]:
        """`_core.grow_forest` with these `ForestSettings`."""

    @abstractmethod
    def choose_thresholds(
        self, fitted: Any, rows: NDArray[np.integer], Y: sparse.csr_array, query: Any, settings: dict[str, Any]
    ) -> Any:
        """`ramify.decide.choose_thresholds` on what a fitted model answers for some rows, in this order."""
