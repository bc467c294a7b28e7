"""Any number of threads may query, learn, save, load, pickle, clone and explain the same model.

Every pair of operations runs in two threads on every class; what was saved or pickled meanwhile must load and answer.
RAMIFY_ATTACK_SECONDS sets how long each pair runs (`make attack` runs them longer, under ThreadSanitizer).
"""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import ramify
from ramify import (
    FastXMLClassifier,
    FilterTreeClassifier,
    LOMTreeClassifier,
    MemoryTreeClassifier,
    MixtureClassifier,
    NearestRowsClassifier,
    OnlinePLTClassifier,
    PLTClassifier,
    SpectralTreeClassifier,
    ThresholdClassifier,
    TreeSoftmaxClassifier,
)

SECONDS = float(os.environ.get("RAMIFY_ATTACK_SECONDS", "0.02"))
MAKE = {
    "plt": lambda: PLTClassifier(arity=2, max_leaf=3, random_state=0),
    "plt ensemble": lambda: PLTClassifier(n_trees=2, random_state=0),
    "online plt": lambda: OnlinePLTClassifier(arity=2, max_leaf=3, random_state=0),
    "lomtree": lambda: LOMTreeClassifier(random_state=0),
    "filter tree": lambda: FilterTreeClassifier(random_state=0),
    "memory tree": lambda: MemoryTreeClassifier(random_state=0),
    "fastxml": lambda: FastXMLClassifier(n_trees=3, random_state=0),
    "spectral": lambda: SpectralTreeClassifier(n_candidates=5, random_state=0),
    "softmax": lambda: TreeSoftmaxClassifier(dim=8, n_epochs=2, random_state=0),
    "nearest rows": lambda: NearestRowsClassifier(random_state=0),
    "mixture": lambda: MixtureClassifier(["online-plt", "lomtree"], block=64, random_state=0),
    "threshold": lambda: ThresholdClassifier(OnlinePLTClassifier(), random_state=0),
}
X = np.random.default_rng(0).random((60, 12), dtype=np.float32)
CLASSES = np.array([f"label {k % 7}" for k in range(60)])


def test_every_classifier_is_attacked():
    assert {type(make()).__name__ for make in MAKE.values()} == {
        name for name in ramify.__all__ if name.endswith("Classifier")
    }


class Subject:
    """A fitted classifier, and the operations that threads run on it."""

    def __init__(self, name, folder):
        self.clf = MAKE[name]()
        self.learns = hasattr(self.clf, "partial_fit")
        (self.clf.partial_fit if self.learns else self.clf.fit)(X, CLASSES)
        self.explains = self.grows = name != "filter tree"  # a tournament fixes its classes
        self.folder = folder
        self.clf.save(folder / "model")
        self.n_new = itertools.count()

    def predict(self):
        self.check(self.clf)

    def explain(self):
        if self.explains:
            assert 0 <= self.clf.explain({0: 0.5, 3: 1.0}).probability <= 1

    def learn(self):
        if self.learns:
            labels = CLASSES[:5].copy().astype(object)
            if self.grows:
                labels[0] = f"new {next(self.n_new)}"  # labels must grow with the arrays
            self.clf.partial_fit(X[:5], labels)
        else:
            self.clf.fit(X[:30], CLASSES[:30])

    def save(self):
        self.clf.save(self.folder / "model")

    def load(self):
        self.check(ramify.load(self.folder / "model", verify=True))

    def pickle(self):
        self.check(pickle.loads(pickle.dumps(self.clf)))

    def clone(self):
        assert not hasattr(clone(self.clf), "fitted_")

    def check(self, clf):
        P = clf.predict_proba(X[:8], top_k=3)
        assert (P.indices < P.shape[1]).all()
        assert np.isfinite(P.data).all()
        assert all(isinstance(label, str) for row in clf.predict_labels(X[:2], top_k=2) for label, _ in row)


OPERATIONS = ("predict", "explain", "learn", "save", "load", "pickle", "clone")


@pytest.mark.parametrize("name", list(MAKE))
def test_every_pair_of_operations_in_two_threads(name, tmp_path):
    subject = Subject(name, tmp_path)
    for pair in itertools.combinations_with_replacement(OPERATIONS, 2):
        failures = []

        def run(operation, failures=failures, pair=pair):
            end = time.monotonic() + SECONDS
            try:
                while time.monotonic() < end:
                    getattr(subject, operation)()
            except BaseException as error:  # reported by the main thread, with the pair
                failures.append((pair, operation, repr(error)))

        threads = [threading.Thread(target=run, args=(operation,)) for operation in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), f"{pair} hangs"
        assert not failures
    subject.check(ramify.load(tmp_path / "model", verify=True))
