"""Rows in shards on the workers: what training asks of X, asked of the shards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.fitted import FittedModel
from ramify.base.model import Query
from ramify.base.training import TrainingData
from ramify.cluster import tasks
from ramify.cluster.checkpoint import Checkpoint
from ramify.cluster.counter import Counter
from ramify.cluster.forest import Forest, ForestProblem, grow_forest
from ramify.cluster.thresholds import choose_on_workers
from ramify.cluster.trainer import ShardedTrainer
from ramify.cluster.workers import Workers
from ramify.common.progress import phase
from ramify.data.csr import RowArrays
from ramify.data.remote_rows import RemoteRows
from ramify.decide.choice import Choice
from ramify.trees.label_tree import LabelTree

Places = NDArray[np.int64]
# Below this many entries of label vectors, sharing out a split costs more than it saves.
WORTH_SHARING = 2_000_000
# Tasks for each worker: more of them balance better and move more rows.
TASKS_PER_WORKER, LEAST_TASKS = 4, 4
# Of splitting a level: a task reads all label vectors once, so that many small ones cost more than they balance.
SPLITS_PER_WORKER = 2


class ShardedRows(RemoteRows):
    """References to CSR shards, in order. Rows are gathered for a task once, and only those that it needs."""

    def __init__(
        self, workers: Workers, shards: Sequence[Any], facts: Sequence[tasks.ShardFacts], checkpoint: Checkpoint | None
    ) -> None:
        self.workers = workers
        self.checkpoint = checkpoint
        self.shards = list(shards)
        self.lengths = np.concatenate([of_shard.lengths for of_shard in facts]).astype(np.int64)
        self.first_row = np.cumsum([0, *(len(of_shard.lengths) for of_shard in facts)])
        self.shape = (int(self.first_row[-1]), facts[0].n_features)
        self._vectors: tuple[sparse.csr_array, Any] | None = None  # and the reference to them

    def __getitem__(self, rows: NDArray[np.integer]) -> ShardedRows:
        """Some rows, which stay in as many shards, without the empty ones."""
        wanted = np.asarray(rows, dtype=np.int64)
        [pieces] = self.gathered([wanted])
        sizes = np.diff(np.searchsorted(wanted, self.first_row))
        lengths = np.split(self.lengths[wanted].astype(np.int32), np.cumsum(sizes[sizes > 0])[:-1])
        facts = [tasks.ShardFacts(of_piece, self.shape[1], "") for of_piece in lengths]
        kept = None if self.checkpoint is None else self.checkpoint.below("without-held-out", wanted)
        return ShardedRows(self.workers, pieces, facts, kept)

    def gather(self, rows: NDArray[np.integer]) -> sparse.csr_array:
        [pieces] = self.gathered([np.asarray(rows, dtype=np.int64)])
        brought: sparse.csr_array = self.workers.get(self.workers.submit(tasks.stack_rows, *pieces))
        return brought

    @property
    def n_tasks(self) -> int:
        return max(LEAST_TASKS, TASKS_PER_WORKER * self.workers.n_workers)

    def gathered(self, wanted: Sequence[Places]) -> list[list[Any]]:
        """For each list of rows (in rising order), references to the pieces of it, shard by shard."""
        pieces: list[list[Any]] = [[] for _ in wanted]
        for shard, first, end in zip(self.shards, self.first_row[:-1], self.first_row[1:], strict=True):
            bounds = [np.searchsorted(rows, (first, end)) for rows in wanted]
            asked = [k for k, (low, high) in enumerate(bounds) if low < high]
            if not asked:
                continue
            places = [wanted[k][bounds[k][0] : bounds[k][1]] - first for k in asked]
            answers = self.workers.submit(tasks.select, shard, *places, n_returns=len(asked))
            for k, answer in zip(asked, answers if len(asked) > 1 else [answers], strict=True):
                pieces[k].append(answer)
        return pieces

    # --- the tree -------------------------------------------------------------------------------------------------

    def label_vectors(self, Y: sparse.csr_array, prune: float, max_entries: int | None) -> sparse.csr_array:
        """Each worker owns some labels and sums their rows in order: no sum depends on the shards."""
        by_label = Y.tocsc()
        of_label = np.add.reduceat(np.append(self.lengths[by_label.indices], 0), by_label.indptr[:-1])
        of_label[np.diff(by_label.indptr) == 0] = 0
        cuts = np.searchsorted(np.cumsum(of_label), np.arange(1, self.n_tasks) * of_label.sum() / self.n_tasks)
        bounds = np.unique(np.concatenate(([0], cuts, [Y.shape[1]])))
        wanted, ranges = [], []
        for first, end in itertools.pairwise(bounds):
            begin, stop = by_label.indptr[first], by_label.indptr[end]
            rows, places = np.unique(by_label.indices[begin:stop], return_inverse=True)
            indptr = (by_label.indptr[first : end + 1] - begin).astype(np.int64)
            indices = places.astype(np.int32)
            wanted.append(rows.astype(np.int64) if len(rows) else np.zeros(1, np.int64))
            ranges.append(RowArrays(indptr, indices, np.zeros(0, np.float32)))
        most = max_entries or max(self.shape[1], 1)
        sums = [
            self.workers.submit(tasks.sum_vectors, part, prune, most, *pieces)
            for part, pieces in zip(ranges, self.gathered(wanted), strict=True)
        ]
        counter = Counter(total=len(sums))
        with phase("label vectors", counter):
            for _ in self.workers.completed(sums):
                counter.done += 1
            joined = self.workers.submit(tasks.join_vectors, self.shape[1], *sums)
            vectors: sparse.csr_array = self.workers.get(joined)
        self._vectors = (vectors, joined)
        return vectors

    def split_labels(self, vectors: sparse.csr_array, *arguments: Any, **settings: Any) -> None:
        """Parts of a level are split by different workers."""
        n_features, order, starts, cuts, stops = arguments
        sizes = stops - starts
        if self._vectors is None or self._vectors[0] is not vectors or vectors.nnz < WORTH_SHARING:
            _core.split_labels(vectors, n_features, order, starts, cuts, stops, **settings)
            return
        reference, settings = self._vectors[1], {**settings, "n_threads": 1}
        share = -(-int(sizes.sum()) // (SPLITS_PER_WORKER * self.workers.n_workers))
        task = (np.cumsum(sizes) - 1) // share
        groups = [np.flatnonzero(task == k) for k in np.unique(task)]
        shared = self.workers.put(order)
        running = [
            self.workers.submit(tasks.split_parts, reference, shared, starts[g], cuts[g], stops[g], settings)
            for g in groups
        ]
        for group, split in zip(groups, self.workers.get(running), strict=True):
            for part, labels in zip(group, split, strict=True):
                order[starts[part] : stops[part]] = labels

    def kept_tree(self, seed: int, build: Callable[[], LabelTree]) -> LabelTree:
        return build() if self.checkpoint is None else self.checkpoint.tree(seed, build)

    # --- lengths and blocks ---------------------------------------------------------------------------------------

    def squared_lengths(self) -> NDArray[np.float64]:
        return np.concatenate(self.workers.get([self.workers.submit(tasks.lengths_of, s) for s in self.shards]))

    def block_trainer(
        self, data: TrainingData, tree: LabelTree, features: _core.FeatureSettings, seed: int
    ) -> ShardedTrainer:
        self._vectors = None  # free them: the tree is built
        return ShardedTrainer(self, data, tree, features, seed)

    # --- other models ---------------------------------------------------------------------------------------------

    def grow_forest(
        self, data: TrainingData, label_gain: Any, features: _core.FeatureSettings, settings: dict[str, Any]
    ) -> Forest:
        problem = ForestProblem(data.Y, label_gain, data.sample_weight, features, settings, data.seed)
        return grow_forest(self, data, problem)

    def choose_thresholds(
        self,
        fitted: FittedModel,
        rows: NDArray[np.integer],
        Y: sparse.csr_array,
        query: Query,
        settings: dict[str, Any],
    ) -> Choice:
        return choose_on_workers(self, fitted, rows, Y, query, settings)
