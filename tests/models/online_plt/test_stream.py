"""Learning from a stream: what may come when, and in which form."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ramify
from ramify import OnlinePLTClassifier, PLTClassifier
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.optimizers import FOBOS
from ramify.trees import LabelTree
from shared.online_models import weights_by_labels

POLICIES = ["fair", "best", "balanced", "random", "cpt"]
UMLAUTS = ["Übelkeit", "Bein, links", "naïve", "größer, als"]


def rows_about(topics, n_features=8, seed=0):
    """A row a topic: its own feature, and noise."""
    generator = np.random.default_rng(seed)
    X = 0.1 * generator.random((len(topics), n_features))
    X[np.arange(len(topics)), topics] += 1.0
    return X


def top_labels(clf, X):
    return [pairs[0][0] for pairs in clf.predict_labels(X, top_k=1)]


# --- what widens ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_and_indicators_may_widen_from_piece_to_piece(policy):
    topics = np.random.default_rng(0).integers(0, 8, 400)
    X, Y = rows_about(topics), np.eye(8, dtype=int)[topics]
    clf = OnlinePLTClassifier(policy=policy, max_leaf=4, arity=2, random_state=0)
    for width in (2, 5, 8):
        known = topics < width
        clf.partial_fit(X[known][:, :width], Y[known][:, :width])
        assert (clf.n_features_in_, clf.n_labels_) == (width, width)
        assert clf.predict_proba(X[:5], top_k=1).shape == (5, width)
        assert clf.classes_.tolist() == list(range(width))
    narrow = clf.predict(X[:, :3])
    assert narrow.shape == (400, 8)
    clf.partial_fit(X[:5, :1], Y[:5, :1])  # narrower again: the rest is zero
    assert (clf.n_features_in_, clf.n_labels_) == (8, 8)
    assert np.mean(np.array(top_labels(clf, X)) == topics) > 0.9


def test_labels_with_commas_and_umlauts_keep_the_order_of_their_appearance():
    topics = np.arange(80) % 4
    X = rows_about(topics)
    clf = OnlinePLTClassifier(random_state=0)
    clf.partial_fit(X[:2], [["naïve", "Bein, links"], []])
    clf.partial_fit(X, [[UMLAUTS[topic]] for topic in topics])
    assert clf.classes_.tolist() == ["naïve", "Bein, links", "Übelkeit", "größer, als"]
    assert top_labels(clf, X[:4]) == UMLAUTS
    answer = clf.predict_proba(X[:4], labels=["Übelkeit"])
    assert answer.indices.tolist() == [2, 2, 2, 2]
    assert answer.data.argmax() == 0


@pytest.mark.parametrize("classes", [np.array([30, 10, 20]), np.array(["b, ü", "a", "c"])], ids=["numbers", "strings"])
def test_classes_may_come_up_at_any_time(classes):
    y = np.arange(90) % 3
    X = rows_about(y)
    clf = OnlinePLTClassifier(random_state=0)
    first = y < 2
    clf.partial_fit(X[first], classes[y[first]]).partial_fit(X, classes[y])
    assert sorted(clf.classes_[:2].tolist()) == sorted(classes[:2].tolist())
    assert clf.classes_[2] == classes[2]
    assert (clf.predict(X) == classes[y]).all()
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1, atol=1e-5)
    named = OnlinePLTClassifier(random_state=0).partial_fit(X[first], classes[y[first]], classes=classes)
    assert named.classes_.tolist() == sorted(classes.tolist())
    assert named.predict_proba(X).shape == (90, 3)


def test_classes_without_new_ones_keep_their_type():
    y = np.array(["a", "b"] * 5)
    clf = OnlinePLTClassifier().partial_fit(rows_about(np.arange(10) % 2), y)
    before = clf.classes_.dtype
    assert clf.partial_fit(rows_about(np.arange(10) % 2), y).classes_.dtype == before
    assert clf.predict(rows_about([0])).dtype == before


@pytest.mark.parametrize("policy", POLICIES)
def test_a_label_first_seen_after_many_others_is_learned(policy):
    n = 300
    X = sparse.identity(n + 1, format="csr", dtype=np.float32)
    clf = OnlinePLTClassifier(policy=policy, random_state=0)
    clf.partial_fit(X[:n], [[f"label {k}"] for k in range(n)])
    for _ in range(30):
        clf.learn_one(X[[n]], ["the last, neu"])
    assert clf.predict_one(X[[n]], top_k=1)[0][0] == "the last, neu"
    assert clf.n_labels_ == n + 1
    assert sorted(clf.tree_.label[clf.tree_.label >= 0].tolist()) == list(range(n + 1))


# --- rows without labels, rows without features -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_without_labels_teach_the_root_how_likely_any_label_is(policy):
    topics = np.arange(400) % 4
    X = rows_about(topics)
    labels = [[f"label {topic}"] if topic < 2 else [] for topic in topics]
    clf = OnlinePLTClassifier(policy=policy, random_state=0).partial_fit(X, labels)
    total = np.asarray(clf.predict_proba(X, threshold=0.0).sum(axis=1))
    assert total[topics < 2].min() > 0.7
    assert total[topics >= 2].max() < 0.3
    assert top_labels(clf, X[:2]) == ["label 0", "label 1"]


@pytest.mark.parametrize("nothing", [[[], []], np.zeros((2, 3), dtype=int), sparse.csr_array((2, 0))])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_may_begin_with_rows_that_have_no_labels(policy, nothing):
    X = rows_about(np.arange(40) % 3)
    clf = OnlinePLTClassifier(policy=policy, random_state=0).partial_fit(X[:2], nothing)
    assert clf.predict(X).nnz == 0
    assert clf.predict_labels(X[:3]) == [[], [], []]
    assert clf.predict_one(X[0]) == []
    assert clf.predict_proba(X, top_k=2).shape == (40, clf.n_labels_)
    assert not hasattr(clf, "tree_")
    with pytest.raises(ValueError, match="no label"):
        clf.freeze()
    again = copy.deepcopy(clf)
    is_list = isinstance(nothing, list)
    labels = [[f"label {k % 3}"] for k in range(40)] if is_list else np.eye(3, dtype=int)[np.arange(40) % 3]
    for model in (clf, again):
        for _ in range(5):
            model.partial_fit(X, labels)
        assert top_labels(model, X[:3]) == (["label 0", "label 1", "label 2"] if is_list else [0, 1, 2])
    assert weights_by_labels(clf) == weights_by_labels(again)


def test_only_rows_without_labels_are_a_model_that_can_be_saved(tmp_path):
    clf = OnlinePLTClassifier().partial_fit(np.ones((5, 2)), [[]] * 5)
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert (again.n_labels_, again.n_examples_) == (0, 5)
    assert again.partial_fit(np.ones((1, 2)), [["a"]]).predict_one({0: 1.0})[0][0] == "a"


def test_rows_without_features_are_learned_by_the_bias_alone():
    clf = OnlinePLTClassifier(random_state=0)
    for _ in range(20):
        clf.learn_one({}, ["always"])
    clf.partial_fit(sparse.csr_array((20, 5)), [["always"]] * 19 + [["rarely"]])
    assert [label for label, _ in clf.predict_one({})] == ["always", "rarely"]
    assert clf.predict_one({3: 1.0}) == clf.predict_one({})


def test_named_features_may_follow_rows_without_any():
    clf = OnlinePLTClassifier().learn_one({}, ["a"]).learn_one({"word": 1.0}, ["b"])
    assert clf.schema_.named_columns == {"word": 0}


# --- one row at a time ------------------------------------------------------------------------------------------------


def test_numbered_features_come_in_dicts_of_any_width():
    clf = OnlinePLTClassifier(random_state=0)
    for _ in range(30):
        clf.learn_one({3: 1.0}, ["low"]).learn_one({10**6: 2.0, 7: 0.5}, ["high"])
    assert clf.n_features_in_ == 10**6 + 1
    assert clf.predict_one({3: 1.0})[0][0] == "low"
    assert clf.predict_one({10**6: 1.0})[0][0] == "high"
    assert clf.predict_one({3: 1.0, 10**9: 5.0}) == clf.predict_one({3: 1.0})
    with pytest.raises(ValueError, match="below 2147483646"):
        clf.learn_one({2**31: 1.0}, ["low"])
    with pytest.raises(ValueError, match="names its features"):
        clf.learn_one({"a": 1.0}, ["low"])


def test_named_features_get_columns_as_they_come_and_are_saved(tmp_path):
    clf = OnlinePLTClassifier(random_state=0)
    for _ in range(30):
        clf.learn_one({"Größe": 1.0}, ["a"]).learn_one({"Gewicht, kg": 1.0, "Größe": 0.1}, ["b"])
    assert clf.schema_.named_columns == {"Größe": 0, "Gewicht, kg": 1}
    assert clf.predict_one({"Gewicht, kg": 1.0, "unheard": 3.0}) == clf.predict_one({"Gewicht, kg": 1.0})
    assert clf.predict_one({"Gewicht, kg": 1.0})[0][0] == "b"
    assert clf.explain({"Gewicht, kg": 1.0}, "b").path[-1].contributions[0].feature == "Gewicht, kg"
    with pytest.raises(ValueError, match="numbers its features"):
        clf.learn_one({0: 1.0}, ["a"])
    clf.save(tmp_path / "model")
    for again in (ramify.load(tmp_path / "model"), clf.freeze(prune=0.0)):
        assert again.predict_one({"Größe": 1.0})[0][0] == "a"
        assert again.explain({"Größe": 1.0}, "a").path[-1].contributions[0].feature == "Größe"
    again = ramify.load(tmp_path / "model").learn_one({"Alter": 1.0}, ["c"])
    assert again.schema_.named_columns == {"Größe": 0, "Gewicht, kg": 1, "Alter": 2}
    assert weights_by_labels(again) == weights_by_labels(clf.learn_one({"Alter": 1.0}, ["c"]))


def test_a_data_frame_may_widen_but_not_change_its_order():
    frame = pd.DataFrame(rows_about([0, 1, 2]), columns=[f"feature {k}" for k in range(8)])
    clf = OnlinePLTClassifier().partial_fit(frame.iloc[:, :5], ["a", "b", "c"])
    with pytest.raises(ValueError, match="feature names should match"):
        clf.partial_fit(frame.iloc[:, [1, 0, 2, 3, 4]], ["a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.partial_fit(frame, ["a", "b", "c"])
        assert clf.feature_names_in_.tolist() == frame.columns.tolist()
        clf.learn_one({"feature 7": 1.0, "new": 1.0}, "d")
        assert clf.n_features_in_ == 9
        assert clf.predict_one({"new": 1.0, "feature 1": 1.0})
        clf.predict(frame)


def test_texts_are_hashed_so_that_new_words_can_come():
    clf = OnlinePLTClassifier(random_state=0)
    for _ in range(20):
        clf.learn_one("red apple", ["apple"]).learn_one("a neverseen Wörtchen", ["Wörtchen"])
    assert clf.predict_one("Wörtchen")[0][0] == "Wörtchen"
    assert clf.predict_labels(["an apple"], top_k=1)[0][0][0] == "apple"
    with pytest.raises(ValueError, match="trained on numbers"):
        OnlinePLTClassifier().partial_fit(np.eye(2), [0, 1]).partial_fit(["text", "text"], [0, 1])


@pytest.mark.parametrize(
    "labels",
    [[0, 1], [1, 0], (0, 1), [1], {0, 1}, np.array([0, 1]), ["0", "1"], []],
    ids=str,
)
def test_the_labels_of_one_row_are_labels_even_if_they_look_like_a_row_of_zeros_and_ones(labels):
    clf = OnlinePLTClassifier().learn_one({0: 1.0}, labels)
    assert clf.schema_.labels.kind == "collections"
    assert sorted(clf.classes_.tolist()) == sorted(labels)
    assert clf.learn_one({0: 1.0}, labels).n_labels_ == len(labels)


def test_a_model_of_indicators_takes_single_rows_of_them():
    clf = OnlinePLTClassifier().partial_fit(np.eye(2), np.eye(2, dtype=int))
    for row in ([0, 1], (1, 0), np.array([1, 1]), sparse.csr_array([[0, 1, 1]]), [], [1]):
        clf.learn_one({0: 1.0}, row)
    assert (clf.n_labels_, clf.n_examples_) == (3, 8)
    for bad, said in (
        (["a"], "label collections"),
        ({0}, "label collections"),
        (1, "one class"),
        ([3], "0 and 1, got 3"),
    ):
        with pytest.raises(ValueError, match=said):
            clf.learn_one({0: 1.0}, bad)
    assert clf.n_examples_ == 8
    sparse_first = OnlinePLTClassifier().learn_one({0: 1.0}, sparse.coo_array([0, 0, 1]))
    assert (sparse_first.schema_.labels.kind, sparse_first.n_labels_) == ("indicator", 3)


@pytest.mark.parametrize("form", ["dict", "csr", "array", "flat", "list"])
def test_one_row_in_any_form_teaches_the_same(form):
    X = rows_about(np.arange(12) % 3).astype(np.float32)
    batch = OnlinePLTClassifier(random_state=0).partial_fit(X, [["a"], ["b"], ["c"]] * 4)
    single = OnlinePLTClassifier(random_state=0)
    for k, row in enumerate(X):
        x = {
            "dict": dict(enumerate(row.tolist())),
            "csr": sparse.csr_array(row[None]),
            "array": row[None],
            "flat": row,
            "list": [row.tolist()],
        }[form]
        single.learn_one(x, ["abc"[k % 3]])
    assert weights_by_labels(single) == weights_by_labels(batch)


# --- weights and passes -----------------------------------------------------------------------------------------------


def test_weights_scale_steps_and_zero_leaves_a_row_out():
    X, labels = rows_about([0, 1, 2, 0]), [["a"], ["b"], ["c"], ["a", "d"]]
    settings = {"optimizer": FOBOS(l2=0.0, learning_rate=0.01), "random_state": 0}
    plain = OnlinePLTClassifier(**settings).partial_fit(X, labels, sample_weight=[2, 2, 2, 0])
    kept = OnlinePLTClassifier(**settings).partial_fit(X[:3], labels[:3], sample_weight=[2, 2, 2])
    assert weights_by_labels(plain) == weights_by_labels(kept)
    assert plain.n_labels_ == 4  # the label is known, though it has no leaf
    assert plain.predict_proba(X, labels=["d"]).sum() == 0
    heavy = OnlinePLTClassifier(**settings).partial_fit(X[:1], [["a"]]).partial_fit(X[1:2], [["b"]], sample_weight=[2])
    twice = OnlinePLTClassifier(**settings).partial_fit(X[[0, 1, 1]], [["a"], ["b"], ["b"]])
    once = OnlinePLTClassifier(**settings).partial_fit(X[[0, 1]], [["a"], ["b"]])
    gap = [abs(one.predict_proba(X).toarray() - twice.predict_proba(X).toarray()).max() for one in (heavy, once)]
    assert gap[0] < 0.02 * gap[1]


def test_several_passes_go_over_the_rows_again_and_fit_them_better():
    data = make_multilabel(300, 60, 200, random_state=0)
    settings = {"random_state": 0, "shuffle": False}
    twice = OnlinePLTClassifier(n_epochs=2, **settings).fit(data.X, data.Y)
    by_hand = OnlinePLTClassifier(**settings).partial_fit(data.X, data.Y).partial_fit(data.X, data.Y)
    assert weights_by_labels(twice) == weights_by_labels(by_hand)
    assert twice.n_examples_ == 600
    once = OnlinePLTClassifier(**settings).fit(data.X, data.Y)
    truth = data.Y.toarray() > 0
    loss = [-np.log(clf.predict_proba(data.X, threshold=0.0).toarray()[truth]).mean() for clf in (once, twice)]
    assert loss[1] < loss[0]
    shuffled = OnlinePLTClassifier(random_state=0).fit(data.X, data.Y)
    assert weights_by_labels(shuffled) != weights_by_labels(once)


def test_few_shot_classes_do_not_warn_of_a_regression():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlinePLTClassifier().partial_fit(np.eye(9), np.arange(9)).partial_fit(np.eye(9), np.arange(9)[::-1])


# --- trees to begin with ----------------------------------------------------------------------------------------------


def test_a_tree_of_one_level_is_one_against_all_with_every_policy():
    """As many binary learners on their own, each with the bias and the steps of the others."""
    data = make_multilabel(200, 12, 80, random_state=1)
    Y = data.Y.toarray().astype(int)
    Y[:, 0] |= Y.sum(axis=1) == 0
    settings = {"tree": "one_level", "shuffle": False, "random_state": 0}
    fixed = OnlinePLTClassifier(policy=None, **settings).fit(data.X, Y)
    growing = OnlinePLTClassifier(policy="fair", **settings).fit(data.X, Y)
    assert fixed.tree_.height == growing.tree_.height == 1
    assert weights_by_labels(fixed) == weights_by_labels(growing)
    # A row that has another label reaches the root all the same, so that each label is learned as if it were alone.
    alone = np.column_stack([np.ones(200, dtype=int), Y[:, 3]])
    pair = OnlinePLTClassifier(policy=None, tree=LabelTree.from_nested([0, 1]), shuffle=False).fit(data.X, alone)
    assert weights_by_labels(pair)[frozenset({1}), "node"] == weights_by_labels(fixed)[frozenset({3}), "node"]
    from_the_first_row = OnlinePLTClassifier(policy="fair", arity=2, max_leaf=10**6).partial_fit(data.X, Y)
    assert from_the_first_row.tree_.height == 1
    assert (growing.predict(data.X) != from_the_first_row.predict(data.X)).nnz == 0


@pytest.mark.parametrize("policy", ["best", "random", "fair"])
def test_a_warm_start_on_a_sample_goes_on_with_new_labels(policy):
    """OPLT-W is proper: its weights are those of an incremental PLT that knows the final tree from the start."""
    data = make_multilabel(600, 80, 300, random_state=2)
    settings = {"arity": 2, "max_leaf": 5, "random_state": 0}
    clf = OnlinePLTClassifier(policy=policy, shuffle=False, **settings).warm_start(data.X[:25], data.Y[:25])
    assert clf.tree is None
    known = set(clf.tree_.label[clf.tree_.label >= 0].tolist())
    assert known == set(data.Y[:25].indices.tolist())
    n_nodes = clf.tree_.n_nodes
    assert clf.tree_.height > 2
    clf.partial_fit(data.X[25:], data.Y[25:])
    assert set(clf.tree_.label[clf.tree_.label >= 0].tolist()) == set(data.Y.indices.tolist())
    assert clf.tree_.n_nodes > n_nodes + 10
    assert clf.n_examples_ == 600
    incremental = OnlinePLTClassifier(policy=None, tree=clf.tree_, random_state=0)
    assert incremental.partial_fit(data.X, data.Y).n_labels_ == clf.n_labels_
    assert weights_by_labels(clf) == weights_by_labels(incremental)
    fixed = OnlinePLTClassifier(policy=None).warm_start(data.X, data.Y)  # a tree that never grows
    assert fixed.partial_fit(data.X[:5], data.Y[:5]).n_examples_ == 605


@pytest.mark.parametrize("policy", [None, *POLICIES])
def test_the_tree_of_a_batch_model_is_a_tree_to_begin_with(policy):
    data = make_multilabel(400, 50, 200, random_state=3)
    batch = PLTClassifier(max_leaf=8, random_state=0).fit(data.X, data.Y)
    clf = OnlinePLTClassifier(policy=policy, tree=batch.tree_, random_state=0)
    for start in range(0, 400, 50):
        clf.partial_fit(data.X[start : start + 50], data.Y[start : start + 50])
    assert clf.tree_.to_nested() == batch.tree_.to_nested()
    assert clf.predict_proba(data.X, top_k=5).shape == data.Y.shape
    narrow = OnlinePLTClassifier(policy=policy, tree=batch.tree_).partial_fit(data.X[:1], data.Y[:1, :1])
    assert narrow.n_labels_ == batch.tree_.n_labels  # the tree has the other columns
    if policy is not None:
        wider = sparse.hstack([data.Y, np.ones((400, 1))]).tocsr()
        assert clf.partial_fit(data.X, wider).n_labels_ == data.Y.shape[1] + 1


def test_labels_of_a_given_tree_are_named_in_advance():
    tree = LabelTree.from_nested([[0, 1], [2, 3]])
    X, labels = rows_about([3, 2]), [[UMLAUTS[3]], [UMLAUTS[2]]]
    with pytest.raises(ValueError, match=r"leaf for label column 3, but only 2 labels are known"):
        OnlinePLTClassifier(tree=tree).partial_fit(X, labels)
    clf = OnlinePLTClassifier(tree=tree, policy=None).partial_fit(X, labels, classes=UMLAUTS)
    assert clf.classes_.tolist() == UMLAUTS
    assert clf.tree_.to_nested() == tree.to_nested()
    with pytest.raises(ValueError, match="label 'other' has no leaf in the tree, and policy=None adds none"):
        clf.partial_fit(X, [["other"], []])


def test_a_policy_of_none_needs_a_tree():
    with pytest.raises(ValueError, match="needs a tree"):
        OnlinePLTClassifier(policy=None).partial_fit(np.eye(2), [0, 1])


def test_multi_class_streams_are_learned_as_well_as_batches():
    data = make_multiclass(1500, 40, 400, random_state=0)
    batch = PLTClassifier(random_state=0).fit(data.X[:1000], data.y[:1000]).score(data.X[1000:], data.y[1000:])
    online = OnlinePLTClassifier(random_state=0, n_epochs=3).fit(data.X[:1000], data.y[:1000])
    assert online.score(data.X[1000:], data.y[1000:]) > batch - 0.1
