"""A trained filter tree: a tournament of classes with a regressor for each match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.answers import keep_best, same_columns
from ramify.base.model import Model, Query, State, named_by_label_set, shape_of
from ramify.common.validation import check_integer, check_number
from ramify.data.csr import csr_rows

if TYPE_CHECKING:
    from typing_extensions import Self

    from ramify.explain.score import RawExplanation


class FilterTreeModel(Model):
    """The winner of a row has probability `won`; the other classes share the rest evenly."""

    def __init__(
        self,
        order: NDArray[np.int32],
        *,
        settings: dict[str, Any],
        n_labels: int,
        n_features: int,
        is_multiclass: bool,
    ) -> None:
        self.tournament = _core.FilterTree(_core.RegressorSettings(**settings), order)
        self.order = order
        self.settings = settings
        self.won = 1.0
        self.n_learned = 0  # rows, those of all passes
        # Weight of the rows learned since wins are counted, and of those among them whose class won just before.
        self.weight_counted, self.weight_won = 0.0, 0.0
        self.n_labels = n_labels
        self.n_features = n_features
        self.is_multiclass = is_multiclass

    # --- learning -------------------------------------------------------------------------------------------------

    def learn(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: NDArray[np.float32] | None,
        order: NDArray[np.int64] | None,
        progress: _core.Progress | None,
    ) -> None:
        """Learn rows of one class each, in the order given or their own."""
        labels = np.ascontiguousarray(Y.indices, dtype=np.int32)
        self.weight_won += self.tournament.learn(X, labels, weight, order, progress)
        self.n_learned += X.shape[0]
        self.weight_counted += float(X.shape[0] if weight is None else weight.sum(dtype=np.float64))
        # Never so little that another class would be more probable, nor certain.
        share, least = min((self.weight_won + 1) / (self.weight_counted + 2), 1.0), 2 / (self.n_labels + 1)
        self.won = max(share, least) if self.n_labels > 1 else 1.0

    def forget_wins(self) -> None:
        """Count wins from now on."""
        self.weight_counted, self.weight_won = 0.0, 0.0

    @property
    def _rest(self) -> np.float32:
        return np.float32((1 - self.won) / max(self.n_labels - 1, 1))

    def _winners(self, X: sparse.csr_array, n_threads: int) -> NDArray[np.int32]:
        return self.tournament.winners(X, n_threads)

    def search(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        n, n_labels, rest = X.shape[0], self.n_labels, self._rest
        winners = self._winners(X, query.n_threads)
        needs_few = query.top_k == 1 or (not isinstance(query.threshold, np.ndarray) and rest < query.threshold)
        if needs_few:
            answer = csr_rows(np.full(n, self.won, np.float32), winners, np.arange(n + 1), (n, n_labels))
            return keep_best(answer, query.top_k, query.threshold)
        everything = np.full((n, n_labels), rest, dtype=np.float32)
        everything[np.arange(n), winners] = self.won
        answer = same_columns(everything, np.arange(n_labels), n_labels)
        return keep_best(answer, query.top_k, query.threshold)

    def named(self, X: sparse.csr_array, candidates: sparse.csr_array, query: Query) -> NDArray[np.float32]:
        def score(rows: sparse.csr_array, labels: NDArray[np.int32]) -> NDArray[np.float32]:
            is_winner = self._winners(rows, query.n_threads)[:, None] == labels
            return np.where(is_winner, np.float32(self.won), self._rest)

        return named_by_label_set(X, candidates, score)

    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int, query: Query
    ) -> RawExplanation:
        raise ValueError("a FilterTreeClassifier has no paths to explain: a tournament only has a winner")

    def state(self) -> State:
        counts = {"won": self.won, "n_learned": self.n_learned}
        counts |= {"weight_counted": self.weight_counted, "weight_won": self.weight_won}
        values = {**self.shape_values(), "settings": self.settings, **counts}
        return State(values, {"order": self.order, **self.tournament.state()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        shape, order, settings = shape_of(state.values), state.arrays["order"], dict(state.values["settings"])
        if len(order) != shape["n_labels"]:
            raise ValueError(f"expected a tournament of {shape['n_labels']} classes, got {len(order)}")
        model = cls(order, settings=settings, **shape)
        model.tournament.restore(state.arrays)
        model.won = check_number("won", state.values["won"], above=0, at_most=1)
        # Older files have none of these.
        model.n_learned = check_integer("n_learned", state.values.get("n_learned", 0), at_least=0)
        for name in ("weight_counted", "weight_won"):
            setattr(model, name, check_number(name, state.values.get(name, 0.0), at_least=0))
        if model.weight_won > model.weight_counted * (1 + 1e-6):  # both are sums in floating point
            raise ValueError(f"of {model.weight_counted} counted, {model.weight_won} cannot have won")
        return model
