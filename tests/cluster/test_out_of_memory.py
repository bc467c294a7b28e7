"""Rows mapped from files: the same model, and hardly any memory of our own."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from ramify import PLTClassifier
from ramify.data.mapped import load_mapped, save_mapped
from ramify.data.synthetic import make_multilabel
from ramify.models.plt.block_trainer import mapped_directory
from shared.same_model import check_same_model


def test_mapped_rows_give_the_same_bits(tmp_path):
    data = make_multilabel(1500, 200, 800, random_state=0)
    X = save_mapped(tmp_path / "rows", (data.X[first : first + 400] for first in range(0, 1500, 400)))
    assert (X != data.X).nnz == 0
    for parameters in ({}, {"normalize": False, "arity": 4, "max_leaf": 10}):
        alone = PLTClassifier(random_state=0, **parameters).fit(data.X, data.Y)
        check_same_model(alone, PLTClassifier(random_state=0, **parameters).fit(load_mapped(tmp_path / "rows"), data.Y))
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == ["data", "indices", "indptr", "shape.json"]


def test_rows_that_are_mapped_are_known_to_be(tmp_path):
    X = save_mapped(tmp_path, [sparse.csr_array(np.eye(3, dtype=np.float32))])
    assert mapped_directory(X.data) == str(tmp_path.resolve())
    assert mapped_directory(X.data[1:]) == str(tmp_path.resolve())
    assert mapped_directory(np.array(X.data)) == ""


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    save_mapped(tmp_path, [sparse.csr_array(np.eye(3, dtype=np.float32))])
    (tmp_path / "data").write_bytes(b"\0" * 8)
    with pytest.raises(ValueError, match="do not belong together"):
        load_mapped(tmp_path)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the memory of the process from /proc")
def test_training_on_mapped_rows_takes_little_memory_of_its_own(tmp_path):
    n_rows, n_features, per_row = 8000, 4000, 500  # 32 MB
    rng = np.random.default_rng(0)

    def piece(n):
        columns = np.sort(
            rng.permuted(np.tile(np.arange(n_features, dtype=np.int32), (n, 1)), axis=1)[:, :per_row], axis=1
        )
        values = rng.random(n * per_row, dtype=np.float32) + np.float32(0.1)
        return sparse.csr_array(
            (values, columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, n_features)
        )

    X = save_mapped(tmp_path, (piece(500) for _ in range(n_rows // 500)))
    Y = sparse.csr_array((rng.random((n_rows, 8)) < 0.2).astype(np.float32))
    PLTClassifier(random_state=0).fit(X[:50], Y[:50])  # imports and buffers of the first time
    peak, stop = [_own_memory()], threading.Event()

    def watch():
        while not stop.is_set():
            peak.append(max(peak.pop(), _own_memory()))
            time.sleep(0.002)

    before = _own_memory()
    watcher = threading.Thread(target=watch)
    watcher.start()
    PLTClassifier(random_state=0).fit(X, Y)
    stop.set()
    watcher.join()
    assert peak[0] - before < 8 * X.nnz / 3


def _own_memory():
    """Bytes that are not pages of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
