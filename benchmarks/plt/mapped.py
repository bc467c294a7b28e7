"""Training on rows larger than the memory: X of some gigabytes mapped from files, with a limit of a third of it.

    PYTHONPATH=$PWD/src python -m benchmarks.plt.mapped --gigabytes 1 --directory /tmp

The limit (RLIMIT_DATA) is on what the process allocates, beyond what it has after its imports; pages of mapped files,
which the system drops when it needs the memory, do not count. The same training on rows in memory must fail under it,
and without it must give the same bits.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ramify import PLTClassifier
from ramify.data.mapped import load_mapped, save_mapped

PER_ROW, N_FEATURES, N_LABELS, PIECE = 1000, 10_000, 100, 2000


def pieces(n_rows: int) -> Any:
    """Rows of 1,000 entries; those of a label have a hundred features in common."""
    rng = np.random.default_rng(0)
    own = np.random.default_rng(1).integers(0, N_FEATURES, (N_LABELS, 100))
    for first in range(0, n_rows, PIECE):
        n = min(PIECE, n_rows - first)
        columns = rng.integers(0, N_FEATURES, (n, PER_ROW))
        columns[:, :100] = own[labels_of(n_rows)[first : first + n]]
        values = rng.random(n * PER_ROW, dtype=np.float32) + np.float32(0.1)
        arrays = (values, columns.ravel(), np.arange(0, n * PER_ROW + 1, PER_ROW))
        yield sparse.csr_array(arrays, shape=(n, N_FEATURES))


def labels_of(n_rows: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, N_LABELS, n_rows)


def train(folder: str, target: str, limit: int | None, is_mapped: bool, answers: Any) -> None:
    """Train in a process of its own, under a limit; answers the seconds, or None if the memory was too little."""
    X = load_mapped(folder)
    y = labels_of(X.shape[0])
    classifier = PLTClassifier(random_state=0, n_jobs=1)
    classifier.fit(X[:200], y[:200])  # buffers of the first time
    before = allocated()
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (before + limit, before + limit))
    start = time.perf_counter()
    try:
        if not is_mapped:
            X = sparse.csr_array((np.array(X.data), np.array(X.indices), np.array(X.indptr)), shape=X.shape)
        classifier.fit(X, y)
    except MemoryError:
        answers.put(None)
        return
    answers.put(time.perf_counter() - start)
    classifier.save(target)


def allocated() -> int:
    """What RLIMIT_DATA counts."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))


def in_process(*arguments: Any) -> Any:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=train, args=(*arguments, answers))
    process.start()
    answer = answers.get()
    process.join()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.plt.mapped",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--directory", default=None, help="for the files, about twice as large")
    given = parser.parse_args()
    n_rows = int(given.gigabytes * 1e9 / 8 / PER_ROW)
    with tempfile.TemporaryDirectory(dir=given.directory) as folder:
        X = save_mapped(f"{folder}/rows", pieces(n_rows))
        limit = 8 * X.nnz // 3
        print(f"{n_rows:,} rows, {8 * X.nnz / 1e9:.2f} GB; limit {limit / 1e9:.2f} GB", flush=True)
        seconds = in_process(f"{folder}/rows", f"{folder}/mapped", limit, True)
        print(f"mapped, under the limit: {seconds:.1f} s", flush=True)
        print(f"in memory, under the limit: {in_process(f'{folder}/rows', f'{folder}/none', limit, False)}", flush=True)
        seconds = in_process(f"{folder}/rows", f"{folder}/memory", None, False)
        print(f"in memory, without limit: {seconds:.1f} s", flush=True)
        one, other = (sorted(Path(folder, name).rglob("*.safetensors")) for name in ("mapped", "memory"))
        same = [a.read_bytes() == b.read_bytes() for a, b in zip(one, other, strict=True)]
        print(f"same bytes of the model's arrays: {bool(same) and all(same)}")


if __name__ == "__main__":
    main()
