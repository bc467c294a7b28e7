"""What classifiers share that learn row after row: pieces, single rows, exact resumption."""

from __future__ import annotations

import functools
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core
from ramify.base.classifier import ExtremeClassifier
from ramify.base.fitted import FittedModel
from ramify.base.online_model import Learning, OnlineModel
from ramify.base.rows import as_one_row
from ramify.base.stream_schema import DictRow, Piece, StreamSchema, one_label_row
from ramify.base.training import TrainingData, weighted_rows
from ramify.common.progress import phase, shown
from ramify.optimizers import Optimizer

if TYPE_CHECKING:
    from typing_extensions import Self

# Parameters of classifiers, where a learner of the core uses another name.
_PARAMETERS = {
    "rule": "optimizer",
    "pre_leaf_arity": "max_leaf",
    "buffer_entries": "memory_budget",
    "is_logistic": "loss",
    "is_adaptive": "optimizer",
    "is_invariant": "optimizer",
    "is_multiclass": "normalize_siblings",
}


@dataclass(frozen=True)
class CheckedSettings:
    """Parameters that were found good and equal to those of this model: the same objects need no second check."""

    model: Any
    parameters: tuple[Any, ...]
    n_threads: int


class OnlineClassifier(ExtremeClassifier):
    """A classifier with `partial_fit` and `learn_one` around an `OnlineModel`.

    A method supplies `_learner_settings` and `_new_model`. Its parameters `n_epochs` and `shuffle` are for `fit`.
    """

    _schema_class = StreamSchema
    n_epochs: int
    shuffle: bool
    verbose: bool
    fitted_: FittedModel
    _checked_settings: CheckedSettings

    # --- what a method supplies -----------------------------------------------------------------------------------

    @abstractmethod
    def _learner_settings(self, *, is_multiclass: bool, seed: int) -> dict[str, Any]:
        """The settings of a learner with the present parameters; a model keeps those it was made with."""

    @abstractmethod
    def _new_model(self, data: TrainingData) -> OnlineModel:
        """A model that knows nothing yet, for rows such as these."""

    def _policy(self, model: OnlineModel) -> Any:
        """What the core calls to decide where a new label goes; None where it decides itself."""
        return None

    def _default_vectorizer(self) -> Any:
        from ramify.data.text import default_stream_vectorizer

        return default_stream_vectorizer()

    # --- learning -------------------------------------------------------------------------------------------------

    def _train(self, data: TrainingData) -> OnlineModel:
        model = self._new_model(data)
        self._learn_epochs(model, data)
        return model

    def _learn_epochs(self, model: OnlineModel, data: TrainingData) -> None:
        generator = np.random.default_rng(data.seed)
        for _ in range(self.n_epochs):
            order = generator.permutation(data.X.shape[0]) if self.shuffle else None
            self._learn(model, (data.X, data.Y, data.sample_weight), order)

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn these rows, in their order, on top of what is known; new labels and wider rows are welcome.

        `classes`, at the first call, may name labels in advance: the classes of a 1-D y, as scikit-learn does, or the
        columns of a given tree where y are label collections. A rejected piece leaves the model as it was.
        """
        with shown(self.verbose is True):
            self._check_parameters()
            with self._lock():
                if "fitted_" in self.__dict__:
                    _, model = self._unchanged()
                    self._learn(model, self._read_piece(X, y, sample_weight), None)
                else:
                    self._learn_first_piece(self._first_piece(X, y, classes, sample_weight))
        return self

    def _learn_first_piece(self, data: TrainingData) -> None:
        hierarchy, model = self._hierarchy_of(data.schema), self._new_model(data)
        # A policy may query the model while it learns.
        self._set_fitted(FittedModel(data.schema, model, seed=data.seed, hierarchy=hierarchy))
        try:
            self._learn(model, (data.X, data.Y, data.sample_weight), None)
        except BaseException:
            del self.fitted_
            raise

    def _first_piece(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> TrainingData:
        self._check_vectorizer()
        schema = StreamSchema(type(self).__name__)
        piece = weighted_rows(*schema.start(X, y, classes, self._new_vectorizer), sample_weight)
        self._warn_of_length(piece[0])
        return TrainingData(*piece, self._draw_seed(), self._n_threads(), schema)

    def _read_piece(self, X: Any, y: Any, sample_weight: Any) -> Piece:
        fitted = self.fitted_
        schema, model = fitted.schema, fitted.model
        assert isinstance(schema, StreamSchema)
        assert isinstance(model, OnlineModel)

        def accept(rows: sparse.csr_array, indicator: sparse.csr_array) -> Piece:
            piece: Piece = self._accept(weighted_rows(rows, indicator, sample_weight))
            return piece

        piece = schema.extend(X, y, accept)
        model.widen(schema.n_labels, schema.n_features)
        return piece

    def _learn(self, model: OnlineModel, piece: Piece, order: NDArray[np.int64] | None) -> None:
        with phase("learning", progress := _core.Progress()):
            model.learn(piece, order, Learning(self._n_threads(), progress, self._policy(model)))

    def _test_then_learn(self, X: Any, y: Any, top_k: int) -> tuple[NDArray[np.int64], NDArray[np.int32], Any]:
        """`partial_fit` of a fitted model that answers each row just before it learns it: see `ramify.progressive`.

        Where each row's answer starts, the answers' label columns, best first, and the 0/1 array of the true labels.
        """
        with self._lock():
            _, model = self._unchanged()
            rows, indicator, _ = self._read_piece(X, y, None)
            found = model.test_then_learn(
                rows, indicator, top_k, Learning(self._n_threads(), policy=self._policy(model))
            )
        return *found, indicator

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one row: a dict feature -> value, a text, or a one-row array.

        y is the row's class, its collection of labels, or, for a model of 0/1 arrays, a row of them.
        """
        if isinstance(x, str | Mapping):
            if self._learn_plain_row(x, y):
                return self
            x = x if isinstance(x, str) else DictRow(x)
        kind = self.schema_.labels.kind if "fitted_" in self.__dict__ else None
        return self.partial_fit(as_one_row(x), one_label_row(y, kind))

    def _learn_plain_row(self, x: str | Mapping[Any, Any], y: Any) -> bool:
        """Learn one row without building arrays, if labels are known and features are all named or all numbered.

        False: nothing has changed, and `partial_fit` takes the row or rejects it. It checks everything that a piece of
        data may bring, which takes many times longer than learning one row.
        """
        if "fitted_" not in self.__dict__ or self.verbose is True:
            return False
        with self._lock():
            schema, model = self.fitted_.schema, self.fitted_.model
            assert isinstance(schema, StreamSchema)
            assert isinstance(model, OnlineModel)
            checked = self._check_settings(model)
            labels = schema.labels.known_columns(y)
            if labels is None or not model.can_learn(labels):
                return False
            row = schema.plain_text(x) if isinstance(x, str) else schema.plain_dict(x)
            if row is None:
                return False
            indices, values, width = row[:3]
            if len(row) == 4 and row[3]:
                assert schema.named_columns is not None
                schema.named_columns.update(row[3])
            if width > schema.n_features:
                schema.widen(width)
                model.widen(schema.n_labels, schema.n_features)
            model.learn_row(indices, values, labels, Learning(checked.n_threads, policy=self._policy(model)))
        return True

    def _check_settings(self, model: OnlineModel) -> CheckedSettings:
        checked: CheckedSettings | None = self.__dict__.get("_checked_settings")
        parameters = _parameters_of(type(self))(self)
        optimizer = getattr(self, "optimizer", None)
        if isinstance(optimizer, Optimizer):  # its settings may change while it stays the same object
            parameters += tuple(vars(optimizer).values())
        if checked is None or checked.model is not model or not all(map(operator.is_, parameters, checked.parameters)):
            self._unchanged()
            checked = self._checked_settings = CheckedSettings(model, parameters, self._n_threads())
        return checked

    def _unchanged(self) -> tuple[FittedModel, OnlineModel]:
        """The fitted model, if the parameters are still those that it was made with."""
        self._check_parameters()
        fitted = self.fitted_
        model = fitted.model
        assert isinstance(model, OnlineModel)
        now = self._learner_settings(is_multiclass=model.is_multiclass, seed=fitted.seed)
        for name, value in model.settings.items():
            if now[name] != value:
                raise ValueError(
                    f"{_PARAMETERS.get(name, name)} was {value!r} when learning began and is {now[name]!r} now: "
                    "set it back, or start again with fit"
                )
        return fitted, model

    # --- what is learned ------------------------------------------------------------------------------------------

    @property
    def n_examples_(self) -> int:
        """Rows learned so far."""
        n: int = self.model_.n_examples
        return n

    @property
    def memory_(self) -> int:
        """Bytes that the tree, its weights and everything else that was learned take."""
        n: int = self.model_.memory
        return n

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_checked_settings", None)
        return state


@functools.cache
def _parameters_of(cls: Any) -> Callable[[Any], tuple[Any, ...]]:
    return operator.attrgetter(*cls._get_param_names())
