"""The steps of a cluster, run in this process: the result is that of `fit`, however rows and nodes are divided."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import OnlinePLTClassifier, PLTClassifier, ThresholdClassifier
from ramify.cluster import fit, predict
from ramify.cluster.parts import node_parts
from ramify.cluster.workers import InProcess
from ramify.data import Columns
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver
from ramify.text import HashingTextVectorizer, TextVectorizer
from ramify.trees import LabelTree, random_tree
from shared.same_model import check_same_model


class Several(InProcess):
    """One process that plans for several workers."""

    def __init__(self, n_workers):
        self.n_workers = n_workers


@pytest.fixture(scope="module")
def data():
    return make_multilabel(1500, 200, 800, random_state=0)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"normalize": False},
        {"n_trees": 2, "arity": 4, "max_leaf": 10},
        {"tree": "interpolated", "bias": 0.0},
        {"tree": "random", "arity": 2, "max_leaf": 1},
        {"tree": "one_level"},
        {"hash_bits": 12},
        {"calibrate": False, "solver": PLTSolver(C=1.0, positive_weight=1.0, n_epochs=3)},
        {"solver": PLTSolver(loss="logistic")},
        {"solver": PLTSolver(C=1.0, prune=0.0, packed=True)},
    ],
    ids=repr,
)
@pytest.mark.parametrize(("n_shards", "n_workers"), [(1, 1), (4, 9)])
def test_the_model_does_not_depend_on_shards_and_workers(data, parameters, n_shards, n_workers):
    alone = PLTClassifier(random_state=0, **parameters).fit(data.X, data.Y)
    shared = PLTClassifier(random_state=0, **parameters)
    assert fit(shared, (data.X, data.Y), n_shards=n_shards, workers=Several(n_workers)) is shared
    check_same_model(alone, shared)


def test_weights_rows_without_labels_and_classes_are_learned_alike(data):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, data.n_rows).astype(float) / 3
    empty = sparse.diags_array((rng.random(data.n_rows) < 0.9).astype(np.float32)) @ data.Y
    with_gate = PLTClassifier(random_state=1, arity=4, max_leaf=20)
    check_same_model(
        PLTClassifier(random_state=1, arity=4, max_leaf=20).fit(data.X, empty, sample_weight=weight),
        fit(with_gate, (data.X, empty), sample_weight=weight, n_shards=3, workers=Several(3)),
    )
    y = np.asarray(data.Y.argmax(axis=1)).ravel()
    classes = PLTClassifier(random_state=1, arity=4, max_leaf=20)
    check_same_model(
        PLTClassifier(random_state=1, arity=4, max_leaf=20).fit(data.X, y),
        fit(classes, (data.X, y), n_shards=3, workers=Several(3)),
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 12))
@example(184, 1, 1)  # a single label
def test_small_sets_of_any_shape_give_the_same_bits(seed, n_shards, n_workers):
    rng = np.random.default_rng(seed)
    n_rows, n_labels, n_features = (int(n) for n in rng.integers(1, 40, 3))
    X = sparse.random_array((n_rows, n_features), density=0.3, rng=rng, dtype=np.float32).tocsr()
    Y = sparse.csr_array((rng.random((n_rows, n_labels)) < 0.15).astype(np.float32))
    if Y.nnz == 0:
        return
    parameters = {"arity": int(rng.integers(2, 5)), "max_leaf": int(rng.integers(1, 9)), "random_state": seed}
    check_same_model(
        PLTClassifier(**parameters).fit(X, Y),
        fit(PLTClassifier(**parameters), (X, Y), n_shards=n_shards, workers=Several(n_workers)),
    )


TEXTS = ["Red apple", "green pear", "red red cherry", "a green apple tree", "one old tree", "pear tree"] * 8
LABELS = [["fruit", "red"], ["fruit"], ["fruit", "red"], ["tree", "fruit"], ["tree"], ["tree", "fruit"]] * 8


@pytest.mark.parametrize(
    "vectorizer",
    [None, TextVectorizer(min_df=9, ngram_range=(1, 2)), TextVectorizer(max_features=4), HashingTextVectorizer()],
    ids=repr,
)
def test_texts_in_shards_get_one_vocabulary(vectorizer):
    alone = PLTClassifier(random_state=0, vectorizer=vectorizer).fit(TEXTS, LABELS)
    shared = fit(PLTClassifier(random_state=0, vectorizer=vectorizer), (TEXTS, LABELS), n_shards=5, workers=Several(2))
    check_same_model(alone, shared)
    assert shared.predict_labels(["green cherry"]) == alone.predict_labels(["green cherry"])


def test_files_are_read_shard_by_shard(tmp_path, data):
    for k, first in enumerate(range(0, len(TEXTS), 20)):
        lines = [
            json.dumps({"text": text, "labels": labels})
            for text, labels in zip(TEXTS[first : first + 20], LABELS[first : first + 20], strict=True)
        ]
        (tmp_path / f"{k}.jsonl").write_text("\n".join(lines))
    files = sorted(tmp_path.glob("*.jsonl"))
    shared = fit(PLTClassifier(random_state=0), files, workers=InProcess())
    check_same_model(PLTClassifier(random_state=0).fit(TEXTS, LABELS), shared)

    for k, first in enumerate(range(0, 1500, 600)):
        (tmp_path / f"{k}.txt").write_text(_as_xmc(data.X[first : first + 600], data.Y[first : first + 600]))
    numbers = fit(PLTClassifier(random_state=0), sorted(tmp_path.glob("*.txt")), workers=InProcess())
    check_same_model(PLTClassifier(random_state=0).fit(data.X, data.Y), numbers)


def test_shards_that_are_tables_are_read_by_the_columns_that_were_named(tmp_path):
    for k, first in enumerate(range(0, len(TEXTS), 20)):
        rows = zip(TEXTS[first : first + 20], LABELS[first : first + 20], strict=True)
        lines = [f"{text}\t{'|'.join(labels)}\tx;y" for text, labels in rows]
        (tmp_path / f"{k}.csv").write_text("\n".join(["note\tcodes\tlabels", *lines]), encoding="utf-16")
    files = sorted(tmp_path.glob("*.csv"))
    columns = Columns(("note",), ("codes",), "|", encoding="utf-16", delimiter="\t")
    shared = fit(PLTClassifier(random_state=0), files, columns=columns, workers=InProcess())
    alone = PLTClassifier(random_state=0).fit(TEXTS, LABELS)
    check_same_model(alone, shared)
    written = predict(shared, files, tmp_path / "answers", top_k=2, columns=columns, workers=InProcess())
    answers = [json.loads(line)["labels"] for file in written for line in file.read_text().splitlines()]
    assert [[(one["label"], one["probability"]) for one in row] for row in answers] == alone.predict_labels(TEXTS, 2)


def _as_xmc(X, Y):
    lines = [f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"]
    for k in range(X.shape[0]):
        row = X[[k]]
        features = " ".join(
            f"{j}:{v!r}" for j, v in zip(row.indices.tolist(), row.data.astype(float).tolist(), strict=True)
        )
        lines.append(",".join(map(str, Y[[k]].indices.tolist())) + " " + features)
    return "\n".join(lines) + "\n"


def test_bad_data_are_refused_with_their_reason(tmp_path):
    clf = PLTClassifier()
    with pytest.raises(ValueError, match=r"\(X, Y\), a list of files or a Ray Dataset"):
        fit(clf, 17, workers=InProcess())
    for other in (OnlinePLTClassifier(), ThresholdClassifier(OnlinePLTClassifier())):
        with pytest.raises(ValueError, match=r"cluster\.fit trains a PLTClassifier, a FastXMLClassifier"):
            fit(other, (np.eye(3), [0, 1, 2]), workers=InProcess())
    for name, width in (("a.txt", 2), ("b.txt", 3)):
        (tmp_path / name).write_text(f"1 {width} 2\n0 1:1.0\n")
    with pytest.raises(ValueError, match="the shard has 2 features, and another has 3"):
        fit(clf, [tmp_path / "a.txt", tmp_path / "b.txt"], workers=InProcess())


def test_parts_hold_every_node_with_work_once():
    tree = random_tree(None, sparse.eye_array(300).tocsr(), arity=3, max_leaf=4, random_state=0)
    work = np.where(np.append(tree.n_children, 1) > 0, np.random.default_rng(0).integers(0, 50, tree.n_nodes + 1), 0)
    for n_parts in (1, 2, 7, 40, 1000):
        parts = node_parts(tree, work, n_parts)
        assert sorted(np.concatenate(parts).tolist()) == np.flatnonzero(work).tolist()
        assert all((np.diff(part) > 0).all() for part in parts)
    assert node_parts(LabelTree.from_nested([0, 1]), np.array([5, 0, 0, 2]), 4)[0].tolist() == [0, 3]


def test_a_run_that_failed_goes_on_from_its_parts(tmp_path, data):
    class Breaks(Several):
        """Fails at the third part that is trained."""

        trained = 0

        def submit(self, function, *arguments, n_returns=1):
            if function.__name__ == "train_part":
                self.trained += 1
            return super().submit(function, *arguments, n_returns=n_returns)

        def completed(self, references):
            for place in super().completed(references):
                if self.trained > 3 and place == 3:
                    raise OSError("the power is gone")
                yield place

    parameters = {"random_state": 0, "arity": 4, "max_leaf": 10}
    with pytest.raises(OSError, match="power"):
        fit(PLTClassifier(**parameters), (data.X, data.Y), n_shards=2, checkpoint=tmp_path, workers=Breaks(2))
    n_written = len(list(tmp_path.glob("part-*.npz")))
    assert n_written == 3
    again = Breaks(5)
    again.completed = lambda references: iter(range(len(references)))
    done = fit(PLTClassifier(**parameters), (data.X, data.Y), n_shards=2, checkpoint=tmp_path, workers=again)
    assert again.trained == len(list(tmp_path.glob("part-*.npz"))) - n_written
    check_same_model(PLTClassifier(**parameters).fit(data.X, data.Y), done)
    with pytest.raises(ValueError, match="belongs to a run on other data or with other settings"):
        fit(PLTClassifier(random_state=1), (data.X, data.Y), n_shards=2, checkpoint=tmp_path, workers=InProcess())
