"""What an online model goes through: refused pieces, files, copies, failing policies, threads, Ctrl-C, forks."""

from __future__ import annotations

import copy
import pickle
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import ramify
from ramify import OnlinePLTClassifier
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.files.directory import ModelFileError
from ramify.optimizers import AdaGrad
from shared.online_models import LEARNERS, POLICIES, everything, stream, weights_by_labels
from shared.warm_python import run

NAMED = [name for name in POLICIES if name != "callable"]


def fitted(policy="fair", learner="adagrad", seed=0, multiclass=False, **settings):
    X, Y = stream(seed, multiclass=multiclass)
    clf = OnlinePLTClassifier(**POLICIES[policy], **LEARNERS[learner], random_state=1, **settings)
    return clf.partial_fit(X, Y)


# --- refused pieces ---------------------------------------------------------------------------------------------------

GOOD = np.ones((2, 3))
REFUSED = {
    "NaN": ([[np.nan, 1.0, 0.0], [0.0, 1.0, 1.0]], [["new"], ["b"]], {}, "NaN"),
    "infinity": (sparse.csr_array([[np.inf, 0.0], [0.0, 1.0]]), [["new"], ["b"]], {}, "infinity"),
    "too few labels": (GOOD, [["new"]], {}, "2 rows, but Y has 1"),
    "too many labels": (GOOD, [["new"], [], ["b"]], {}, "2 rows, but Y has 3"),
    "another type of label": (GOOD, [["new"], [3]], {}, "mixes strings and integers"),
    "numbers for strings": (GOOD, [[7], [3]], {}, "labels so far are like"),
    "another kind of labels": (GOOD, ["new", "b"], {}, "one class per row"),
    "an indicator": (GOOD, np.eye(2, dtype=int), {}, "a 0/1 array"),
    "no labels": (GOOD, None, {}, "requires y"),
    "short weights": (GOOD, [["new"], ["b"]], {"sample_weight": [1.0]}, "sample_weight"),
    "negative weights": (GOOD, [["new"], ["b"]], {"sample_weight": [1.0, -1.0]}, "[Nn]egative"),
    "weights that are NaN": (GOOD, [["new"], ["b"]], {"sample_weight": [1.0, np.nan]}, "NaN"),
    "weights of zero": (GOOD, [["new"], ["b"]], {"sample_weight": [0.0, 0.0]}, "zero"),
    "texts": (["one", "two"], [["new"], ["b"]], {}, "trained on numbers"),
    "one dimension": (np.ones(3), [["new"]], {}, "Reshape|2D"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_piece_leaves_the_model_exactly_as_it_was(case):
    X, labels, more, said = REFUSED[case]
    clf = OnlinePLTClassifier(random_state=0).partial_fit(GOOD, [["a"], ["b", "c"]])
    before = everything(clf)
    with pytest.raises(ValueError, match=said):
        clf.partial_fit(X, labels, **more)
    assert everything(clf) == before
    assert clf.partial_fit(GOOD, [["new"], ["b"]]).classes_.tolist() == ["a", "b", "c", "new"]
    empty = OnlinePLTClassifier()
    if case not in ("numbers for strings", "another kind of labels", "an indicator", "texts"):
        with pytest.raises(ValueError):
            empty.partial_fit(X, labels, **more)
        assert not [name for name in empty.__dict__ if name.endswith("_")]


@pytest.mark.parametrize("multiclass", [False, True])
def test_a_label_outside_the_tree_is_refused_and_forgotten_where_no_policy_adds_it(multiclass):
    labels = ["a", "b"] if multiclass else [["a"], ["b"]]
    clf = OnlinePLTClassifier(policy=None, tree="complete").partial_fit(GOOD, labels)
    before = everything(clf)
    with pytest.raises(ValueError, match="label 'new' has no leaf"):
        clf.partial_fit(np.ones((2, 9)), ["new", "b"] if multiclass else [["new"], ["b"]])
    assert everything(clf) == before


def test_a_refused_row_forgets_the_names_of_its_features():
    clf = OnlinePLTClassifier()
    with pytest.raises(ValueError):
        clf.learn_one({"word": 1.0}, [None])
    assert not clf.__sklearn_is_fitted__()
    clf.learn_one({"word": 1.0}, ["a"])
    before = everything(clf)
    for x, y in (({"other": 1.0}, [None]), ({"other": np.nan}, ["b"]), ({"other": "1"}, ["b"]), ({1.5: 1.0}, ["b"])):
        with pytest.raises(ValueError):
            clf.learn_one(x, y)
        assert everything(clf) == before


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("policy", "best"),
        ("optimizer", "fobos"),
        ("learning_rate", AdaGrad(eps=0.01, learning_rate=0.5)),
        ("arity", 2),
        ("max_leaf", 7),
        ("bias", 0.7),
        ("memory_budget", 10**6),
        ("normalize", False),
    ],
    ids=str,
)
def test_settings_stay_those_that_learning_began_with(name, change):
    clf = fitted()
    before = everything(clf)
    clf.set_params(**{"optimizer" if name == "learning_rate" else name: change})
    with pytest.raises(ValueError, match=f"{name} was .* when learning began"):
        clf.partial_fit(*stream(1))
    assert everything(clf) == before
    assert weights_by_labels(copy.deepcopy(clf)) == weights_by_labels(clf)
    X, _ = stream(0)
    assert (clf.freeze(prune=0.0).predict(X) != fitted().freeze(prune=0.0).predict(X)).nnz == 0
    clf.fit(*stream(1))  # begins anew, with the new ones
    clf.set_params(n_jobs=2, n_epochs=3, verbose=False).partial_fit(*stream(1))


