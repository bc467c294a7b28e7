"""A saved model is loaded and queried without scikit-learn, which takes longer to import than most models to load."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from scipy import sparse

from contract.classifiers import CLASSIFIERS, learns_one_class
from shared.warm_python import environment

X = sparse.csr_array(np.random.default_rng(0).random((40, 6), dtype=np.float32))
Y = (np.random.default_rng(1).random((40, 4)) < 0.4).astype(int)
Y_ONE_CLASS = np.arange(40) % 4
SCRIPT = """
import sys
import ramify
from scipy import sparse
for path in sys.argv[2:]:
    fitted = ramify.load_fitted(path)
    X = sparse.load_npz(sys.argv[1])
    print(fitted.predict_labels(X, top_k=3))
    print(fitted.predict_one({0: 1.0, 3: 0.5}))
    if fitted.schema.owner != "FilterTreeClassifier":
        print(fitted.explain(X[[0]], 1).probability)
    fitted.predict(X), fitted.predict_proba(X, threshold=0.2), fitted.predict_proba(X, labels=[0, 2])
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "sklearn")
    assert not loaded, f"{path}: {loaded[:3]}"
"""


def test_every_model_of_numbers_is_queried_without_scikit_learn(tmp_path):
    sparse.save_npz(tmp_path / "X.npz", X)
    expected = []
    for name, make in CLASSIFIERS.items():
        clf = make().fit(X, Y_ONE_CLASS if learns_one_class(name) else Y)
        clf.save(tmp_path / name)
        expected += [clf.predict_labels(X, top_k=3), clf.predict_one({0: 1.0, 3: 0.5})]
        if name != "filter tree":
            expected.append(clf.explain(X[[0]], 1).probability)
    # A fresh interpreter: the tests' warm one has imported everything already.
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "X.npz"), *(str(tmp_path / name) for name in CLASSIFIERS)]
    said = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [repr(answer) for answer in expected]


TEXT_SCRIPT = """
import sys
import ramify
for path in sys.argv[1:]:
    fitted = ramify.load_fitted(path)
    print(fitted.predict_labels(["Übelkeit and pain", "chest"], top_k=3))
    print(fitted.predict_one("acute pain"))
    fitted.predict(["pain"]), fitted.predict_proba(["pain"], threshold=0.2), fitted.predict_proba(["a", "b"], top_k=2)
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] == "sklearn")
    assert not loaded, f"{path}: {loaded[:3]}"
"""


def test_every_model_of_texts_is_queried_without_scikit_learn(tmp_path):
    texts = ["acute chest pain", "chest wall", "Übelkeit und Erbrechen", "vitamin C"] * 10
    expected = []
    for name, make in CLASSIFIERS.items():
        y = ["heart", "muscle", "stomach", "none"] * 10
        clf = make().fit(texts, y if learns_one_class(name) else [[label] for label in y])
        clf.save(tmp_path / name)
        expected += [clf.predict_labels(["Übelkeit and pain", "chest"], top_k=3), clf.predict_one("acute pain")]
    command = [sys.executable, "-c", TEXT_SCRIPT, *(str(tmp_path / name) for name in CLASSIFIERS)]
    said = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [repr(answer) for answer in expected]
