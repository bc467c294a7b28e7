"""A model in parts: the same answers, and only the parts asked that can matter."""

import json

import numpy as np
import pytest

from ramify import OnlinePLTClassifier, PLTClassifier, PLTSolver, load
from ramify.cluster import predict, split
from ramify.cluster.split import Part, Router, parts_of, plan_split
from ramify.cluster.workers import InProcess, LocalActor
from ramify.data.synthetic import make_multilabel
from ramify.trees import LabelTree
from shared.same_model import check_same_model
from twins.blocks import PACKED, PANEL_FIELDS

KIND = PANEL_FIELDS.index("bucket_bits")


@pytest.fixture(scope="module")
def data():
    return make_multilabel(1500, 200, 800, random_state=0)


@pytest.fixture(scope="module")
def whole(data):
    return PLTClassifier(arity=4, max_leaf=6, random_state=0).fit(data.X, data.Y)


def _router(directory):
    return Router(directory, [LocalActor(Part(str(part))) for part in parts_of(directory)])


@pytest.mark.parametrize("n_parts", [2, 3, 7])
@pytest.mark.parametrize("how", [{"top_k": 1}, {"top_k": 5}, {"top_k": 5, "threshold": 0.2}, {"top_k": None}], ids=repr)
def test_answers_are_those_of_the_whole_model(data, whole, tmp_path, n_parts, how):
    router = _router(split(whole, tmp_path / "parts", n_parts))
    assert len(router.parts) == n_parts
    assert router.predict_labels(data.X, **how) == whole.predict_labels(data.X, **how)


@pytest.mark.parametrize("how", [{"top_k": 1}, {"top_k": 5, "threshold": 0.1}, {"top_k": None}], ids=repr)
def test_classes_whose_revised_nodes_lie_in_parts_are_answered_as_by_the_whole_model(data, tmp_path, how):
    y = np.asarray(data.Y.argmax(axis=1)).ravel()
    whole = PLTClassifier(arity=3, max_leaf=4, random_state=0).fit(data.X, y)
    router = _router(split(whole, tmp_path / "parts", 4))
    _, is_revised = router._sums(whole.schema_.rows(data.X), whole.schema_.rows(data.X))
    assert 0.1 < is_revised.mean() < 0.9
    assert router.predict_labels(data.X, **how) == whole.predict_labels(data.X, **how)


def test_packed_weights_are_split_too(tmp_path):
    data = make_multilabel(4000, 600, 5000, random_state=0)
    solver = PLTSolver(C=1.0, packed=True)
    whole = PLTClassifier(arity=4, max_leaf=200, solver=solver, random_state=0).fit(data.X, data.Y)
    assert (whole.trees_[0].blocks["panels"][:, KIND] >= PACKED - 1).any()
    router = _router(split(whole, tmp_path / "parts", 3))
    assert router.predict_labels(data.X[:500], top_k=5) == whole.predict_labels(data.X[:500], top_k=5)


def test_thresholds_per_label_and_standardised_columns(data, tmp_path):
    X = data.X.toarray() * np.linspace(0.1, 10, data.X.shape[1], dtype=np.float32)
    whole = PLTClassifier(arity=4, max_leaf=6, standardize=True, random_state=0).fit(X, data.Y)
    thresholds = np.random.default_rng(0).random(200).astype(np.float32)
    router = _router(split(whole, tmp_path / "parts", 3))
    for top_k in (None, 4):
        assert router.predict_labels(X, top_k, thresholds) == whole.predict_labels(X, top_k, thresholds)


def test_classes_rows_without_labels_and_labels_near_the_root(data, tmp_path):
    y = np.asarray(data.Y.argmax(axis=1)).ravel()
    one_class = PLTClassifier(arity=4, max_leaf=6, random_state=0).fit(data.X, y)
    assert _router(split(one_class, tmp_path / "a", 3)).predict_labels(data.X) == one_class.predict_labels(data.X)

    tree = LabelTree.from_nested([0, [1, 2, 3, [4, 5, 6]], [7, [8, 9]], 10])
    Y = data.Y[:, :11]  # many rows have none of these labels: the root has a gate
    uneven = PLTClassifier(tree=tree, random_state=0).fit(data.X, Y)
    router = _router(split(uneven, tmp_path / "b", 2))
    assert router.predict_labels(data.X, 3) == uneven.predict_labels(data.X, 3)


def test_only_parts_that_can_matter_are_asked_and_each_holds_its_share(data, whole, tmp_path):
    directory = split(whole, tmp_path / "parts", 4)
    router = _router(directory)
    router.predict_labels(data.X, 1)
    assert data.n_rows <= router.asked < 2.5 * data.n_rows  # of 4 parts
    trained = whole.trees_[0]
    sizes = [sum(array.nbytes for array in load(part).trees_[0].blocks.values()) for part in parts_of(directory)]
    top = sum(array.nbytes for array in load(directory / "top").trees_[0].blocks.values())
    total = sum(array.nbytes for array in trained.blocks.values())
    assert sum(sizes) - 3 * top == pytest.approx(total, rel=0.01)
    assert max(sizes) - top < 0.5 * total
    plan = plan_split(trained, 4)
    assert set(plan.part_of.tolist()) <= {-1, 0, 1, 2, 3}


def test_a_part_is_a_model_and_a_split_one_predicts_to_files(data, whole, tmp_path):
    whole.save(tmp_path / "model")
    directory = split(tmp_path / "model", tmp_path / "parts", 2)
    check_same_model(load(tmp_path / "model"), whole)
    written = [
        predict(model, data.X, tmp_path / out, top_k=3, workers=InProcess())
        for model, out in ((whole, "a"), (directory, "b"))
    ]
    one, other = ([json.loads(line) for file in files for line in file.read_text().splitlines()] for files in written)
    assert one == other


def test_models_that_cannot_be_split_are_refused(data, whole, tmp_path):
    refused = [
        (OnlinePLTClassifier(random_state=0).partial_fit(data.X, data.Y), "a PLTClassifier of one tree"),
        (PLTClassifier(n_trees=2, random_state=0).fit(data.X, data.Y), "a PLTClassifier of one tree"),
        (PLTClassifier(hash_bits=10, random_state=0).fit(data.X, data.Y), "hash_bits"),
        (PLTClassifier(hierarchy={1: 0}, random_state=0).fit(data.X, data.Y), "hierarchy"),
        (PLTClassifier(tree="one_level", random_state=0).fit(data.X, data.Y), "no subtrees"),
    ]
    for model, reason in refused:
        with pytest.raises(ValueError, match=reason):
            split(model, tmp_path / "refused", 2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ValueError, match="not empty"):
        split(whole, tmp_path / "full", 2)
    with pytest.raises(ValueError, match="n_parts"):
        split(whole, tmp_path / "other", 1)
