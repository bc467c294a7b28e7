"""LabelTree: invariants, rejected input and conversions."""

from __future__ import annotations

import copy
import pickle

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import _core
from ramify.trees import LabelTree

FIVE_LABELS = [[0, 1], [2, [3, 4]]]


@st.composite
def nested_trees(draw):
    """Draw nested lists of distinct label columns; some columns are missing."""
    columns = draw(st.lists(st.integers(0, 60), min_size=1, max_size=25, unique=True))
    parts = list(columns)
    while len(parts) > 1:
        size = draw(st.integers(1, min(4, len(parts))))
        at = draw(st.integers(0, len(parts) - size))
        parts[at : at + size] = [parts[at : at + size]]
        if size == 1 and draw(st.booleans()):  # chains are trees too, but must be finite
            parts = [parts]
    return parts[0]


@st.composite
def shuffled_arrays(draw):
    """Draw a tree's arrays with its nodes numbered at random."""
    tree = LabelTree.from_nested(draw(nested_trees()))
    number = np.array(draw(st.permutations(range(tree.n_nodes))))
    parent, label = np.full(tree.n_nodes, -1), np.full(tree.n_nodes, -1)
    parent[number[1:]] = number[tree.parent[1:]]
    label[number] = tree.label
    return parent, label, tree


@given(nested_trees())
def test_canonical_numbering_is_breadth_first_with_contiguous_children(nested):
    tree = LabelTree.from_nested(nested)
    assert tree.parent[0] == -1
    assert (np.diff(tree.parent) >= 0).all()
    assert (np.diff(tree.depth) >= 0).all()
    for node in range(tree.n_nodes):
        assert list(tree.children(node)) == np.flatnonzero(tree.parent == node).tolist()
        assert tree.is_leaf(node) == (tree.n_children[node] == 0) == (tree.first_child[node] == -1)
        assert tree.is_leaf(node) == (tree.label[node] >= 0)
    assert tree.height == tree.depth.max()
    assert tree.nodes_per_depth.sum() == tree.n_nodes


@given(nested_trees())
def test_every_path_goes_from_the_root_to_the_leaf_of_the_label(nested):
    tree = LabelTree.from_nested(nested)
    placed = 0
    for label, leaf in enumerate(tree.leaf_of):
        if leaf < 0:
            continue
        placed += 1
        path = tree.path(label)
        assert path[0] == 0
        assert path[-1] == leaf
        assert (tree.parent[path[1:]] == path[:-1]).all()
        assert len(path) == tree.depth_of(label) + 1
    assert placed == (tree.label >= 0).sum() == tree.n_labels_below[0]


@given(shuffled_arrays())
def test_any_numbering_gives_the_same_tree_up_to_the_order_of_siblings(arrays):
    parent, label, original = arrays
    tree = LabelTree(parent, label)
    assert (tree.n_nodes, tree.n_labels, tree.height) == (original.n_nodes, original.n_labels, original.height)
    for column in np.flatnonzero(original.leaf_of >= 0):
        assert [_labels_below(tree, node) for node in tree.path(column)] == [
            _labels_below(original, node) for node in original.path(column)
        ]


def _labels_below(tree, node):
    below = [node]
    for place in below:
        below.extend(tree.children(place))
    return {int(tree.label[place]) for place in below} - {-1}


@given(nested_trees())
def test_every_conversion_round_trips(nested):
    tree = LabelTree.from_nested(nested)
    assert tree.to_nested() == nested
    assert LabelTree(tree.parent, tree.label, tree.n_labels) == tree
    assert LabelTree.from_text(tree.to_text()) == tree
    assert LabelTree.from_networkx(tree.to_networkx()) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert copy.deepcopy(tree) == tree
    assert hash(copy.copy(tree)) == hash(tree)


@given(nested_trees(), st.data())
def test_subtree_minimum_equals_the_minimum_over_the_labels_below(nested, data):
    tree = LabelTree.from_nested(nested)
    values = data.draw(st.lists(st.floats(0, 1), min_size=tree.n_labels, max_size=tree.n_labels))
    expected = [min(values[label] for label in _labels_below(tree, node)) for node in range(tree.n_nodes)]
    assert tree.subtree_minimum(values).tolist() == expected
    assert tree.n_labels_below.tolist() == [len(_labels_below(tree, node)) for node in range(tree.n_nodes)]


