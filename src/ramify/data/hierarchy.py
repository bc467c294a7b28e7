"""A hierarchy of labels: which labels are parents of which, and all that lie above and below a label column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.data.labels import LabelEncoding
from ramify.data.series import is_mapping

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)


class Flat(NamedTuple):
    """One list of columns per column: those of column c are indices[start[c] : start[c + 1]]."""

    start: NDArray[np.int64]
    indices: NDArray[np.int32]

    @classmethod
    def of(cls, lists: list[list[int]]) -> Flat:
        start = np.concatenate([[0], np.cumsum([len(one) for one in lists], dtype=np.int64)])
        indices = np.fromiter((column for one in lists for column in one), np.int32, int(start[-1]))
        return cls(start.astype(np.int64), indices)

    def sizes(self, columns: NDArray[np.integer]) -> NDArray[np.int64]:
        """How many columns each of these has in its list."""
        sizes: NDArray[np.int64] = self.start[columns + 1] - self.start[columns]
        return sizes

    def take(self, columns: NDArray[np.integer]) -> NDArray[np.int32]:
        """The lists of these columns, one after the other."""
        sizes = self.sizes(columns)
        before = np.cumsum(sizes) - sizes
        return self.indices[np.repeat(self.start[columns] - before, sizes) + np.arange(int(sizes.sum()))]


class Relations(NamedTuple):
    """For each label column itself and all above it, itself and all below it, and its distance from the top."""

    above: Flat
    below: Flat
    depth: NDArray[np.int32]  # the longest path to a label without parents: parents come before children


class Hierarchy:
    """Labels with their parents, checked: no label is its own ancestor.

    Labels that a model does not know (yet) have no column; what lies above and below them is still related.

    >>> hierarchy = Hierarchy.from_mapping({"E11.9": "E11", "E11": ["E08-E13"]})
    >>> hierarchy.to_mapping()
    {'E11.9': ['E11'], 'E11': ['E08-E13']}
    """

    def __init__(self, labels: list[Any], child: NDArray[np.int32], parent: NDArray[np.int32]) -> None:
        self.labels = labels
        self.child = child  # positions in `labels`, an entry for each pair
        self.parent = parent
        self._order = _parents_first(labels, child, parent)
        self._relations: tuple[tuple[Any, int], Relations] | None = None

    @classmethod
    def from_mapping(cls, given: Any) -> Hierarchy:
        """Read label -> parent, or label -> collection of parents (empty: none)."""
        if not is_mapping(given):
            raise ValueError(
                f"hierarchy must be a mapping from label to parent or list of parents, got {given!r:.60}; "
                'write {"E11.9": "E11"}'
            )
        position: dict[Any, int] = {}
        pairs = dict.fromkeys(
            (position.setdefault(child, len(position)), position.setdefault(parent, len(position)))
            for child, parent in _pairs(given)
        )
        both = np.array(list(pairs), dtype=np.int32).reshape(-1, 2)
        return cls(list(position), np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1]))

    def to_mapping(self) -> dict[Any, list[Any]]:
        """Label -> parents."""
        mapping: dict[Any, list[Any]] = {}
        for child, parent in zip(self.child.tolist(), self.parent.tolist(), strict=True):
            mapping.setdefault(self.labels[child], []).append(self.labels[parent])
        return mapping

    def check_known(self, labels: LabelEncoding) -> None:
        """Reject a label that the model does not have."""
        try:
            labels.columns(self.labels)
        except ValueError as error:
            raise ValueError(f"hierarchy: {error}; leave labels out that no training row has") from None

    def relations(self, labels: LabelEncoding) -> Relations:
        """What lies above and below each column of these labels; computed once for each number of labels."""
        key = (labels.kind, labels.n_labels)
        known = self._relations
        if known is None or known[0] != key:
            known = self._relations = key, self._related(labels)
        return known[1]

    def _related(self, labels: LabelEncoding) -> Relations:
        n_labels = labels.n_labels
        columns = self._columns(labels)
        parents: list[list[int]] = [[] for _ in self.labels]
        for child, parent in zip(self.child.tolist(), self.parent.tolist(), strict=True):
            parents[child].append(parent)
        ancestors: list[set[int]] = [set() for _ in self.labels]  # of labels, known or not
        depth = np.zeros(n_labels, dtype=np.int32)
        depths = [0] * len(self.labels)
        above = [[column] for column in range(n_labels)]
        below = [[column] for column in range(n_labels)]
        for label in self._order:
            for parent in parents[label]:
                ancestors[label].add(parent)
                ancestors[label] |= ancestors[parent]
                depths[label] = max(depths[label], depths[parent] + 1)
            column = columns[label]
            if column < 0:
                continue
            depth[column] = depths[label]
            for ancestor in sorted(columns[one] for one in ancestors[label] if columns[one] >= 0):
                above[column].append(ancestor)
                below[ancestor].append(column)
        return Relations(Flat.of(above), Flat.of(below), depth)

    def _columns(self, labels: LabelEncoding) -> list[int]:
        """The column of each label of the hierarchy, -1 for one that the model does not have."""
        if labels.kind == "indicator":
            return [label if isinstance(label, int) and 0 <= label < labels.n_labels else -1 for label in self.labels]
        index = dict(zip(labels.names(np.arange(labels.n_labels)), range(labels.n_labels), strict=True))
        return [index.get(label, -1) for label in self.labels]

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON values and arrays for a model file."""
        encoding = LabelEncoding()
        if self.labels:
            encoding.extend([tuple(self.labels)])
        stored = encoding.stored_classes() if self.labels else {}
        return {"labels": stored, "child": self.child, "parent": self.parent}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Hierarchy:
        """Take back what `state` gave; bad content raises ValueError."""
        stored = state["labels"]
        names = stored["classes"].tolist() if stored else []
        ends = []
        for which in ("child", "parent"):
            positions = state[which]
            if not isinstance(positions, np.ndarray) or positions.ndim != 1 or positions.dtype.kind not in "iu":
                raise ValueError(f"{which} must be positions of labels, got {positions!r:.60}")
            if len(positions) and not 0 <= positions.min() <= positions.max() < len(names):
                raise ValueError(f"{which} must be below {len(names)}, the number of labels of the hierarchy")
            ends.append(positions.astype(np.int32))
        if len(ends[0]) != len(ends[1]):
            raise ValueError(f"{len(ends[0])} labels, but {len(ends[1])} parents")
        return cls(names, *ends)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_relations": None}


