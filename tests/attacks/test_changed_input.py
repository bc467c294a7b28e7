"""Another thread writes to X, Y and weights while they are read: an error or a wrong number, and never a crash."""

from __future__ import annotations

import random
import threading
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from attacks.test_forks import in_a_child
from attacks.test_threads import MAKE
from ramify import metrics, trees

N_ROWS, N_FEATURES, N_LABELS = 600, 400, 40
BAD = [-1, -2, N_FEATURES, 2**30, 2**31 - 1, -(2**31)]


def new_data(seed):
    X = sp.random(N_ROWS, N_FEATURES, density=0.05, format="csr", dtype=np.float32, random_state=seed)
    X.sort_indices()
    y = np.random.default_rng(seed).integers(0, N_LABELS, N_ROWS)
    return X, y


class Writer(threading.Thread):
    """Puts bad numbers into arrays and takes them out again, until it is stopped."""

    def __init__(self, arrays, seed):
        super().__init__(daemon=True)
        self.arrays, self.chance, self.is_stopped = arrays, random.Random(seed), False

    def run(self):
        while not self.is_stopped:
            for array in self.arrays:
                at = self.chance.randrange(len(array))
                good = array[at]
                with np.errstate(all="ignore"):
                    array[at] = self.chance.choice([np.nan, 1e38, 0] if array.dtype.kind == "f" else BAD)
                for _ in range(self.chance.randrange(30)):
                    pass
                array[at] = good

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.is_stopped = True
        self.join()


def outcome(work):
    try:
        work()
    except (ValueError, RuntimeError) as error:
        return "changed while it was being read" if "changed while" in str(error) else type(error).__name__
    return "no error"


def one_input(name, seed):
    """The outcomes of training, querying and measuring while X, Y and weights change."""
    X, y = new_data(seed)
    Y = sp.csr_array((np.ones(N_ROWS, np.float32), y.astype(np.int32), np.arange(N_ROWS + 1)), (N_ROWS, N_LABELS))
    P, weight, row = Y.astype(np.float32), np.ones(N_ROWS, np.float32), X[:1].copy()
    clf = MAKE[name]()
    labels = y if name in ("lomtree", "filter tree") else Y
    fit = clf.partial_fit if hasattr(clf, "partial_fit") else clf.fit
    fit(X[:60], labels[:60])
    with Writer([X.indices, X.data, X.indptr, Y.indices, Y.indptr, P.indices, weight, row.indices, row.data], seed):
        yield outcome(lambda: fit(X, labels, sample_weight=weight))
        yield outcome(lambda: clf.predict_proba(X, top_k=3))
        yield outcome(lambda: [clf.predict_one(row, top_k=3) for _ in range(50)])
        yield outcome(lambda: trees.kmeans_tree(X, Y, random_state=0))
        yield outcome(lambda: metrics.precision_at_k(Y, P, k=1))
    yield outcome(lambda: clf.predict_proba(new_data(0)[0], top_k=3))


def attack_changed_input(count, seed):
    """Train, query and measure `count` times while X, Y and weights change; counts the outcomes."""
    found = Counter()
    names = list(MAKE)
    for k in range(count):
        found.update(one_input(names[k % len(names)], seed + k))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_input_that_another_thread_changes_crashes_nothing(seed):
    assert in_a_child(lambda: 0 if attack_changed_input(len(MAKE), seed) else 2, seconds=120) == "answers"
