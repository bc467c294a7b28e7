"""LOMTreeClassifier and FilterTreeClassifier: learning in pieces, resuming, answering, explaining, and how good."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy import sparse

from ramify import FilterTreeClassifier, LOMTreeClassifier, load, progressive
from ramify.cli.main import run
from ramify.data.synthetic import make_dense, make_multiclass
from ramify.models.plt import PLTSolver
from ramify.optimizers import FOBOS, SGD, AdaGrad
from ramify.registry import make_classifier, summaries


def small(**settings):
    return LOMTreeClassifier(**{"max_nodes": 30, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def rows():
    return make_dense(1500, 12, 16, random_state=3)


@pytest.fixture(scope="module")
def texts():
    return make_multiclass(2000, 40, 600, random_state=5)


def same_trees(one, other):
    ours, theirs = one.model_.learner.state(), other.model_.learner.state()
    return all(np.array_equal(ours[name], theirs[name]) for name in ours)


def pieces(n, sizes):
    bounds = np.cumsum([0, *sizes, n])
    return [(a, min(b, n)) for a, b in itertools.pairwise(bounds.tolist()) if a < n]


@pytest.mark.parametrize("names_classes", [True, False])
@pytest.mark.parametrize("sizes", [[1, 1, 1], [700], [3, 500, 1], [7] * 300])
def test_how_rows_are_cut_into_pieces_changes_no_bit(rows, sizes, names_classes):
    classes = np.unique(rows.y) if names_classes else None
    straight = small().partial_fit(rows.X, rows.y, classes=classes)
    cut = small()
    for start, stop in pieces(len(rows.y), sizes):
        cut.partial_fit(rows.X[start:stop], rows.y[start:stop], classes=None if start else classes)
    assert same_trees(straight, cut)
    assert straight.classes_.tolist() == cut.classes_.tolist()
    assert (straight.predict(rows.X) == cut.predict(rows.X)).all()
    assert (straight.predict_proba(rows.X) == cut.predict_proba(rows.X)).all()


@pytest.mark.parametrize("kind", ["rows", "texts"])
def test_a_saved_model_goes_on_bit_for_bit(request, kind, tmp_path):
    data = request.getfixturevalue(kind)
    half = len(data.y) // 2
    straight = small(max_nodes=8).partial_fit(data.X[:half], data.y[:half])
    straight.save(tmp_path / "model")
    resumed = load(tmp_path / "model")
    for clf in (straight, resumed):
        clf.partial_fit(data.X[half:], data.y[half:])
    assert straight.n_swaps_ > 0
    assert same_trees(straight, resumed)


def test_classes_and_features_come_at_any_time(texts):
    clf = LOMTreeClassifier(random_state=0)
    order = np.argsort(texts.y, kind="stable")  # one class after the other, none announced
    for part in np.array_split(order, 7):
        X = texts.X[part]
        width = int(X.indices.max()) + 1
        clf.partial_fit(sparse.csr_array((X.data, X.indices, X.indptr), shape=(len(part), width)), texts.y[part])
    assert set(clf.classes_) == set(texts.y)
    assert clf.n_examples_ == len(texts.y)
    clf.learn_one({10**9: 1.0}, "another kind of feature and class" if clf.classes_.dtype.kind == "O" else 999)
    assert clf.predict_one({10**9: 1.0}, top_k=1)[0][0] in (999, "another kind of feature and class")


def test_one_row_at_a_time_is_as_good_as_many(rows):
    many = small().partial_fit(rows.X[:300], rows.y[:300])
    single = small()
    for row in range(300):
        x = rows.X[[row]]
        single.learn_one(dict(zip(x.indices.tolist(), x.data.tolist(), strict=True)), int(rows.y[row]))
    assert (many.predict(rows.X) == single.predict(rows.X)).all()
    assert many.n_nodes_ == single.n_nodes_


def test_passes_are_rows_in_orders_drawn_from_the_seed(rows):
    fitted = small(n_epochs=2).fit(rows.X, rows.y)
    generator = np.random.default_rng(0)
    by_hand = small()
    for _ in range(2):
        order = generator.permutation(len(rows.y))
        by_hand.partial_fit(rows.X[order], rows.y[order], classes=np.unique(rows.y) if not _ else None)
    assert same_trees(fitted, by_hand)


def test_answers_are_the_counts_of_the_leaf_and_the_majority_is_predicted(rows):
    clf = small(shuffle=False).partial_fit(rows.X, rows.y)
    arrays, leaf = clf.model_.learner.state(), clf.apply(rows.X)
    dense = clf.predict_proba(rows.X)
    for row in range(0, len(rows.y), 37):
        v = leaf[row]
        while arrays["reached"][v] == 0:
            v = arrays["parent"][v]
        begin, end = arrays["class_begin"][v : v + 2]
        expected = np.zeros(len(clf.classes_))
        expected[arrays["class_label"][begin:end]] = arrays["class_reached"][begin:end] / arrays["reached"][v]
        np.testing.assert_allclose(dense[row], expected, rtol=1e-6)
    np.testing.assert_array_equal(clf.predict(rows.X), clf.classes_[dense.argmax(axis=1)])


def test_a_leaf_without_examples_answers_as_its_parent():
    clf = LOMTreeClassifier(max_nodes=1).partial_fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
    arrays = clf.model_.learner.state()
    assert (arrays["reached"] == 0).sum() == 1  # the second row split the root and went to one child
    answers = clf.predict_proba([[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    assert [0.5, 0.5] in answers.tolist()
    np.testing.assert_allclose(answers.sum(axis=1), 1)


def test_the_tree_stays_within_its_nodes(rows):
    for max_nodes in (0, 1, 5):
        assert small(max_nodes=max_nodes).fit(rows.X, rows.y).n_nodes_ <= 2 * max_nodes + 1
    by_class = LOMTreeClassifier(nodes_per_class=2, random_state=0).fit(rows.X, rows.y)
    assert by_class.n_nodes_ <= 2 * (2 * 12 - 1) + 1


def test_parameters_may_not_change_half_way(rows):
    clf = small().partial_fit(rows.X, rows.y)
    clf.set_params(swap_resistance=8)
    with pytest.raises(ValueError, match=r"swap_resistance was 4.0 when learning began and is 8.0 now"):
        clf.partial_fit(rows.X, rows.y)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        *(("max_nodes", bad) for bad in (-1, 2.5)),
        *((name, 0) for name in ("nodes_per_class", "n_epochs")),
        *((name, -1) for name in ("swap_resistance", "bias")),
        ("forgetting", 1),
        ("loss", "hinge"),
        ("optimizer", "adam"),
    ],
)
def test_bad_parameters_are_named(rows, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        LOMTreeClassifier(**{parameter: value}).fit(rows.X, rows.y)


@pytest.mark.parametrize(
    ("optimizer", "parameter"),
    [
        (AdaGrad(learning_rate=0), "learning_rate"),
        (AdaGrad(eps=0), "eps"),
        (AdaGrad(decay=0.5), "decay"),
        (SGD(learning_rate=0), "learning_rate"),
        (FOBOS(), "optimizer"),
    ],
)
def test_bad_settings_of_the_optimizer_are_named(rows, optimizer, parameter):
    with pytest.raises(ValueError, match=parameter):
        LOMTreeClassifier(optimizer=optimizer).fit(rows.X, rows.y)


def test_an_explanation_is_the_route_and_ends_with_the_answer(rows):
    clf = small(n_epochs=2).fit(rows.X, rows.y)
    for row in (0, 7, 11):
        x = rows.X[[row]]
        shown = clf.explain(x, top=3)
        assert shown.label == clf.predict(x)[0]
        assert shown.probability == pytest.approx(float(clf.predict_proba(x).max()))
        assert [step.goes for step in shown.path][-1] == "stays"
        assert {step.goes for step in shown.path[:-1]} <= {"left", "right"}
        assert shown.path[-1].node == clf.apply(x)[0]
        for step in shown.path[:-1]:
            assert (step.score > 0) == (step.goes == "right")
        assert shown.path[0].n_rows == clf.n_examples_
        assert "training row" in str(shown)


def test_progressive_validation_ends_as_partial_fit_does(rows):
    watched, plain = small(), small()
    result = progressive.evaluate(watched, rows.X, rows.y, window=500)
    plain.partial_fit(rows.X, rows.y)
    assert (watched.predict(rows.X) == plain.predict(rows.X)).all()
    assert result.windows[-1].score.accuracy > result.windows[0].score.accuracy > 0.2


def test_depth_grows_as_the_logarithm_of_the_classes():
    depth = {}
    for n_classes in (16, 256):
        data = make_dense(8000, n_classes, 32, random_state=0)
        clf = LOMTreeClassifier(nodes_per_class=2, random_state=0).fit(data.X, data.y)
        depth[n_classes] = np.mean([len(clf.explain(data.X[[row]]).path) - 1 for row in range(60)])
    assert depth[256] < 2.5 * depth[16]
    assert depth[256] < 2 * np.log2(256)


def test_lomtree_is_clearly_better_than_the_random_and_the_filter_tree():
    train, test = make_dense(12000, 60, 32), make_dense(3000, 60, 32, split="test")
    error = {}
    by_name = {
        "lomtree": {"n_epochs": 3},
        "filter-tree": {"n_epochs": 3},
        "random-tree": {"solver": PLTSolver(C=1.0)},
    }
    for name, settings in by_name.items():
        clf = make_classifier(name, random_state=0, **settings).fit(train.X, train.y)
        error[name] = 1 - clf.score(test.X, test.y)
    assert error["lomtree"] < 0.25
    assert error["lomtree"] < 0.7 * min(error["filter-tree"], error["random-tree"])


def test_a_filter_tree_tells_apart_what_a_tournament_can():
    generator = np.random.default_rng(0)
    y = generator.integers(0, 16, 2000)
    X = np.eye(16)[y] + generator.normal(0, 0.1, (2000, 16))
    clf = FilterTreeClassifier(n_epochs=3, random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.98
    assert clf.won_ > 0.9
    np.testing.assert_allclose(clf.predict_proba(X[:5]).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", sorted(summaries()))
def test_every_name_makes_a_classifier(name):
    assert hasattr(make_classifier(name), "fit")


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(ValueError, match="lomtree"):
        make_classifier("lomtee")


@pytest.fixture
def files(tmp_path, monkeypatch, rows):
    monkeypatch.chdir(tmp_path)
    with open("train.txt", "w") as out:
        out.write(f"{len(rows.y)} 16 12\n")
        for row, label in zip(rows.X.toarray(), rows.y, strict=True):
            out.write(f"{label} " + " ".join(f"{i}:{v:.5g}" for i, v in enumerate(row)) + "\n")


@pytest.mark.parametrize("name", ["lomtree", "filter-tree", "random-tree", "oaa"])
def test_the_command_line_trains_by_name(files, capsys, name):
    arguments = ["train", "train.txt", "--model", "model", "--classifier", name, "--json", "--test", "train.txt"]
    assert run([*arguments, *(["--multiclass"] if name in ("random-tree", "oaa") else [])]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["test"]["P@1"] > 0.3
    assert load("model").is_multiclass_
    if name == "lomtree":
        assert facts["nodes"] == load("model").n_nodes_
        assert run(["explain", "train.txt", "--model", "model", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["paths"]


def test_the_command_line_sets_parameters_and_refuses_others(files, capsys):
    command = ["train", "train.txt", "--model", "model", "--classifier", "lomtree"]
    assert run([*command, "--set", "max_nodes=9", "--n-epochs", "2"]) == 0
    assert (load("model").max_nodes, load("model").n_epochs) == (9, 2)
    assert "nodes, depth" in capsys.readouterr().out
    assert run([*command, "--set", "arity=3"]) == 2
    assert "LOMTreeClassifier has no such parameter" in capsys.readouterr().err
    assert run([*command, "--arity", "3"]) == 2
    assert "--arity is not for --classifier lomtree" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", [[1, 1, 1], [700], [3, 500, 1]])
def test_a_filter_tree_learns_in_pieces_what_it_learns_at_once(rows, sizes):
    whole = FilterTreeClassifier(shuffle=False, random_state=0).fit(rows.X, rows.y)
    cut = FilterTreeClassifier(random_state=0)
    for start, stop in pieces(1500, sizes):
        cut.partial_fit(rows.X[start:stop], rows.y[start:stop], classes=np.unique(rows.y))
    np.testing.assert_array_equal(whole.predict(rows.X), cut.predict(rows.X))
    assert cut.won_ == whole.won_


def test_a_filter_tree_resumes_from_a_file_and_refuses_a_class_outside_its_tournament(rows, tmp_path):
    clf = FilterTreeClassifier(random_state=0).partial_fit(rows.X[:500], rows.y[:500])
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one in (clf, again):
        one.partial_fit(rows.X[500:], rows.y[500:])
    np.testing.assert_array_equal(clf.predict_proba(rows.X), again.predict_proba(rows.X))
    assert clf.won_ == again.won_
    before = clf.predict_proba(rows.X)
    with pytest.raises(ValueError, match=r"class 99 is not in the tournament: name all classes .*classes="):
        clf.partial_fit(rows.X[:2], [0, 99])
    np.testing.assert_array_equal(clf.predict_proba(rows.X), before)
    assert 99 not in clf.classes_


def test_one_against_all_that_grows_stays_on_one_level_past_the_usual_width():
    X = np.eye(300, dtype=np.float32)
    clf = make_classifier("online-oaa", random_state=0).partial_fit(X[:5], np.arange(5))
    clf.partial_fit(X, np.arange(300))
    assert clf.tree_.height == 1
    assert len(clf.tree_.leaf_of) == 300


def test_the_online_random_tree_descends_greedily(rows):
    clf = make_classifier("online-random-tree", random_state=0).fit(rows.X, rows.y)
    assert clf.predict_proba(rows.X[:20], top_k=12).nnz < 80  # of 240: it does not look at every leaf
    assert clf.n_inner_products(rows.X[:20], top_k=1) <= 20 * 2 * clf.tree_.height
