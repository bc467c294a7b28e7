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
from ramify.common.validation import check_flag, check_number
from ramify.data.csr import csr_rows
from ramify.explain.parts import RawMixture, RawPart
from ramify.models.mixture.entries import (
    first_columns,
    least_of_rows,
    places,
    replace_rows,
    row_sums,
    some_entries,
    union,
)
from ramify.models.mixture.stacking import TERMS_OF_PART, Stacking
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


class Answers(NamedTuple):
    """What the parts found for some rows: its best labels and their probabilities, for each part, and their union.

    A row with fewer entries than the part was asked for has probability zero elsewhere in that part.
    """

    found: list[sparse.csr_array]
    n_asked: list[int]
    candidates: sparse.csr_array


class MixtureModel(Model):
    """The weighted mean of the parts' probabilities, each raised to the part's exponent first.

    With `stacking`, the candidates of a row, which are the FIRST_CANDIDATES best labels of each part, get another
    probability: the one that stacking gives, or if each row has one label, what the candidates' means sum up to is
    dealt out anew. All others keep their mean, so the best k are exact either way, as far as the parts' are: no label
    outside of every part's best can exceed the weighted mean of the least of them, so the parts are asked for more
    until the k-th answer does. `sums` holds what the weights were learned from; None if they were given.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        weights: NDArray[np.float64],
        exponents: NDArray[np.float64],
        sums: BrierSums | None = None,
        stacking: Stacking | None = None,
    ) -> None:
        self.parts = list(parts)
        self.weights = weights
        self.exponents = exponents
        self.sums = sums
        self.stacking = stacking
        self._n_labels: int | None = None  # while a query runs

    @property
    def n_labels(self) -> int:  # type: ignore[override]
        # While another thread teaches a new label, some parts know it before the others.
        return self._n_labels or min(part.model.n_labels for part in self.parts)

    def _for_query(self) -> MixtureModel:
        """The same with weights and labels that stay as they are, also if another thread learns meanwhile."""
        model = MixtureModel(self.parts, self.weights, self.exponents, None, self.stacking)
        model._n_labels = self.n_labels
        return model

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

    def _asked(self) -> list[int]:
        """The parts that are asked: without stacking, those that count."""
        return [m for m in range(len(self.parts)) if self.weights[m] > 0 or self.stacking is not None]

    def with_all_parts(self) -> MixtureModel:
        """The same with equal weights: every part is asked."""
        n = len(self.parts)
        return MixtureModel(self.parts, np.full(n, 1 / n), self.exponents)

    # --- queries --------------------------------------------------------------------------------------------------

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        model = self._for_query()
        n_labels = model.n_labels
        if query.top_k is None or query.top_k >= n_labels:
            return keep_best(model._all_that_reach(X, query, n_labels), query.top_k, query.threshold)
        return keep_best(model._best(X, query, n_labels), query.top_k, query.threshold)

    def _all_that_reach(self, X: sparse.csr_array, query: Query, n_labels: int) -> sparse.csr_array:
        """Labels of at least the threshold, and some others: a weighted mean reaches it only if a part does."""
        found = []
        for m in np.flatnonzero(self.weights > 0):
            part, exponent = self.parts[m], float(self.exponents[m])
            threshold = np.asarray(query.threshold, dtype=np.float64) ** (1 / exponent) * (1 - 1e-5)
            least = threshold.astype(np.float32) if threshold.ndim else float(threshold)
            found.append(part.model.search(X, part.asked(query._replace(top_k=None, threshold=least))))
        if self.stacking is None:
            known = Answers(found, [0] * len(found), union(found, n_labels))  # 0: what is missing is not known
            return self._probabilities(X, known.candidates, known, known, query.n_threads)
        first = self.answers(X, FIRST_CANDIDATES, query.n_threads)
        return self._probabilities(X, union([*found, first.candidates], n_labels), first, first, query.n_threads)

    def _best(self, X: sparse.csr_array, query: Query, n_labels: int) -> sparse.csr_array:
        """The best k labels of each row, and some others."""
        assert query.top_k is not None
        first = self.answers(X, FIRST_CANDIDATES, query.n_threads)
        n_asked = min(n_labels, max(FIRST_CANDIDATES, 2 * query.top_k))
        more = first if n_asked <= FIRST_CANDIDATES else self.answers(X, n_asked, query.n_threads)
        answer, missing = self._best_of(X, more, first, n_asked, query)
        while len(missing):
            n_asked = min(n_labels, n_asked * MORE_CANDIDATES)
            rows = sparse.csr_array(X[missing])
            more = self.answers(rows, n_asked, query.n_threads)
            better, still = self._best_of(rows, more, rows_of(first, missing), n_asked, query)
            answer = replace_rows(answer, missing, better)
            missing = missing[still]
        return answer

    def _best_of(
        self, X: sparse.csr_array, more: Answers, first: Answers, n_asked: int, query: Query
    ) -> tuple[sparse.csr_array, NDArray[np.int64]]:
        """Probabilities of every part's best labels, and the rows where a label outside of them may be better."""
        assert query.top_k is not None
        n_labels, bound = self.n_labels, np.zeros(X.shape[0])
        for m, found in zip(self._asked(), more.found, strict=True):
            bound += self.weights[m] * least_of_rows(found, n_asked) ** self.exponents[m]
        candidates = more.candidates if more is first else union([more.candidates, first.candidates], n_labels)
        if n_asked == n_labels:
            return self._probabilities(X, candidates, more, first, query.n_threads), np.zeros(0, dtype=np.int64)
        is_zero = bound == 0  # all others have probability zero: of these the first columns come first
        if is_zero.any():
            n_first = min(n_labels, query.top_k + int(np.diff(candidates.indptr).max()))
            candidates = union([candidates, first_columns(is_zero, n_first, n_labels)], n_labels)
        answer = self._probabilities(X, candidates, more, first, query.n_threads)
        best = keep_best(answer, query.top_k, 0.0)
        # Rounded to float32, a mean may lie above its bound; equal ones are ranked by column, so look further.
        least = least_of_rows(best, query.top_k)
        return answer, np.flatnonzero(~is_zero & (least <= bound * (1 + 1e-6)))

    def answers(self, X: sparse.csr_array, n_asked: int, n_threads: int) -> Answers:
        """The best labels of each part that is asked."""
        n_labels = self.n_labels
        found, asked = [], []
        for m in self._asked():
            part = self.parts[m]
            asked.append(min(n_labels, max(n_asked, part.model.n_cheap_answers)))
            found.append(part.model.search(X, part.asked(Query(top_k=asked[-1], n_threads=n_threads))))
        best = [
            answer if n <= n_asked else keep_best(answer, n_asked, 0.0) for answer, n in zip(found, asked, strict=True)
        ]
        return Answers(found, asked, union(best, n_labels))

    def estimates(
        self, X: sparse.csr_array, candidates: sparse.csr_array, known: Answers, n_threads: int
    ) -> NDArray[np.float64]:
        """What each part says about the entries of `candidates`: (entries, parts), not calibrated; 0 if not asked.

        Nothing is computed twice: a part is asked only for entries that its answers do not tell.
        """
        P = np.zeros((candidates.nnz, len(self.parts)))
        row_of = np.repeat(np.arange(X.shape[0]), np.diff(candidates.indptr))
        for m, found, n_asked in zip(self._asked(), known.found, known.n_asked, strict=True):
            place = places(candidates, found)
            is_known = place >= 0
            P[is_known, m] = found.data[place[is_known]]
            # What an answer does not hold has at most the least that it holds.
            if n_asked:
                is_known |= (least_of_rows(found, n_asked) == 0)[row_of]
            if not is_known.all():
                part = self.parts[m]
                rest = some_entries(candidates, ~is_known)
                P[~is_known, m] = part.model.named(X, rest, part.asked(Query(n_threads=n_threads)))
        return P

    def means(self, P: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weighted means of what the parts say."""
        total = np.zeros(len(P))
        for p, weight, exponent in zip(P.T, self.weights, self.exponents, strict=True):
            total += weight * (p if exponent == 1 else p**exponent)
        return np.minimum(total, 1.0)

    def _probabilities(
        self, X: sparse.csr_array, candidates: sparse.csr_array, known: Answers, first: Answers, n_threads: int
    ) -> sparse.csr_array:
        """Probabilities of the candidates; stacking judges `first.candidates`, which must be among them."""
        P = self.estimates(X, candidates, known, n_threads)
        p = self.means(P)
        if self.stacking is not None:
            stacked = places(candidates, first.candidates) >= 0
            begin = first.candidates.indptr.astype(np.int64)
            mass = np.minimum(row_sums(p[stacked], begin), 1.0)
            p[stacked] = self.stacking.probabilities(P[stacked], candidates.indices[stacked], begin, mass)
        return csr_rows(p.astype(np.float32), candidates.indices, candidates.indptr, candidates.shape)

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        return self._for_query()._named(X, candidates, query)

    def _named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        wanted = csr_rows(np.ones(candidates.nnz, np.float32), candidates.indices, candidates.indptr, candidates.shape)
        if self.stacking is None:
            none = [some_entries(wanted, np.zeros(wanted.nnz, dtype=np.bool_))] * len(self._asked())
            known = Answers(none, [0] * len(none), wanted)
            return self._probabilities(X, wanted, known, known, query.n_threads).data
        first = self.answers(X, FIRST_CANDIDATES, query.n_threads)
        all_of_them = union([first.candidates, wanted], self.n_labels)
        answer = self._probabilities(X, all_of_them, first, first, query.n_threads)
        place = places(wanted, answer)
        p: NDArray[np.float32] = answer.data[place]
        return p

    def explain(self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query) -> RawMixture:
        return self._for_query()._explain(indices, values, column, query)

    def _explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawMixture:
        row = csr_rows(values, indices, np.array([0, len(indices)]), (1, self.n_features))
        label = csr_rows(np.ones(1, np.float32), np.array([column]), np.array([0, 1]), (1, self.n_labels))
        probability = float(self._named(row, label, query)[0])
        first = self.answers(row, FIRST_CANDIDATES, query.n_threads)
        candidates = union([first.candidates, label], self.n_labels)
        P = self.estimates(row, candidates, first, query.n_threads)
        at = int(np.searchsorted(candidates.indices, column))
        added, base = self.weights * P[at] ** self.exponents, None
        if self.stacking is not None and column in first.candidates.indices:
            terms = self.stacking.terms(P, candidates.indices)
            judged = places(candidates, first.candidates) >= 0
            added = (terms[at] - terms[judged].mean(axis=0))[:-1]
            base = self.stacking.score_of(probability) - float(added.sum())
        parts = []
        for m in self._asked():
            part = self.parts[m]
            raw = part.model.explain(indices, values, column, part.asked(query))
            parts.append(RawPart(part.name, float(self.weights[m]), float(P[at, m]), float(added[m]), raw))
        return RawMixture(probability, parts, base)

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
        if self.stacking is not None:
            values["is_one_of_all"] = self.stacking.is_one_of_all
            arrays |= {"stacking": self.stacking.coefficients, "log_rows": self.stacking.log_rows}
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
            n_positives = check_number("n_positives", state.values["n_positives"], at_least=0)
            # Sums of products of probabilities, and of probabilities of so many positives.
            if (gram < 0).any() or (target < 0).any() or (target > 1.001 * n_positives).any():
                raise ValueError(f"expected gram of at least 0, and target between 0 and {n_positives}")
            sums = BrierSums(gram, target, n_positives)
        stacking = None
        if "stacking" in state.arrays:
            coefficients = _checked(state.arrays, "stacking", (TERMS_OF_PART * n + 2,))
            log_rows = _checked(state.arrays, "log_rows", (parts[0].model.n_labels,))
            stacking = Stacking(coefficients, log_rows, check_flag("is_one_of_all", state.values["is_one_of_all"]))
        return cls(parts, weights, exponents, sums, stacking)


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


def rows_of(answers: Answers, rows: NDArray[np.int64]) -> Answers:
    """Only these rows."""
    found = [sparse.csr_array(answer[rows]) for answer in answers.found]
    return Answers(found, answers.n_asked, sparse.csr_array(answers.candidates[rows]))
