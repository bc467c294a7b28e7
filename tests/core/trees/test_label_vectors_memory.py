"""Label vectors are put together without a second copy of them in memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A process of its own: memory that other tests freed would hide the peak.
MEASURE = """
import ctypes, threading, time
import numpy as np, scipy.sparse as sp
from ramify.trees.kmeans import label_vectors

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

rng = np.random.default_rng(0)
n, width, n_features = 40_000, 60, 100_000
X = sp.csr_array(
    (np.ones(n * width, np.float32), np.sort(rng.integers(0, n_features, (n, width), dtype=np.int32)).ravel(),
     np.arange(n + 1) * width), shape=(n, n_features))
X.sum_duplicates()
labels = (np.arange(n)[:, None] * 8 + rng.integers(0, 8, n)[:, None] + np.arange(8)).ravel() % n
Y = sp.csr_array((np.ones(n * 8, np.int8), labels, np.arange(n + 1) * 8), shape=(n, n))
label_vectors(X[:10], Y[:10])
ctypes.CDLL(None).malloc_trim(0)
before, peak, done = resident(), 0, False

def watch():
    global peak
    while not done:
        peak = max(peak, resident())
        time.sleep(0.001)

thread = threading.Thread(target=watch, daemon=True)
thread.start()
vectors = label_vectors(X, Y)
done = True
thread.join()
print((peak - before) / (vectors.nnz * 8))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs glibc and /proc")
def test_label_vectors_need_little_more_memory_than_they_take() -> None:
    copies = float(subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout)
    assert 1.0 < copies < 1.7  # 2 and more if blocks and their joined form were in memory at once