def test_siblings_keep_the_given_order():
    assert LabelTree([4, 4, -1, 2, 2], [7, 3, -1, 1, -1]).to_nested() == [1, [7, 3]]


def test_columns_without_a_leaf_widen_the_tree_and_are_saved(tmp_path):
    tree = LabelTree.from_nested([1, 3], n_labels=6)
    assert tree.leaf_of.tolist() == [-1, 1, -1, 2, -1, -1]
    tree.save(tmp_path / "tree.txt")
    assert LabelTree.load(tmp_path / "tree.txt") == tree
    assert tree != LabelTree.from_nested([1, 3])
    assert tree != "a tree"


@pytest.mark.parametrize("name", ["parent", "label", "first_child", "n_children", "leaf_of", "depth", "n_labels_below"])
def test_a_tree_is_immutable(name):
    tree = LabelTree.from_nested(FIVE_LABELS)
    with pytest.raises(ValueError, match="read-only"):
        getattr(tree, name)[0] = 5
    with pytest.raises(AttributeError, match=f"cannot set '{name}': a LabelTree is immutable"):
        setattr(tree, name, np.zeros(3))


def test_a_tree_copies_the_given_arrays():
    parent, label = np.array([-1, 0, 0], dtype=np.int32), np.array([-1, 0, 1], dtype=np.int32)
    tree = LabelTree(parent, label)
    label[1] = 9
    assert tree.label.tolist() == [-1, 0, 1]


@pytest.mark.parametrize(
    ("parent", "label", "n_labels", "message"),
    [
        ([], [], None, "parent must be a non-empty 1-D array of integers"),
        ([-1.0, 0.0], [-1, 0], None, "parent must be .* got shape .* float64"),
        ([[-1]], [0], None, "parent must be a non-empty 1-D"),
        ([-1, 0], [-1, 0, 1], None, "one entry per node, got 2 and 3"),
        ([-1, 5], [-1, 0], None, r"parent\[1\] is 5, but there are only 2 nodes"),
        ([-1, -2], [-1, 0], None, r"parent\[1\] is -2"),
        ([-1, 0], [-1, -7], None, r"label\[1\] is -7"),
        ([-1, 0], [-1, 2**40], None, r"label\[1\] is 1099511627776"),
        ([1, 0], [-1, 0], None, "no node has parent -1"),
        ([-1, 0, -1], [-1, 0, 1], None, "nodes 0 and 2 both have parent -1; .* found 2"),
        ([-1, 0, 3, 2], [-1, 0, -1, -1], None, "node 2 cannot be reached from the root: its parents form a cycle"),
        ([-1, 0, 2], [-1, 0, 1], None, "node 2 cannot be reached"),
        ([-1, 0, 0], [-1, 0, -1], None, "node 2 has neither children nor a label"),
        ([-1, 0, 1], [-1, 4, 1], None, "node 1 has label 4 and children; only leaves have labels"),
        ([-1, 0, 0], [-1, 3, 3], None, "label 3 has two leaves, nodes 1 and 2"),
        ([-1, 0, 0], [-1, 0, 3], 3, "node 2 has label 3, but n_labels is 3"),
        ([-1], [0], 0, "n_labels must be an integer of at least 1, got 0"),
        ([-1], [0], 1.5, "n_labels must be an integer of at least 1, got 1.5"),
    ],
)
def test_arrays_that_are_not_a_tree_are_rejected(parent, label, n_labels, message):
    with pytest.raises(ValueError, match=message):
        LabelTree(parent, label, n_labels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree: tree.path(5), "label must be an integer between 0 and 4, got 5"),
        (lambda tree: tree.path(0.5), "label must be an integer between 0 and 4, got 0.5"),
        (lambda tree: tree.is_leaf("root"), "node must be an integer between 0 and 8, got root"),
        (lambda tree: tree.depth_of(-1), "label must be an integer between 0 and 4, got -1"),
        (lambda tree: tree.depth_of(True), "label must be an integer between 0 and 4, got True"),
        (lambda tree: tree.is_leaf(99), "node must be an integer between 0 and 8, got 99"),
        (lambda tree: tree.children(-1), "node must be an integer between 0 and 8, got -1"),
        (lambda tree: tree.subtree_minimum([1.0]), r"shape \(5,\), got \(1,\)"),
        (lambda tree: tree.render(max_children=0), "max_children must be an integer of at least 1, got 0"),
        (lambda tree: tree.render(max_depth=-1), "max_depth must be None or an integer of at least 0, got -1"),
        (lambda tree: tree.render(["a"]), "label_names must have 5 names, one per label, got 1"),
        (lambda _: LabelTree.from_nested([0, 2], 9).path(1), "label 1 has no leaf in this tree"),
        (lambda _: LabelTree.from_nested([0, []]), "an empty list"),
        (lambda _: LabelTree.from_nested([0, "1"]), "only lists and integer label columns, got '1'"),
        (lambda _: LabelTree.from_nested([0, True]), "only lists and integer label columns, got True"),
        (lambda _: LabelTree.from_nested([0, -1]), "at least 0, got -1"),
    ],
)
def test_bad_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call(LabelTree.from_nested(FIVE_LABELS))


