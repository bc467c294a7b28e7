"""The model protocol: what was learned, over integer columns and CSR rows only."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import Threshold, one_row
from ramify.common.validation import check_flag, check_integer

if TYPE_CHECKING:
    from typing_extensions import Self

    from ramify.base.schema import Schema
    from ramify.explain.score import RawExplanation

NO_OPTIONS: Mapping[str, Any] = {}

# Columns and probabilities of one row's answer, best first.
RowAnswer = tuple[NDArray[np.int32], NDArray[np.float32]]


class Query(NamedTuple):
    """What is asked of a model: at most `top_k` labels a row (None: all), each with at least the threshold.

    `options` are search options of the method, such as the beam of a label tree.
    """

    top_k: int | None = None
    threshold: Threshold = 0.0
    n_threads: int = 1
    options: Mapping[str, Any] = NO_OPTIONS

    @property
    def thresholds(self) -> tuple[float, NDArray[np.float32] | None]:
        """The threshold as the core takes it: one number for all labels, and one per label if they differ."""
        if isinstance(self.threshold, np.ndarray):
            return 0.0, self.threshold
        return self.threshold, None

    def limits(self, n_labels: int) -> tuple[int, float]:
        """`top_k` as a number, and the threshold, which is one for all labels in queries of one row."""
        top_k = n_labels if self.top_k is None else self.top_k
        return top_k, self.threshold  # type: ignore[return-value]


class State(NamedTuple):
    """All that a model file holds of a model: JSON values, and arrays."""

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Model(ABC):
    """A trained model behind one small protocol: search, named, explain, state.

    Everything that serves, saves, wraps or distributes a classifier needs only this and a `Schema`. A model knows no
    texts, no label names and no scikit-learn. Pickling and copying go through `state` and `from_state`.
    """

    n_labels: int
    n_features: int
    is_multiclass: bool
    # Search options without which it cannot be asked.
    needed_options: tuple[str, ...] = ()
    # So many labels of a row cost as much to search for as one.
    n_cheap_answers = 1

    @property
    def learns_on(self) -> bool:
        """Whether it learns from streams, with a `StreamSchema`."""
        return False

    @abstractmethod
    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        """Sparse probability estimates: float32, shape (n, n_labels), sorted indices."""

    @abstractmethod
    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        """Probabilities of the entries of `candidates` (n, n_labels), in their order."""

    @abstractmethod
    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawExplanation:
        """Why a label has its probability for one row: columns and numbers, which `ramify.explain` puts into words."""

    @abstractmethod
    def state(self) -> State:
        """Everything that `from_state` needs."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Take back what `state` gave; bad content raises ValueError."""

    def take_schema(self, schema: Schema) -> None:  # noqa: B027  (most models need nothing of it)
        """Called with the schema that a file holds beside the model; one that does not fit raises ValueError."""

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        """`search` for one row (sorted, finite), best label first; methods override it to build no sparse array."""
        answer = self.search(one_row(indices, values, self.n_features), query)
        order = np.lexsort((answer.indices, -answer.data))
        return answer.indices[order], answer.data[order]

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """Inner products that `search` computes for these rows."""
        raise TypeError(f"{type(self).__name__} does not count inner products")

    def shape_values(self) -> dict[str, Any]:
        """The part of the state that every model has."""
        return {"n_labels": self.n_labels, "n_features": self.n_features, "is_multiclass": self.is_multiclass}

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _from_state, (type(self), *self.state())


def _from_state(cls: type[Model], values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    return cls.from_state(State(values, arrays))


def shape_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """What `shape_values` gave, checked."""
    return {
        "n_labels": check_integer("n_labels", values["n_labels"], at_least=0),
        "n_features": check_integer("n_features", values["n_features"], at_least=0),
        "is_multiclass": check_flag("is_multiclass", values["is_multiclass"]),
    }


def arrays_below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names start with a prefix, without it.

    >>> arrays_below("tree/", {"tree/parent": np.zeros(1), "base/weights": np.ones(1)})
    {'parent': array([0.])}
    """
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def named_by_label_set(
    X: sparse.csr_array,
    candidates: sparse.csr_array,
    score: Callable[[sparse.csr_array, NDArray[np.int32]], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """`Model.named` by a function that scores the same labels for all of its rows.

    `score(X, labels)` returns an array (rows, labels); it is called once for each distinct set of candidates.
    """
    indptr, indices = candidates.indptr, candidates.indices.astype(np.int32, copy=False)
    size = np.diff(indptr)
    if not len(indices):
        return np.zeros(0, dtype=np.float32)
    if (size == size[0]).all():
        per_row = indices.reshape(len(size), size[0])
        if (per_row == per_row[0]).all():
            return score(X, per_row[0]).ravel()
    found = np.empty(len(indices), dtype=np.float32)
    for rows in _rows_by_label_set(indptr, indices):
        start = indptr[rows[0]]
        labels = indices[start : indptr[rows[0] + 1]]
        found[indptr[rows][:, None] + np.arange(len(labels))] = score(sparse.csr_array(X[rows]), labels)
    return found


def _rows_by_label_set(indptr: NDArray[Any], indices: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Rows grouped by equal candidates; rows without candidates are left out."""
    groups: dict[bytes, list[int]] = {}
    for row, (start, stop) in enumerate(itertools.pairwise(indptr.tolist())):
        if stop > start:
            groups.setdefault(indices[start:stop].tobytes(), []).append(row)
    return [np.array(rows) for rows in groups.values()]
