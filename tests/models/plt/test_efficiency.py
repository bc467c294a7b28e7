"""Cost of finding labels: expected depth, cheap and expensive labels, cover, and the choice of a tree by time."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import ramify
from cli_workspace import fresh_copy
from ramify import PLTClassifier, metrics, plots
from ramify.cli.main import run
from ramify.data import TextFile, read_texts
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import pareto
from ramify.models.plt.pareto import OperatingPoint, ParetoCurve, pareto_curve
from ramify.trees import LabelTree, fano_tree, label_costs
from shared.skewed_labels import skewed

# ---- metrics


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_expected_depth_is_the_mean_depth_of_the_deepest_of_the_best_k(seed, k):
    rng = np.random.default_rng(seed)
    P = sparse.random_array((12, 9), density=0.4, rng=rng, format="csr")
    depth = rng.integers(0, 7, 9)
    deepest = []
    for row in P.toarray():
        best = [j for j in np.argsort(-row, kind="stable")[:k] if row[j] > 0]
        deepest.append(max((depth[j] for j in best), default=0))
    assert metrics.expected_depth_at_k(P, depth, k) == pytest.approx(np.mean(deepest))


def test_expected_depth_refuses_depths_that_do_not_fit():
    with pytest.raises(ValueError, match="for each of 2 labels"):
        metrics.expected_depth_at_k([[0.5, 0.1]], [1])
    with pytest.raises(ValueError, match="no place in the tree"):
        metrics.expected_depth_at_k([[0.5, 0.1]], [-1, 1])
    assert np.isnan(metrics.expected_depth_at_k(np.zeros((0, 2)), [1, 1]))


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3, None]))
def test_labels_needed_is_the_shortest_beginning_that_holds_enough(seed, k):
    rng = np.random.default_rng(seed)
    Y = (rng.random((15, 8)) < 0.3).astype(int)
    order = np.argsort(-Y.sum(axis=0), kind="stable")
    expected = []
    for row in Y:
        if row.any():
            wanted = row.sum() if k is None else min(k, row.sum())
            expected.append(next(m for m in range(1, 9) if row[order[:m]].sum() >= wanted))
    assert metrics.labels_needed(Y, k).tolist() == expected


def test_the_cover_of_the_data_is_drawn(tmp_path):
    _, Y = skewed()
    plots.label_cover(Y, tmp_path / "cover.svg")
    picture = (tmp_path / "cover.svg").read_text()
    for words in ("1 label: half the rows by", "3 labels (or all)", "all labels: half"):
        assert words in picture
    figure = plots.label_cover(Y, at=[1])
    x, y = figure.axes[0].lines[0].get_data()
    assert (np.diff(y) >= 0).all()
    assert (x[-1], y[-1]) == (1.0, 1.0)
    needed = metrics.labels_needed(Y, 1)
    place = np.searchsorted(x, 0.3)
    assert y[place] == pytest.approx((needed <= round(x[place] * Y.shape[1])).mean())
    with pytest.raises(ValueError, match="nothing to cover"):
        plots.label_cover(np.zeros((3, 3)))


# ---- cheap and expensive


@given(st.integers(1, 40), st.integers(0, 10**6))
def test_costs_are_those_of_the_path(n_labels, seed):
    counts = np.random.default_rng(seed).integers(1, 60, n_labels)
    tree = fano_tree(None, np.repeat(np.arange(n_labels), counts), max_leaf=3)
    costs = label_costs(tree)
    for label in range(n_labels):
        above = tree.path(label)[:-1]
        assert costs.blocks[label] == len(above)
        assert costs.products[label] == sum(n for n in tree.n_children[above].tolist() if n > 1)
    order = costs.order()
    assert sorted(order) == list(range(n_labels))
    keys = [(costs.blocks[label], costs.products[label], label) for label in order]
    assert keys == sorted(keys)


def test_a_label_without_a_leaf_has_no_cost():
    costs = label_costs(LabelTree([-1, 0, 0], [-1, 0, 2], 3))
    assert costs.blocks.tolist() == [1, -1, 1]
    assert costs.order().tolist() == [0, 2]


# ---- the curve


def point(lam, precision, microseconds, depth=5.0):
    return OperatingPoint(lam, precision, depth, depth, microseconds, microseconds)


def test_rules_choose_what_they_say():
    points = [point(0, 0.80, 30), point(0.5, 0.81, 28), point(1, 0.7991, 20), point(2, 0.70, 10)]

    def chosen(rule):
        return pareto.choose(points, pareto.parse_rule(rule)).lam

    assert chosen("P@1 loss at most 0.1") == 1
    assert chosen("p@5 loss at most 0") == 0.5
    assert chosen("P@1 loss at most 20") == 2
    assert chosen("microseconds at most 29") == 0.5
    assert chosen("microseconds at most 12.5") == 2
    with pytest.raises(ValueError, match=r"the fastest takes 10\.0"):
        chosen("microseconds at most 5")
    for bad in ("fast", "P@1 loss at most", "P@1 loss below 3", "microseconds at most -1"):
        with pytest.raises(ValueError, match="a rule reads"):
            pareto.parse_rule(bad)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(pareto, "TIMED_ROWS", 5)
    monkeypatch.setattr(pareto, "ROUNDS", 1)


def test_the_curve_measures_every_lambda_on_rows_not_trained_on(quick):
    X, Y = skewed(1)
    classifier = PLTClassifier(arity=2, max_leaf=4, random_state=0, tree="huffman")
    curve = pareto_curve(classifier, X, Y, lams=[2, 1], k=1, rule="P@1 loss at most 100")
    assert [p.lam for p in curve.points] == [0, 1, 2]
    depths = [p.expected_depth for p in curve.points]
    assert all(a > b for a, b in pairwise(depths))
    assert all(p.microseconds > 0 and p.blocks >= 1 and 0 < p.precision < 1 for p in curve.points)
    assert ParetoCurve.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve
    # The same by hand.
    held_out, rest = np.split(np.random.default_rng(0).permutation(600), [120])
    model = pareto.with_lam(classifier, 1).fit(X[np.sort(rest)], Y[np.sort(rest)])
    assert curve.points[1].precision == metrics.precision_at_k(
        Y[held_out], model.predict_proba(X[held_out], top_k=1), 1
    )


@pytest.mark.parametrize("form", ["lists", "tuples", "Series", "DataFrame", "coo"])
def test_a_curve_takes_what_fit_takes(form):
    X, Y = skewed(n_rows=60, n_labels=12)
    texts = [" ".join(f"w{c}" for c in np.flatnonzero(row)) or "none" for row in X.toarray()]
    tags = [[f"label {c}" for c in np.flatnonzero(row)] for row in sparse.csr_array(Y).toarray()]
    given_X, given_y = {
        "lists": (texts, tags),
        "tuples": (tuple(texts), tuple(tags)),
        "Series": (pd.Series(texts, index=range(100, 100 + len(texts))), pd.Series(tags)),
        "DataFrame": (pd.DataFrame(X.toarray()), pd.DataFrame(sparse.csr_array(Y).toarray())),
        "coo": (sparse.coo_array(X), sparse.coo_array(Y)),
    }[form]
    curve = pareto_curve(PLTClassifier(arity=2, max_leaf=2), given_X, given_y, lams=[2], rule="P@1 loss at most 100")
    assert [point.lam for point in curve.points] == [0.0, 2.0]
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        pareto_curve(PLTClassifier(), given_X, given_y[:-1] if form != "coo" else sparse.csr_array(Y)[:-1])


def test_a_tree_keeps_its_other_options_while_lambda_is_tried():
    given_options = {"lam_prime": 3, "frequency": "greedy", "gamma": 0.2}
    classifier = PLTClassifier(tree="interpolated", tree_options=given_options)
    assert pareto.with_lam(classifier, 1).tree_options == {"frequency": "greedy", "gamma": 0.2, "lam": 1.0}
    assert classifier.tree_options == given_options


def test_what_is_no_curve_is_refused():
    for bad in ({}, {"points": [1]}, [], {"k": 1, "rule": "", "chosen": 3, "points": []}):
        with pytest.raises(ValueError, match="not a curve"):
            ParetoCurve.from_dict(bad)


def test_curves_are_drawn_over_depth_and_time(tmp_path):
    points = (point(0, 0.8, 30, 9), point(1, 0.79, 20, 6))
    curve = ParetoCurve(1, points, "P@1 loss at most 2", points[1])
    figure = plots.pareto({"one": curve, "two": curve}, tmp_path / "pareto.svg")
    left, right = figure.axes
    assert left.lines[0].get_xdata().tolist() == [9, 6]
    assert right.lines[0].get_xdata().tolist() == [30, 20]
    assert "1 (chosen)" in (tmp_path / "pareto.svg").read_text()


# ---- the command line


@pytest.fixture
def folder(tmp_path, monkeypatch, quick):
    monkeypatch.chdir(fresh_copy(tmp_path))
    return tmp_path


def test_tune_for_latency_writes_the_curve_and_the_chosen_model(folder, capsys):
    arguments = ["tune", "train.txt", "--model", "model", "--objective", "latency", "--lam", "0,2"]
    assert run([*arguments, "--rule", "P@1 loss at most 100", "--out", "fast", "--curve", "curve.json", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    written = json.loads((folder / "curve.json").read_text())
    assert written == report
    assert [p["lam"] for p in report["points"]] == [0, 2]
    assert set(report["points"][0]) >= {"precision", "expected_depth", "blocks", "microseconds", "batch_microseconds"}
    fast, before = ramify.load(folder / "fast"), ramify.load(folder / "model")
    assert fast.tree_options == {"lam": report["chosen"]}
    assert (fast.arity, fast.max_leaf, fast.n_labels_) == (before.arity, before.max_leaf, before.n_labels_)
    assert before.tree == "auto"
    assert run(["plot", "pareto", "curve.json", "--out", "pareto.svg"]) == 0
    assert "chosen" in (folder / "pareto.svg").read_text()
    assert run(["plot", "cover", "train.txt", "--out", "cover.svg"]) == 0
    capsys.readouterr()
    assert run(arguments) == 0
    said = capsys.readouterr().out
    assert said.startswith("lambda     P@1  depth  blocks  us a row  us in batch\n0 ")
    assert "by the rule 'P@1 loss at most 0.1'. Saved to model." in said
    assert ramify.load(folder / "model").tree == "interpolated"


def test_a_model_of_words_is_tuned_for_latency_too(folder):
    train = ["train", "notes.jsonl", "--model", "small-leaves", "--label-names", "codes.tsv"]
    assert run([*train, "--arity", "2", "--max-leaf", "1"]) == 0
    arguments = ["tune", "notes.jsonl", "--model", "small-leaves", "--objective", "latency", "--lam", "1"]
    assert run([*arguments, "--out", "fast"]) == 0
    fast = ramify.load(folder / "fast")
    assert fast.predict_labels(["chest pain"], top_k=1)[0][0][0] in ramify.load(folder / "notes-model").classes_


def test_the_texts_of_a_file_are_read_in_pieces_and_measured_like_a_list(tmp_path, monkeypatch, quick):
    rng = np.random.default_rng(0)
    labels = [str(int(label)) for label in rng.zipf(1.5, 600) % 40]
    texts = [f"w{label} w{rng.integers(40)} w{rng.integers(40)}" for label in labels]
    table = tmp_path / "texts.csv"
    table.write_text("text,labels\n" + "".join(f"{t},{label}\n" for t, label in zip(texts, labels, strict=True)))
    file = read_texts(table)
    held = []

    def chunks(self, rows_at_once=50, whole=TextFile.chunks):
        for chunk in whole(self, rows_at_once):
            held.append(len(chunk))
            yield chunk

    monkeypatch.setattr(TextFile, "chunks", chunks)
    monkeypatch.setattr(pareto, "TIMED_TEXTS", 60)
    classifier = PLTClassifier(arity=2, max_leaf=1, random_state=0)
    of_file = pareto_curve(classifier, file.texts, file.labels, lams=[1, 2], rule="P@1 loss at most 100")
    of_list = pareto_curve(classifier, texts, [[label] for label in labels], lams=[1, 2], rule="P@1 loss at most 100")

    def without_times(curve):
        return [(p.lam, p.precision, p.expected_depth, p.blocks) for p in curve.points]

    assert max(held) == 50
    assert without_times(of_file) == without_times(of_list)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lam", "3"], "--lam takes numbers from 0 to 2"),
        (["--rule", "quick please"], "a rule reads"),
        (["--out", "test.txt"], "a file has the name"),
    ],
)
def test_refusals_come_before_the_work(folder, capsys, arguments, said):
    assert run(["tune", "train.txt", "--model", "model", "--objective", "latency", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert ramify.load(folder / "model").tree == "auto"


def test_a_file_that_is_no_curve_is_named(folder, capsys):
    (folder / "curve.json").write_text('{"k": 1}')
    assert run(["plot", "pareto", "curve.json", "--out", "pareto.svg"]) == 2
    assert "curve.json" in capsys.readouterr().err


def test_tree_tells_cheap_and_expensive_labels(folder, capsys):
    assert run(["train", "train.txt", "--model", "fano", "--tree", "fano", "--max-leaf", "1"]) == 0
    capsys.readouterr()
    assert run(["tree", "--model", "fano", "--cost", "--json"]) == 0
    costs = json.loads(capsys.readouterr().out)
    tree = ramify.load(folder / "fano").tree_
    assert costs["cheap"][0]["blocks"] == tree.label_depth.min()
    assert costs["expensive"][0]["blocks"] == tree.height
    assert sum(costs["labels_by_blocks"]) == costs["labels"]
    assert run(["tree", "--model", "fano", "--cost"]) == 0
    said = capsys.readouterr().out
    assert "cheapest labels (blocks, inner products):" in said
    assert "most expensive labels" in said


def test_trees_that_do_not_differ_are_no_choice():
    """Eight labels below one node are the same tree for every lambda; the choice among them was noise."""
    data = make_multilabel(200, 8, 60, random_state=0)
    with pytest.raises(ValueError, match=r"every lambda gives the same tree of 8 labels.*max_leaf"):
        pareto_curve(PLTClassifier(), data.X, data.Y, lams=[1, 2])


def test_models_of_the_same_tree_get_the_same_times():
    data = make_multilabel(300, 12, 60, random_state=0)
    models = [PLTClassifier(arity=2, max_leaf=2, tree=tree, random_state=0) for tree in ("random", "fano", "random")]
    single, batch = pareto._times([model.fit(data.X, data.Y) for model in models], data.X, 1)
    assert (single[0], batch[0]) == (single[2], batch[2])
    assert (single[0], batch[0]) != (single[1], batch[1])


@pytest.mark.parametrize("broken", ["X", "y"])
def test_a_broken_sparse_array_is_rejected(broken):
    data = make_multilabel(30, 8, 60, random_state=0)
    given = {"X": data.X.tocsc(), "y": data.Y.tocsc()}
    given[broken].indptr = given[broken].indptr[:0]
    with pytest.raises(ValueError, match=f"{broken} is a broken sparse matrix: indptr has 0 entries"):
        pareto_curve(PLTClassifier(), given["X"], given["y"])