# --- files and copies -------------------------------------------------------------------------------------------------


def saved_and_loaded(clf, folder):
    clf.save(folder / "model")
    return ramify.load(folder / "model")


@pytest.mark.parametrize("way", ["file", "pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("policy", NAMED)
@pytest.mark.parametrize("multiclass", [False, True], ids=["multi-label", "multi-class"])
def test_a_model_resumes_exactly(policy, learner, multiclass, way, tmp_path):
    clf = fitted(policy, learner, multiclass=multiclass)
    ways = {"pickle": lambda clf: pickle.loads(pickle.dumps(clf)), "deepcopy": copy.deepcopy, "copy": copy.copy}
    again = saved_and_loaded(clf, tmp_path) if way == "file" else ways[way](clf)
    before = everything(again)
    assert before[:3] == everything(clf)[:3]
    X, Y = stream(5, n_labels=40, multiclass=multiclass)
    clf.partial_fit(X, Y)
    assert everything(again) == before  # what the one learns is nothing to the other
    again.partial_fit(X, Y)
    assert weights_by_labels(again) == weights_by_labels(clf)
    assert again.tree_.to_nested() == clf.tree_.to_nested()
    assert again.n_examples_ == clf.n_examples_
    assert again.model_.learner.n_updates == clf.model_.learner.n_updates
    assert again.classes_.tolist() == clf.classes_.tolist()


def test_a_policy_of_ones_own_is_pickled_but_not_saved(tmp_path):
    clf = fitted("callable")
    X, Y = stream(5, n_labels=40)
    again = pickle.loads(pickle.dumps(clf)).partial_fit(X, Y)
    assert weights_by_labels(again) == weights_by_labels(clf.partial_fit(X, Y))
    with pytest.raises(ModelFileError, match=r"parameters\.policy is a function"):
        clf.save(tmp_path / "model")
    clf.freeze().save(tmp_path / "model")


def test_names_for_people_widen_with_the_model(tmp_path):
    clf = OnlinePLTClassifier().partial_fit(np.eye(2), [["a"], ["b"]])
    clf.set_names(labels=["Apfel", "Birne"], features=["rot", "grün"])
    clf.partial_fit(np.eye(4), [["a"], ["b"], ["c"], ["d"]])
    again = saved_and_loaded(clf, tmp_path)
    assert again.explain({3: 1.0}, "d").name == ""
    assert again.explain({0: 1.0}, "a").name == "Apfel"


# --- freezing, explaining ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("policy", ["fair", "best", "cpt"])
@pytest.mark.parametrize("multiclass", [False, True], ids=["multi-label", "multi-class"])
def test_a_frozen_model_answers_nearly_as_the_online_one(policy, learner, multiclass, tmp_path):
    data = (make_multiclass if multiclass else make_multilabel)(600, 60, 300, random_state=0)
    Y = data.y if multiclass else sparse.vstack([data.Y[:500], data.Y[500:] * 0]).tocsr()
    clf = OnlinePLTClassifier(**POLICIES[policy], **LEARNERS[learner], n_epochs=2, random_state=0).fit(data.X, Y)
    expected = clf.predict_proba(data.X, threshold=0.0)
    # Small weights are all that descent by small steps has, so that none of them can be dropped.
    for prune, agreement, gap in [(0.0, 0.98, 0.05), (0.1, 0.9, 0.15)][: 1 if learner == "fobos" else 2]:
        frozen = clf.freeze(prune)
        answer = frozen.predict_proba(data.X, threshold=0.0)
        best = [clf.predict_labels(data.X, top_k=1), frozen.predict_labels(data.X, top_k=1)]
        same = np.mean([one[0][0] == other[0][0] for one, other in zip(*best, strict=True)])
        assert same >= agreement
        assert abs(answer - expected).max() < gap
        assert answer.shape == expected.shape
    loaded = saved_and_loaded(frozen, tmp_path)
    assert abs(loaded.predict_proba(data.X, threshold=0.0) - answer).max() == 0
    explanation = loaded.explain(data.X[[0]])
    assert explanation.probability == pytest.approx(loaded.predict_one(data.X[[0]])[0][1])
    assert not hasattr(loaded, "partial_fit")


@pytest.mark.parametrize("multiclass", [False, True], ids=["multi-label", "multi-class"])
def test_an_explanation_is_the_path_to_the_label(multiclass):
    clf = fitted("best", multiclass=multiclass)
    X, _ = stream(0)
    for (label, probability), x in ((clf.predict_one(x)[0], x) for x in X[:10]):
        explanation = clf.explain(x, label, top=3)
        assert explanation.probability == pytest.approx(probability, rel=1e-6)
        tree = clf.tree_
        column = clf.schema_.labels.columns([label])[0]
        nodes = tree.path(column).tolist()
        assert [step.node for step in explanation.path] == (nodes[1:] if multiclass else nodes)
        if not multiclass:
            for step in explanation.path:
                assert step.probability == pytest.approx(1 / (1 + np.exp(-step.score)), rel=1e-4)
    with pytest.raises(ValueError, match=r"known labels|not a column"):
        clf.explain(X[0], 10**6)


# --- policies of one's own --------------------------------------------------------------------------------------------


def failing_policy(answer, after=5):
    """Returns good answers a few times, then the given one."""
    asked = []

    def policy(tree, x, label):
        asked.append(label)
        if len(asked) > after:
            return answer(tree) if callable(answer) else answer
        return tree.root, tree.is_leaf(tree.root)

    return policy


def first_leaf(tree):
    return next(node for node in tree.children(tree.root) if tree.is_leaf(node)), False


def asks_too_much(tree):
    tree.children(10**6)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (None, ValueError, r"must answer \(node, insert\), got None"),
        ((1, 2, 3), ValueError, "must answer"),
        (("a", False), ValueError, "must answer"),
        ((0.5, False), ValueError, "must answer"),
        ((-1, False), ValueError, "node -1, which the tree does not have"),
        ((10**6, False), ValueError, "which the tree does not have"),
        ((2**80, True), ValueError, "which the tree does not have"),
        (first_leaf, ValueError, "a leaf cannot have children"),
        (asks_too_much, IndexError, "no such node"),
        (lambda tree: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_a_policy_that_fails_stops_learning_and_leaves_a_sound_model(answer, error, said):
    X, y = np.eye(12), np.arange(12)
    clf = OnlinePLTClassifier(policy=failing_policy(answer)).partial_fit(X[:3], y[:3])
    with pytest.raises(error, match=said):
        clf.partial_fit(X[3:], y[3:])
    assert clf.n_examples_ == 6  # what came before the failure is learned
    assert clf.predict(X[:6]).tolist() == y[:6].tolist()
    assert weights_by_labels(pickle.loads(pickle.dumps(clf.set_params(policy=first_fit)))) == weights_by_labels(clf)
    clf.partial_fit(X, y)
    assert sorted(clf.tree_.label[clf.tree_.label >= 0].tolist()) == list(range(12))


def first_fit(tree, x, label):
    return tree.root, tree.is_leaf(tree.root)


def test_a_policy_may_ask_the_model_but_not_teach_it():
    answers, X = [], np.eye(6)

    def nosy(tree, x, label):
        answers.append((clf.predict(X[:2]).tolist(), clf.predict_one(X[0], top_k=1)[0][0], len(clf.tree_.label)))
        copies = (lambda: pickle.dumps(clf.fitted_), lambda: copy.deepcopy(clf), lambda: copy.copy(clf))
        for forbidden in (lambda: clf.partial_fit(X[:1], [0]), *copies, lambda: clf.freeze()):
            with pytest.raises(ValueError, match="while it is being asked"):
                forbidden()
        return first_fit(tree, x, label)

    clf = OnlinePLTClassifier(policy=nosy)
    clf.partial_fit(X[:2], [0, 1])
    clf.partial_fit(X, np.arange(6))
    plain = OnlinePLTClassifier(policy=first_fit).partial_fit(X[:2], [0, 1]).partial_fit(X, np.arange(6))
    assert len(answers) == 5
    assert weights_by_labels(clf) == weights_by_labels(plain)


# --- threads, Ctrl-C, forks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fair", "callable"])
def test_threads_may_learn_and_ask_at_once(policy):
    data = make_multilabel(400, 80, 200, random_state=0)
    settings = {"policy": first_fit} if policy == "callable" else {"policy": policy}
    clf = OnlinePLTClassifier(**settings, n_jobs=2).partial_fit(data.X[:5], [["first"]] * 5)
    labels = [[f"label {j}" for j in data.Y[[row]].indices] for row in range(400)]
    failures = []

    def guarded(work):
        def body():
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=body)

    def learn(offset):
        for row in range(offset, 400, 4):
            clf.partial_fit(data.X[[row, row]], [labels[row]] * 2)

    def ask():
        for row in range(150):
            answer = clf.predict_proba(data.X[row : row + 3], top_k=4)
            assert answer.shape[1] <= clf.n_labels_
            clf.predict_one(data.X[[row]])
            clf.explain(data.X[[row]], "first")
            assert clf.memory_ > 0
            assert clf.tree_.n_labels >= 1

    threads = [guarded(lambda k=k: learn(k)) for k in range(4)] + [guarded(ask), guarded(ask)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 120
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not failures
    assert clf.n_examples_ == 805
    names = {"first"} | {name for row in labels for name in row}
    assert sorted(clf.classes_) == sorted(names)
    assert sorted(clf.tree_.label[clf.tree_.label >= 0].tolist()) == list(range(len(names)))


INTERRUPTED = """
import pickle, sys
from ramify import OnlinePLTClassifier
from ramify.data.synthetic import make_multilabel
from shared.interrupt import interrupt_after

small, large = make_multilabel(50, 10, 50, random_state=0), make_multilabel(3000, 1000, 1000, random_state=0)
clf = OnlinePLTClassifier(arity=2, max_leaf=4, n_jobs=2).partial_fit(small.X, small.Y)
interrupt_after(0.2)
try:
    for _ in range(200):
        clf.partial_fit(large.X, large.Y)
    sys.exit("not interrupted")
except KeyboardInterrupt:
    learned = clf.n_examples_
assert 50 < learned < 600_000, learned
again = pickle.loads(pickle.dumps(clf))
rows, Y = large.X[:50], large.Y[:50]
for model in (clf, again):
    model.partial_fit(rows, Y)
    assert model.n_examples_ == learned + 50
assert (clf.predict_proba(rows, top_k=3) != again.predict_proba(rows, top_k=3)).nnz == 0
print("sound")
"""


def test_an_interrupt_leaves_a_sound_model_that_goes_on():
    assert run(INTERRUPTED, timeout=120).strip() == "sound"


FORKING = """
import os
import numpy as np
from ramify import OnlinePLTClassifier
from ramify.data.synthetic import make_multilabel

data = make_multilabel(300, 60, 200, random_state=0)
clf = OnlinePLTClassifier(n_jobs=2, random_state=0).partial_fit(data.X[:200], data.Y[:200])
twin = OnlinePLTClassifier(n_jobs=2, random_state=0).partial_fit(data.X, data.Y).predict_proba(data.X, top_k=5)
child = os.fork()
clf.partial_fit(data.X[200:], data.Y[200:])
same = np.array_equal(clf.predict_proba(data.X, top_k=5).data, twin.data)
if child == 0:
    os._exit(0 if same else 1)
assert same
_, status = os.waitpid(child, 0)
assert status == 0, status
print("done")
"""


def test_a_forked_process_goes_on_learning():
    assert run(FORKING, timeout=60).strip() == "done"
