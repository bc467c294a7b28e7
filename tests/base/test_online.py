"""Online classifiers share nothing: each holds only its own lock while it learns."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ramify import LOMTreeClassifier, MemoryTreeClassifier, OnlinePLTClassifier
from ramify.data.synthetic import make_multiclass

ONLINE = [OnlinePLTClassifier, LOMTreeClassifier, MemoryTreeClassifier]
DATA = make_multiclass(400, 20, 100, random_state=0)
HALVES = [(DATA.X[:200], DATA.y[:200]), (DATA.X[200:], DATA.y[200:])]
SECONDS = 30  # for a meeting of two threads that takes no time


def learned_alone(cls, first, second):
    clf = cls(random_state=0).partial_fit(*first)
    return clf.partial_fit(*second).predict_proba(DATA.X)


@pytest.mark.parametrize("cls", ONLINE)
def test_two_classifiers_learn_at_the_same_time_and_hold_only_their_own_lock(cls, monkeypatch):
    pair = [cls(random_state=0).partial_fit(*half) for half in HALVES]
    meeting = threading.Barrier(2)
    held = []
    inner = type(pair[0].model_).learn

    def learn_together(model, *arguments):
        held.append([clf.model_ is model for clf in pair] == [clf._lock()._lock._is_owned() for clf in pair])
        meeting.wait(SECONDS)  # both are here, or one of them waits for a lock of the other and this breaks
        inner(model, *arguments)
        meeting.wait(SECONDS)

    monkeypatch.setattr(type(pair[0].model_), "learn", learn_together)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda clf, half: clf.partial_fit(*half), pair, HALVES[::-1]))
    monkeypatch.undo()
    assert held == [True, True]
    for clf, half, other in zip(pair, HALVES, HALVES[::-1], strict=True):
        np.testing.assert_array_equal(clf.predict_proba(DATA.X), learned_alone(cls, half, other))


@pytest.mark.parametrize("cls", ONLINE)
def test_a_classifier_that_learns_lets_others_be_saved_and_is_saved_afterwards(cls, monkeypatch, tmp_path):
    busy, other = (cls(random_state=0).partial_fit(*half) for half in HALVES)
    is_learning, may_end, is_saved = threading.Event(), threading.Event(), threading.Event()
    inner = type(busy.model_).learn

    def learn_slowly(model, *arguments):
        is_learning.set()
        assert may_end.wait(SECONDS)
        assert not is_saved.is_set()
        inner(model, *arguments)

    def save_busy():
        busy.save(tmp_path / "busy")
        is_saved.set()

    monkeypatch.setattr(type(busy.model_), "learn", learn_slowly)
    with ThreadPoolExecutor(2) as pool:
        learning = pool.submit(busy.partial_fit, *HALVES[1])
        assert is_learning.wait(SECONDS)
        saving = pool.submit(save_busy)
        other.save(tmp_path / "other")
        assert not is_saved.is_set()
        may_end.set()
        learning.result(SECONDS)
        saving.result(SECONDS)
    assert is_saved.is_set()
