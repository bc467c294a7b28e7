"""Label trees from and to nested lists and networkx graphs, as plain arrays; nothing here recurses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]


def arrays_from_nested(nested: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parent and label of the nodes, breadth first."""
    items: list[Any] = [nested]
    parent, label = [-1], []
    seen: set[int] = set()
    for node, item in enumerate(items):  # grows while it is read: a queue
        if isinstance(item, list | tuple):
            if len(item) == 0:
                raise ValueError("an empty list stands where labels should be; drop it")
            if id(item) in seen:
                raise ValueError("the same list appears twice in the nested tree; every label has one leaf")
            seen.add(id(item))
            items.extend(item)
            parent.extend([node] * len(item))
            label.append(-1)
        elif isinstance(item, int | np.integer) and not isinstance(item, bool):
            if item < 0:
                raise ValueError(f"labels must be column numbers of at least 0, got {item}")
            label.append(int(item))
        else:
            raise ValueError(f"a nested tree holds lists and integer label columns only, got {item!r}")
    return np.array(parent), np.array(label)


def nested_from_arrays(parent: Int32Array, label: Int32Array) -> Any:
    """Nested lists; wants the canonical numbering."""
    nested: list[Any] = [[] if column < 0 else column for column in label.tolist()]
    for node, above in enumerate(parent.tolist()):
        if above >= 0:
            nested[above].append(nested[node])
    return nested[0]


def arrays_from_networkx(graph: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parent and label of the nodes of a DiGraph, numbered so that siblings keep the order of their edges."""
    if not (hasattr(graph, "is_directed") and graph.is_directed()):
        raise ValueError("a networkx DiGraph with edges from parent to child is needed; this graph has no directions")
    if graph.number_of_nodes() == 0:
        raise ValueError("the graph has no nodes")
    roots = [node for node, degree in graph.in_degree() if degree == 0]
    if len(roots) != 1:
        found = "none" if not roots else f"{len(roots)}, among them {roots[0]!r} and {roots[1]!r}"
        raise ValueError(f"a tree has exactly one node without incoming edges, its root; found {found}")
    number: dict[Any, int] = {roots[0]: 0}
    for above, node in graph.edges():
        if node in number:
            raise ValueError(f"node {node!r} has more than one parent, {above!r} is one of them; that is not a tree")
        number[node] = len(number)
    parent = np.full(len(number), -1, dtype=np.int64)
    for above, node in graph.edges():
        parent[number[node]] = number[above]
    label = np.full(len(number), -1, dtype=np.int64)
    for node, column in graph.nodes(data="label"):
        is_leaf = graph.out_degree(node) == 0
        if column is None and not is_leaf:
            continue
        if isinstance(column, bool) or not isinstance(column, int | np.integer) or column < (0 if is_leaf else -1):
            raise ValueError(
                f"node {node!r} needs its label column, an integer of at least 0, "
                f"as node attribute 'label'; got {column!r}"
            )
        label[number[node]] = int(column)
    return parent, label


def networkx_from_arrays(parent: Int32Array, label: Int32Array) -> Any:
    """A DiGraph with edges from parent to child and the attribute ``label`` on leaves."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx: pip install 'ramify[networkx]'") from error
    graph = networkx.DiGraph()
    for node, column in enumerate(label.tolist()):
        graph.add_node(node, **({} if column < 0 else {"label": column}))
    graph.add_edges_from((above, node) for node, above in enumerate(parent.tolist()) if above >= 0)
    return graph
