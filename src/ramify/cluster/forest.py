"""FastXML's trees grown by workers, some trees each on all rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.training import TrainingData
from ramify.cluster import tasks
from ramify.cluster.counter import Counter
from ramify.common.progress import phase

if TYPE_CHECKING:
    from ramify.cluster.rows import ShardedRows

Forest = dict[str, NDArray[Any]]


class ForestProblem(NamedTuple):
    """What all trees are grown from, but for the rows."""

    Y: sparse.csr_array
    label_gain: NDArray[np.float32] | None
    weight: NDArray[np.float32] | None
    features: _core.FeatureSettings
    settings: dict[str, Any]
    seed: int


def grow_trees(problem: ForestProblem, first: int, n_trees: int, rows: sparse.csr_array) -> Forest:
    """Trees `first`, `first` + 1, ... of the forest."""
    return _core.grow_forest(
        rows,
        problem.Y,
        problem.Y.shape[1],
        problem.label_gain,
        problem.weight,
        problem.features,
        _core.ForestSettings(**problem.settings | {"n_trees": n_trees}),
        problem.seed,
        1,
        first_tree=first,
    )


def grow_forest(rows: ShardedRows, data: TrainingData, problem: ForestProblem) -> Forest:
    """The forest of `_core.grow_forest`: a tree depends on its number and the rows only, so parts are just joined."""
    workers, kept, n_trees = rows.workers, rows.checkpoint, int(problem.settings["n_trees"])
    n_parts = min(n_trees, rows.n_tasks if kept is None else kept.n_parts(rows.n_tasks))
    cuts = np.linspace(0, n_trees, n_parts + 1).astype(int).tolist()
    keys = [[data.seed, first, end] for first, end in itertools.pairwise(cuts)]
    parts: list[Any] = [None if kept is None else kept.read("trees", key) for key in keys]
    missing = [k for k, found in enumerate(parts) if found is None]
    counter = Counter(total=n_trees, done=sum(keys[k][2] - keys[k][1] for k in range(n_parts) if k not in missing))
    with phase("growing trees", counter):
        shared, everything = workers.put(problem), workers.submit(tasks.stack_rows, *rows.shards)
        running = [workers.submit(grow_trees, shared, keys[k][1], keys[k][2] - keys[k][1], everything) for k in missing]
        for place in workers.completed(running):
            k = missing[place]
            parts[k] = workers.get(running[place])
            if kept is not None:
                kept.write("trees", keys[k], parts[k])
            counter.done += keys[k][2] - keys[k][1]
    return join_forests(parts)


def join_forests(parts: list[Forest]) -> Forest:
    """All trees, one after the other."""
    starts = {"tree_begin": "child", "weight_begin": "weight", "label_begin": "label"}
    joined: Forest = {}
    for name in parts[0]:
        arrays = [part[name] for part in parts]
        if name in starts:
            sizes = [len(part[starts[name]]) for part in parts]
            before = np.cumsum([0, *sizes[:-1]])
            arrays = [array[k > 0 :] + first for k, (array, first) in enumerate(zip(arrays, before, strict=True))]
        elif name == "child":
            before = np.cumsum([0, *map(len, arrays[:-1])]).astype(np.int32)
            arrays = [np.where(array < 0, array, array + first) for array, first in zip(arrays, before, strict=True)]
        joined[name] = np.concatenate(arrays).astype(parts[0][name].dtype, copy=False)
    return joined
