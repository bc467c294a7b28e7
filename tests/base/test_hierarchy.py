"""Answers of every classifier agree with a known hierarchy of labels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import ramify
from ramify.base.coherent import CoherentAnswers
from ramify.base.model import Query
from ramify.data.hierarchy import Hierarchy
from ramify.data.labels import LabelEncoding
from ramify.data.synthetic import make_multilabel

N_LABELS = 12
# A diamond (0 and 1 above 2, both below 3), a chain, and labels without relations.
DIAMOND = {2: [0, 1], 0: 3, 1: [3], 6: 5, 5: 4}
MULTILABEL = {
    "plt": lambda **given: ramify.PLTClassifier(arity=2, max_leaf=3, random_state=0, **given),
    "plt ensemble": lambda **given: ramify.PLTClassifier(n_trees=2, max_leaf=3, random_state=0, **given),
    "online plt": lambda **given: ramify.OnlinePLTClassifier(random_state=0, **given),
    "softmax": lambda **given: ramify.TreeSoftmaxClassifier(dim=8, n_epochs=10, random_state=0, **given),
    "fastxml": lambda **given: ramify.FastXMLClassifier(n_trees=5, max_leaf=5, random_state=0, **given),
    "spectral": lambda **given: ramify.SpectralTreeClassifier(n_candidates=6, random_state=0, **given),
    "memory tree": lambda **given: ramify.MemoryTreeClassifier(random_state=0, **given),
    "nearest rows": lambda **given: ramify.NearestRowsClassifier(**given),
    "mixture": lambda **given: ramify.MixtureClassifier(
        [ramify.PLTClassifier(max_leaf=3), ramify.NearestRowsClassifier()], random_state=0, **given
    ),
    "ofo": lambda **given: ramify.ThresholdClassifier(ramify.PLTClassifier(max_leaf=3, **given), random_state=0),
}


@pytest.fixture(scope="module")
def data():
    return make_multilabel(400, N_LABELS, 60, random_state=0)


def pairs_of(mapping):
    return [
        (child, parent) for child, parents in Hierarchy.from_mapping(mapping).to_mapping().items() for parent in parents
    ]


def assert_coherent(answer, mapping, *, is_exact=True):
    """Every stored child has its parents stored, with at least its probability."""
    dense, stored = (
        answer.toarray(),
        sparse.csr_array((np.ones(answer.nnz), answer.indices, answer.indptr), answer.shape),
    )
    stored = stored.toarray() > 0
    for child, parent in pairs_of(mapping):
        assert not (stored[:, child] & ~stored[:, parent]).any(), (child, parent)
        assert (dense[:, parent] >= dense[:, child]).all(), (child, parent)


@pytest.mark.parametrize("name", MULTILABEL)
def test_no_answer_of_any_classifier_gives_a_parent_less_than_its_child(name, data):
    clf = MULTILABEL[name](hierarchy=DIAMOND).fit(data.X, data.Y)
    X = data.X[:100]
    assert_coherent(clf.predict_proba(X), DIAMOND)
    for top_k in (1, 2, 3, 5, N_LABELS):
        best = clf.predict_proba(X, top_k=top_k)
        assert np.diff(best.indptr).max() <= top_k
        assert_coherent(best, DIAMOND)
    assert_coherent(clf.predict_proba(X, threshold=0.2, top_k=4), DIAMOND)
    assert_coherent(clf.predict_proba(X, threshold=np.linspace(0.9, 0.01, N_LABELS)), DIAMOND)
    assert_coherent(clf.predict_proba(X, labels=range(N_LABELS)), DIAMOND)
    assert_coherent(clf.predict(X), DIAMOND)
    clf.set_thresholds(np.linspace(0.9, 0.01, N_LABELS))
    assert_coherent(clf.predict(X), DIAMOND)


@pytest.mark.parametrize("name", MULTILABEL)
def test_one_row_gets_the_answer_it_gets_among_others(name, data):
    clf = MULTILABEL[name](hierarchy=DIAMOND).fit(data.X, data.Y)
    X = data.X[:20]
    for top_k, threshold in ((3, None), (1, None), (4, 0.1)):
        together = clf.predict_labels(X, top_k=top_k, threshold=threshold)
        for row, pairs in enumerate(together):
            assert clf.predict_one(X[row : row + 1], top_k=top_k, threshold=threshold) == pairs
            assert clf.predict_labels(X[row : row + 1], top_k=top_k, threshold=threshold) == [pairs]
    alone = sparse.vstack([clf.predict_proba(X[row : row + 1]) for row in range(20)])
    assert (alone != clf.predict_proba(X)).nnz == 0


@pytest.mark.parametrize("name", ["plt", "online plt", "mixture", "ofo"])
def test_the_hierarchy_is_saved_with_the_model(name, data, tmp_path):
    clf = MULTILABEL[name](hierarchy=DIAMOND).fit(data.X, data.Y)
    expected = clf.predict_proba(data.X, top_k=4)
    clf.save(tmp_path / "model")
    loaded = ramify.load(tmp_path / "model")
    assert loaded.hierarchy_ == clf.hierarchy_ == {2: [0, 1], 0: [3], 1: [3], 6: [5], 5: [4]}
    assert (loaded.predict_proba(data.X, top_k=4) != expected).nnz == 0
    assert (pickle.loads(pickle.dumps(clf)).predict_proba(data.X, top_k=4) != expected).nnz == 0
    assert Hierarchy.from_mapping(loaded.hierarchy if name != "ofo" else loaded.estimator.hierarchy).child.size == 6
    assert (loaded.fit(data.X, data.Y).predict_proba(data.X, top_k=4) != expected).nnz == 0


def test_without_relations_nothing_changes(data):
    plain = ramify.PLTClassifier(random_state=0).fit(data.X, data.Y)
    empty = ramify.PLTClassifier(random_state=0, hierarchy={3: [], 4: None}).fit(data.X, data.Y)
    assert (plain.predict_proba(data.X, top_k=3) != empty.predict_proba(data.X, top_k=3)).nnz == 0
    assert plain.predict_labels(data.X) == empty.predict_labels(data.X)


def test_thresholds_are_tuned_on_coherent_probabilities(data):
    parent = int(np.argmin(np.bincount(data.Y.indices)))
    hierarchy = {child: parent for child in range(N_LABELS) if child != parent}
    plain, raised = (
        ramify.ThresholdClassifier(ramify.PLTClassifier(hierarchy=given), method="sto", c=4, random_state=0)
        for given in (None, hierarchy)
    )
    differs = np.flatnonzero(plain.fit(data.X, data.Y).thresholds_ != raised.fit(data.X, data.Y).thresholds_)
    assert differs.tolist() == [parent]  # its probabilities are others, those of its children are the same
    assert_coherent(raised.predict(data.X), hierarchy)


def test_a_stream_relates_labels_as_they_appear():
    clf = ramify.OnlinePLTClassifier(random_state=0, hierarchy={"apple": "fruit", "fruit": "food", "oak": "tree"})
    for _ in range(20):
        clf.learn_one("red apple", ["apple"])
        clf.learn_one("green pear", ["pear"])
    assert {label for label, _ in clf.predict_one("red apple", top_k=None)} == {"apple", "pear"}
    clf.learn_one("bread", ["food"])  # "fruit", between the two, is still unknown
    answer = dict(clf.predict_one("red apple", top_k=None))
    assert answer["food"] == answer["apple"] > 0.5
    assert [label for label, _ in clf.predict_one("red apple", top_k=2)] == ["food", "apple"]
    assert clf.freeze().predict_one("red apple", top_k=1)[0][0] == "food"


def test_progressive_evaluation_asks_with_the_hierarchy():
    from ramify.progressive import evaluate

    texts, tags = ["red apple", "green pear"] * 30, [["apple", "fruit"], ["pear"]] * 30
    clf = ramify.OnlinePLTClassifier(random_state=0, hierarchy={"apple": "fruit"})
    asked = []
    clf.predict_labels = lambda X, top_k: asked.append(X) or type(clf).predict_labels(clf, X, top_k=top_k)
    evaluate(clf, texts, tags)
    assert len(asked) > 50


def test_an_explanation_says_what_raised_a_probability():
    texts = ["red apple", "green pear", "brown bread", "grey stone"] * 10
    tags = [["apple"], ["pear"], ["bread"], ["stone", "thing"]] * 10
    clf = ramify.PLTClassifier(random_state=0, hierarchy={"apple": "thing"}).fit(texts, tags)
    explained = clf.explain("red apple", "thing")
    assert explained.raised_by.label == "apple"
    assert explained.probability == pytest.approx(dict(clf.predict_one("red apple"))["thing"])
    assert explained.raised_by.own_probability < explained.probability
    assert "raised from" in str(explained)
    assert "by apple" in str(explained)
    assert explained.to_dict()["raised_by"]["label"] == "apple"
    assert [texts[0][s.start : s.end] for s in explained.spans if s.weight > 0.1]  # words that support the apple
    own = clf.explain("grey stone", "thing")
    assert own.raised_by is None
    assert "raised" not in str(own)
    assert "raised_by" not in own.to_dict()


# --- what is rejected ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({0: 1, 1: 2, 2: 0}, r"hierarchy has a cycle: 0 -> 1 -> 2 -> 0"),
        ({3: 3}, r"cycle: 3 -> 3"),
        ({5: 0, 0: [1, 2], 2: 0}, r"cycle: 0 -> 2 -> 0"),
        ({0: 99}, r"hierarchy: label 99 is not a column of Y; columns are 0 to 11; leave labels out"),
        ({0: "a"}, r"hierarchy: label 'a' is not a column"),
        ({0: [[1]]}, r"the parents of 0 hold \[1\]"),
        ([(0, 1)], r"hierarchy must be a mapping from label to parent"),
        ("E11", r"hierarchy must be a mapping"),
    ],
)
def test_a_bad_hierarchy_is_rejected_before_anything_changes(mapping, message, data):
    clf = ramify.PLTClassifier(random_state=0).fit(data.X, data.Y)
    before = clf.fitted_
    clf.set_params(hierarchy=mapping)
    with pytest.raises(ValueError, match=message):
        clf.fit(data.X, data.Y)
    assert clf.fitted_ is before


def test_an_unknown_label_is_named_with_the_nearest_known_one():
    clf = ramify.PLTClassifier(hierarchy={"E119": "E11"})
    with pytest.raises(ValueError, match=r"label 'E119' is not among the 2 known labels; did you mean 'E11.9'"):
        clf.fit(["a", "b"], [["E11.9"], ["E11"]])


def test_one_class_a_row_has_no_hierarchy(data):
    with pytest.raises(ValueError, match="one class a row, a label and its parent exclude each other"):
        ramify.PLTClassifier(hierarchy={1: 0}).fit(data.X, np.arange(400) % 3)


def test_only_the_outer_classifier_of_a_mixture_takes_a_hierarchy(data):
    inner = ramify.PLTClassifier(hierarchy=DIAMOND)
    for outer in (ramify.MixtureClassifier([inner]), ramify.SpectralTreeClassifier(estimator=inner)):
        with pytest.raises(ValueError, match="give hierarchy= to the"):
            outer.fit(data.X, data.Y)


# --- properties ---------------------------------------------------------------------------------------------------


class FixedModel:
    """A model that answers with given probabilities, the smaller column first among equals."""

    def __init__(self, P):
        self.P, (_, self.n_labels), self.n_features = P, P.shape, 1

    def search(self, X, query):
        from ramify.base.answers import keep_best

        return keep_best(sparse.csr_array(self.P), query.top_k, query.threshold)

    def search_row(self, indices, values, query):
        answer = self.search(None, query)
        order = np.lexsort((answer.indices, -answer.data))
        return answer.indices[order], answer.data[order]

    def named(self, X, candidates, query):
        rows = np.repeat(np.arange(self.P.shape[0]), np.diff(candidates.indptr))
        return self.P[rows, candidates.indices]


@st.composite
def hierarchies(draw):
    n = draw(st.integers(2, 8))
    order = draw(st.permutations(range(n)))  # parents come earlier in it: no cycles, in any column order
    mapping = {}
    for place in range(1, n):
        parents = draw(st.sets(st.integers(0, place - 1), max_size=2))
        mapping[order[place]] = [order[one] for one in parents]
    levels = draw(st.lists(st.integers(1, 20), min_size=n, max_size=n, unique=draw(st.booleans())))
    return mapping, np.array(levels, dtype=np.float32)[None] / 20


def raised_by_definition(mapping, p):
    """The largest probability among a label and all labels below it."""
    raised = p.copy()
    for _ in range(p.shape[1]):
        for child, parents in mapping.items():
            for parent in parents:
                raised[:, parent] = np.maximum(raised[:, parent], raised[:, child])
    return raised


def answers_of(mapping, p):
    labels = LabelEncoding()
    labels.extend(np.ones((1, p.shape[1]), dtype=int))
    return CoherentAnswers(FixedModel(p), Hierarchy.from_mapping(mapping), labels)


@settings(max_examples=200, deadline=None)
@given(hierarchies(), st.integers(1, 8), st.integers(0, 20))
def test_the_best_k_are_those_of_the_raised_probabilities(case, top_k, twentieths):
    mapping, p = case
    threshold = np.float32(twentieths / 20)
    raised = raised_by_definition(mapping, p)[0]
    query = Query(min(top_k, len(raised)), float(threshold))
    found = answers_of(mapping, p).search(None, query)
    values = np.sort(raised[raised >= threshold])[::-1][:top_k]
    np.testing.assert_array_equal(np.sort(found.data)[::-1], values)
    np.testing.assert_array_equal(found.data, raised[found.indices])
    assert_coherent(found, mapping)
    columns, probabilities = answers_of(mapping, p).search_row(
        None, None, Query(min(top_k, len(raised)), float(threshold))
    )
    np.testing.assert_array_equal(np.sort(columns), found.indices)
    np.testing.assert_array_equal(probabilities, values)


@settings(max_examples=200, deadline=None)
@given(hierarchies(), st.data())
def test_with_thresholds_per_label_what_a_returned_label_implies_is_returned(case, draw):
    mapping, p = case
    n = p.shape[1]
    thresholds = np.array(draw.draw(st.lists(st.integers(0, 21), min_size=n, max_size=n)), dtype=np.float32) / 20
    raised = raised_by_definition(mapping, p)
    expected = raised_by_definition(mapping, (raised >= thresholds).astype(np.float32))[0] > 0
    found = answers_of(mapping, p).search(None, Query(None, thresholds))
    assert found.indices.tolist() == np.flatnonzero(expected).tolist()
    np.testing.assert_array_equal(found.data, raised[0, expected])


@settings(max_examples=100, deadline=None)
@given(hierarchies(), st.data())
def test_named_labels_have_their_raised_probabilities(case, draw):
    mapping, p = case
    columns = sorted(draw.draw(st.sets(st.integers(0, p.shape[1] - 1), min_size=1)))
    asked = sparse.csr_array(
        (np.ones(len(columns), np.float32), np.array(columns), np.array([0, len(columns)])), shape=p.shape
    )
    found = answers_of(mapping, p).named(None, asked, Query())
    np.testing.assert_array_equal(found, raised_by_definition(mapping, p)[0, columns])
