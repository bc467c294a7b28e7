"""What trains the blocks of a tree: the core, on rows in memory or mapped from files, or workers that hold the rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.base.training import TrainingData
from ramify.data.remote_rows import RemoteRows
from ramify.trees.label_tree import LabelTree

Blocks = dict[str, NDArray[Any]]
HeldOut = tuple[list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]], NDArray[np.float64]]


class BlockTrainer(Protocol):
    """Rows assigned to the nodes of a label tree; `_core.BlockTrainer` is the one for rows in this process."""

    @property
    def total_work(self) -> float: ...

    @property
    def n_levels(self) -> int: ...

    def held_out(
        self,
        solvers: Sequence[_core.SolverSettings],
        share: float,
        max_rows: int,
        n_rates: int = 1,
        links: Any = None,
        by_level: bool = False,
        keeps_scores: bool = False,
        max_columns: int = 0,
        of_paths: bool = False,
    ) -> HeldOut: ...

    def held_out_blocks(self) -> Blocks: ...

    def train_levels(self, solvers: Sequence[_core.SolverSettings], progress: Any = None) -> Blocks: ...

    def train_hashed(self, solver: _core.SolverSettings, bits: int, progress: Any = None) -> Blocks: ...


def block_trainer(data: TrainingData, tree: LabelTree, features: _core.FeatureSettings, seed: int) -> BlockTrainer:
    """The trainer for these rows. Prepared rows of a memory-mapped X are kept in a file beside it, too."""
    if isinstance(data.X, RemoteRows):
        trainer: BlockTrainer = data.X.block_trainer(data, tree, features, seed)
        return trainer
    return _core.BlockTrainer(
        data.X,
        data.Y,
        tree,
        data.sample_weight,
        features,
        seed,
        data.n_threads,
        directory=mapped_directory(data.X.data),
    )


def with_known_rates(blocks: Blocks, tree: LabelTree, rates: NDArray[np.float64]) -> Blocks:
    """The blocks with the log rates of children kept within those for which their level's map was fitted (levels x 2).

    Beyond them the map would no longer rise with the score.
    """
    level = np.append(tree.depth + 1, 0)[np.repeat(blocks["panels"][:, 0], blocks["panels"][:, 2])]
    least, highest = rates[np.minimum(level, len(rates) - 1)].T
    return {**blocks, "column_rate": np.clip(blocks["column_rate"], least, highest).astype(np.float32)}


def mapped_directory(array: NDArray[Any]) -> str:
    """The directory of the file that an array is mapped from; "" if it is not mapped.

    >>> mapped_directory(np.zeros(3))
    ''
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.filename is not None:
            return str(Path(base.filename).resolve().parent)
        base = base.base
    return ""
