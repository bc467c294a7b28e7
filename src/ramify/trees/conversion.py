"""Convert label trees from and to nested lists and networkx graphs, without recursion."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]


def arrays_from_nested(nested: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the parent and label of each node, breadth first."""
    items: list[Any] = [nested]
    parent, label = [-1], []
    seen: set[int] = set()
    for node, item in enumerate(items):  # `items` is a queue: it grows during the loop
        if isinstance(item, list | tuple):
            if len(item) == 0:
                raise ValueError("the nested tree contains an empty list; remove it")
            if id(item) in seen:
                raise ValueError("the same list appears twice in the nested tree; a label can have only one leaf")
            seen.add(id(item))
            items.extend(item)
            parent.extend([node] * len(item))
            label.append(-1)
        elif isinstance(item, int | np.integer) and not isinstance(item, bool):
            if item < 0:
                raise ValueError(f"labels must be column indices of at least 0, got {item}")
            label.append(int(item))
        else:
            raise ValueError(f"a nested tree may contain only lists and integer label columns, got {item!r}")
    return np.array(parent), np.array(label)


def nested_from_arrays(parent: Int32Array, label: Int32Array) -> Any:
    """Return nested lists. The nodes must be in canonical order."""
    nested: list[Any] = [[] if column < 0 else column for column in label.tolist()]
    for node, above in enumerate(parent.tolist()):
        if above >= 0:
            nested[above].append(nested[node])
    return nested[0]


def arrays_from_networkx(graph: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the parent and label of each node of a DiGraph; siblings keep the order of their edges."""
    if not (hasattr(graph, "is_directed") and graph.is_directed()):
        raise ValueError("expected a networkx DiGraph with edges from parent to child, got an undirected graph")
    if graph.number_of_nodes() == 0:
        raise ValueError("the graph has no nodes")
    roots = [node for node, degree in graph.in_degree() if degree == 0]
    if len(roots) != 1:
        found = "none" if not roots else f"{len(roots)}, including {roots[0]!r} and {roots[1]!r}"
        raise ValueError(f"a tree has exactly one node without incoming edges (the root), found {found}")
    number: dict[Any, int] = {roots[0]: 0}
    for above, node in graph.edges():
        if node in number:
            raise ValueError(f"node {node!r} has more than one parent (one is {above!r}); this is not a tree")
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
                f"node {node!r} must have its label column, an integer of at least 0, "
                f"in the node attribute 'label', got {column!r}"
            )
        label[number[node]] = int(column)
    return parent, label


def networkx_from_arrays(parent: Int32Array, label: Int32Array) -> Any:
    """Return a DiGraph with edges from parent to child and the node attribute ``label`` on leaves."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs networkx: pip install 'ramify[networkx]'") from error
    graph = networkx.DiGraph()
    for node, column in enumerate(label.tolist()):
        graph.add_node(node, **({} if column < 0 else {"label": column}))
    graph.add_edges_from((above, node) for node, above in enumerate(parent.tolist()) if above >= 0)
    return graph
