"""The filter tree: a tournament of classes, the baseline that LOMtree is measured against."""

from __future__ import annotations

from typing import Any

import numpy as np

from ramify import _core
from ramify.base.one_class import OneClassARow, check_regressor, class_columns, regressor_parameters
from ramify.base.training import TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_flag, check_integer
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
        Passes over the rows, and whether in random order.
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
        labels = class_columns(data.Y, type(self).__name__)
        n_labels = data.n_labels
        generator = np.random.default_rng(data.seed)
        settings = regressor_parameters(self)
        order = generator.permutation(n_labels).astype(np.int32)
        tournament = _core.FilterTree(_core.RegressorSettings(**settings), order)
        total = float(data.X.shape[0] if data.sample_weight is None else data.sample_weight.sum(dtype=np.float64))
        progress = _core.Progress()
        for _ in range(self.n_epochs):
            rows = generator.permutation(data.X.shape[0]) if self.shuffle else None
            with phase("learning", progress):
                won = tournament.learn(data.X, labels, data.sample_weight, rows, progress)
        return FilterTreeModel(
            tournament,
            order,
            settings=settings,
            # Never so little that another class would be more probable, nor certain.
            won=max((won + 1) / (total + 2), 2 / (n_labels + 1)) if n_labels > 1 else 1.0,
            n_labels=n_labels,
            n_features=data.n_features,
            is_multiclass=data.is_multiclass,
        )

    @property
    def won_(self) -> float:
        """The probability of a winner: about the share of training rows whose class won before it was learned."""
        won: float = self.model_.won
        return won