def _pairs(given: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for label, parents in given.items():
        child = _plain(label, label)
        if isinstance(parents, _COLLECTIONS):
            for parent in parents.tolist() if isinstance(parents, np.ndarray) else parents:
                yield child, _plain(parent, label)
        elif parents is not None:
            yield child, _plain(parents, label)


def _plain(label: Any, of: Any) -> Any:
    """A label as a Python string or number."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, Collection) and not isinstance(plain, str):
        raise ValueError(f"hierarchy: the parents of {of!r} hold {label!r:.60}, but labels are strings or numbers")
    return plain


def _parents_first(labels: list[Any], child: NDArray[np.int32], parent: NDArray[np.int32]) -> list[int]:
    """Positions of all labels, parents before children; a cycle is an error that shows it."""
    children: list[list[int]] = [[] for _ in labels]
    missing = [0] * len(labels)  # parents that are not in order yet
    for below, above in zip(child.tolist(), parent.tolist(), strict=True):
        children[above].append(below)
        missing[below] += 1
    order = [position for position, number in enumerate(missing) if number == 0]
    for position in order:  # grows while it is walked through
        for below in children[position]:
            missing[below] -= 1
            if missing[below] == 0:
                order.append(below)
    if len(order) < len(labels):
        circle = " -> ".join(repr(labels[position]) for position in _cycle(child, parent, missing))
        raise ValueError(f"hierarchy has a cycle: {circle}; a label cannot be above itself: remove one of these pairs")
    return order


def _cycle(child: NDArray[np.int32], parent: NDArray[np.int32], missing: list[int]) -> list[int]:
    """A path of labels to their parents that ends where it starts; every label that misses parents leads to one."""
    up: dict[int, int] = {}
    for below, above in zip(child.tolist(), parent.tolist(), strict=True):
        if missing[above] > 0:
            up.setdefault(below, above)
    place = next(position for position, number in enumerate(missing) if number > 0 and position in up)
    seen: dict[int, int] = {}
    path: list[int] = []
    while place not in seen:
        seen[place] = len(path)
        path.append(place)
        place = up[place]
    return [*path[seen[place] :], place]
