"""What classifiers share that learn row after row: pieces, single rows, exact resumption, copies of their own."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.base.classifier import ExtremeClassifier, TrainingData
from ramify.base.inputs import as_one_row
from ramify.base.one_row import Settled, learn_plain_row
from ramify.base.stream_rows import GROWING, DictRow, Piece, StreamRows
from ramify.common.progress import phase, shown

if TYPE_CHECKING:
    from typing_extensions import Self

# Where each row's answer begins, and the answers' label columns, best first.
BestLabels: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]

# What parameters are called where the core has another word.
_PARAMETERS = {
    "rule": "learner",
    "arity": "b",
    "pre_leaf_arity": "b_max",
    "buffer_entries": "memory_budget",
    "is_logistic": "loss",
    "is_adaptive": "learner",
}


class OnlineClassifier(StreamRows, ExtremeClassifier):
    """A learner of the core behind `partial_fit` and `learn_one`.

    A model supplies `_learner_settings()`, `_new_learner()` from `learner_settings_`, `_learn(piece, order,
    progress)`, `_test_and_learn(X, Y, top_k)` and `_learn_plain` (one row); it may supply `_begin`, `_can_learn` and
    `_check_piece`. Its parameters `passes` and `shuffle` are for `fit`.
    """

    passes: int
    shuffle: bool
    learner_: Any
    learner_settings_: dict[str, Any]
    _settled: Settled
    # How the rows were written, if a file or a stream told: the same number may be another feature in another format.
    source_format_: str | None = None
    _may_know_no_label = True

    # --- what a model supplies ------------------------------------------------------------------------------------

    @abstractmethod
    def _learner_settings(self) -> dict[str, Any]:
        """What the learner is made with; a model keeps those of its own."""

    @abstractmethod
    def _new_learner(self) -> Any:
        """A learner that knows nothing yet, of the kept settings."""

    @abstractmethod
    def _learn(self, piece: Piece, order: NDArray[np.int64] | None, progress: _core.Progress | None) -> None:
        """Learn these rows, in the order given or their own."""

    @abstractmethod
    def _test_and_learn(self, X: sparse.csr_array, Y: sparse.csr_array, top_k: int) -> BestLabels:
        """Answer each row, and learn it only then."""

    def _begin(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        """Make the learner for rows such as these."""
        self.learner_settings_ = self._learner_settings()
        self.learner_ = self._new_learner()

    def _can_learn(self, labels: NDArray[np.int32]) -> bool:
        """Whether a row of these known labels may go the short way into the learner."""
        return True

    def _learner_state(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = self.learner_.state()
        return arrays

    # --- learning -------------------------------------------------------------------------------------------------

    def _fit(self, data: TrainingData) -> None:
        self._begin(data.X, data.Y)
        generator = np.random.default_rng(data.seed)
        progress = _core.Progress()
        for _ in range(self.passes):
            order = generator.permutation(data.X.shape[0]) if self.shuffle else None
            with phase("learning", progress):
                self._learn((data.X, data.Y, data.sample_weight), order, progress)

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn these rows, in their order, on top of what is known; new labels and wider rows are welcome.

        `classes`, at the first call, may name labels in advance: the classes of a 1-D y, as scikit-learn does, or the
        columns of a given tree where y are label collections. A refused piece leaves the model as it was.
        """
        with shown(self.verbose is True):
            self._check_parameters()
            with GROWING:
                if "learner_" not in self.__dict__:
                    with self._unchanged_on_failure():
                        piece = self._first_piece(X, y, classes, sample_weight)
                        self.seed_ = self._draw_seed()
                        self._begin(*piece[:2])
                        self._learn_piece(piece)
                    return self
                self._check_unchanged()
                piece = self._next_piece(X, y, sample_weight)
            self._learn_piece(piece)
        return self

    def _learn_piece(self, piece: Piece) -> None:
        with phase("learning", progress := _core.Progress()):
            self._learn(piece, None, progress)

    def _test_then_learn(self, X: Any, y: Any, top_k: int) -> tuple[NDArray[np.int64], NDArray[np.int32], Any]:
        """`partial_fit` of a fitted model that answers each row just before it learns it: see `ramify.progressive`.

        Where each row's answer begins, the answers' label columns, best first, and the 0/1 array of what was true.
        """
        with GROWING:
            self._check_unchanged()
            rows, indicator, _ = self._next_piece(X, y, None)
        return *self._test_and_learn(rows, indicator, top_k), indicator

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one row: a dict feature -> value, a text, or a one-row array.

        y is the row's class, its collection of labels, or, for a model of 0/1 arrays, a row of them.
        """
        if isinstance(x, Mapping):
            if learn_plain_row(self, x, y):
                return self
            x = DictRow(x)
        return self.partial_fit(as_one_row(x), self._one_label_row(y))

    def _check_unchanged(self) -> None:
        """What is learned belongs to the settings it was learned with."""
        self._check_parameters()
        now = self._learner_settings()
        for name, value in self.learner_settings_.items():
            if now[name] != value:
                raise ValueError(
                    f"{_PARAMETERS.get(name, name)} was {value!r} when learning began and is {now[name]!r} now: "
                    "set it back, or begin anew with fit"
                )

    # --- what is learned ------------------------------------------------------------------------------------------

    @property
    def n_examples_(self) -> int:
        """Rows learned so far."""
        n: int = self.learner_.n_examples
        return n

    @property
    def memory_(self) -> int:
        """Bytes that the tree, its weights and all else that was learned take."""
        n: int = self.learner_.memory
        return n

    # --- model files ----------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata: dict[str, Any] = {
            "settings": self.learner_settings_,
            "feature_columns": self._stored_feature_columns(),
        }
        if self.source_format_ is not None:
            metadata["source_format"] = self.source_format_
        return metadata, self._learner_state()

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self._check_parameters()
        self.source_format_ = metadata.get("source_format")
        self.learner_settings_ = metadata["settings"]
        self._restore_feature_columns(metadata["feature_columns"])
        self._restore_learner(arrays)

    def _restore_learner(self, arrays: dict[str, NDArray[Any]]) -> None:
        learner = self._new_learner()
        learner.restore(arrays, self.n_labels_)
        self.learner_ = learner

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_settled", None)
        if "learner_" in state:
            state["learner_"] = self._learner_state()
            # A copy, too, goes its own way from here.
            for name in ("label_encoding_", "feature_columns_", "learner_settings_"):
                if name in state:
                    state[name] = copy.deepcopy(state[name])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("learner_", None)
        super().__setstate__(state)
        if arrays is not None:
            self._restore_learner(arrays)
