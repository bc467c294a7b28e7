"""A process is forked while other threads use its models: a child uses them too, or gets an error, and never hangs.

The children end with a number that says what happened, since a child of a threaded test must run no other code.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import threading
import time
import warnings
from collections import Counter

import numpy as np
import pytest

from attacks.test_threads import CLASSES, MAKE, X
from ramify import OnlinePLTClassifier
from ramify.base.model_lock import ModelLock
from ramify.common.cached import cached_property

warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)

OUTCOMES = {0: "answers", 1: "clear error", 2: "other error", 3: "wrong answer"}


def use(clf):
    """What a child does: query the model, learn, and copy it."""
    try:
        P = clf.predict_proba(X[:8], top_k=3)
        if not np.isfinite(P.data).all() or (P.indices >= P.shape[1]).any():
            return 3
        if hasattr(clf, "partial_fit"):
            clf.partial_fit(X[:5], CLASSES[:5])
        pickle.dumps(clf)
        clf.predict_labels(X[:2])
    except RuntimeError as error:
        return 1 if "forked while another thread changed this model" in str(error) else 2
    except BaseException:
        return 2
    return 0


def in_a_child(work, seconds=30.0):
    """The outcome of work() in a child process: a number of OUTCOMES, "hangs", or the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        finally:
            os._exit(2)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return OUTCOMES.get(code, signal.Signals(-code).name if code < 0 else str(code))
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def attack_forks(count, seed):
    """Fork at random moments while two threads learn and query; counts the outcomes."""
    found = Counter()
    chance = random.Random(seed)
    names = list(MAKE)
    for k in range(count):
        clf = MAKE[names[k % len(names)]]()
        is_online = hasattr(clf, "partial_fit")
        (clf.partial_fit if is_online else clf.fit)(X, CLASSES)
        stop = threading.Event()

        def learn(clf=clf, stop=stop, is_online=is_online):
            while not stop.is_set():
                (clf.partial_fit if is_online else clf.fit)(X, CLASSES)

        def query(clf=clf, stop=stop):
            while not stop.is_set():
                clf.predict_proba(X, top_k=2)
                pickle.dumps(clf)

        threads = [threading.Thread(target=work) for work in (learn, query)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            time.sleep(chance.random() * 0.01)
            found[in_a_child(lambda clf=clf: use(clf))] += 1
        stop.set()
        for thread in threads:
            thread.join()
    return found


def test_children_of_a_process_whose_threads_learn_and_query_answer_or_say_why_not():
    found = attack_forks(2 * len(MAKE), 0)
    assert set(found) <= {"answers", "clear error"}
    assert found["answers"] > 0


def test_a_model_that_only_waits_works_in_a_child():
    clf = OnlinePLTClassifier(random_state=0).partial_fit(X, CLASSES)
    assert in_a_child(lambda: use(clf)) == "answers"


class Slow:
    """A policy that is asked for each new label, and waits."""

    def __init__(self):
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.forks = False

    def __reduce__(self):
        return Slow, ()

    def __call__(self, tree, x, label):
        if self.forks:
            self.outcome = in_a_child(lambda: 0 if len(tree.children(tree.root)) > 0 else 2)
        self.is_asked.set()
        self.may_answer.wait(30)
        return tree.root, tree.is_leaf(tree.root)


def started(policy):
    clf = OnlinePLTClassifier(policy=policy, random_state=0)
    policy.may_answer.set()
    clf.partial_fit(X[:6], CLASSES[:6])
    policy.is_asked.clear()
    return clf


def test_a_model_that_was_being_changed_is_an_error_in_the_child_and_sound_in_the_parent():
    policy = Slow()
    clf = started(policy)
    policy.may_answer.clear()
    learner = threading.Thread(target=lambda: clf.partial_fit(X[:1], np.array(["new"])))
    learner.start()
    assert policy.is_asked.wait(30)
    for ask in (
        lambda: clf.predict_proba(X),
        lambda: clf.partial_fit(X[:1], CLASSES[:1]),
        lambda: pickle.dumps(clf),
        lambda: clf.explain({0: 1.0}),
    ):

        def refused(ask=ask):
            with pytest.raises(RuntimeError, match="forked while another thread changed this model"):
                ask()
            return 0

        assert in_a_child(refused) == "answers"
    policy.may_answer.set()
    learner.join()
    assert "new" in clf.classes_
    assert in_a_child(lambda: use(clf)) == "answers"


def test_a_thread_that_forks_while_it_learns_keeps_its_locks_in_the_child():
    policy = Slow()
    clf = started(policy)
    policy.forks = True
    clf.partial_fit(X[:1], np.array(["new"]))
    assert policy.outcome == "answers"


@pytest.mark.parametrize("is_changing", [False, True])
def test_a_lock_that_another_thread_held_is_free_or_an_error_in_the_child(is_changing):
    lock, is_held, may_end = ModelLock(), threading.Event(), threading.Event()

    def hold():
        with lock if is_changing else lock.reading():
            is_held.set()
            may_end.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_held.wait(30)

    def take():
        try:
            with lock:
                return 0
        except RuntimeError:
            return 1

    assert in_a_child(take) == ("clear error" if is_changing else "answers")
    may_end.set()
    holder.join()
    assert in_a_child(take) == "answers"


def test_a_property_that_another_thread_computes_is_computed_in_the_child():
    is_computing, may_end = threading.Event(), threading.Event()

    class Tree:
        @cached_property
        def depth(self):
            if threading.current_thread() is other:
                is_computing.set()
                may_end.wait(30)
            return 3

    tree = Tree()
    other = threading.Thread(target=lambda: tree.depth)
    other.start()
    assert is_computing.wait(30)
    assert in_a_child(lambda: 0 if tree.depth == 3 else 3) == "answers"
    may_end.set()
    other.join()
