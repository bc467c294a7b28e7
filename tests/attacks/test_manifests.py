"""Damaged manifests with right checksums: a model is rejected when it is loaded, or it works."""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import json
import resource
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest

from attacks.driver import attack, n_inputs, report
from model_files import load_from_memory, write_manifest
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
from ramify.base import save_load
from ramify.files.directory import ModelFileError, read_model

TEXTS = ["red round small", "yellow long", "green round", "blue tiny thing"] * 5
LABELS = [["a"], ["b", "c"], ["d"], ["a", "c"]] * 5
CLASSES = ["a", "b", "c", "d"] * 5
MODELS = {
    "plt": lambda: PLTClassifier(arity=2, max_leaf=2, random_state=0).fit(TEXTS, LABELS),
    "online_plt": lambda: OnlinePLTClassifier(memory_budget=10**6, random_state=0).fit(TEXTS, LABELS),
    "softmax": lambda: TreeSoftmaxClassifier(dim=4, n_epochs=2, random_state=0).fit(TEXTS, CLASSES),
    "fastxml": lambda: FastXMLClassifier(n_trees=2, random_state=0).fit(TEXTS, LABELS),
    "spectral": lambda: SpectralTreeClassifier(depth=3, random_state=0).fit(TEXTS, LABELS),
    "lomtree": lambda: LOMTreeClassifier(random_state=0).fit(TEXTS, CLASSES),
    "filter_tree": lambda: FilterTreeClassifier(random_state=0).fit(TEXTS, CLASSES),
    "memory_tree": lambda: MemoryTreeClassifier(random_state=0).fit(TEXTS, LABELS),
    "nearest_rows": lambda: NearestRowsClassifier(random_state=0).fit(TEXTS, LABELS),
    "mixture": lambda: MixtureClassifier(["plt", "nearest-rows"], random_state=0).fit(TEXTS, LABELS),
    "mixture of a stream": lambda: MixtureClassifier(["online-plt", "memory-tree"]).partial_fit(TEXTS, LABELS),
    "threshold": lambda: ThresholdClassifier(PLTClassifier(), random_state=0).fit(TEXTS, LABELS),
    "threshold of a stream": lambda: ThresholdClassifier(OnlinePLTClassifier()).partial_fit(TEXTS, LABELS),
}
VALUES = [
    *(2**31 - 1, 2**31, 2**40, -1, 0, 1, 2, 3.5, 1e300, "x", "", None, True, False, [], {}, [1, 2]),
    *({"$float": "nan"}, {"$float": "inf"}, {"$tuple": [1]}, {"$array": "none"}, {"$tree": "none"}, {"$unknown": 1}),
]
FOLDER = Path(tempfile.mkdtemp(prefix="ramify-attacks-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@functools.cache
def saved(name):
    """A saved model, and its manifest."""
    MODELS[name]().save(FOLDER / name)
    return FOLDER / name, json.loads((FOLDER / name / "manifest.json").read_text())


def places(value, path=()):
    """The way to every value of a manifest that the checksum does not tell apart from a sound one."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        if path or key not in ("checksum", "files", "format", "format_version", "library_version"):
            yield (*path, key)
            yield from places(value[key], (*path, key))


def changed(manifest_text, place, generator):
    manifest = json.loads(manifest_text)
    *way, last = place
    part = functools.reduce(lambda part, key: part[key], way, manifest)
    if isinstance(part, dict) and generator.random() < 0.1:
        del part[last]
    else:
        part[last] = generator.choice(VALUES)
    return manifest


def use(clf):
    clf.predict_labels(TEXTS[:3], 2)
    clf.predict_proba(TEXTS[:3], threshold=0.1)
    clf.predict(TEXTS[:3])
    if not isinstance(clf, FilterTreeClassifier):
        clf.explain(TEXTS[0])
    repr(clf)
    if hasattr(clf, "partial_fit"):
        clf.partial_fit(TEXTS[:3], CLASSES[:3] if clf.is_multiclass_ else LABELS[:3])
    clf.save(FOLDER / "again")
    save_load.load(FOLDER / "again")


@contextlib.contextmanager
def at_most_one_more_gigabyte():
    """A manifest of a few kilobytes that needs more raises MemoryError, which is no allowed outcome."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    used, (soft, hard) = pages * resource.getpagesize(), resource.getrlimit(resource.RLIMIT_AS)
    if used < 1 << 40:  # sanitizers reserve the whole address space
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class UnusableError(AssertionError):
    """A model was loaded, but does not work."""


def attack_manifests(count, seed, name):
    """Change one value of a manifest; load the model, and use it if it loads."""
    directory, sound = saved(name)
    arrays, text, ways = read_model(directory)[1], json.dumps(sound), list(places(sound))

    def one_input(generator):
        place = generator.choice(ways)
        clf = load_from_memory(changed(text, place, generator), arrays)
        if not hasattr(clf, "vectorizer_"):
            return "of numbers"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(clf)
        except ValueError as error:
            if "when learning began" not in str(error):  # a parameter that differs from what the model was made with
                raise UnusableError(f"{place}: {type(error).__name__}: {error}") from error
            return "other parameters"
        except Exception as error:
            raise UnusableError(f"{place}: {type(error).__name__}: {error}") from error
        return "ok"

    with at_most_one_more_gigabyte():
        return attack(one_input, count, seed, (ModelFileError,))


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_manifest_is_rejected_or_its_model_works(name):
    outcomes = attack_manifests(n_inputs(100), 11, name)
    report(f"manifests of {name}", outcomes)
    assert outcomes["ModelFileError"]


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("filter_tree", ("model", "values", "weight_counted"), 1),
        ("mixture", ("model", "values", "parts", 1, "options", "k"), "x"),
        ("mixture", ("model", "values", "parts", 1, "options"), {}),
        ("mixture of a stream", ("fitted", "schema", "is_stream"), False),
        ("nearest_rows", ("model", "values", "n_features"), 2**31 - 1),
        ("nearest_rows", ("fitted", "options", "k"), None),
        ("threshold of a stream", ("model", "values", "online", 0, "first", 0), []),
        ("threshold of a stream", ("model", "values", "online", 0, "n_seen"), 0),  # below the positives
        ("threshold of a stream", ("model", "values", "estimator", "fitted", "schema", "vectorizer"), None),
        ("plt", ("model", "values", "trees", 0, "link_low"), 2**40),
    ],
)
def test_values_that_fit_no_model_are_rejected(name, place, value):
    directory, sound = saved(name)
    manifest = copy.deepcopy(sound)
    *way, last = place
    functools.reduce(lambda part, key: part[key], way, manifest)[last] = value
    try:
        write_manifest(directory, manifest)
        with at_most_one_more_gigabyte(), pytest.raises(ModelFileError):
            save_load.load(directory)
    finally:
        write_manifest(directory, copy.deepcopy(sound))


@pytest.mark.parametrize("depth", [100, 300, 900, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a": ', '{"$tuple": ['])
def test_a_nested_manifest_is_rejected(depth, opening):
    directory, sound = saved("plt")
    closing = "".join({"[": "]", "{": "}"}[bracket] for bracket in reversed(opening) if bracket in "[{")
    text = json.dumps({**sound, "parameters": {**sound["parameters"], "beam": "HERE"}})
    nested = text.replace('"HERE"', opening * depth + "1" + closing * depth)
    try:
        try:
            write_manifest(directory, json.loads(nested))
        except RecursionError:
            (directory / "manifest.json").write_text(nested)
        with pytest.raises(ModelFileError):
            save_load.load(directory)
    finally:
        write_manifest(directory, copy.deepcopy(sound))