def test_a_list_that_contains_itself_is_rejected():
    endless: list[object] = [0]
    endless.append(endless)
    with pytest.raises(ValueError, match="the same list appears twice"):
        LabelTree.from_nested(endless)


HEADER = "ramify-label-tree 1 nodes 3 labels 2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not a label tree"),
        ("0 1\n", "line 1: not a label tree; the first line must be 'ramify-label-tree 1 nodes N labels M'"),
        ("ramify-label-tree 2 nodes 1 labels 1\n", "line 1: unknown format version 2"),
        ("ramify-label-tree 1 labels 1 nodes 1\n", "line 1: expected"),
        ("ramify-label-tree 1 nodes 0 labels 1\n", "line 1: the number of nodes must be between 1 and"),
        ("ramify-label-tree 1 nodes 1 labels x\n", "line 1: the number of labels must be .* got 'x'"),
        (f"ramify-label-tree 1 nodes {'9' * 5000} labels 1\n", "line 1: the number of nodes must be"),
        (HEADER + "-1 -1\n0 0\n", "line 4: the text ends after 2 of the 3 nodes"),
        (HEADER + "-1 -1\n0 0\n0 1\n0 2\n", "line 5: more nodes than the 3 declared"),
        (HEADER + "-1 -1\n0 0 0\n1\n", "line 3: expected a parent and a label, for example '0 -1', got '0 0 0'"),
        (HEADER + "-1 -1\n0 0\n0 one\n", "line 4: 'one' must be -1 or a number"),
        (HEADER + "-1 -1\n0 0\n0 -5\n", "line 4: '-5' must be -1 or a number"),
        (HEADER + "-1 -1\n0 0\n0 99999999999999999999\n", "line 4: '9+' must be -1 or a number"),
        (HEADER + "-1 -1\n0 0\n0 1.0\n", r"line 4: '1\.0' must be -1 or a number"),
        (HEADER + "-1 -1\n0 0\n0 ١\n", "line 4: .* must be -1 or a number"),
    ],
)
def test_text_that_is_not_a_tree_is_rejected_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        LabelTree.from_text(text)


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "truncated.txt"
    path.write_text(HEADER + "-1 -1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"truncated\.txt, line 3: the text ends after 1 of the 3 nodes"):
        LabelTree.load(path)


def test_comments_empty_lines_and_wide_spacing_are_read():
    text = HEADER + "# the root\n-1   -1\r\n\n0\t1\n  0 0\n"
    assert LabelTree.from_text(text).to_nested() == [1, 0]


@given(st.text(alphabet="ramify-lbtnods 0123456789\n#", max_size=80))
def test_any_other_text_raises_a_value_error(text):
    for candidate in (text, HEADER + text):
        try:
            tree = LabelTree.from_text(candidate)
        except ValueError:
            continue
        assert LabelTree.from_text(tree.to_text()) == tree


def test_networkx_edges_order_the_siblings_and_nodes_may_have_any_name():
    graph = networkx.DiGraph([("animals", "dog"), ("root", "stone"), ("root", "animals"), ("animals", "cat")])
    networkx.set_node_attributes(graph, {"stone": 2, "cat": 0, "dog": 1}, "label")
    assert LabelTree.from_networkx(graph).to_nested() == [2, [1, 0]]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (networkx.Graph([(0, 1)]), "expected a networkx DiGraph with edges from parent to child, got an undirected"),
        (networkx.DiGraph(), "the graph has no nodes"),
        (networkx.DiGraph([(0, 1), (2, 3)]), "exactly one node without incoming edges .* found 2, including 0 and 2"),
        (networkx.DiGraph([(0, 1), (1, 0)]), "exactly one node without incoming edges .* found none"),
        (networkx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3)]), "node 3 has more than one parent"),
        (networkx.DiGraph([(0, 1)]), "node 1 must have its label column"),
    ],
)
def test_graphs_that_are_not_label_trees_are_rejected(graph, message):
    with pytest.raises(ValueError, match=message):
        LabelTree.from_networkx(graph)


