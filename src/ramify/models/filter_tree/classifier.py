"""The filter tree: a tournament of classes, the baseline that LOMtree is measured against."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ramify import _core
from ramify.base.one_class import OneClassARow, check_regressor, class_columns, regressor_parameters
from ramify.base.schema import check_as_many_rows
from ramify.base.training import TrainingData, weighted_rows
from ramify.common.progress import phase, shown
from ramify.common.validation import check_flag, check_integer, check_jobs
from ramify.models.filter_tree.model import FilterTreeModel
from ramify.optimizers import Optimizer


class FilterTreeClassifier(OneClassARow):
    """Knock-out tournament of classes in random order: a match learns from the examples whose class reached it.

    Training and prediction take time logarithmic in the number of classes. A tournament has a winner and no
    probabilities: the winner gets the share of training rows whose class won just before they were learned, the others
    share the rest. Papers: Beygelzimer, Langford and Ravikumar 2009; Choromanska and Langford, "Logarithmic Time Online
    Multiclass prediction", section 1.1 and table 4.

    Parameters
    ----------
    loss, optimizer
        Of the matches' linear regressors, as in `LOMTreeClassifier`.
    n_epochs, shuffle
        For `fit`: passes over the rows, and whether in random order. `partial_fit` takes rows in their order.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts.
    n_jobs : int or None
        Threads for queries.
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import FilterTreeClassifier
    >>> clf = FilterTreeClassifier(n_epochs=5, random_state=0)
    >>> _ = clf.fit(["red apple", "green pear", "black cherry"] * 5, ["apple", "pear", "cherry"] * 5)
    >>> clf.predict(["a green pear", "a cherry"]).tolist()
    ['pear', 'cherry']
    """

    learns_new_labels = False  # after the first call of `partial_fit`

    def __init__(
        self,
        *,
        loss: str = "squared",
        optimizer: str | Optimizer = "adagrad",
        n_epochs: int = 1,
        shuffle: bool = True,
        normalize: bool = True,
        bias: float = 0.3,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.optimizer = optimizer
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.normalize = normalize
        self.bias = bias
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_regressor(self)
        check_integer("n_epochs", self.n_epochs, at_least=1)
        check_flag("shuffle", self.shuffle)
        check_flag("verbose", self.verbose)

    def _train(self, data: TrainingData) -> FilterTreeModel:
        class_columns(data.Y, type(self).__name__)
        generator = np.random.default_rng(data.seed)
        order = generator.permutation(data.n_labels).astype(np.int32)
        model = FilterTreeModel(
            order,
            settings=regressor_parameters(self),
            n_labels=data.n_labels,
            n_features=data.n_features,
            is_multiclass=data.is_multiclass,
        )
        progress = _core.Progress()
        for _ in range(self.n_epochs):
            rows = generator.permutation(data.X.shape[0]) if self.shuffle else None
            model.forget_wins()  # those of the last pass count
            with phase("learning", progress):
                model.learn(data.X, data.Y, data.sample_weight, rows, progress)
        return model

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> FilterTreeClassifier:
        """Learn these rows, in their order, on top of what is known.

        The tournament is drawn by the first call, from `classes` or else from the classes of its rows; later calls take
        no others. A rejected or interrupted piece leaves the model as it was.
        """
        with shown(self.verbose is True), self._lock():
            self._check_parameters()
            check_jobs(self.n_jobs)
            if "fitted_" not in self.__dict__:
                online = clone(self).set_params(n_epochs=1, shuffle=False)
                self._set_fitted(online._fitted_on(X, y, sample_weight, classes))
                return self
            fitted = self.fitted_
            schema, model = fitted.schema, fitted.model
            assert isinstance(model, FilterTreeModel)
            with schema.labels.unchanged_on_failure():
                rows, indicator = schema.rows(X), schema.labels.extend(y)
                check_as_many_rows(rows.shape[0], indicator)
                if indicator.shape[1] > model.n_labels:
                    raise ValueError(
                        f"class {schema.label_of(model.n_labels)!r} is not in the tournament: name all classes in the "
                        "first call of partial_fit (classes=…), or use LOMTreeClassifier"
                    )
                class_columns(indicator, type(self).__name__)
                learned = copy.deepcopy(model)
                learned.learn(*weighted_rows(rows, indicator, sample_weight), None, None)
                fitted.model = learned
        return self

    @property
    def won_(self) -> float:
        """The probability of a winner: about the share of training rows whose class won before it was learned."""
        won: float = self.model_.won
        return won
