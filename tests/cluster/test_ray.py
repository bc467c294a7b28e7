"""Training and prediction on Ray, several nodes on this machine: the same bits, also if a node dies in any phase."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from ramify import FastXMLClassifier, PLTClassifier, ThresholdClassifier, cluster
from ramify.cluster import rows
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver
from shared.same_model import check_same_model

ray = pytest.importorskip("ray", reason="NOT TESTED: ramify.cluster on Ray, which is not installed (make test-cluster)")

from ramify.cluster.split import Part, Router, parts_of  # noqa: E402
from ramify.cluster.workers import RayWorkers  # noqa: E402

SETTINGS = {"random_state": 0, "arity": 4, "max_leaf": 20}
MEMORY = 80 * 2**20


@pytest.fixture(scope="module")
def data():
    return make_multilabel(1200, 150, 600, random_state=0)


@pytest.fixture(scope="module")
def texts(data):
    return [" ".join(f"word{column}" for column in row.indices) for row in data.X]


@pytest.fixture(scope="module")
def alone(data):
    return PLTClassifier(**SETTINGS).fit(data.X, data.Y)


@pytest.mark.parametrize("n_shards", [1, 3])
def test_two_nodes_give_the_bits_of_one_machine(nodes, data, alone, n_shards):
    check_same_model(alone, cluster.fit(PLTClassifier(**SETTINGS), (data.X, data.Y), n_shards=n_shards))


def test_a_dataset_is_read_by_the_workers(nodes, texts, data):
    labels = [[f"label{j}" for j in row.indices] for row in data.Y]
    dataset = ray.data.from_items(
        [{"text": text, "labels": of_row} for text, of_row in zip(texts, labels, strict=True)], override_num_blocks=3
    )
    check_same_model(PLTClassifier(**SETTINGS).fit(texts, labels), cluster.fit(PLTClassifier(**SETTINGS), dataset))


class Mortal(RayWorkers):
    """Kills a node as soon as the first task of a phase runs, and starts another."""

    def __init__(self, nodes, phase):
        super().__init__()
        self.nodes, self.phase, self.killed = nodes, phase, False

    def submit(self, function, *arguments, n_returns=1):
        answer = super().submit(function, *arguments, n_returns=n_returns)
        if function.__name__ == self.phase and not self.killed:
            self.killed = True
            victim = next(node for node in self.nodes.list_all_nodes() if not node.head)
            self.nodes.remove_node(victim, allow_graceful=False)
            self.nodes.add_node(wait=False, num_cpus=1, object_store_memory=MEMORY)
        return answer


@pytest.mark.parametrize("phase", ["stack_rows", "grow_trees"])
def test_a_node_that_dies_changes_no_forest(nodes, data, phase):
    workers = Mortal(nodes, phase)
    survived = cluster.fit(FastXMLClassifier(n_trees=6, random_state=0), (data.X, data.Y), n_shards=3, workers=workers)
    assert workers.killed
    check_same_model(FastXMLClassifier(n_trees=6, random_state=0).fit(data.X, data.Y), survived)


@pytest.mark.parametrize(
    ("method", "phase"),
    [("ofo", "search_rows"), ("fta", "count_labels"), ("sto", "own_labels"), ("sto", "tune_labels")],
)
def test_a_node_that_dies_changes_no_thresholds(nodes, data, method, phase):
    workers, inner = Mortal(nodes, phase), PLTClassifier(arity=4, max_leaf=20)
    survived = ThresholdClassifier(inner, method=method, random_state=0)
    cluster.fit(survived, (data.X, data.Y), n_shards=3, workers=workers)
    assert workers.killed
    check_same_model(ThresholdClassifier(inner, method=method, random_state=0).fit(data.X, data.Y), survived)


def test_a_split_model_survives_a_node_and_answers_alike(nodes, tmp_path, data, alone):
    parts = cluster.split(alone, tmp_path / "parts", 3)
    workers = Mortal(nodes, "predict_rows")
    files = cluster.predict(parts, data.X, tmp_path / "answers", top_k=3, workers=workers)
    assert workers.killed
    assert _answers(files) == [[(int(j), float(p)) for j, p in row] for row in alone.predict_labels(data.X, top_k=3)]


@pytest.fixture(scope="module")
def classes(data):
    """Classes whose nodes near the root are revised by what their children claim."""
    y = np.asarray(data.Y.argmax(axis=1)).ravel()
    return PLTClassifier(arity=3, max_leaf=4, random_state=0).fit(data.X, y)


@pytest.mark.parametrize("how", [{"top_k": 1}, {"top_k": 5, "threshold": 0.1}, {"top_k": None}], ids=repr)
def test_actors_that_hold_revised_nodes_of_classes_answer_as_the_whole_model(nodes, tmp_path, data, classes, how):
    parts = cluster.split(classes, tmp_path / "parts", 4)
    workers = RayWorkers()
    router = Router(parts, [workers.start(Part, str(part), n_bytes=2**20) for part in parts_of(parts)])
    rows = classes.schema_.rows(data.X)
    _, is_revised = router._sums(rows, rows)
    assert 0.1 < is_revised.mean() < 0.9
    assert router.predict_labels(data.X, **how) == classes.predict_labels(data.X, **how)


def test_classes_in_parts_survive_a_node_and_are_answered_alike(nodes, tmp_path, data, classes):
    parts = cluster.split(classes, tmp_path / "parts", 3)
    workers = Mortal(nodes, "predict_rows")
    files = cluster.predict(parts, data.X, tmp_path / "answers", top_k=3, workers=workers)
    assert workers.killed
    expected = classes.predict_labels(data.X, top_k=3)
    assert _answers(files) == [[(int(j), float(p)) for j, p in row] for row in expected]


def test_a_part_that_fits_no_node_is_refused(nodes):
    with pytest.raises(cluster.ClusterError, match=r"split the model into more parts"):
        RayWorkers().start(dict, n_bytes=2**60)


def _answers(files):
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [[(one["label"], one["probability"]) for one in row["labels"]] for row in rows]


class SeesSpilling(RayWorkers):
    """Remembers the files that Ray has written for lack of memory."""

    spilled = frozenset()

    def submit(self, function, *arguments, n_returns=1):
        session = Path(ray._private.worker.global_worker.node.get_session_dir_path())
        self.spilled |= {file for folder in session.glob("ray_spilled_objects*") for file in folder.iterdir()}
        return super().submit(function, *arguments, n_returns=n_returns)


def test_rows_that_do_not_fit_the_object_stores_are_spilled(nodes):
    rng, n_rows, per_row = np.random.default_rng(0), 130_000, 100
    columns = np.sort(rng.integers(0, 5000, (n_rows, per_row)).astype(np.int32) * per_row + np.arange(per_row), axis=1)
    arrays = (rng.random(n_rows * per_row, np.float32) + 0.1, columns.ravel(), np.arange(0, columns.size + 1, per_row))
    X = sparse.csr_array(arrays, shape=(n_rows, 5000 * per_row))
    assert 8 * X.nnz > 1.2 * MEMORY
    Y = sparse.csr_array(np.eye(12, dtype=np.float32)[rng.integers(0, 12, n_rows)])
    settings = {"tree": "random", "arity": 4, "max_leaf": 4, "random_state": 0, "calibrate": False}
    settings["solver"] = PLTSolver(C=1.0, positive_weight=1.0, n_epochs=1)
    workers = SeesSpilling()
    shared = cluster.fit(PLTClassifier(**settings), (X, Y), n_shards=12, workers=workers)
    assert workers.spilled
    check_same_model(PLTClassifier(**settings).fit(X, Y), shared)


PHASES = ["count_texts", "vectorized", "select", "sum_vectors", "split_parts", "held_out_part", "train_part"]


@pytest.mark.parametrize("phase", PHASES)
def test_a_node_that_dies_changes_nothing(nodes, texts, data, phase, monkeypatch):
    monkeypatch.setattr(rows, "WORTH_SHARING", 0)
    workers = Mortal(nodes, phase)
    survived = cluster.fit(PLTClassifier(**SETTINGS), (texts, data.Y), n_shards=3, workers=workers)
    assert workers.killed
    check_same_model(PLTClassifier(**SETTINGS).fit(texts, data.Y), survived)


def test_prediction_survives_a_node_and_writes_every_row(nodes, tmp_path, data, alone):
    alone.save(tmp_path / "model")
    workers = Mortal(nodes, "predict_rows")
    files = cluster.predict(tmp_path / "model", data.X, tmp_path / "answers", top_k=3, workers=workers)
    assert workers.killed
    assert _answers(files) == [[(int(j), float(p)) for j, p in row] for row in alone.predict_labels(data.X, top_k=3)]


def test_answers_are_written_as_parquet(nodes, tmp_path, data, alone):
    import pyarrow.parquet as pq

    files = cluster.predict(alone, data.X, tmp_path, top_k=3, format="parquet")
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    expected = alone.predict_labels(data.X, top_k=3)
    assert [row["labels"] for row in found] == [[str(label) for label, _ in row] for row in expected]
    assert np.array_equal([row["probabilities"] for row in found], [[p for _, p in row] for row in expected])


def test_an_error_of_a_worker_is_raised_here_with_its_words(nodes, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": 1}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl.*line 1"):
        cluster.fit(PLTClassifier(), [tmp_path / "bad.jsonl"])


def test_four_nodes_give_the_bits_of_one_machine(nodes, data, alone):
    added = [nodes.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
    check_same_model(alone, cluster.fit(PLTClassifier(**SETTINGS), (data.X, data.Y), n_shards=5))
    for node in added:
        nodes.remove_node(node)
