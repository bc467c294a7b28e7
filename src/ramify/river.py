"""Online label trees as river models: one example at a time, with features and labels as dicts.

Optional: needs river, `pip install 'ramify[river]'`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from ramify.models.online_plt.classifier import OnlinePLTClassifier
from ramify.optimizers import Optimizer

try:
    from river import base
except ImportError as error:
    raise ImportError("ramify.river needs the river package: pip install 'ramify[river]'") from error

__all__ = ["MultiLabelOnlinePLT", "OnlinePLT"]

MORE_LIKELY_THAN_NOT = 0.5


class _OnlineTree(base.Base):  # type: ignore[misc]
    """Base of both models: maps features and labels, which in river can be any hashable, to integers."""

    def __init__(
        self,
        policy: str | Callable[..., tuple[int, bool]] = "fair",
        arity: int | None = None,
        max_leaf: int | None = None,
        alpha: float | None = None,
        fair_share: float = 3.0,
        optimizer: str | Optimizer = "adagrad",
        normalize: bool = True,
        bias: float = 0.2,
        memory_budget: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.policy = policy
        self.arity = arity
        self.max_leaf = max_leaf
        self.alpha = alpha
        self.fair_share = fair_share
        self.optimizer = optimizer
        self.normalize = normalize
        self.bias = bias
        self.memory_budget = memory_budget
        self.seed = seed
        settings = {name: value for name, value in self._get_params().items() if name != "seed"}
        self.classifier = OnlinePLTClassifier(**settings, random_state=seed)
        self.features: dict[Hashable, int] = {}
        self.labels: list[Hashable] = []
        self._label_number: dict[Hashable, int] = {}

    def _learn(self, x: Mapping[Hashable, Any], y: Any, labels: Any) -> None:
        """Learn x with the label numbers y, and add the new features of x and the new labels."""
        known = self.features
        fresh = [feature for feature in x if feature not in known]
        if fresh:
            known.update(zip(_sorted(fresh), range(len(known), len(known) + len(fresh)), strict=True))
        try:
            self.classifier.learn_one({known[feature]: value for feature, value in x.items()}, y)
        except BaseException:
            for feature in fresh:
                del known[feature]
            raise
        for label in labels:
            self._label_number[label] = len(self.labels)
            self.labels.append(label)

    def _predict(self, x: Mapping[Hashable, Any], top_k: int | None, threshold: float | None) -> dict[Hashable, float]:
        """Return the probabilities of the labels, best first; empty before the first label."""
        if not self.classifier.__sklearn_is_fitted__():
            return {}
        known = self.features
        row = {known[feature]: value for feature, value in x.items() if feature in known}
        labels = self.labels
        return {labels[number]: p for number, p in self.classifier.predict_one(row, top_k=top_k, threshold=threshold)}

    @property
    def _raw_memory_usage(self) -> int:
        learned = self.classifier.memory_ if self.classifier.__sklearn_is_fitted__() else 0
        return int(super()._raw_memory_usage) + learned


def _sorted(features: list[Hashable]) -> list[Hashable]:
    """Sort the features, so that the order of the dict does not change the rounding of sums."""
    try:
        return sorted(features)  # type: ignore[type-var]
    except TypeError:
        return sorted(features, key=lambda feature: (type(feature).__name__, repr(feature)))


class OnlinePLT(_OnlineTree, base.Classifier):  # type: ignore[misc]
    """Online probabilistic label tree for many classes: a river `Classifier` based on `OnlinePLTClassifier`.

    New classes and features of any hashable type may appear at any time. Time grows with the logarithm of the number
    of classes.
    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", sections 3 and 4.

    Parameters
    ----------
    policy, arity, max_leaf, alpha, fair_share, optimizer, normalize, bias, memory_budget
        As in `OnlinePLTClassifier`.
    seed
        `random_state` of the classifier.

    Attributes
    ----------
    classifier : OnlinePLTClassifier
        The underlying classifier; its features and labels are integers.
    features : dict
        The integer of each feature.
    labels : list
        The classes in order of appearance; a class's position is its integer.

    Examples
    --------
    >>> from ramify.river import OnlinePLT
    >>> model = OnlinePLT(seed=0)
    >>> for _ in range(5):
    ...     model.learn_one({"red": 1.0, "round": 1.0}, "cherry")
    ...     model.learn_one({"yellow": 1.0, "long": 1.0}, "banana")
    >>> model.predict_one({"yellow": 1.0, "curved": 1.0})
    'banana'
    """

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Hashable, Any], y: Hashable) -> None:
        """Learn x with its class y."""
        number = self._label_number.get(y)
        if number is None:
            self._learn(x, len(self.labels), [y])
        else:
            self._learn(x, number, ())

    def predict_proba_one(
        self, x: dict[Hashable, Any], top_k: int | None = None, **kwargs: Any
    ) -> dict[Hashable, float]:
        """Return the probability of each class, best first; with `top_k` only the best, far faster for many classes."""
        found = self._predict(x, top_k, None)
        if top_k is not None:
            return found
        # The core computes in float32; river requires that the sum is 1 in float64.
        total = sum(found.values())
        return {label: p / total for label, p in found.items()}

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> Hashable | None:
        """Return the most probable class; None before the first example."""
        return next(iter(self._predict(x, 1, None)), None)


class MultiLabelOnlinePLT(_OnlineTree, base.MultiLabelClassifier):  # type: ignore[misc]
    """Online probabilistic label tree for multiple labels: a river `MultiLabelClassifier` on `OnlinePLTClassifier`.

    y maps labels to whether the example has them. Missing labels count as absent, so with many labels you only need to
    pass the true ones. Parameters and attributes are those of `OnlinePLT`.
    Paper: Jasinska-Kobus et al. 2021, "Online probabilistic label trees", sections 3 and 4.

    Examples
    --------
    >>> from ramify.river import MultiLabelOnlinePLT
    >>> model = MultiLabelOnlinePLT(seed=0)
    >>> for _ in range(5):
    ...     model.learn_one({"red": 1.0, "apple": 1.0}, {"colour": True, "fruit": True, "tool": False})
    ...     model.learn_one({"hammer": 1.0}, {"tool": True})
    >>> model.predict_one({"red": 1.0, "apple": 1.0})
    {'colour': True, 'fruit': True, 'tool': False}
    """

    def learn_one(self, x: dict[Hashable, Any], y: dict[Hashable, bool]) -> None:
        """Learn x with its labels y."""
        fresh = [label for label in y if label not in self._label_number]
        number = dict(zip(fresh, range(len(self.labels), len(self.labels) + len(fresh)), strict=True))
        known = self._label_number
        present = [known[label] if label in known else number[label] for label, is_true in y.items() if is_true]
        self._learn(x, present, fresh)

    def predict_proba_one(
        self, x: dict[Hashable, Any], top_k: int | None = None, threshold: float | None = None, **kwargs: Any
    ) -> dict[Hashable, dict[bool, float]]:
        """Return the probabilities of False and True for each label.

        With `top_k` or `threshold` only for the best labels, which is far faster for many labels.
        """
        found = self._predict(x, top_k, threshold)
        if top_k is None and threshold is None:
            found = {label: found.get(label, 0.0) for label in self.labels}
        return {label: {False: 1.0 - p, True: p} for label, p in found.items()}

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Hashable, bool]:
        """Return for each label whether its probability is at least 0.5."""
        return dict.fromkeys(self.labels, False) | dict.fromkeys(self._predict(x, None, MORE_LIKELY_THAN_NOT), True)
