"""A weighted mean of the calibrated probabilities of several models over the same rows and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import registry
from ramify.base.answers import keep_best
from ramify.base.fitted import checked_options
from ramify.base.model import NO_OPTIONS, Model, Query, State
from ramify.base.online_model import OnlineModel
from ramify.data.csr import csr_rows
from ramify.explain.parts import RawMixture, RawPart
from ramify.models.mixture.weights import BrierSums

if TYPE_CHECKING:
    from typing_extensions import Self

# Labels that each part is asked for, where the best k of the mixture are wanted, and more if these do not suffice.
FIRST_CANDIDATES = 20
MORE_CANDIDATES = 8


class Part(NamedTuple):
    """A part's name, its classifier's class, its model and its search options."""

    name: str
    class_name: str
    model: Model
    options: Mapping[str, Any] = NO_OPTIONS

    def asked(self, query: Query) -> Query:
        """The query with the part's own search options."""
        return query._replace(options=self.options)


class MixtureModel(Model):
    """P(label) = sum over the parts of weight * (the part's probability) ** exponent.

    The best k are exact as far as the parts' are: no label outside of every part's best can exceed the weighted mean
    of the least of them, so the parts are asked for more until the k-th answer does. `sums` holds what the weights were
    learned from; None if they were given.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        weights: NDArray[np.float64],
        exponents: NDArray[np.float64],
        sums: BrierSums | None = None,
    ) -> None:
        self.parts = list(parts)
        self.weights = weights
        self.exponents = exponents
        self.sums = sums

    @property
    def n_labels(self) -> int:  # type: ignore[override]
        # While another thread teaches a new label, some parts know it before the others.
        return min(part.model.n_labels for part in self.parts)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return self.parts[0].model.n_features

    @property
    def is_multiclass(self) -> bool:  # type: ignore[override]
        return self.parts[0].model.is_multiclass

    # --- learning in pieces -------------------------------------------------------------------------------------------

    @property
    def learns_on(self) -> bool:
        return all(part.model.learns_on for part in self.parts)

    def online_parts(self) -> list[OnlineModel]:
        return [part.model for part in self.parts if isinstance(part.model, OnlineModel)]

    @property
    def n_examples(self) -> int:
        """Rows that all parts have learned online."""
        return min((model.n_learned for model in self.online_parts()), default=0)

    def widen(self, n_labels: int, n_features: int) -> None:
        for model in self.online_parts():
            model.widen(n_labels, n_features)

    def _active(self) -> list[tuple[Part, float, float]]:
        """Parts that count, with their weights and exponents."""
        of_parts = zip(self.parts, self.weights.tolist(), self.exponents.tolist(), strict=True)
        return [(part, weight, exponent) for part, weight, exponent in of_parts if weight > 0]

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        n_labels = self.n_labels
        if query.top_k is None or query.top_k >= n_labels:
            return keep_best(self._all_that_reach(X, query, n_labels), query.top_k, query.threshold)
        return keep_best(self._best(X, query._replace(threshold=0.0), n_labels), query.top_k, query.threshold)

    def _all_that_reach(self, X: sparse.csr_array, query: Query, n_labels: int) -> sparse.csr_array:
        """Labels of at least the threshold, and some others: a weighted mean reaches it only if a part does."""
        found = []
        for part, _, exponent in self._active():
            threshold = np.asarray(query.threshold, dtype=np.float64) ** (1 / exponent) * (1 - 1e-5)
            least = threshold.astype(np.float32) if threshold.ndim else float(threshold)
            found.append(part.model.search(X, part.asked(query._replace(top_k=None, threshold=least))))
        return self._with_means(X, union(found, n_labels), query)

    def _best(self, X: sparse.csr_array, query: Query, n_labels: int) -> sparse.csr_array:
        """The best k labels of each row, and some others."""
        assert query.top_k is not None
        n_asked = min(n_labels, max(FIRST_CANDIDATES, 2 * query.top_k))
        answer, missing = self._best_of(X, n_asked, query, n_labels)
        while len(missing):
            n_asked = min(n_labels, n_asked * MORE_CANDIDATES)
            better, still = self._best_of(sparse.csr_array(X[missing]), n_asked, query, n_labels)
            answer = replace_rows(answer, missing, better)
            missing = missing[still]
        return answer

    def _best_of(
        self, X: sparse.csr_array, n_asked: int, query: Query, n_labels: int
    ) -> tuple[sparse.csr_array, NDArray[np.int64]]:
        """Probabilities of every part's best labels, and the rows where a label outside of them may be better."""
        assert query.top_k is not None
        n_rows = X.shape[0]
        found, bound = [], np.zeros(n_rows)
        for part, weight, exponent in self._active():
            of_part = part.model.search(X, part.asked(query._replace(top_k=n_asked)))
            found.append(of_part)
            bound += weight * least_of_rows(of_part) ** exponent
        candidates = union(found, n_labels)
        if n_asked == n_labels:
            return self._with_means(X, candidates, query), np.zeros(0, dtype=np.int64)
        is_zero = bound == 0  # all others have probability zero: of these the first columns come first
        if is_zero.any():
            n_first = min(n_labels, query.top_k + int(np.diff(candidates.indptr).max()))
            candidates = union([candidates, first_columns(is_zero, n_first, n_labels)], n_labels)
        answer = self._with_means(X, candidates, query)
        best = keep_best(answer, query.top_k, 0.0)
        # Rounded to float32, a mean may lie above its bound; equal ones are ranked by column, so look further.
        return answer, np.flatnonzero(~is_zero & (least_of_rows(best) <= bound * (1 + 1e-6)))

    def _with_means(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> sparse.csr_array:
        return csr_rows(self.named(X, candidates, query), candidates.indices, candidates.indptr, candidates.shape)

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        total = np.zeros(candidates.nnz)
        for part, weight, exponent in self._active():
            p = part.model.named(X, candidates, part.asked(query)).astype(np.float64)
            total += weight * (p if exponent == 1 else p**exponent)
        return np.minimum(total, 1.0).astype(np.float32)

    def explain(self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query) -> RawMixture:
        row = csr_rows(values, indices, np.array([0, len(indices)]), (1, self.n_features))
        label = csr_rows(np.ones(1, np.float32), np.array([column]), np.array([0, 1]), (1, self.n_labels))
        parts = []
        for part, weight, exponent in self._active():
            asked = part.asked(query)
            p = float(part.model.named(row, label, asked)[0])
            raw = part.model.explain(indices, values, column, asked)
            parts.append(RawPart(part.name, weight, p, weight * p**exponent, raw))
        return RawMixture(float(self.named(row, label, query)[0]), parts)

    def estimates(self, X: sparse.csr_array, candidates: sparse.csr_array, n_threads: int) -> NDArray[np.float64]:
        """What each part says about the entries of `candidates`: (entries, parts), not calibrated."""
        query = Query(n_threads=n_threads)
        of_parts = [part.model.named(X, candidates, part.asked(query)) for part in self.parts]
        return np.stack(of_parts, axis=1).astype(np.float64)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> State:
        parts = [
            {
                "name": part.name,
                "class": part.class_name,
                "options": dict(part.options),
                "model": part.model.state()._asdict(),
            }
            for part in self.parts
        ]
        values: dict[str, Any] = {"parts": parts}
        arrays = {"weights": self.weights, "exponents": self.exponents}
        if self.sums is not None:
            values["n_positives"] = self.sums.n_positives
            arrays |= {"gram": self.sums.gram, "target": self.sums.target}
        return State(values, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        parts = [_part_from(saved) for saved in state.values["parts"]]
        if not parts:
            raise ValueError("a mixture needs at least one part, found none")
        for what in ("n_labels", "n_features", "is_multiclass"):
            if len({getattr(part.model, what) for part in parts}) > 1:
                raise ValueError(f"the parts of the mixture differ in {what}")
        n = len(parts)
        weights, exponents = (_checked(state.arrays, name, (n,)) for name in ("weights", "exponents"))
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6 or (exponents <= 0).any():
            raise ValueError("expected weights of at least 0 with sum 1, and exponents above 0")
        sums = None
        if "gram" in state.arrays:
            gram, target = _checked(state.arrays, "gram", (n, n)), _checked(state.arrays, "target", (n,))
            sums = BrierSums(gram, target, float(state.values["n_positives"]))
        return cls(parts, weights, exponents, sums)


def _part_from(saved: Mapping[str, Any]) -> Part:
    class_name = saved["class"]
    if class_name not in registry.CLASSIFIERS:
        raise ValueError(f"{str(class_name)[:60]!r} is not a classifier of this library")
    model_class = registry.load_model_class(class_name)
    model = model_class.from_state(State(saved["model"]["values"], saved["model"]["arrays"]))
    return Part(str(saved["name"]), class_name, model, checked_options(saved["options"], model))


def _checked(arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    array = arrays[name]
    if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"expected {name} as finite float64 of shape {shape}, got {array.dtype} of {array.shape}")
    return array


def union(answers: Sequence[sparse.csr_array], n_columns: int) -> sparse.csr_array:
    """The entries of the first columns that any of the answers stores, sorted; their values are ones."""
    total: Any = None
    for answer in answers:
        ones = csr_rows(np.ones(answer.nnz, np.float32), answer.indices, answer.indptr, answer.shape)
        if ones.shape[1] > n_columns:
            ones = sparse.csr_array(ones[:, :n_columns])
        total = ones if total is None else total + ones
    found: sparse.csr_array = sparse.csr_array(total)
    found.sort_indices()
    return found


def least_of_rows(answer: sparse.csr_array) -> NDArray[np.float64]:
    """The least entry of each row, 0 for a row without any."""
    least = np.minimum.reduceat(np.append(answer.data, np.inf), answer.indptr[:-1]).astype(np.float64)
    least[np.diff(answer.indptr) == 0] = 0.0
    return least


def first_columns(is_wanted: NDArray[np.bool_], n_first: int, n_columns: int) -> sparse.csr_array:
    """The first columns, for the rows that want them."""
    indptr = np.concatenate([[0], np.cumsum(is_wanted * n_first)])
    indices = np.tile(np.arange(n_first), int(is_wanted.sum()))
    return csr_rows(np.ones(len(indices), np.float32), indices, indptr, (len(is_wanted), n_columns))


def replace_rows(answer: sparse.csr_array, rows: NDArray[np.int64], better: sparse.csr_array) -> sparse.csr_array:
    """The answer with these rows replaced."""
    both = sparse.csr_array(sparse.vstack([answer, better], format="csr"))
    order = np.arange(answer.shape[0])
    order[rows] = answer.shape[0] + np.arange(len(rows))
    return sparse.csr_array(both[order])
