"""Interpolated trees: frequencies, the two extremes, the objective in between, and arities above 2."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ramify import PLTClassifier, _core, load
from ramify.trees import (
    LabelTree,
    effective_frequency,
    fano_tree,
    huffman_tree,
    interpolated_tree,
    kmeans_tree,
    marginal_frequency,
    resolve,
)
from ramify.trees.collapsing import collapse_levels
from ramify.trees.interpolated import Objective, checked_lam
from ramify.trees.kmeans import label_vectors
from shared.skewed_labels import skewed


def as_sets(tree):
    """Return the label set below every node, which does not depend on the order of siblings."""
    below = [set() for _ in range(tree.n_nodes)]
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.label[node] >= 0:
            below[node].add(int(tree.label[node]))
        if node:
            below[tree.parent[node]] |= below[node]
    return sorted(tuple(sorted(labels)) for labels in below)


# ---- the extremes


@pytest.mark.parametrize(("arity", "max_leaf"), [(2, 1), (2, 7), (8, 5)])
def test_lam_0_gives_the_balanced_2_means_tree(arity, max_leaf):
    X, Y = skewed(1)
    built = interpolated_tree(X, Y, lam=0, arity=arity, max_leaf=max_leaf, random_state=5)
    assert built == kmeans_tree(X, Y, arity=arity, max_leaf=max_leaf, random_state=5)
    direct = interpolated_tree(X, Y, lam=0, direct=True, arity=arity, max_leaf=max_leaf, random_state=5)
    assert direct == built


def fano_below(labels, f_tilde, gamma, max_leaf):
    """The recursion of the paper: the most frequent labels go left until they pass half the smoothed mass."""
    if len(labels) <= max_leaf:
        return labels if len(labels) > 1 else labels[0]
    share = f_tilde[labels] / max(f_tilde[labels].sum(), 1e-300) + gamma / len(labels)
    share = share if share.any() else np.ones(len(labels))
    order = np.argsort(-share, kind="stable")
    passed = np.cumsum(share[order]) / share.sum()
    n_left = min(int(np.searchsorted(passed, 0.5 - 1e-9)) + 1, len(labels) - 1)
    labels = np.array(labels)[order]
    return [fano_below(sorted(part.tolist()), f_tilde, gamma, max_leaf) for part in np.split(labels, [n_left])]


@pytest.mark.parametrize("frequency", ["marginal", "greedy", 0.3])
@pytest.mark.parametrize(("gamma", "max_leaf"), [(0.1, 1), (0.0, 3), (2.0, 1)])
def test_lam_2_gives_fano_on_the_smoothed_f_tilde(frequency, gamma, max_leaf):
    X, Y = skewed(2)
    built = interpolated_tree(X, Y, lam=2, gamma=gamma, frequency=frequency, max_leaf=max_leaf)
    nested = fano_below(list(range(Y.shape[1])), effective_frequency(Y, frequency), gamma, max_leaf)
    assert as_sets(built) == as_sets(LabelTree.from_nested(nested))
    assert built == interpolated_tree(
        None, Y, lam_prime=float("inf"), gamma=gamma, frequency=frequency, max_leaf=max_leaf
    )
    assert built == interpolated_tree(None, Y, lam=2, gamma=gamma, frequency=frequency, max_leaf=max_leaf, direct=True)


def test_fano_on_f_tilde_finds_the_first_label_faster_than_fano_on_the_marginals():
    """Only one of two labels that always occur together needs to be shallow."""
    Y = np.zeros((90, 6))
    Y[:40, [0, 1]] = 1
    Y[np.arange(40, 90), 2 + np.arange(50) % 4] = 1
    tree = interpolated_tree(None, Y, lam=2, gamma=0.0, max_leaf=1)
    by_marginals = fano_tree(None, Y)
    wanted = [0] * 40 + [2 + i % 4 for i in range(50)]
    assert np.mean([tree.depth_of(j) for j in wanted]) < np.mean([by_marginals.depth_of(j) for j in wanted])


# ---- in between


def alternating(vectors, weight, lam, gamma=0.1, rounds=True, eps=0.0, max_iterations=50, seed=0, literal=False):
    objective = Objective(lam, gamma)
    return _core.alternating_maximisation(
        vectors,
        vectors.shape[1],
        weight,
        similarity=objective.similarity,
        frequency=objective.frequency,
        eps=eps,
        max_iterations=max_iterations,
        seed=seed,
        rounds=rounds,
        has_own_pull=literal,
    )


def masses(Y, lam, gamma=0.1):
    f, f_tilde = marginal_frequency(Y), effective_frequency(Y)
    everything = np.array([0]), np.array([len(f)])
    return Objective(lam, gamma).masses(f, f_tilde, np.arange(len(f), dtype=np.int32), *everything)


def value(vectors, weight, alpha, lam):
    """Evaluate equation 4 at the best centres, which are the normalised weighted sums."""
    f = weight / weight.sum()
    v = vectors.toarray().astype(np.float64)
    centres = [np.linalg.norm(((1 + sign * alpha) / 2 * f) @ v) for sign in (1, -1)]
    return (2 - lam) * sum(centres) + max(lam - 1, 0) * (alpha * f**2).sum()


def test_masses_equal_the_f_of_lambda_of_the_paper():
    _, Y = skewed(4)
    f, f_tilde = marginal_frequency(Y), effective_frequency(Y)
    f, f_tilde, L = f / f.sum(), f_tilde / f_tilde.sum(), len(f)
    for lam in (0.25, 1.0, 1.5, 2.0):
        above = (2 - lam) * f ** min(lam, 1) + max(lam - 1, 0) * f_tilde + 0.1 / L
        below = (2 - lam) * (f ** min(lam, 1)).sum() + max(lam - 1, 0) + 0.1
        found = masses(Y, lam)
        np.testing.assert_allclose(found / found.sum(), above / below)


@pytest.mark.parametrize("lam", [0.2, 0.7, 1.0, 1.3, 1.9, 1.999])
@pytest.mark.parametrize("seed", range(4))
def test_without_rounding_the_objective_never_falls_and_ends_at_a_stationary_point(lam, seed):
    """Theorem 1, and Lemma 1 for the last assignment."""
    X, Y = skewed(seed, n_rows=900, n_labels=250, with_empty=seed % 2 == 0)
    vectors, weight = label_vectors(X, Y), masses(Y, lam)
    share, objectives = alternating(vectors, weight, lam, rounds=False, seed=seed)
    assert len(objectives) < 50
    assert (np.diff(objectives) > -1e-6).all()
    assert len(objectives) > 1
    alpha = 2 * share.astype(np.float64) - 1
    assert (np.abs(alpha) <= 1).all()
    assert alpha @ weight == pytest.approx(0, abs=1e-5 * weight.sum())
    assert ((alpha > -1) & (alpha < 1)).sum() <= 1
    assert objectives[-1] == pytest.approx(value(vectors, weight, alpha, lam), abs=1e-5)
    # For the final centres no other assignment has a higher value.
    f, v = weight / weight.sum(), vectors.toarray().astype(np.float64)
    left, right = (((1 + sign * alpha) / 2 * f) @ v for sign in (1, -1))
    gain = v @ (left / np.linalg.norm(left) - right / np.linalg.norm(right))
    beta = f * (2 - lam) / 2 * gain + max(lam - 1, 0) * f**2
    assert beta @ alpha == pytest.approx(best_by_linear_programme(beta, f), abs=2e-4)


@pytest.mark.parametrize("literal", [False, True], ids=["own pull taken off", "literal"])
@pytest.mark.parametrize("lam", [0.2, 1.0, 1.7])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_1_for_the_splits_that_trees_are_built_from(lam, seed, literal):
    """With whole labels the objective never falls either, and it comes close to that of the relaxed problem."""
    X, Y = skewed(seed, n_rows=900, n_labels=250)
    vectors, weight = label_vectors(X, Y), masses(Y, lam)
    _, objectives = alternating(vectors, weight, lam, seed=seed, literal=literal)
    assert len(objectives) < 50
    assert (np.diff(objectives) >= 0).all()
    _, relaxed = alternating(vectors, weight, lam, rounds=False, seed=seed)
    assert objectives[-1] > 0.97 * relaxed[-1]
    # The same of the split that users get: one split of all labels, whose value is that of equation 4.
    settings = {"tol": 0.0, "max_iterations": 50, "literal": literal, "prune": 0.0, "random_state": seed}
    left, _ = interpolated_tree(X, Y, lam=lam, max_leaf=249, **settings).to_nested()
    alpha = np.where(np.isin(np.arange(250), left), 1.0, -1.0)
    assert max(value(vectors, weight, sign * alpha, lam) for sign in (1, -1)) > 0.97 * relaxed[-1]


@pytest.mark.parametrize("lam", [0.3, 1.0, 1.2])
def test_the_literal_lemma_1_ranks_labels_by_the_printed_ratio(lam):
    """From the centres of one step, the next one puts the labels with the largest beta_i / f_i left (equation 5)."""
    X, Y = skewed(3, n_rows=900, n_labels=250)
    vectors, weight = label_vectors(X, Y), masses(Y, lam)
    f, v = weight / weight.sum(), vectors.toarray().astype(np.float64)
    margins = {}
    for literal in (False, True):
        before, after = (
            alternating(vectors, weight, lam, seed=3, literal=literal, max_iterations=n)[0].astype(np.float64)
            for n in (1, 2)
        )
        assert not np.array_equal(before, after)
        left, right = (side / np.linalg.norm(side) for side in ((before * f) @ v, ((1 - before) * f) @ v))
        ratio = (2 - lam) / 2 * (v @ (left - right)) + max(lam - 1, 0) * f
        margins[literal] = ratio[after == 1].min() - ratio[after == 0].max()
    assert margins[True] > -1e-5
    assert margins[False] < -1e-3
    trees = [interpolated_tree(X, Y, lam=lam, max_leaf=10, random_state=0, literal=one) for one in (False, True)]
    assert trees[0] != trees[1]
    assert as_sets(interpolated_tree(X, Y, lam=2, literal=True)) == as_sets(interpolated_tree(X, Y, lam=2))


def test_pruning_of_label_vectors_can_be_switched_off():
    X, Y = skewed(3, n_rows=900, n_labels=250)
    assert label_vectors(X, Y, prune=0.2).nnz < label_vectors(X, Y).nnz
    for build, options in ((kmeans_tree, {}), (interpolated_tree, {"lam": 0.5}), (interpolated_tree, {"lam": 0.0})):
        built = build(X, Y, max_leaf=10, random_state=0, prune=0.0, **options)
        assert (built.leaf_of >= 0).all()
        with pytest.raises(ValueError, match="prune must be"):
            build(X, Y, prune=-1, **options)
    assert interpolated_tree(X, Y, lam=0.0, prune=0.0, random_state=0, max_leaf=10) == kmeans_tree(
        X, Y, arity=2, prune=0.0, random_state=0, max_leaf=10
    )


def best_by_linear_programme(beta, f):
    from scipy.optimize import linprog

    solved = linprog(-beta, A_eq=f[None], b_eq=[0.0], bounds=(-1, 1))
    return -solved.fun


@given(seed=st.integers(0, 10**6), lam=st.sampled_from([0.3, 1.0, 1.7, 1.9999]), n_labels=st.integers(2, 300))
@settings(max_examples=40)
def test_with_rounding_both_sides_have_labels_and_about_half_the_mass(seed, lam, n_labels):
    rng = np.random.default_rng(seed)
    vectors = sparse.random_array((n_labels, 20), density=0.3, rng=rng, dtype=np.float32, format="csr")
    weight = rng.random(n_labels) ** 4 * rng.choice([0, 1], n_labels, p=[0.1, 0.9])
    share, _ = alternating(vectors, weight, lam, max_iterations=20, seed=seed)
    assert set(np.unique(share)) == {0.0, 1.0}
    if weight.sum() > 0:
        excess = abs(weight @ share - weight.sum() / 2)
        assert excess <= weight.max() / 2 + 1e-9 or share.sum() in (1, n_labels - 1)


def test_topics_stay_together_while_frequent_labels_move_up():
    X, Y = skewed(5, n_rows=3000)
    f = marginal_frequency(Y)
    depth = {}
    for lam in (0.0, 0.5, 1.0, 1.9, 2.0):
        tree = interpolated_tree(X, Y, lam=lam, max_leaf=1, random_state=0)
        depth[lam] = (f * tree.depth[tree.leaf_of]).sum() / f.sum()
    assert depth[0.0] > depth[0.5] > depth[1.0] > depth[1.9]
    optimum = huffman_tree(None, Y)
    assert depth[2.0] < depth[0.0]
    assert depth[1.0] < (f * optimum.depth[optimum.leaf_of]).sum() / f.sum() + 1
    vectors = label_vectors(X, Y).toarray()
    closeness = {lam: _mean_cosine_of_siblings(X, Y, lam, vectors) for lam in (0.0, 1.0, 2.0)}
    assert closeness[1.0] > (closeness[0.0] + 2 * closeness[2.0]) / 3


def _mean_cosine_of_siblings(X, Y, lam, vectors):
    tree = interpolated_tree(X, Y, lam=lam, max_leaf=8, random_state=0)
    found = []
    for node in np.unique(tree.parent[tree.leaf_of]):
        labels = tree.label[tree.children(int(node)).start : tree.children(int(node)).stop]
        inside = vectors[labels[labels >= 0]]
        if len(inside) > 1:
            found.append((np.linalg.norm(inside.sum(axis=0)) ** 2 - len(inside)) / (len(inside) * (len(inside) - 1)))
    return np.mean(found)


@pytest.mark.parametrize("options", [{"lam": 0.6}, {"lam": 1.7}, {"lam": 1.2, "direct": True, "frequency": "greedy"}])
def test_the_tree_does_not_depend_on_the_number_of_threads_and_has_every_label(options):
    X, Y = skewed(6, n_rows=900, n_labels=700, n_topics=9)
    one = interpolated_tree(X, Y, max_leaf=3, random_state=1, n_jobs=1, **options)
    assert one == interpolated_tree(X, Y, max_leaf=3, random_state=1, n_jobs=3, **options)
    assert (one.leaf_of >= 0).all()
    assert one.n_children.max() <= 3


def test_lam_prime_is_an_alternative_to_lam():
    X, Y = skewed(7)
    assert interpolated_tree(X, Y, lam_prime=3, random_state=0) == interpolated_tree(X, Y, lam=1.5, random_state=0)
    assert checked_lam(None, 0) == 0


def test_labels_without_examples_are_deepest():
    X, Y = skewed(8)
    is_empty = marginal_frequency(Y) == 0
    for lam in (0.5, 1.0, 1.5):
        tree = interpolated_tree(X, Y, lam=lam, max_leaf=1, random_state=0)
        depth = tree.depth[tree.leaf_of]
        assert depth[is_empty].min() > np.median(depth[~is_empty])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 2.5}, "lam must be a number between 0 and 2"),
        ({"lam": -0.1}, "lam must be"),
        ({"lam": 1, "lam_prime": 1}, "pass only one of them"),
        ({"lam_prime": -1}, "lam_prime must be"),
        ({"gamma": -1}, "gamma must be"),
        ({"frequency": "inverse"}, "frequency must be 'marginal', 'greedy' or a number"),
        ({"frequency": 2}, "frequency must be a number between 0 and 1"),
        ({"context_weight": [1.0]}, r"one number per row, so shape \(600,\), got \(1,\)"),
        ({"context_weight": np.full(600, -1.0)}, "finite and at least 0, but row 0 has -1.0"),
        ({"arity": 1}, "arity must be"),
        ({"direct": "yes"}, "direct must be True or False"),
    ],
)
def test_bad_parameters_are_rejected_by_name(options, message):
    X, Y = skewed()
    with pytest.raises(ValueError, match=message):
        interpolated_tree(X, Y, **options)


# ---- arities above 2


@given(seed=st.integers(0, 10**6), arity=st.integers(2, 9), n_labels=st.integers(1, 60))
def test_collapsing_keeps_the_remaining_subtrees_and_the_arity(seed, arity, n_labels):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 50, n_labels)
    tree = fano_tree(None, sparse.csr_array(np.vstack([counts[None] > 0, np.eye(n_labels)])))
    mass = rng.random(n_labels)
    collapsed = collapse_levels(tree, arity, mass)
    assert collapsed.n_children.max() <= arity
    assert set(as_sets(collapsed)) <= set(as_sets(tree))
    assert (collapsed.depth[collapsed.leaf_of] <= tree.depth[tree.leaf_of]).all()
    assert collapse_levels(collapsed, 2, mass) == collapsed


def every_collapse(nested, arity):
    """Enumerate all trees that removing inner nodes can give, each as a list of children for the parent."""
    if not isinstance(nested, list):
        return [[nested]]
    trees = []
    for combination in itertools.product(*(every_collapse(child, arity) for child in nested)):
        children = [grandchild for child in combination for grandchild in child]
        if len(children) <= arity:
            trees.append(children)  # the node is removed
            trees.append([children])  # the node is kept
    return trees


@given(st.integers(0, 10**6), st.integers(2, 7), st.integers(2, 5))
@settings(max_examples=60)
def test_collapsing_gives_the_smallest_possible_expected_depth(seed, n_labels, arity):
    rng = np.random.default_rng(seed)
    parts = list(range(n_labels))
    while len(parts) > 1:  # a random binary tree
        a, b = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append([a, b])
    mass = rng.random(n_labels)

    def expected_depth(tree):
        return float(mass @ tree.label_depth)

    trees = [tree[0] for tree in every_collapse(parts[0], arity) if len(tree) == 1]
    best = min(expected_depth(LabelTree.from_nested(tree)) for tree in trees)
    collapsed = collapse_levels(LabelTree.from_nested(parts[0]), arity, mass)
    assert expected_depth(collapsed) == pytest.approx(best)


def test_collapsing_removes_whole_levels_of_an_even_tree_and_the_heavy_side_first():
    even = LabelTree.from_nested(
        [[[[8 * a + 4 * b + 2 * c + d for d in (0, 1)] for c in (0, 1)] for b in (0, 1)] for a in (0, 1)]
    )
    fours = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert collapse_levels(even, 4, np.ones(16)).to_nested() == fours
    tree = LabelTree.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    heavy = collapse_levels(tree, 4, [1, 1, 1, 1, 1, 1, 1, 50])
    assert [heavy.depth_of(label) for label in range(8)] == [2, 2, 2, 2, 2, 2, 1, 1]


def test_a_wide_interpolated_tree_keeps_frequent_labels_shallow():
    X, Y = skewed(9, n_rows=2000, n_labels=400)
    f = marginal_frequency(Y)
    wide = interpolated_tree(X, Y, lam=1, arity=16, max_leaf=16, random_state=0)
    even = kmeans_tree(X, Y, arity=16, max_leaf=16, random_state=0)
    assert wide.n_children.max() <= 16
    assert (f * wide.depth[wide.leaf_of]).sum() < 0.9 * (f * even.depth[even.leaf_of]).sum()


# ---- by name


def test_a_classifier_builds_it_by_name_with_its_options(tmp_path):
    X, Y = skewed(10)
    options = {"lam": 0.8, "frequency": "greedy"}
    model = PLTClassifier(tree="interpolated", tree_options=options, arity=4, max_leaf=10, random_state=3).fit(X, Y)
    expected = resolve("interpolated", X, Y, options=options, arity=4, max_leaf=10, random_state=model.seed_)
    assert model.tree_ == expected
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").get_params() == model.get_params()
    weighted = PLTClassifier(tree="interpolated", tree_options={"lam": 2}, random_state=3, max_leaf=10)
    weight = np.where(Y.toarray()[:, 0] > 0, 50.0, 1.0)
    assert weighted.fit(X, Y, sample_weight=weight).tree_.depth_of(0) <= weighted.fit(X, Y).tree_.depth_of(0)


def test_an_option_that_the_builder_does_not_have_is_rejected():
    X, Y = skewed()
    with pytest.raises(ValueError, match="'kmeans' has no option 'lam'; its options are arity"):
        PLTClassifier(tree="kmeans", tree_options={"lam": 1}).fit(X, Y)
    with pytest.raises(ValueError, match="tree is a LabelTree, which takes no options, got the option 'lam'"):
        PLTClassifier(tree=fano_tree(None, Y), tree_options={"lam": 1}).fit(X, Y)
    with pytest.raises(ValueError, match="tree_options must be a dict"):
        PLTClassifier(tree="interpolated", tree_options=["lam"]).fit(X, Y)
