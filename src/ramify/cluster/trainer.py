"""Blocks trained by workers: the part of `_core.BlockTrainer` for rows in shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.training import TrainingData
from ramify.cluster import tasks
from ramify.cluster.parts import join_blocks, node_parts, top_nodes
from ramify.data.csr import csr_rows
from ramify.models.plt.block_trainer import Blocks, HeldOut
from ramify.trees.label_tree import LabelTree

if TYPE_CHECKING:
    from ramify.cluster.rows import ShardedRows

Rows = NDArray[np.int64]
BLOCK_ARRAYS = ("panels", "column_child", "column_scale", "column_rate", "index", "rows", "table")


class ShardedTrainer:
    """Sends each part of the tree the rows that it needs, and joins what comes back in the order of one machine."""

    def __init__(
        self, rows: ShardedRows, data: TrainingData, tree: LabelTree, features: _core.FeatureSettings, seed: int
    ) -> None:
        self.rows, self.data, self.tree, self.seed = rows, data, tree, seed
        lengths = rows.lengths + (features.bias != 0)
        self.plan = _core.NodePlan(data.Y, tree, lengths, data.sample_weight, seed, data.n_threads)
        self.problem = rows.workers.put(tasks.Problem(tree, features, seed))
        self._held_out_blocks: Blocks = {}
        self._sample: dict[tuple[float, int, bool], tuple[Any, ...]] = {}  # what held-out trials use, gathered once

    @property
    def total_work(self) -> float:
        return self.plan.total_work

    @property
    def n_levels(self) -> int:
        return len(self.plan.level_positives())

    # --- choosing settings ----------------------------------------------------------------------------------------

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
    ) -> HeldOut:
        """`_core.BlockTrainer.held_out`: nodes are tried apart and summed up in the same order.

        `keeps_scores` changes nothing here: workers keep no scores between two calls.
        """
        nodes, samples = self.plan.sample(share, max_rows, of_paths)
        settings = [solver.settings() for solver in solvers]
        n_solvers = 1 if by_level else len(solvers)

        def compute() -> list[NDArray[Any]]:
            of_nodes = nodes, samples, settings, n_rates, links, by_level, max_columns, of_paths
            return self._held_out_nodes((share, max_rows, of_paths), *of_nodes)

        kept, tables = self.rows.checkpoint, None if links is None else links.tolist()
        key = [settings, share, max_rows, n_rates, tables, by_level, max_columns, of_paths]
        found = compute() if kept is None else kept.arrays(f"held-out-{self.seed}", key, compute)
        positive, negative, softmax, positives = found[:4]
        self._held_out_blocks = dict(zip(BLOCK_ARRAYS, found[4:], strict=True)) if of_paths else {}
        levels, level_positives = self.plan.levels(), self.plan.level_positives()
        totals = [np.zeros((n_solvers, len(level_positives), *part.shape[2:])) for part in found[:3]]
        held_out = np.zeros(len(level_positives))
        for k, node in enumerate(nodes):  # always in this order: sums of floats depend on it
            for total, part in zip(totals, (positive, negative, softmax), strict=True):
                total[:, levels[node]] += part[k]
            held_out[levels[node]] += positives[k]
        stands_for = np.divide(level_positives, held_out, out=np.zeros_like(held_out), where=held_out > 0)
        return [(totals[0][s], totals[1][s], totals[2][s]) for s in range(n_solvers)], stands_for

    def held_out_blocks(self) -> Blocks:
        """`_core.BlockTrainer.held_out_blocks`."""
        blocks, self._held_out_blocks = self._held_out_blocks, {}
        return blocks

    def _held_out_nodes(
        self,
        sample: tuple[float, int, bool],
        nodes: NDArray[np.int32],
        samples: NDArray[np.float64],
        settings: list[dict[str, Any]],
        n_rates: int,
        links: NDArray[np.float32] | None,
        by_level: bool,
        max_columns: int,
        of_paths: bool,
    ) -> list[NDArray[Any]]:
        workers = self.rows.workers
        if sample not in self._sample:
            n_bins = max(1, min(self.rows.n_tasks, len(nodes)))  # one even if no node has rows enough
            bins = [np.arange(k, len(nodes), n_bins) for k in range(n_bins)]
            wanted = [
                _union([self.plan.rows(int(nodes[k]), float(samples[k])) for k in one_bin], self.rows.shape[0])
                for one_bin in bins
            ]
            parts = [workers.put(self._part(nodes[one_bin], rows)) for one_bin, rows in zip(bins, wanted, strict=True)]
            self._sample[sample] = bins, parts, self.rows.gathered(wanted)
        bins, parts, pieces = self._sample[sample]
        running = [
            workers.submit(
                tasks.held_out_part,
                *(self.problem, part, samples[one_bin], settings, n_rates, links, by_level, max_columns, of_paths),
                *of_bin,
            )
            for one_bin, part, of_bin in zip(bins, parts, pieces, strict=True)
        ]
        order = np.argsort(np.concatenate(bins), kind="stable")
        found, blocks = zip(*workers.get(running), strict=True)
        counts = [np.concatenate(arrays)[order] for arrays in zip(*found, strict=True)]
        if not of_paths:
            return counts
        joined = join_blocks(list(blocks))
        return [*counts, *(joined[name] for name in BLOCK_ARRAYS)]

    # --- training -------------------------------------------------------------------------------------------------

    def train_levels(self, solvers: Sequence[_core.SolverSettings], progress: Any = None) -> Blocks:
        """Train every node, part by part; a part that an earlier run has written is read instead."""
        workers, work, kept = self.rows.workers, self.plan.work(), self.rows.checkpoint
        self._sample = {}
        parts = node_parts(self.tree, work, self.rows.n_tasks if kept is None else kept.n_parts(self.rows.n_tasks))
        settings = [solver.settings() for solver in solvers]
        blocks: list[Any] = [None] * len(parts)
        if kept is not None:
            blocks = [kept.read("part", [self.seed, settings, nodes.tolist()]) for nodes in parts]
        missing = [k for k, found in enumerate(blocks) if found is None]
        wanted = [self._rows_of(parts[k]) for k in missing]
        running = [
            workers.submit(tasks.train_part, self.problem, workers.put(self._part(parts[k], rows)), settings, *pieces)
            for k, rows, pieces in zip(missing, wanted, self.rows.gathered(wanted), strict=True)
        ]
        if progress is not None:
            progress.total = int(work.sum())
            progress.done = int(work.sum()) - sum(int(work[parts[k]].sum()) for k in missing)
        for place in workers.completed(running):
            k = missing[place]
            blocks[k] = workers.get(running[place])
            if kept is not None:
                kept.write("part", [self.seed, settings, parts[k].tolist()], blocks[k])
            if progress is not None:
                progress.done += int(work[parts[k]].sum())
        return join_blocks(blocks)

    def train_hashed(self, solver: _core.SolverSettings, bits: int, progress: Any = None) -> Blocks:
        """Nodes share one table and change it one after the other: one worker gets all rows."""
        workers, rows = self.rows.workers, np.arange(self.rows.shape[0], dtype=np.int64)
        part = workers.put(self._part(np.arange(self.tree.n_nodes + 1, dtype=np.int32), rows))
        arguments = (self.problem, part, solver.settings(), bits, *self.rows.shards)
        blocks: Blocks = workers.get(workers.submit(tasks.train_hashed, *arguments))
        return blocks

    def _rows_of(self, nodes: NDArray[np.int32]) -> Rows:
        return _union([self.plan.rows(int(node)) for node in top_nodes(self.tree, nodes)], self.rows.shape[0])

    def _part(self, nodes: NDArray[np.int32], rows: Rows) -> tasks.Part:
        """The rows' labels at and below the nodes: others cannot be positive in any of them."""
        Y, weight = self.data.Y[rows], self.data.sample_weight
        if nodes.max(initial=0) < self.tree.n_nodes:  # the gate asks for any label
            is_below = np.zeros(self.tree.n_nodes, dtype=bool)
            is_below[nodes] = True
            for level in self.tree.levels()[1:]:
                is_below[level] |= is_below[self.tree.parent[level]]
            Y = _only(Y, is_below[self.tree.leaf_of])
        return tasks.Part(nodes, rows, Y, None if weight is None else weight[rows])


def _union(lists: list[NDArray[np.int32]], n_rows: int) -> Rows:
    """The rows of any list, in rising order."""
    if len(lists) == 1:
        return lists[0].astype(np.int64)
    if not lists:
        return np.zeros(1, np.int64)  # a worker needs a row to see how wide they are
    is_in = np.zeros(n_rows, dtype=bool)
    for rows in lists:
        is_in[rows] = True
    return np.flatnonzero(is_in)


def _only(Y: sparse.csr_array, keep: NDArray[np.bool_]) -> sparse.csr_array:
    """Y without the entries of other columns."""
    kept = keep[Y.indices]
    before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    return csr_rows(Y.data[kept], Y.indices[kept], before[Y.indptr], Y.shape)
