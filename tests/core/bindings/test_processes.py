"""Forks, threads, Ctrl-C and memory: what a long-running program does to a model."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from ramify import PLTClassifier
from ramify.data.synthetic import make_multilabel
from shared.rows import arrays_of, label_rows, row_arrays
from shared.warm_python import run
from twins.models import random_model, random_rows, random_tree

FORKING = """
import os, sys, warnings
import numpy as np
from ramify import PLTClassifier
from ramify.data.synthetic import make_multilabel

data = make_multilabel(300, 40, 200, random_state=0)
model = PLTClassifier(n_jobs=2, random_state=0, max_leaf=20).fit(data.X, data.Y)
expected = model.predict_proba(data.X, top_k=5)
for _ in range(3):
    child = os.fork()
    if child == 0:
        same = np.array_equal(model.predict_proba(data.X, top_k=5).data, expected.data)
        again = PLTClassifier(n_jobs=2, random_state=0, max_leaf=20).fit(data.X, data.Y)
        same &= np.array_equal(again.predict_proba(data.X, top_k=5).data, expected.data)
        os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert np.array_equal(model.predict_proba(data.X, top_k=5).data, expected.data)
print("done")
"""


def test_a_forked_process_predicts_and_trains():
    assert run(FORKING, timeout=60).strip() == "done"


def test_several_threads_ask_models_of_different_sizes_at_once():
    """Scratch space is kept per thread and shared by all models that the thread asks."""
    models = []
    for seed, (n_labels, n_features) in enumerate([(3, 4), (300, 50), (40, 9), (1, 2), (800, 20), (800, 20)]):
        rng = np.random.default_rng(seed)
        trained = random_model(rng, random_tree(rng, n_labels), n_features=n_features, gate=bool(seed % 2)).trained
        named = label_rows([0, 5], np.sort(rng.integers(0, n_labels, 5)))
        rows = [arrays_of(row) for row in (random_rows(rng, 1, n_features) for _ in range(12))]
        models.append((trained.core, named, rows))

    def answers(which, row):
        model, named, rows = models[which]
        found = model.search_row(rows[row].indices, rows[row].data, 4, 0.0)
        return [*found, model.named(rows[row], named, 1)]

    expected = {(which, row): answers(which, row) for which in range(len(models)) for row in range(12)}
    wrong, started = [], threading.Barrier(4)

    def ask(seed):
        rng = np.random.default_rng(seed)
        started.wait()
        for _ in range(2000):
            question = int(rng.integers(len(models))), int(rng.integers(12))
            if not all(map(np.array_equal, answers(*question), expected[question])):
                wrong.append(question)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_several_threads_ask_one_classifier_at_once_while_another_trains():
    data = make_multilabel(400, 60, 200, random_state=1)
    model = PLTClassifier(random_state=0, max_leaf=20, n_jobs=2).fit(data.X, data.Y)
    expected = model.predict_proba(data.X, top_k=5)
    wrong = []

    def ask():
        for _ in range(20):
            answer = model.predict_proba(data.X, top_k=5)
            if not (np.array_equal(answer.data, expected.data) and np.array_equal(answer.indices, expected.indices)):
                wrong.append(answer)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    other = PLTClassifier(random_state=0, max_leaf=20, n_jobs=2).fit(data.X, data.Y)
    for thread in threads:
        thread.join()
    assert not wrong
    assert np.array_equal(other.predict_proba(data.X, top_k=5).data, expected.data)


INTERRUPTED = """
import sys, time
import numpy as np
from ramify import PLTClassifier
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver
from shared.interrupt import interrupt_after

small = make_multilabel(100, 10, 50, random_state=0)
large = make_multilabel(3000, 500, 2000, random_state=0)
settings = eval(sys.argv[1])
model = PLTClassifier(random_state=0).fit(small.X, small.Y)
before = model.predict_proba(small.X).toarray()
solver = PLTSolver(n_epochs=2_000, tol=0.0, C=1.0, positive_weight=1.0)
model.set_params(solver=solver, calibrate=False).set_params(**settings)
sent = interrupt_after(0.3)
try:
    model.fit(large.X, large.Y)
    sys.exit("not interrupted")
except KeyboardInterrupt:
    print(time.process_time() - sent[0])
assert np.array_equal(model.predict_proba(small.X).toarray(), before)
"""


@pytest.mark.parametrize(
    "settings",
    [
        "dict(n_jobs=1)",
        "dict(n_jobs=2)",
        "dict(n_jobs=2, tree='one_level')",
        "dict(hash_bits=16)",
        "dict(solver__loss='logistic')",
    ],
)
def test_an_interrupt_stops_training_and_leaves_the_model_as_it_was(settings):
    # Seconds of the processor until training stopped; to its end it would take ten and more.
    assert float(run(INTERRUPTED, settings)) < 4


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_training_and_predicting_again_and_again_takes_no_more_memory():
    data = make_multilabel(300, 100, 400, random_state=0)
    row = data.X[[0]]

    def once():
        model = PLTClassifier(random_state=0, max_leaf=20, n_jobs=2).fit(data.X, data.Y)
        model.predict_proba(data.X, top_k=5)
        model.predict_proba(data.X, labels=[1, 2])
        for _ in range(50):
            model.predict_labels(row)
        indices, values = row_arrays(row)
        model.trees_[0].core.explain(indices, values, 3)
        with pytest.raises(ValueError):
            model.trees_[0].core.explain(indices, values, 1000)

    for _ in range(10):
        once()
    before = resident()
    for _ in range(40):
        once()
    # The arrays of one model are about 0.3 MB: a leak of them all would show as 12 MB.
    assert resident() - before < 3_000_000
