"""Builders that need no features, their shared recursion, and builders by name."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ramify import _core
from ramify.trees import (
    LabelTree,
    complete_tree,
    fano_tree,
    huffman_tree,
    kmeans_tree,
    one_level_tree,
    random_tree,
    resolve,
)
from ramify.trees.splitting import even_cuts, from_splits

WITHOUT_FEATURES = [random_tree, complete_tree, one_level_tree, huffman_tree, fano_tree]

counts_of_labels = st.lists(st.integers(0, 30), min_size=1, max_size=40)


def labels_with_counts(counts):
    """Return a Y whose columns have these numbers of examples, which may be 0."""
    columns = np.repeat(np.arange(len(counts)), counts)
    rows = np.arange(len(columns))
    return sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=(max(len(columns), 1), len(counts)))


def expected_depth(tree, counts):
    """Sum depth times count over the labels."""
    return sum(count * tree.depth_of(label) for label, count in enumerate(counts))


def pre_leaf_sizes(tree):
    """Return the number of children of every node whose children are all leaves."""
    inner = np.flatnonzero(tree.n_children)
    return [int(tree.n_children[node]) for node in inner if all(map(tree.is_leaf, tree.children(node)))]


@pytest.mark.parametrize("builder", WITHOUT_FEATURES)
@given(counts=counts_of_labels, max_leaf=st.integers(1, 12))
def test_every_column_has_a_leaf_with_or_without_examples(builder, counts, max_leaf):
    tree = builder(None, labels_with_counts(counts), max_leaf=max_leaf, random_state=0)
    assert sorted(tree.label[tree.label >= 0]) == list(range(len(counts)))
    assert tree.n_labels == len(counts)


@pytest.mark.parametrize("builder", [random_tree, complete_tree, fano_tree])
@given(counts=counts_of_labels, max_leaf=st.integers(2, 12))
def test_pre_leaf_nodes_have_at_most_max_leaf_leaves(builder, counts, max_leaf):
    tree = builder(None, labels_with_counts(counts), max_leaf=max_leaf, random_state=0)
    assert max(pre_leaf_sizes(tree), default=0) <= max_leaf


@given(n_labels=st.integers(1, 200), arity=st.integers(2, 9), max_leaf=st.integers(1, 20))
def test_siblings_of_a_complete_tree_differ_by_at_most_one_label(n_labels, arity, max_leaf):
    tree = complete_tree(None, np.arange(n_labels), arity=arity, max_leaf=max_leaf)
    for node in np.flatnonzero(tree.n_children):
        below = tree.n_labels_below[tree.children(node)]
        assert below.max() - below.min() <= 1
        assert len(below) <= max(arity, max_leaf)
    in_order = _leaves_left_to_right(tree.to_nested())
    assert in_order == list(range(n_labels))


def _leaves_left_to_right(nested):
    return [nested] if isinstance(nested, int) else [leaf for part in nested for leaf in _leaves_left_to_right(part)]


def test_random_trees_depend_on_the_seed_alone():
    Y = np.arange(100)
    assert random_tree(None, Y, random_state=3) == random_tree(None, Y, random_state=3)
    assert random_tree(None, Y, random_state=3) != random_tree(None, Y, random_state=4)
    generator = np.random.RandomState(3)
    assert random_tree(None, Y, random_state=generator) == random_tree(None, Y, random_state=3)
    shape = complete_tree(None, Y, arity=3, max_leaf=4)
    assert (random_tree(None, Y, arity=3, max_leaf=4, random_state=0).parent == shape.parent).all()


@pytest.mark.parametrize("builder", [*WITHOUT_FEATURES])
def test_a_single_label_is_a_single_leaf(builder):
    assert builder(None, labels_with_counts([2])) == LabelTree([-1], [0])


# ---- Huffman and Fano


def optimal_cost(counts, arity):
    """Return the smallest expected depth of any tree with at most `arity` children per node, by brute force."""

    @cache
    def cost(labels):
        if len(labels) == 1:
            return 0
        return sum(counts[label] for label in labels) + best_partition(labels, arity, len(labels))

    @cache
    def best_partition(labels, parts, whole):
        # Choose the part with the first label, then divide the rest. One part may not hold everything.
        if not labels:
            return 0
        if parts == 0:
            return float("inf")
        first, others = labels[0], labels[1:]
        return min(
            cost((first, *chosen))
            + best_partition(tuple(label for label in others if label not in chosen), parts - 1, whole)
            for size in range(len(others) + 1)
            for chosen in combinations(others, size)
            if size + 1 < whole
        )

    return cost(tuple(range(len(counts))))


@given(counts=st.lists(st.integers(0, 20), min_size=1, max_size=6), arity=st.integers(2, 4))
def test_huffman_has_the_smallest_expected_depth_of_all_trees(counts, arity):
    tree = huffman_tree(None, labels_with_counts(counts), arity=arity)
    assert expected_depth(tree, counts) == optimal_cost(counts, arity)
    assert tree.n_children.max() <= arity


@given(counts=st.lists(st.integers(1, 1000), min_size=2, max_size=60))
def test_fano_is_within_one_level_of_huffman(counts):
    Y = labels_with_counts(counts)
    fano, huffman = (expected_depth(tree, counts) for tree in (fano_tree(None, Y), huffman_tree(None, Y)))
    assert huffman <= fano <= huffman + sum(counts)


@pytest.mark.parametrize("builder", [huffman_tree, fano_tree])
@given(counts=counts_of_labels)
def test_more_frequent_labels_of_a_code_are_never_deeper(builder, counts):
    tree = builder(None, labels_with_counts(counts))
    depth = [tree.depth_of(label) for label in range(len(counts))]
    if builder is fano_tree:  # labels of similar frequency may differ by one level in Fano's code
        frequent, rare = int(np.argmax(counts)), int(np.argmin(counts))
        assert depth[frequent] <= depth[rare] or counts[frequent] == counts[rare]
        return
    for one, other in combinations(range(len(counts)), 2):
        if counts[one] > counts[other]:
            assert depth[one] <= depth[other]


@pytest.mark.parametrize("builder", [huffman_tree, fano_tree])
def test_labels_without_examples_do_not_form_a_chain(builder):
    tree = builder(None, labels_with_counts([50, 20] + [0] * 1000))
    assert tree.height <= 14
    assert tree.depth_of(0) == 1


def test_fano_cuts_where_the_halves_are_most_even():
    assert fano_tree(None, labels_with_counts([49, 49, 2])).depth_of(0) == 1


def test_an_arity_above_the_number_of_labels_gives_one_level():
    for arity in (5, 6, 2**40):
        assert huffman_tree(None, np.arange(5), arity=arity).height == 1


def test_huffman_ties_are_deterministic_and_stay_shallow():
    Y = labels_with_counts([5] * 64)
    assert huffman_tree(None, Y) == huffman_tree(None, Y, random_state=1)
    assert huffman_tree(None, Y).height == 6
    assert huffman_tree(None, Y, arity=4).height == 3


@given(counts=counts_of_labels, arity=st.integers(2, 4), max_leaf=st.integers(2, 12))
def test_collapsed_huffman_keeps_the_large_subtrees(counts, arity, max_leaf):
    Y = labels_with_counts(counts)
    full, collapsed = huffman_tree(None, Y, arity=arity), huffman_tree(None, Y, arity=arity, max_leaf=max_leaf)
    for label in range(len(counts)):
        large = [n for n in full.n_labels_below[full.path(label)] if n > max_leaf]
        sizes = collapsed.n_labels_below[collapsed.path(label)].tolist()
        assert [n for n in sizes if n > max_leaf] == large
        assert len(sizes) <= len(large) + 2  # at most the pre-leaf node and the leaf follow


def test_codes_of_100_000_labels_are_within_one_bit_of_the_entropy():
    counts = np.random.default_rng(0).zipf(1.3, 100_000) % 100
    Y = np.repeat(np.arange(100_000), np.maximum(counts, 1))
    huffman, fano = huffman_tree(None, Y), fano_tree(None, Y)
    frequency = np.maximum(counts, 1)
    mean = [float(frequency @ tree.depth[tree.leaf_of] / frequency.sum()) for tree in (huffman, fano)]
    entropy = float(-(frequency / frequency.sum()) @ np.log2(frequency / frequency.sum()))
    assert entropy <= mean[0] <= mean[1] <= mean[0] + 1
    assert mean[0] <= entropy + 1


def test_the_huffman_kernel_rejects_unsorted_or_invalid_frequencies():
    for bad in ([3.0, 1.0], [-1.0, 1.0], [0.0, np.nan], [0.0, np.inf]):
        with pytest.raises(ValueError, match="sorted from low to high"):
            _core.huffman_parents(np.array(bad), 2)
    with pytest.raises(ValueError, match="arity must be at least 2, got 1"):
        _core.huffman_parents(np.array([1.0, 2.0]), 1)
    assert _core.huffman_parents(np.array([]), 2).tolist() == []


# ---- the shared recursion


@given(
    starts=st.lists(st.tuples(st.integers(0, 9), st.integers(2, 40)), min_size=1, max_size=8), arity=st.integers(2, 9)
)
def test_even_cuts_divide_every_part_evenly(starts, arity):
    begin, end, at = [], [], 0
    for gap, size in starts:
        begin.append(at + gap)
        at = begin[-1] + size
        end.append(at)
    cuts = even_cuts(np.array(begin), np.array(end), arity)
    for start, stop in zip(begin, end, strict=True):
        inside = [cut for cut in cuts if start < cut < stop]
        sizes = np.diff([start, *inside, stop])
        assert len(sizes) == min(arity, stop - start)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("answer", [[], [0], [5], [3, 2], [2, 2]])
def test_a_split_without_a_cut_inside_every_part_is_rejected(answer):
    with pytest.raises(
        ValueError, match="split must return strictly increasing positions, at least one strictly inside"
    ):
        from_splits(np.arange(5), lambda order, starts, stops: np.array(answer, dtype=np.int64), max_leaf=2)


@pytest.mark.parametrize(
    ("builder", "settings", "message"),
    [
        (random_tree, {"arity": 1}, "arity must be an integer of at least 2, got 1"),
        (complete_tree, {"arity": 2.5}, "arity must be an integer of at least 2, got 2.5"),
        (huffman_tree, {"arity": True}, "arity must be an integer of at least 2, got True"),
        (huffman_tree, {"max_leaf": 0}, "max_leaf must be an integer of at least 1, got 0"),
        (fano_tree, {"max_leaf": 0}, "max_leaf must be an integer of at least 1, got 0"),
        (random_tree, {"max_leaf": -3}, "max_leaf must be an integer of at least 1, got -3"),
    ],
)
def test_bad_parameters_are_rejected_by_name(builder, settings, message):
    with pytest.raises(ValueError, match=message):
        builder(None, np.arange(5), **settings)


@pytest.mark.parametrize("builder", WITHOUT_FEATURES)
def test_a_y_without_columns_is_rejected(builder):
    with pytest.raises(ValueError, match="Y has no columns"):
        builder(None, sparse.csr_array((3, 0)))


# ---- builder names, given trees and custom builders


@pytest.mark.parametrize(
    ("name", "builder"),
    [
        ("random", random_tree),
        ("complete", complete_tree),
        ("huffman", huffman_tree),
        ("fano", fano_tree),
        ("one_level", one_level_tree),
        ("kmeans", kmeans_tree),
    ],
)
def test_a_name_selects_its_builder_and_ignores_settings_it_does_not_have(name, builder):
    X, Y = np.random.default_rng(0).random((60, 5)), np.arange(60) % 20
    tree = resolve(name, X, Y, arity=3, max_leaf=4, random_state=0, n_jobs=1)
    known = {"arity": 3} if name not in ("fano", "one_level") else {}
    assert tree == builder(X, Y, max_leaf=4, random_state=0, **known)


def test_a_given_tree_is_widened_to_the_columns_of_y():
    Y = labels_with_counts([1, 2, 0])
    tree = LabelTree.from_nested([1, 0])
    assert resolve(tree, None, Y) == LabelTree.from_nested([1, 0], n_labels=3)
    whole = LabelTree.from_nested([1, 0, 2])
    assert resolve(whole, None, Y) is whole


def test_a_custom_builder_gets_the_settings_it_has_parameters_for():
    received = {}

    def my_builder(X, Y, *, max_leaf, **others):
        received.update(others, max_leaf=max_leaf)
        return one_level_tree(X, Y)

    assert resolve(my_builder, None, [0, 1], max_leaf=7, arity=3).to_nested() == [0, 1]
    assert received == {"max_leaf": 7, "arity": 3}


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        ("k-means", ValueError, "tree must be one of 'kmeans', 'interpolated', .* got 'k-means'"),
        (17, TypeError, "tree must be a LabelTree, a builder .* got int"),
        (lambda X, Y: [0, 1], TypeError, "the tree builder <lambda> must return a LabelTree, got list"),
        (lambda X, Y: LabelTree([-1], [0]), ValueError, "the tree from <lambda> has no leaf for label 1"),
        (
            LabelTree.from_nested([0, 1, 5]),
            ValueError,
            "the given tree has a leaf for label 5, but Y has only 3 columns",
        ),
        (
            LabelTree([-1], [0]),
            ValueError,
            "no leaf for label 1, which has 2 examples; 2 labels with examples have no leaf",
        ),
    ],
)
def test_an_invalid_tree_parameter_is_rejected(tree, error, message):
    with pytest.raises(error, match=message):
        resolve(tree, None, labels_with_counts([1, 2, 1]))


def test_fano_cuts_after_half_the_mass_as_the_paper_prints_it():
    counts = [49, 49, 2]
    assert [fano_tree(None, labels_with_counts(counts), cut="after_half").depth_of(j) for j in range(3)] == [2, 2, 1]
    assert [fano_tree(None, labels_with_counts(counts)).depth_of(j) for j in range(3)] == [1, 2, 2]
    with pytest.raises(ValueError, match="cut must be"):
        fano_tree(None, labels_with_counts(counts), cut="middle")