def test_rendering_shows_names_counts_and_omitted_nodes():
    names = {0: "ant", 1: "bee", 3: "cow"}
    assert LabelTree.from_nested(FIVE_LABELS).render(names).splitlines() == [
        "root: 5 labels",
        "├─ node 1: 2 labels",
        "│  ├─ 0 ant",
        "│  └─ 1 bee",
        "└─ node 2: 3 labels",
        "   ├─ 2",
        "   └─ node 6: 2 labels",
        "      ├─ 3 cow",
        "      └─ 4",
    ]
    assert LabelTree.from_nested(FIVE_LABELS).render(max_depth=1).splitlines() == [
        "root: 5 labels",
        "├─ node 1: 2 labels …",
        "└─ node 2: 3 labels …",
    ]
    assert LabelTree([-1], [0]).render(["only"]) == "0 only"


def test_a_chain_of_100_000_nodes_needs_no_recursion():
    length = 100_000
    number = np.random.default_rng(0).permutation(length + 1)  # worst case: random order
    parent, label = np.full(length + 1, -1), np.full(length + 1, -1)
    parent[number[1:]] = number[:-1]
    label[number[-1]] = 0
    tree = LabelTree(parent, label)
    assert tree.height == length
    assert len(tree.path(0)) == length + 1
    assert tree.subtree_minimum([0.5]).tolist() == [0.5] * (length + 1)
    assert LabelTree.from_nested(tree.to_nested()) == tree
    assert LabelTree.from_text(tree.to_text()) == tree
    assert tree.render().count("\n") == length


def test_a_million_labels_keep_their_leaves():
    labels = np.random.default_rng(0).permutation(1_000_000)
    parent = np.concatenate(([-1], np.zeros(1000, int), 1 + np.arange(1_000_000) % 1000))
    tree = LabelTree(parent, np.concatenate((np.full(1001, -1), labels)))
    assert tree.nodes_per_depth.tolist() == [1, 1000, 1_000_000]
    assert (tree.label[tree.leaf_of] == np.arange(1_000_000)).all()
    assert (tree.n_labels_below[1:1001] == 1000).all()
    assert LabelTree.from_text(tree.to_text()) == tree


def test_the_tree_walks_of_the_core_reject_invalid_parents():
    for bad in ([], [0], [-1, 1], [-1, -1], [-1, 5]):
        parent = np.array(bad, dtype=np.int32)
        with pytest.raises(ValueError):
            _core.node_depths(parent)
        with pytest.raises(ValueError):
            _core.subtree_minimum(parent, np.zeros(len(bad)))
    with pytest.raises(ValueError, match="one value per node"):
        _core.subtree_sum(np.array([-1, 0], dtype=np.int32), np.zeros(3, dtype=np.int64))
    for bad, root in (([-1], 1), ([-1], -1), ([-1, 7], 0), ([-1, -3], 0), ([1, -1], 0)):
        with pytest.raises(ValueError):
            _core.breadth_first(np.array(bad, dtype=np.int32), root)


def test_a_small_file_cannot_ask_for_billions_of_labels():
    with pytest.raises(ValueError, match=r"tree, line 1: 2,147,483,647 labels cannot be in a file of \d+ characters"):
        LabelTree.from_text("ramify-label-tree 1 nodes 1 labels 2147483647\n-1 0\n")
