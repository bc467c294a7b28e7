"""Models of format version 2, one of each class, answer exactly as the library that saved them."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import ramify
from model_files import write_manifest
from ramify.files import directory as model_directory
from ramify.files.tensors import write_tensors
from shared.warm_python import run

STORED = {path.stem: path for path in sorted((Path(__file__).parent / "version_2").glob("*.json"))}
READER = "import sys; from files.test_version_2 import answer_all; answer_all(sys.argv[1])"


def restore(name, folder):
    """A stored model: what is known of it, and the directory as version 2 wrote it."""
    case = json.loads(STORED[name].read_text())
    arrays = {
        key: np.frombuffer(base64.b64decode(array["base64"]), array["dtype"]).reshape(array["shape"])
        for key, array in case["arrays"].items()
    }
    directory = Path(folder) / name
    directory.mkdir()
    data = directory / f"arrays-{'0' * 32}.safetensors"
    with open(data, "wb") as file:
        size, checksum = write_tensors(file, arrays)
    files = [{"name": data.name, "size": size, "crc32": f"{checksum:08x}"}]
    write_manifest(directory, {**case["manifest"], "files": files})
    return case, directory


def rows_of(given):
    return given if isinstance(given[0], str) else np.array(given)


def answers(clf, rows):
    """The answers that were recorded, as JSON."""
    predicted = clf.predict(rows)
    found = {
        "probabilities": clf.predict_proba(rows, threshold=0.0).toarray().tolist(),
        "predicted": predicted.tolist() if isinstance(predicted, np.ndarray) else predicted.toarray().tolist(),
        "best": [[list(pair) for pair in row] for row in clf.predict_labels(rows, top_k=3)],
    }
    if type(clf).__name__ != "FilterTreeClassifier":
        labels = clf.classes_[:2].tolist()
        found["explained"] = [clf.explain(rows[row : row + 1], label).probability for row in (0, 1) for label in labels]
    if hasattr(clf, "thresholds_"):
        found["thresholds"] = clf.thresholds_.tolist()
    return found


def answer_all(folder):
    """Answers of every stored model, and those after learning more where that was recorded, on standard output."""
    found = {}
    for name in STORED:
        case, directory = restore(name, folder)
        clf, rows = ramify.load(directory), rows_of(case["rows"])
        found[name] = {"expected": answers(clf, rows)}
        if "more" in case:
            clf.partial_fit(rows_of(case["more"]["rows"]), case["more"]["labels"])
            found[name]["more"] = answers(clf, rows)
    json.dump(found, sys.stdout)


def spoiled_manifests(manifest):
    """The same manifest without one of its values, or with nonsense in its place."""
    for part in ("parameters", "fitted", "model"):
        yield {**manifest, part: None}
        for key in manifest[part]:
            yield {**manifest, part: {name: value for name, value in manifest[part].items() if name != key}}
            yield {**manifest, part: {**manifest[part], key: [None]}}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    # Instruction sets may differ in the last bit; the answers were recorded with this one.
    return json.loads(run(READER, tmp_path_factory.mktemp("models"), RAMIFY_INSTRUCTION_SET="baseline"))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", STORED)
def test_a_model_of_version_2_answers_exactly_as_before(found, name):
    case = json.loads(STORED[name].read_text())
    assert case["manifest"]["format_version"] == 2
    assert found[name]["expected"] == case["expected"]


@pytest.mark.parametrize("name", [name for name in STORED if '"more"' in STORED[name].read_text()])
def test_a_model_of_version_2_learns_on_exactly_as_before(found, name):
    assert found[name]["more"] == json.loads(STORED[name].read_text())["more"]["expected"]


def test_every_class_is_stored():
    stored = {json.loads(path.read_text())["manifest"]["class"] for path in STORED.values()}
    assert stored == {
        "FastXMLClassifier",
        "FilterTreeClassifier",
        "LOMTreeClassifier",
        "MemoryTreeClassifier",
        "OnlinePLTClassifier",
        "PLTClassifier",
        "SpectralTreeClassifier",
        "ThresholdClassifier",
        "TreeSoftmaxClassifier",
    }  # classes that are newer than version 2 have no such models


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", STORED)
def test_a_model_of_version_2_is_saved_as_the_present_version_and_can_be_trained_again(name, tmp_path):
    case, directory = restore(name, tmp_path)
    clf, rows = ramify.load(directory), rows_of(case["rows"])
    expected = answers(clf, rows)
    clf.save(directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["format_version"] == model_directory.FORMAT_VERSION
    again = ramify.load(directory)
    assert answers(again, rows) == expected
    assert repr(again.get_params()) == repr(clf.get_params())
    assert ramify.load_fitted(directory).predict_labels(rows, top_k=3) == clf.predict_labels(rows, top_k=3)
    labels = case["expected"]["predicted"]
    labels = labels if isinstance(labels[0], str) else np.array(labels)
    assert clone(clf).fit(rows, labels).predict(rows).shape == np.shape(clf.predict(rows))


@pytest.mark.parametrize("name", STORED)
def test_a_damaged_manifest_of_version_2_raises_nothing_but_the_one_error(name, tmp_path):
    _, directory = restore(name, tmp_path)
    manifest = json.loads((directory / "manifest.json").read_text())
    n_rejected = 0
    for spoiled in spoiled_manifests(manifest):
        write_manifest(directory, spoiled)
        try:
            ramify.load(directory)
        except model_directory.ModelFileError:
            n_rejected += 1
    assert n_rejected > 10


def test_settings_of_version_2_come_back_under_their_new_names(tmp_path):
    found = {name: ramify.load(restore(name, tmp_path)[1]) for name in STORED}
    assert found["plt"].get_params()["solver__loss"] == "logistic"
    assert (found["plt"].beam, found["plt"].slack) == (3, 0.05)
    assert found["plt_texts"].vectorizer.min_df == 2
    assert found["plt_texts"].explain("rot", "Größe 1, b").name == "der zweite"
    assert (found["online_plt"].arity, found["online_plt"].max_leaf) == (2, 3)
    assert found["online_plt"].source_format_ == "jsonl"
    assert found["online_plt"].schema_.named_columns is not None
    assert repr(found["online_plt_fobos"].optimizer) == "FOBOS(l2=1e-06, learning_rate=2.0)"
    assert found["online_plt_fobos"].n_epochs == 2
    assert found["tree_softmax"].vectorizer.n_buckets == 8
    assert found["tree_softmax"].n_epochs == 5
    assert found["fastxml"].tol == 0.02
    assert found["fastxml"].feature_names_in_.tolist()[:2] == ["rot", "grün"]
    assert (found["spectral_tree"].n_leaves, found["spectral_tree"].normalize) == (2, "hellinger")
    assert found["spectral_tree"].tree_options["tol"] == 0.05
    assert found["spectral_tree"].estimator.rank == 4
    assert found["spectral_tree_over_plt"].estimator.beam == 4
    assert repr(found["lomtree"].optimizer) == "SGD(learning_rate=0.25)"
    assert found["memory_tree"].forgetting == "least_useful"
    assert found["threshold"].estimator.vectorizer is not None
    assert found["threshold_default"].estimator is None
    assert found["threshold_online"].validation_.keys() == {10, 100}
