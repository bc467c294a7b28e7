"""The memory tree as a user meets it: streams, files, explanations, bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import ramify
from ramify import MemoryTreeClassifier, progressive
from ramify.base.model import Query
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.optimizers import AdaGrad

FEW = make_multiclass(n_rows=1200, n_classes=400, n_features=2000, features_per_row=20.0, random_state=0)
FEW_TEST = make_multiclass(
    n_rows=400, n_classes=400, n_features=2000, features_per_row=20.0, random_state=0, split="test"
)


def classes(data):
    return data.Y.indices


def test_classes_with_three_rows_each_are_recognised():
    clf = MemoryTreeClassifier(random_state=0).partial_fit(FEW.X, classes(FEW))
    exact = MemoryTreeClassifier(leaf_multiplier=1000.0, random_state=0).partial_fit(FEW.X, classes(FEW))
    paper = MemoryTreeClassifier(n_leaves=1, n_neighbours=1, random_state=0).partial_fit(FEW.X, classes(FEW))
    right = [one.score(FEW_TEST.X, classes(FEW_TEST)) for one in (clf, exact, paper)]
    assert right[0] > 0.85 * right[1] > 0.4  # nearly as good as looking at everything
    assert right[0] > right[2] > 0.1  # chance: 0.0025


def test_several_labels_a_row_are_ranked():
    settings = {"n_labels": 60, "n_features": 500, "features_per_row": 15.0, "random_state": 0}
    train, test = make_multilabel(n_rows=1500, **settings), make_multilabel(n_rows=300, split="test", **settings)
    precision = {}
    for scorer in ("votes", "one_against_rest"):
        clf = MemoryTreeClassifier(label_scorer=scorer, random_state=0).fit(train.X, train.Y)
        precision[scorer] = ramify.metrics.precision_at_k(test.Y, clf.predict_proba(test.X, top_k=1), 1)
    assert precision["one_against_rest"] > precision["votes"] > 0.3


def test_labels_and_features_come_up_at_any_time():
    clf = MemoryTreeClassifier(random_state=0)
    clf.learn_one({"red": 1.0, "round": 1.0}, "cherry")
    clf.learn_one({"yellow": 1.0, "long": 1.0}, "banana")
    clf.learn_one({"green": 1.0, "round": 2.0}, "apple")
    assert clf.classes_.tolist() == ["cherry", "banana", "apple"]
    assert clf.n_features_in_ == 5
    assert clf.predict_one({"green": 1.0}, top_k=1)[0][0] == "apple"
    assert clf.predict_one({"long": 1.0, "unheard": 3.0}, top_k=1)[0][0] == "banana"
    assert sum(p for _, p in clf.predict_one({"unheard": 1.0})) == pytest.approx(1)


def test_rows_one_by_one_in_pieces_and_together_give_the_same_model():
    X, y = FEW.X[:300], classes(FEW)[:300]
    together = MemoryTreeClassifier(random_state=0).partial_fit(X, y, classes=np.arange(400))
    pieces = MemoryTreeClassifier(random_state=0).partial_fit(X[:100], y[:100], classes=np.arange(400))
    pieces.partial_fit(X[100:], y[100:])
    single = MemoryTreeClassifier(random_state=0).partial_fit(X[:1], y[:1], classes=np.arange(400))
    for row in range(1, 300):
        x = X[[row]]
        single.learn_one(dict(zip(x.indices.tolist(), x.data.tolist(), strict=True)), int(y[row]))
    expected = together.predict_proba(FEW_TEST.X, top_k=3)
    for clf in (pieces, single):
        np.testing.assert_array_equal(clf.predict_proba(FEW_TEST.X, top_k=3).toarray(), expected.toarray())


def test_progressive_validation_leaves_the_model_of_partial_fit():
    X, y = FEW.X[:600], classes(FEW)[:600]
    tested = MemoryTreeClassifier(random_state=0)
    result = progressive.evaluate(tested, X, y, window=200)
    plain = MemoryTreeClassifier(random_state=0).partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
    for name, values in plain.model_.learner.state().items():
        np.testing.assert_array_equal(tested.model_.learner.state()[name], values)
    assert result.so_far.accuracy > 5 * result.so_far.constant_accuracy
    slow = progressive.evaluate(
        MemoryTreeClassifier(random_state=0), zip(X.toarray()[:120], y[:120].tolist(), strict=False)
    )
    quick = progressive.evaluate(MemoryTreeClassifier(random_state=0), X[:120], y[:120])
    assert slow.so_far.accuracy == quick.so_far.accuracy


@pytest.mark.parametrize("changes", [{}, {"max_examples": 150}, {"max_examples": 150, "forgetting": "least_useful"}])
@pytest.mark.parametrize("multiclass", [True, False])
def test_a_saved_model_goes_on_bit_for_bit(tmp_path, changes, multiclass):
    X, y = FEW.X, classes(FEW) if multiclass else FEW.Y
    first = MemoryTreeClassifier(random_state=0, **changes).partial_fit(X[:300], y[:300])
    first.save(tmp_path / "model")
    resumed = ramify.load(tmp_path / "model")
    for clf in (first, resumed):
        clf.partial_fit(X[300:700], y[300:700])
    assert first.n_examples_ == resumed.n_examples_
    for name, values in first.model_.learner.state().items():
        np.testing.assert_array_equal(resumed.model_.learner.state()[name], values, err_msg=name)


def test_feature_names_that_came_one_by_one_are_saved(tmp_path):
    clf = MemoryTreeClassifier(random_state=0).learn_one({"red": 1.0}, "cherry").learn_one({"green": 1.0}, "apple")
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model").learn_one({"blue": 1.0, "red": 0.1}, "plum")
    assert again.predict_one({"blue": 1.0}, top_k=1)[0][0] == "plum"
    assert list(again.schema_.named_columns) == ["red", "green", "blue"]


def test_memory_is_bounded_and_the_recent_is_known():
    clf = MemoryTreeClassifier(max_examples=200, random_state=0).partial_fit(FEW.X, classes(FEW))
    assert (clf.n_examples_, clf.n_forgotten_) == (200, clf.model_.learner.n_learned - 200)
    recent, long_ago = slice(-100, None), slice(0, 100)
    assert clf.score(FEW.X[recent], classes(FEW)[recent]) > 0.9 > clf.score(FEW.X[long_ago], classes(FEW)[long_ago])
    assert clf.memory_ < MemoryTreeClassifier(random_state=0).partial_fit(FEW.X, classes(FEW)).memory_


def test_further_passes_store_nothing_twice_and_change_the_routers():
    once, thrice = (MemoryTreeClassifier(n_epochs=n, random_state=0).fit(FEW.X, classes(FEW)) for n in (1, 3))
    assert once.n_examples_ == thrice.n_examples_ <= FEW.X.shape[0]
    assert not np.array_equal(once.model_.learner.state()["leaf"], thrice.model_.learner.state()["leaf"])
    assert thrice.score(FEW_TEST.X, classes(FEW_TEST)) > once.score(FEW_TEST.X, classes(FEW_TEST)) - 0.03


def test_a_query_looks_at_few_of_the_stored_examples():
    clf = MemoryTreeClassifier(n_leaves=2, leaf_multiplier=2.0, random_state=0).fit(FEW.X, classes(FEW))
    *_, n_nodes, n_examples = clf.model_.retrieve(FEW_TEST.X, clf.n_labels_, Query(top_k=1))
    assert n_examples / FEW_TEST.X.shape[0] <= 2 * 2 * np.log2(1200)
    assert n_nodes / FEW_TEST.X.shape[0] < 40


def test_an_explanation_names_the_retrieved_row_what_it_shares_and_the_way():
    clf = MemoryTreeClassifier(leaf_multiplier=0.5, random_state=0)
    texts = ["red round small", "yellow long", "green round", "orange round", "purple round small", "brown hairy"]
    fruits = ["cherry", "banana", "apple", "orange", "plum", "kiwi"]
    clf.partial_fit(texts, fruits)
    explanation = clf.explain("long and yellow")
    assert (explanation.label, explanation.retrieved[0].labels) == ("banana", ["banana"])
    best = explanation.retrieved[0]
    assert best.row == 2
    assert best.has_label
    assert {c.feature for c in best.contributions} == {"long", "yellow"}
    assert best.score == pytest.approx(sum(c.value for c in best.contributions), rel=1e-5)
    assert explanation.probability == pytest.approx(clf.predict_one("long and yellow", top_k=1)[0][1])
    assert sum(memory.share for memory in explanation.retrieved) == pytest.approx(1)
    assert explanation.path[0].n_rows == 6
    assert explanation.path[0].node == 0
    assert explanation.path[-1].goes == "stays"
    assert {step.goes for step in explanation.path[:-1]} <= {"left", "right"}
    assert "row 2 (banana)" in str(explanation)
    assert explanation.to_dict()["retrieved"][0]["contributions"][0]["feature"] in ("long", "yellow")
    other = clf.explain("long and yellow", "kiwi")
    assert other.label == "kiwi"
    assert other.probability < explanation.probability


def test_an_explanation_reads_well_in_a_terminal(capsys):
    from rich.console import Console

    clf = MemoryTreeClassifier(random_state=0).partial_fit(["red round", "yellow long"] * 3, ["cherry", "banana"] * 3)
    Console(width=100, force_terminal=False).print(clf.explain("yellow"))
    out = capsys.readouterr().out
    assert "banana" in out
    assert "of the vote" in out
    assert "the path there" in out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"leaf_multiplier": 0}, "leaf_multiplier must be"),
        ({"alpha": 0}, "alpha must be"),
        ({"alpha": 1.5}, "alpha must be"),
        ({"reroutes": -1}, "reroutes must be an integer"),
        ({"n_leaves": 0}, "n_leaves must be an integer"),
        ({"n_neighbours": 0}, "n_neighbours must be an integer"),
        ({"label_scorer": "oracle"}, "label_scorer must be"),
        ({"max_examples": 0}, "max_examples must be an integer"),
        ({"forgetting": "newest"}, "forgetting must be"),
        ({"scorer_rate": -0.1}, "scorer_rate must be"),
        ({"n_epochs": 0}, "n_epochs must be"),
        ({"optimizer": AdaGrad(learning_rate=0)}, "learning_rate must be"),
        ({"optimizer": AdaGrad(eps=0)}, "eps must be"),
        ({"optimizer": "sgd"}, "optimizer must be"),
    ],
)
def test_bad_parameters_are_named(changes, said):
    with pytest.raises(ValueError, match=said):
        MemoryTreeClassifier(**changes).fit(FEW.X[:5], classes(FEW)[:5])


def test_a_parameter_that_was_learned_with_stays():
    clf = MemoryTreeClassifier(random_state=0).partial_fit(FEW.X[:5], classes(FEW)[:5]).set_params(alpha=0.1)
    with pytest.raises(ValueError, match=r"alpha was 0\.\d+ when learning began and is 0\.1 now"):
        clf.partial_fit(FEW.X[5:9], classes(FEW)[5:9])


def test_a_refused_piece_leaves_the_model_as_it_was():
    clf = MemoryTreeClassifier(random_state=0).partial_fit(FEW.X[:50], classes(FEW)[:50])
    before, labels = clf.model_.learner.state(), clf.classes_.tolist()
    bad = FEW.X[:2].copy()
    bad.data[0] = np.nan
    for X, y in ((bad, ["a", "b"]), (FEW.X[:2], [1]), (FEW.X[:2], [[1], [2]])):
        with pytest.raises(ValueError):
            clf.partial_fit(X, y)
    assert clf.classes_.tolist() == labels
    for name, values in clf.model_.learner.state().items():
        np.testing.assert_array_equal(values, before[name])


def test_before_the_first_row_every_named_class_is_as_likely():
    clf = MemoryTreeClassifier(random_state=0)
    weight = np.array([0.0, 1.0])
    clf.partial_fit(np.eye(2, 3), ["b", "b"], classes=["a", "b", "c"], sample_weight=weight)
    assert clf.n_examples_ == 1  # a row without weight is no memory
    empty = MemoryTreeClassifier(random_state=0).partial_fit(np.eye(1, 3), ["b"], classes=["a", "b", "c"])
    empty.model_.learner = empty.model_.new_learner(empty.model_.settings)
    np.testing.assert_allclose(empty.predict_proba(np.ones((2, 3))), 1 / 3)
    assert empty.predict_one({0: 1.0}, top_k=2) == [("a", pytest.approx(1 / 3)), ("b", pytest.approx(1 / 3))]
    np.testing.assert_allclose(empty.predict_proba(np.ones((1, 3)), labels=["c"]).data, 1 / 3)


def test_a_sparse_and_a_dense_row_of_any_width_are_alike():
    clf = MemoryTreeClassifier(random_state=0).partial_fit(FEW.X, classes(FEW))
    wider = sparse.hstack([FEW_TEST.X[:20], sparse.csr_array((20, 7))]).tocsr()
    assert clf.predict_labels(wider) == clf.predict_labels(FEW_TEST.X[:20].toarray())


def test_long_rows_leave_finite_weights():
    """The share of the right neighbours was so small that its inverse is infinite: all weights became NaN."""
    X, y = load_digits(return_X_y=True)  # rows have a length of 62
    with pytest.warns(UserWarning, match="length of about 62"):
        clf = MemoryTreeClassifier(normalize=False, random_state=0).fit(X[:1200], y[:1200])
    assert all(np.isfinite(values).all() for values in clf.model_.learner.state().values())
    np.testing.assert_allclose(clf.predict_proba(X[1200:]).sum(axis=1), 1, atol=1e-5)
    assert clf.score(X[1200:], y[1200:]) > 0.6


def test_one_of_the_classes_is_answered_for_a_row_far_away():
    """The odds of all classes were so small that all probabilities were zero, and class 0 the answer."""
    X, y = load_digits(return_X_y=True)
    X /= 62
    clf = MemoryTreeClassifier(normalize=False, random_state=0).fit(X[:1200], y[:1200])
    far = clf.predict_proba(X[1200:] * 1e6)
    np.testing.assert_allclose(far.sum(axis=1), 1, atol=1e-5)
