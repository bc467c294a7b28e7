"""What a worker does: pure functions of arrays. They give the same bits wherever and however often they run."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.row_length import squared_lengths
from ramify.data.csr import RowArrays, csr_rows
from ramify.models.plt.columns import column_sums
from ramify.trees.label_tree import LabelTree

Ints = NDArray[np.int64]


class ShardFacts(NamedTuple):
    """What the driver knows of a shard."""

    lengths: NDArray[np.int32]  # entries of each row
    n_features: int
    digest: str


class Problem(NamedTuple):
    """What all parts of one tree's training share."""

    tree: LabelTree
    features: _core.FeatureSettings
    seed: int


class Part(NamedTuple):
    """Rows of a part, by number, with the labels below its nodes."""

    nodes: NDArray[np.int32]
    row_number: Ints
    Y: sparse.csr_array
    weight: NDArray[np.float32] | None


def facts_of(rows: sparse.csr_array) -> ShardFacts:
    """Lengths, width and a digest of a shard."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (rows.indptr.astype(np.int64), rows.indices, rows.data):
        digest.update(np.ascontiguousarray(array).data)
    return ShardFacts(np.diff(rows.indptr).astype(np.int32), rows.shape[1], digest.hexdigest())


def columns_of(rows: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The entries of each column, and the sum of their squares."""
    return column_sums(rows)


def lengths_of(rows: sparse.csr_array) -> NDArray[np.float64]:
    """The squared length of each row."""
    return squared_lengths(rows)


def select(rows: sparse.csr_array, *wanted: Ints) -> Any:
    """For each list of places, those rows; one list gives one array."""
    pieces = [rows[places] for places in wanted]
    return pieces[0] if len(pieces) == 1 else pieces


def stack(pieces: tuple[sparse.csr_array, ...] | list[sparse.csr_array]) -> sparse.csr_array:
    """Pieces below each other."""
    if len(pieces) == 1:
        return pieces[0]
    lengths = np.concatenate([np.diff(piece.indptr) for piece in pieces])
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    indices = np.concatenate([piece.indices for piece in pieces])
    data = np.concatenate([piece.data for piece in pieces])
    return csr_rows(data, indices, indptr, (len(lengths), pieces[0].shape[1]))


def stack_rows(*shards: sparse.csr_array) -> sparse.csr_array:
    """All rows."""
    return stack(shards)


def sum_vectors(
    by_label: RowArrays, prune: float, max_entries: int, *pieces: sparse.csr_array
) -> tuple[NDArray[Any], ...]:
    """Label vectors of some labels: `by_label` has their rows, by place in the stacked pieces."""
    rows = stack(pieces)
    return tuple(_core.label_vectors(rows, rows.shape[1], by_label, prune=prune, max_entries=max_entries, n_threads=1))


def join_vectors(n_features: int, *parts: tuple[NDArray[Any], ...]) -> sparse.csr_array:
    """The label vectors of all labels."""
    return stack([csr_rows(value, column, start, (len(start) - 1, n_features)) for start, column, value in parts])


def split_parts(
    vectors: sparse.csr_array, order: NDArray[np.int32], starts: Ints, cuts: Ints, stops: Ints, settings: dict[str, Any]
) -> list[NDArray[np.int32]]:
    """Some of the parts that `_core.split_labels` splits: their labels in the new order."""
    order = order.copy()
    _core.split_labels(vectors, vectors.shape[1], order, starts, cuts, stops, **settings)
    return [order[start:stop] for start, stop in zip(starts, stops, strict=True)]


def train_part(
    problem: Problem, part: Part, solvers: list[dict[str, Any]], *pieces: sparse.csr_array
) -> dict[str, NDArray[Any]]:
    """The blocks of a part's nodes, with a solver for each level or one for all."""
    settings = [_core.SolverSettings(**solver) for solver in solvers]
    return _trainer(problem, part, pieces).train_levels(settings, None, part.nodes)


def train_hashed(
    problem: Problem, part: Part, solver: dict[str, Any], bits: int, *pieces: sparse.csr_array
) -> dict[str, NDArray[Any]]:
    """All blocks on one shared table."""
    return _trainer(problem, part, pieces).train_hashed(_core.SolverSettings(**solver), bits)


def held_out_part(
    problem: Problem,
    part: Part,
    samples: NDArray[np.float64],
    solvers: list[dict[str, Any]],
    n_rates: int,
    links: NDArray[np.float32] | None,
    by_level: bool,
    max_columns: int,
    of_paths: bool,
    *pieces: sparse.csr_array,
) -> tuple[tuple[NDArray[np.float64], ...], dict[str, NDArray[Any]]]:
    """What held-out rows say about some nodes, solver by solver; and the blocks trained without them, if asked for."""
    settings = [_core.SolverSettings(**solver) for solver in solvers]
    trainer = _trainer(problem, part, pieces)
    found = trainer.held_out_nodes(settings, part.nodes, samples, n_rates, links, by_level, max_columns, of_paths)
    return tuple(found), trainer.held_out_blocks() if of_paths else {}


def _trainer(problem: Problem, part: Part, pieces: tuple[sparse.csr_array, ...]) -> _core.BlockTrainer:
    return _core.BlockTrainer(
        stack(pieces),
        part.Y,
        problem.tree,
        part.weight,
        problem.features,
        problem.seed,
        1,
        row_number=part.row_number,
    )
