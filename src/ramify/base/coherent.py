"""Answers that agree with a hierarchy of labels: no label is less probable than one below it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.answers import Threshold, one_row, same_columns
from ramify.base.model import Model, Query, RowAnswer
from ramify.data.csr import csr_rows
from ramify.data.hierarchy import Hierarchy, Relations
from ramify.data.labels import LabelEncoding


class Raised(NamedTuple):
    """A label's own probability, and the column below it (or itself) that has the largest."""

    own: float
    probability: float
    column: int


class CoherentAnswers:
    """Asks a model, and raises each label to the largest probability among itself and the labels below it.

    Of equal probabilities, labels further up come first. So the best k hold all labels above each of them; they are
    the best k of the raised probabilities, as far as the model's own search is exact: a label outside of the model's
    best k cannot raise another into them. With a threshold per label, a label that a returned one implies is returned
    too, whatever its own threshold.
    """

    def __init__(self, model: Model, hierarchy: Hierarchy, labels: LabelEncoding) -> None:
        self.model = model
        self.hierarchy = hierarchy
        self.labels = labels

    @property
    def relations(self) -> Relations:
        """Of the labels as they are now; asked for after the model, which may learn new ones meanwhile."""
        return self.hierarchy.relations(self.labels)

    # --- queries, as a model answers them -------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        """`Model.search` with raised probabilities."""
        found = self.model.search(X, self._asked(query))
        return self.keep_best(self._raised(found), query.top_k, query.threshold)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        """`Model.search_row` with raised probabilities."""
        columns, probabilities = self.model.search_row(indices, values, query)
        above, _, depth = self.relations
        sizes = above.sizes(columns)
        if len(columns) == 0 or sizes.max() == 1:  # nothing is above any of them
            return columns, probabilities
        columns, place = np.unique(above.take(columns), return_inverse=True)
        raised = np.zeros(len(columns), dtype=np.float32)
        np.maximum.at(raised, place, np.repeat(probabilities, sizes))
        order = np.lexsort((columns, depth[columns], -raised))[: query.top_k]
        return columns[order].astype(np.int32), raised[order]

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        """`Model.named` with raised probabilities: asks for all labels below the candidates."""
        n_rows, n_labels = candidates.shape
        below = self.relations.below
        sizes = below.sizes(candidates.indices)
        if len(sizes) == 0 or sizes.max() == 1:
            return self.model.named(X, candidates, query)
        row_of = np.repeat(np.repeat(np.arange(n_rows), np.diff(candidates.indptr)), sizes)
        wanted, place = np.unique(row_of * n_labels + below.take(candidates.indices), return_inverse=True)
        indptr = np.searchsorted(wanted, np.arange(n_rows + 1) * n_labels)
        asked = csr_rows(np.ones(len(wanted), np.float32), wanted % n_labels, indptr, candidates.shape)
        own = self.model.named(X, asked, query)
        return np.maximum.reduceat(own[place], np.cumsum(sizes) - sizes)

    def source(self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query) -> Raised:
        """Where a label's probability comes from for one row; its own comes first among equals."""
        below = self.relations.below.take(np.array([column]))
        asked = same_columns(np.ones((1, len(below)), np.float32), np.sort(below), self.model.n_labels)
        own = self.model.named(one_row(indices, values, self.model.n_features), asked, query)
        of_label = float(own[int(np.searchsorted(asked.indices, column))])
        best = int(np.argmax(own))
        return Raised(of_label, float(own[best]), column if own[best] == of_label else int(asked.indices[best]))

    # --- steps ----------------------------------------------------------------------------------------------------

    def _asked(self, query: Query) -> Query:
        """What to ask the model for, so that every raised probability that may be returned is known."""
        if not isinstance(query.threshold, np.ndarray):
            return query
        # A label is returned if one below it reaches its threshold; its probability may come from anywhere below.
        above, below, _ = self.relations
        least = np.minimum.reduceat(query.threshold[below.indices], below.start[:-1])
        return query._replace(top_k=None, threshold=np.minimum.reduceat(least[above.indices], above.start[:-1]))

    def _raised(self, answer: sparse.csr_array) -> sparse.csr_array:
        """The answer with everything that lies above its labels, at the largest probability below."""
        n_rows, n_labels = answer.shape
        above = self.relations.above
        sizes = above.sizes(answer.indices)
        if len(sizes) == 0 or sizes.max() == 1:
            return answer
        row_of = np.repeat(np.repeat(np.arange(n_rows), np.diff(answer.indptr)), sizes)
        entry = row_of * n_labels + above.take(answer.indices)
        order = np.argsort(entry, kind="stable")
        entries, first = np.unique(entry[order], return_index=True)
        data = np.maximum.reduceat(np.repeat(answer.data, sizes)[order], first)
        indptr = np.searchsorted(entries, np.arange(n_rows + 1) * n_labels)
        return csr_rows(data, entries % n_labels, indptr, answer.shape)

    def keep_best(self, answer: sparse.csr_array, top_k: int | None, threshold: Threshold) -> sparse.csr_array:
        """The k largest entries that reach the threshold or lie above one that does; parents first among equals."""
        n_rows, n_labels = answer.shape
        row_of = np.repeat(np.arange(n_rows), np.diff(answer.indptr))
        needed = threshold[answer.indices] if isinstance(threshold, np.ndarray) else np.float32(threshold)
        kept = answer.data >= needed
        if isinstance(threshold, np.ndarray):
            above = self.relations.above
            sizes = above.sizes(answer.indices[kept])
            implied = np.repeat(row_of[kept], sizes) * n_labels + above.take(answer.indices[kept])
            kept = np.isin(row_of * n_labels + answer.indices, implied)
        if top_k is not None:
            order = self.best_first(answer)
            rank = np.empty(len(order), dtype=np.int64)
            of_kept = order[kept[order]]
            n_kept = np.bincount(row_of[of_kept], minlength=n_rows)
            rank[of_kept] = np.arange(len(of_kept)) - np.repeat(np.cumsum(n_kept) - n_kept, n_kept)
            kept = kept & (rank < top_k)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row_of[kept], minlength=n_rows))])
        return csr_rows(answer.data[kept], answer.indices[kept], indptr, answer.shape)

    def best_first(self, answer: sparse.csr_array) -> NDArray[np.int64]:
        """Positions of the entries, row by row, the best of a row first."""
        row_of = np.repeat(np.arange(answer.shape[0]), np.diff(answer.indptr))
        order = np.lexsort((answer.indices, self.relations.depth[answer.indices], -answer.data, row_of))
        return order.astype(np.int64)
