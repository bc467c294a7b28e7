"""Ctrl-C at random moments of learning: a model is then as before, or has learned the first rows of the piece.

RAMIFY_ATTACK_INTERRUPTS sets how often each class is interrupted; trainings that end before their interrupt comes are
not counted, and tried again.
"""

from __future__ import annotations

import copy
import json
import os
import random
import signal
import time
from collections import Counter

import numpy as np
import pytest

from attacks.driver import report
from attacks.test_threads import MAKE
from ramify.files.packing import pack

COUNT = int(os.environ.get("RAMIFY_ATTACK_INTERRUPTS", "4"))
ROWS = np.random.default_rng(0).random((900, 12), dtype=np.float32)
LABELS = np.array([f"label {k}" for k in np.random.default_rng(1).integers(0, 30, 900)])
MOST_TRIES = 20
FIRST, PIECE = slice(0, 300), slice(300, 900)


def arrays_of(model):
    """All that a model has learned, the inner one's too, as bytes."""
    arrays = {}
    pack(model.state()._asdict(), "model", arrays)
    return {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in arrays.items()}


def everything(clf):
    arrays = {}
    values = json.dumps(pack(clf.fitted_.values(), "fitted", arrays), sort_keys=True)
    names = {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in arrays.items()}
    return values, names, arrays_of(clf.fitted_.model)


def interrupted(work, seconds):
    """Whether work() was ended by an interrupt after so many seconds."""

    def ring(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interrupt_fit(clf, chance, length):
    reference, before = copy.copy(clf), everything(clf)
    was = interrupted(lambda: clf.fit(ROWS[PIECE], LABELS[PIECE]), chance.random() * length)
    if not was:
        return "fit: finished"
    after = everything(clf)
    if after == before:
        return "fit: as before"
    # The interrupt came after the last step.
    return "fit: all learned" if everything(reference.fit(ROWS[PIECE], LABELS[PIECE])) == after else "fit: CHANGED"


def interrupt_piece(clf, chance, length):
    reference, before = copy.copy(clf), everything(clf)
    was = interrupted(lambda: clf.partial_fit(ROWS[PIECE], LABELS[PIECE]), chance.random() * length)
    if not was:
        return "partial_fit: finished"
    after = everything(clf)
    if after == before:
        return "partial_fit: as before"
    counted = clf if hasattr(clf, "n_examples_") else getattr(clf, "estimator_", None)
    if not hasattr(counted, "n_examples_"):
        reference.partial_fit(ROWS[PIECE], LABELS[PIECE])
        return "partial_fit: all learned" if everything(reference) == after else "partial_fit: CHANGED"
    n_rows = counted.n_examples_ - (FIRST.stop - FIRST.start)
    if n_rows:
        # All labels of the piece are known by then; only its first rows are learned.
        reference.partial_fit(ROWS[PIECE][:n_rows], LABELS[PIECE][:n_rows])
    expected = arrays_of(reference.fitted_.model)
    got = after[2]
    if expected == got:
        return "partial_fit: first rows learned"
    return "partial_fit: CHANGED"


def attack_interrupts(count, seed, names=tuple(MAKE)):
    """Interrupt `count` trainings, of each class in turn; counts what became of the models.

    A training that finishes first does not count. The length to aim at follows those that were seen: the first, alone
    on a machine or not, may be far from the others.
    """
    found = Counter()
    chance = random.Random(seed)
    lengths = {}
    k = 0
    for _ in range(MOST_TRIES * count):
        name = names[k % len(names)]
        clf = MAKE[name]()
        learns = hasattr(clf, "partial_fit")
        (clf.partial_fit if learns else clf.fit)(ROWS[FIRST], LABELS[FIRST])
        attacks = [interrupt_piece, interrupt_fit] if learns else [interrupt_fit]
        attack = attacks[(k // len(names)) % len(attacks)]
        if (name, attack) not in lengths:
            other = copy.copy(clf)
            work = other.partial_fit if attack is interrupt_piece else other.fit
            lengths[name, attack] = seconds_of(lambda work=work: work(ROWS[PIECE], LABELS[PIECE]))
        outcome = attack(clf, chance, lengths[name, attack])
        found[f"{name}, {outcome}" if "CHANGED" in outcome else outcome] += 1
        clf.predict_labels(ROWS[:3])  # and it answers
        if "finished" in outcome:
            lengths[name, attack] *= 0.9
        else:
            lengths[name, attack] *= 1.02
            k += 1
            if k == count:
                break
    return found


def delivered(found):
    """How many trainings were really interrupted."""
    return sum(count for outcome, count in found.items() if "finished" not in outcome)


@pytest.mark.parametrize("name", list(MAKE))
def test_an_interrupted_model_is_as_before_or_has_learned_the_first_rows(name):
    found = attack_interrupts(COUNT, 0, (name,))
    report(f"interrupts of {name}", found)
    assert delivered(found) == COUNT
    assert not [outcome for outcome in found if "CHANGED" in outcome], found
