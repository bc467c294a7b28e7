"""A trained spectral tree: the tree finds candidates, a classifier scores them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import one_row
from ramify.base.model import Model, Query, RowAnswer, State, arrays_below, named_by_label_set, shape_of
from ramify.common.cached import cached_property
from ramify.common.validation import check_integer
from ramify.data.csr import csr_rows
from ramify.explain.candidates import RawCandidates
from ramify.models.spectral.base_classifier import BaseClassifier
from ramify.models.spectral.candidate_scores import complete, named_of, scores_behind
from ramify.models.spectral.candidate_tree import CandidateTree
from ramify.models.spectral.scaling import Normalization, check_normalization, scaled_rows

if TYPE_CHECKING:
    from typing_extensions import Self

    from ramify.base.nested import Nested


class SpectralModel(Model):
    """A candidate tree with the arrays of a candidate scorer, or with another classifier's model, behind it.

    Search option: `n_leaves`, the number of leaves whose candidates are scored. Learning makes a new model.
    """

    def __init__(
        self,
        tree: CandidateTree,
        base: BaseClassifier,
        *,
        normalize: Normalization,
        is_multiclass: bool,
        estimator: Nested | None = None,
        n_updates: int = 0,
        n_learned: int | None,
        report: dict[str, Any],
    ) -> None:
        self.tree = tree
        self.base = base
        self.normalize = normalize
        self.estimator = estimator
        self.n_updates = n_updates
        self.n_learned = n_learned  # rows; early files do not say
        self.report = report
        self.n_labels = tree.n_labels
        self.n_features = base.n_features
        self.is_multiclass = is_multiclass

    @cached_property
    def tree_arrays(self) -> dict[str, NDArray[Any]]:
        """The tree as the core reads it."""
        return self.tree.core_arrays()

    @cached_property
    def core(self) -> _core.SpectralModel:
        """The compiled model; checks the arrays when it is built, and is never stored."""
        return self.base.core(
            self.tree_arrays, self.n_labels, self.tree.n_candidates, self.normalize is True, self.is_multiclass
        )

    # --- the filter -----------------------------------------------------------------------------------------------

    def candidates(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        """The candidates of each row, with their share of the training rows in its leaves."""
        return self._candidates(scaled_rows(X, self.normalize), query)

    def _candidates(self, rows: sparse.csr_array, query: Query) -> sparse.csr_array:
        indptr, indices, data, _ = self.core.candidates(rows, _n_leaves(query), query.n_threads)
        return csr_rows(data, indices, indptr, (rows.shape[0], self.n_labels))

    def leaf_shares(self, rows: sparse.csr_array, min_path: float, n_threads: int) -> sparse.csr_array:
        """How much of each (scaled) row goes to which leaf: (rows, nodes)."""
        begin, leaf, share = self.core.fractions(rows, min_path, n_threads)
        shares = csr_rows(share, leaf, begin, (rows.shape[0], len(self.tree.arrays["child"])))
        shares.sort_indices()
        return shares

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        rows = scaled_rows(X, self.normalize)
        if self.estimator is not None:
            return complete(scores_behind(self.estimator.fitted, X, self._candidates(rows, query), query), query)
        indptr, indices, data, _ = self._predicted(rows, query)
        return csr_rows(data, indices, indptr, (X.shape[0], self.n_labels))

    def n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """Nodes on the path and candidates."""
        return self._predicted(scaled_rows(X, self.normalize), query)[3]

    def _predicted(self, rows: sparse.csr_array, query: Query) -> tuple[Any, Any, Any, int]:
        return self.core.predict(rows, query.top_k, *query.thresholds, _n_leaves(query), query.n_threads)

    def search_row(self, indices: NDArray[np.int32], values: NDArray[np.float32], query: Query) -> RowAnswer:
        if self.estimator is None and self.normalize != "hellinger":
            return self.core.predict_row(indices, values, *query.limits(self.n_labels), _n_leaves(query))
        return super().search_row(indices, values, query)

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        rows = scaled_rows(X, self.normalize)
        if self.estimator is not None:
            return named_of(scores_behind(self.estimator.fitted, X, self._candidates(rows, query), query), candidates)
        return named_by_label_set(
            rows,
            candidates,
            lambda part, labels: self.core.named(part, labels, _n_leaves(query), query.n_threads),
        )

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawCandidates:
        X = one_row(indices, values, self.n_features)
        row = scaled_rows(X, self.normalize)
        share, mass = self.tree.label_share(column), self.tree.arrays["mass"]
        candidates = self._candidates(row, query)
        parts = None
        if self.estimator is None:
            parts = self.core.candidate_parts(row.indices, row.data, column, _n_leaves(query))
        return RawCandidates(
            route=[
                (node, float(mass[node]), float(share[node]), score, features, added)
                for node, score, features, added in self.core.route(row.indices, row.data)
            ],
            labels=candidates.indices,
            probabilities=self.named(X, candidates, query),
            parts=parts,
            n_leaves=_n_leaves(query),
        )

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> State:
        base = self.base
        values: dict[str, Any] = {
            **self.shape_values(),
            "normalize": self.normalize,
            "n_candidates": self.tree.n_candidates,
            "n_updates": self.n_updates,
            "n_learned": self.n_learned,
            "space_rank": len(self.tree.arrays["space"]) // max(self.n_features, 1),
            "report": self.report,
            "base": {"weights": base.weights, "rank": base.rank, "has_slot_weights": base.has_slot_weights},
        }
        if self.estimator is not None:
            values["estimator"] = self.estimator.state()
        arrays = {f"tree/{name}": array for name, array in self.tree.state().items()}
        return State(values, arrays | {f"base/{name}": array for name, array in base.arrays.items()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        values, shape = state.values, shape_of(state.values)
        tree, base = arrays_below("tree/", state.arrays), arrays_below("base/", state.arrays)
        tree.setdefault("space", np.zeros(0, dtype=np.float32))  # early files of version 2 have none
        n_candidates, space_rank = (check_integer(n, values[n], at_least=0) for n in ("n_candidates", "space_rank"))
        if len(tree["space"]) != shape["n_features"] * space_rank:
            raise ValueError("the space that the tree was grown in is missing or has a wrong length")
        candidate_tree = CandidateTree(tree, n_candidates, shape["n_labels"])
        candidate_tree.check()
        estimator = None
        if "estimator" in values:
            from ramify.base.nested import Nested

            estimator = Nested.from_state(values["estimator"])
            inner = estimator.fitted.model
            if (inner.n_labels, inner.n_features) != (shape["n_labels"], shape["n_features"]):
                raise ValueError("the classifier behind the candidates has other labels or features")
        n_learned = values.get("n_learned")
        model = cls(
            candidate_tree,
            BaseClassifier(base, **values["base"], n_features=shape["n_features"]),
            normalize=check_normalization(values["normalize"]),
            is_multiclass=shape["is_multiclass"],
            estimator=estimator,
            n_updates=check_integer("n_updates", values["n_updates"], at_least=0),
            n_learned=None if n_learned is None else check_integer("n_learned", n_learned, at_least=0),
            report=dict(values["report"]),
        )
        _ = model.core  # checks the arrays now, not at the first query
        model.base.check()
        return model


def _n_leaves(query: Query) -> int:
    n: int = query.options.get("n_leaves", 1)
    return n
