"""The model protocol of learners that grow: rows and single rows on top of what is known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.base.model import Model, State, shape_of
from ramify.base.stream_schema import Piece

if TYPE_CHECKING:
    from typing_extensions import Self

# Where each row's answer starts, and the answers' label columns, best first.
BestLabels: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]


Indices: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[np.float32]


class Learning(NamedTuple):
    """How rows are learned: threads, progress for the display, and the user's own policy, if there is one."""

    n_threads: int = 1
    progress: _core.Progress | None = None
    policy: Any = None


class OnlineModel(Model):
    """A learner of the core that grows, with the settings it was made with.

    A method supplies `new_learner`, `learn`, `learn_row`, `test_then_learn` and the queries; it may supply
    `can_learn` and `learner_arrays`.
    """

    def __init__(self, settings: dict[str, Any], *, n_labels: int, n_features: int, is_multiclass: bool) -> None:
        self.settings = settings
        self.n_labels = n_labels
        self.n_features = n_features
        self.is_multiclass = is_multiclass
        self.learner: Any = self.new_learner(settings)

    @property
    def learns_on(self) -> bool:
        return True

    @staticmethod
    @abstractmethod
    def new_learner(settings: Mapping[str, Any]) -> Any:
        """A learner that knows nothing yet."""

    @abstractmethod
    def learn(self, piece: Piece, order: NDArray[np.int64] | None, how: Learning) -> None:
        """Learn these rows, in the order given or their own."""

    @abstractmethod
    def learn_row(self, indices: Indices, values: Values, labels: Indices, how: Learning) -> None:
        """Learn one row."""

    @abstractmethod
    def test_then_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int, how: Learning) -> BestLabels:
        """Answer each row just before learning it."""

    def can_learn(self, labels: NDArray[np.int32]) -> bool:
        """Whether a row of these known labels may go to `learn_row`."""
        return True

    def widen(self, n_labels: int, n_features: int) -> None:
        """Room for new labels and features."""
        self.n_labels = max(self.n_labels, n_labels)
        self.n_features = max(self.n_features, n_features)

    @property
    def n_examples(self) -> int:
        """Rows learned so far."""
        n: int = self.learner.n_examples
        return n

    @property
    def n_learned(self) -> int:
        """Rows learned so far, where examples may be stored once or forgotten."""
        return self.n_examples

    @property
    def memory(self) -> int:
        """Bytes of everything learned."""
        n: int = self.learner.memory
        return n

    def learner_arrays(self) -> dict[str, NDArray[Any]]:
        """All that was learned, as arrays."""
        arrays: dict[str, NDArray[Any]] = self.learner.state()
        return arrays

    def state(self) -> State:
        return State({**self.shape_values(), "settings": dict(self.settings)}, self.learner_arrays())

    @classmethod
    def from_state(cls, state: State) -> Self:
        model = cls(dict(state.values["settings"]), **shape_of(state.values))
        model.learner.restore(state.arrays, model.n_labels)
        return model
