"""Rows mapped from files: the same model, and hardly any memory of our own."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from cli_workspace import workspace
from ramify import PLTClassifier, load
from ramify.cli.main import run
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


def test_the_command_trains_on_a_file_that_stays_on_disk(tmp_path, capsys):
    train = str(workspace() / "train.txt")
    assert run(["train", train, "--model", str(tmp_path / "alone")]) == 0
    assert run(["train", train, "--model", str(tmp_path / "mapped"), "--mapped", str(tmp_path / "rows")]) == 0
    check_same_model(load(tmp_path / "alone"), load(tmp_path / "mapped"))
    assert load_mapped(tmp_path / "rows").shape == (300, 300)
    capsys.readouterr()
    texts = str(workspace() / "notes.jsonl")
    assert run(["train", texts, "--model", str(tmp_path / "texts"), "--mapped", str(tmp_path / "other")]) == 2
    assert "--mapped needs XMC text, got jsonl" in capsys.readouterr().err


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


def _mapped_rows(folder, n_rows, n_features=4000, per_row=500):
    rng = np.random.default_rng(0)

    def piece(n):
        columns = np.sort(
            rng.permuted(np.tile(np.arange(n_features, dtype=np.int32), (n, 1)), axis=1)[:, :per_row], axis=1
        )
        values = rng.random(n * per_row, dtype=np.float32) + np.float32(0.1)
        return sparse.csr_array(
            (values, columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, n_features)
        )

    X = save_mapped(folder, (piece(500) for _ in range(n_rows // 500)))
    return X, sparse.csr_array((rng.random((n_rows, 8)) < 0.2).astype(np.float32))


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads the memory of the process from /proc"
)

# What is allocated beyond the imports is limited to a third of X; pages of mapped files are not allocated.
UNDER_A_LIMIT = """
import resource, sys
import numpy as np
from scipy import sparse
from ramify import PLTClassifier
from ramify.data.mapped import load_mapped

folder, target, is_mapped = sys.argv[1], sys.argv[2], sys.argv[3] == "mapped"
X, Y = load_mapped(folder), sparse.load_npz(folder + "-labels.npz")
PLTClassifier(random_state=0, n_jobs=1).fit(X[:50], Y[:50])  # imports and buffers of the first time
lines = open("/proc/self/status").read().splitlines()
before = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))
resource.setrlimit(resource.RLIMIT_DATA, (before + 8 * X.nnz // 3,) * 2)
if not is_mapped:
    X = sparse.csr_array((np.array(X.data), np.array(X.indices), np.array(X.indptr)), shape=X.shape)
PLTClassifier(random_state=0, n_jobs=1).fit(X, Y).save(target)
"""


@needs_proc
def test_three_times_the_memory_limit_gives_the_same_bits(tmp_path):
    X, Y = _mapped_rows(tmp_path / "rows", 16_000)  # 64 MB, so 21 MB may be allocated
    sparse.save_npz(tmp_path / "rows-labels.npz", Y)

    def run(kind):
        command = [sys.executable, "-c", UNDER_A_LIMIT, str(tmp_path / "rows"), str(tmp_path / kind), kind]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert "MemoryError" in run("in memory").stderr  # the limit is one
    done = run("mapped")
    assert done.returncode == 0, done.stderr
    in_memory = sparse.csr_array((np.array(X.data), np.array(X.indices), np.array(X.indptr)), shape=X.shape)
    check_same_model(PLTClassifier(random_state=0).fit(in_memory, Y), load(tmp_path / "mapped"))


@needs_proc
def test_training_on_mapped_rows_takes_little_memory_of_its_own(tmp_path):
    X, Y = _mapped_rows(tmp_path, 8000)  # 32 MB
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
