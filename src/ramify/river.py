"""Online label trees as river has its models: one example at a time, features and labels as dicts.

Only for those who ask for it: needs river, `pip install 'ramify[river]'`.
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
    """What both models share: river's features and labels are any hashable things, the classifier's are numbers."""

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
        """Learn the row with y, which names labels by number; what x and labels bring is known from now on."""
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

    def _ask(self, x: Mapping[Hashable, Any], top_k: int | None, threshold: float | None) -> dict[Hashable, float]:
        """Probabilities of labels, best first; before the first label there are none."""
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
    """In an order that does not depend on theirs: sums are rounded, so that the order of numbers would show."""
    try:
        return sorted(features)  # type: ignore[type-var]
    except TypeError:
        return sorted(features, key=lambda feature: (type(feature).__name__, repr(feature)))


class OnlinePLT(_OnlineTree, base.Classifier):  # type: ignore[misc]
    """Online probabilistic label tree for many classes: river's `Classifier` over `OnlinePLTClassifier`.

    New classes and new features may come at any time, of any hashable type; time grows with the logarithm of the number
    of classes. Paper: online-plt, sections 3 and 4.

    Parameters
    ----------
    policy, arity, max_leaf, alpha, fair_share, optimizer, normalize, bias, memory_budget
        As in `OnlinePLTClassifier`.
    seed
        Its `random_state`.

    Attributes
    ----------
    classifier : OnlinePLTClassifier
        What learns; its features and labels are the numbers that `features` and `labels` tell.
    features : dict
        The number of each feature.
    labels : list
        The classes in order of appearance.

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
        """Learn that x has the class y."""
        number = self._label_number.get(y)
        if number is None:
            self._learn(x, len(self.labels), [y])
        else:
            self._learn(x, number, ())

    def predict_proba_one(
        self, x: dict[Hashable, Any], top_k: int | None = None, **kwargs: Any
    ) -> dict[Hashable, float]:
        """The probability of each class, best first; with `top_k` only the best, which is far quicker for many."""
        answer = self._ask(x, top_k, None)
        if top_k is not None:
            return answer
        # The core's numbers have 24 bits; river asks for a sum of one in 53.
        total = sum(answer.values())
        return {label: p / total for label, p in answer.items()}

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> Hashable | None:
        """The most probable class; None before the first."""
        return next(iter(self._ask(x, 1, None)), None)


class MultiLabelOnlinePLT(_OnlineTree, base.MultiLabelClassifier):  # type: ignore[misc]
    """Online probabilistic label tree for sets of labels: river's `MultiLabelClassifier` over `OnlinePLTClassifier`.

    y says for each label whether the example has it; labels that it does not mention count as absent, so that a
    stream of many labels need only name those that are there. Parameters and attributes are those of `OnlinePLT`.
    Paper: online-plt, sections 3 and 4.

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
        """Learn which labels x has."""
        fresh = [label for label in y if label not in self._label_number]
        number = dict(zip(fresh, range(len(self.labels), len(self.labels) + len(fresh)), strict=True))
        known = self._label_number
        present = [known[label] if label in known else number[label] for label, is_true in y.items() if is_true]
        self._learn(x, present, fresh)

    def predict_proba_one(
        self, x: dict[Hashable, Any], top_k: int | None = None, threshold: float | None = None, **kwargs: Any
    ) -> dict[Hashable, dict[bool, float]]:
        """For each label the probabilities that x has it, and has it not.

        With `top_k` or a threshold only for the best labels, which is far quicker where they are many.
        """
        found = self._ask(x, top_k, threshold)
        if top_k is None and threshold is None:
            found = {label: found.get(label, 0.0) for label in self.labels}
        return {label: {False: 1.0 - p, True: p} for label, p in found.items()}

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Hashable, bool]:
        """For each label whether x has it: whether its probability is at least one half."""
        return dict.fromkeys(self.labels, False) | dict.fromkeys(self._ask(x, None, MORE_LIKELY_THAN_NOT), True)
