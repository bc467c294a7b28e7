"""Render a label tree as indented text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ramify.trees.label_tree import LabelTree

# Do not indent deeper nodes further: the indentation of a chain of 100,000 nodes would fill the memory.
DEEPEST_INDENT = 32


def render_tree(
    tree: LabelTree,
    label_names: Sequence[str] | Mapping[int, str] | None,
    max_depth: int | None,
    max_children: int,
) -> str:
    """Write one line per node, depth first, and count the nodes that the limits leave out."""
    if max_children < 1:
        raise ValueError(f"max_children must be an integer of at least 1, got {max_children}")
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must be None or an integer of at least 0, got {max_depth}")
    if isinstance(label_names, Sequence) and len(label_names) < tree.n_labels:
        raise ValueError(f"label_names must have {tree.n_labels} names, one per label, got {len(label_names)}")

    lines: list[str] = []
    # Nodes still to write: (node, prefix of its line, prefix of its children's lines).
    stack: list[tuple[int | str, str, str]] = [(0, "", "")]
    while stack:
        node, lead, below = stack.pop()
        if isinstance(node, str):
            lines.append(lead + node)
            continue
        if tree.is_leaf(node):
            lines.append(lead + _leaf_name(int(tree.label[node]), label_names))
            continue
        depth, children = int(tree.depth[node]), tree.children(node)
        is_cut = max_depth is not None and depth >= max_depth
        lines.append(f"{lead}{_inner_name(node)}: {_count(int(tree.n_labels_below[node]), 'label')}{' …' * is_cut}")
        if is_cut:
            continue
        shown: list[int | str] = list(children[:max_children])
        left_out = children[max_children:]
        if left_out:
            labels = int(tree.n_labels_below[left_out.start : left_out.stop].sum())
            more = "more child" if len(left_out) == 1 else "more children"
            shown.append(f"… {len(left_out)} {more}, {_count(labels, 'label')}")
        for place in range(len(shown) - 1, -1, -1):
            is_last = place == len(shown) - 1
            deeper = below + ("   " if is_last else "│  ") if depth < DEEPEST_INDENT else below
            stack.append((shown[place], below + ("└─ " if is_last else "├─ "), deeper))
    return "\n".join(lines)


def _inner_name(node: int) -> str:
    return "root" if node == 0 else f"node {node}"


def _leaf_name(column: int, label_names: Sequence[str] | Mapping[int, str] | None) -> str:
    if label_names is None or (isinstance(label_names, Mapping) and column not in label_names):
        return str(column)
    return f"{column} {label_names[column]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
