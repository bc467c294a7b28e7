"""Savers that race, readers in between, and savers killed in the middle: a model is old or new, never a mixture."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

from frequency_classifier import FrequencyClassifier
from frequency_classifier.model import FrequencyModel
from ramify import _core
from ramify.base import save_load as persist
from ramify.files import directory as model_directory

N_LABELS = 50_000
processes = multiprocessing.get_context("fork")  # a fresh interpreter for each would take longer than the test


def model(number):
    """A model whose every part says the same number: a mixture of two saves would show."""
    clf = FrequencyClassifier(smoothing=float(number)).fit(np.eye(2), np.array([[1], [0]]))
    clf.schema_.labels.extend(np.zeros((1, N_LABELS)))
    clf.fitted_.seed = number
    frequency = np.full(N_LABELS, number, dtype=np.float32)
    clf.fitted_.model = FrequencyModel(frequency, n_features=2, is_multiclass=False)
    return clf


def check(clf):
    assert clf.smoothing == clf.seed_
    assert clf.model_.frequency.shape == (N_LABELS,)
    assert (clf.model_.frequency == np.float32(clf.seed_)).all()


def save_again_and_again(path, number, times, done):
    for _ in range(times):
        number += 1
        model(number).save(path)
        done.value += 1


def load_again_and_again(path, times, done):
    for _ in range(times):
        check(persist.load(path, verify=True))
        done.value += 1


def test_two_savers_and_two_readers_at_once(tmp_path):
    path = tmp_path / "model"
    model(1).save(path)
    done = [processes.Value("i", 0) for _ in range(4)]
    others = [
        processes.Process(target=save_again_and_again, args=(path, 1_000, 60, done[0])),
        processes.Process(target=save_again_and_again, args=(path, 2_000, 60, done[1])),
        processes.Process(target=load_again_and_again, args=(path, 120, done[2])),
        processes.Process(target=load_again_and_again, args=(path, 120, done[3])),
    ]
    for process in others:
        process.start()
    for process in others:
        process.join(60)
    assert [process.exitcode for process in others] == [0, 0, 0, 0]
    assert [count.value for count in done] == [60, 60, 120, 120]
    check(persist.load(path, verify=True))
    assert len(os.listdir(path)) == 2


def test_a_saver_killed_at_any_moment_leaves_the_old_or_the_new_model(tmp_path):
    path = tmp_path / "model"
    model(1).save(path)
    moments = random.Random(0)
    for round_number in range(1, 21):
        done = processes.Value("i", 0)
        saver = processes.Process(target=save_again_and_again, args=(path, 1_000 * round_number, 10**9, done))
        saver.start()
        while done.value == 0:
            assert saver.is_alive()
            time.sleep(0.001)
        time.sleep(moments.random() * 0.02)
        saver.kill()
        saver.join(60)
        loaded = persist.load(path, verify=True)
        check(loaded)
        assert loaded.seed_ > 1_000 * round_number
    model(2).save(path)
    assert persist.load(path).seed_ == 2
    assert len(os.listdir(path)) == 2  # nothing that the killed ones left


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def save_and_die(path, step):
    if step in ("data", "manifest"):
        calls = []

        def write_half(descriptor):
            calls.append(descriptor)
            if len(calls) == ("data", "manifest").index(step) + 1:
                os.truncate(descriptor, 100)
                die()

        model_directory.os.fsync = write_half
    elif step == "replace":
        model_directory.os.replace = die
    else:
        model_directory.sync_directory = die
    model(2).save(path)


@pytest.mark.parametrize("step", ["data", "manifest", "replace", "sweep"])
def test_a_saver_killed_at_each_step_leaves_the_old_or_the_new_model(tmp_path, step):
    path = tmp_path / "model"
    model(1).save(path)
    saver = processes.Process(target=save_and_die, args=(path, step))
    saver.start()
    saver.join(60)
    assert saver.exitcode == -signal.SIGKILL
    assert len(os.listdir(path)) > 2  # it did die in the middle
    loaded = persist.load(path, verify=True)
    check(loaded)
    assert loaded.seed_ == (2 if step == "sweep" else 1)
    model(3).save(path)
    assert persist.load(path).seed_ == 3
    assert len(os.listdir(path)) == 2


def route_while_another_thread_learns():
    regressor = _core.RegressorSettings(
        is_logistic=True, is_adaptive=True, learning_rate=0.5, eps=1e-3, normalize=True, bias=1.0
    )
    tree = _core.LomTree(regressor=regressor, max_nodes=1000, nodes_per_class=2.0, swap_resistance=4.0, forgetting=0.0)
    X = sp.random(10_000, 500, density=0.05, format="csr", random_state=0, dtype=np.float32)
    labels = np.random.default_rng(0).integers(0, 200, X.shape[0]).astype(np.int32)
    learner = threading.Thread(target=lambda: [tree.learn(X, labels) for _ in range(3)])
    learner.start()
    first = slice(0, X.indptr[1])
    while learner.is_alive():
        tree.route(X.indices[first], X.data[first], 1)


def test_a_route_that_is_asked_for_while_another_thread_learns_comes():
    """Both need the interpreter and the tree: who waits for the one must not hold the other."""
    other = processes.Process(target=route_while_another_thread_learns)
    other.start()
    other.join(60)
    is_stuck = other.is_alive()
    other.kill()
    assert not is_stuck
    assert other.exitcode == 0
