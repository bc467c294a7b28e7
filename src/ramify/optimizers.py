"""Update rules of online learners, as parameters of classifiers: `optimizer="adagrad"`, or an object with settings."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ramify.common.validation import check_choice, check_flag, check_number


class Optimizer(BaseEstimator):  # type: ignore[misc]
    """Base of the update rules. A setting that is None has the classifier's default (docs/parameters.md)."""

    name: str


class AdaGrad(Optimizer):
    """A step size per weight: learning_rate * g / (sqrt(s) + decay * s + eps), with s the sum of squared gradients.

    Parameters
    ----------
    learning_rate, eps : float or None
    decay : float or None
        Lets steps shrink faster as gradients add up (only `OnlinePLTClassifier`; 0 in the literature).
    eps_in_root : bool or None
        True: learning_rate * g / (sqrt(s + eps) + decay * s), as napkinXC, the program of the authors of "Online
        probabilistic label trees", computes it (only `OnlinePLTClassifier`; default False).

    >>> from ramify import OnlinePLTClassifier
    >>> OnlinePLTClassifier(optimizer=AdaGrad(learning_rate=1.0, eps=0.01, decay=0.0)).get_params()["optimizer__eps"]
    0.01
    """

    name = "adagrad"

    def __init__(
        self,
        *,
        learning_rate: float | None = None,
        eps: float | None = None,
        decay: float | None = None,
        eps_in_root: bool | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.eps = eps
        self.decay = decay
        self.eps_in_root = eps_in_root


class FOBOS(Optimizer):
    """Gradient descent with an L2 regulariser (Jasinska et al. 2016, section 6).

    Parameters
    ----------
    learning_rate : float or None
    l2 : float or None
        Strength of the regulariser.
    """

    name = "fobos"

    def __init__(self, *, learning_rate: float | None = None, l2: float | None = None) -> None:
        self.learning_rate = learning_rate
        self.l2 = l2


class SGD(Optimizer):
    """Stochastic gradient descent, one step size for all weights.

    Parameters
    ----------
    learning_rate : float or None
    invariant : bool or None
        True, the default: importance-invariant steps (Karampatziakis and Langford 2011), which are the limit of many
        small ones and never go beyond the target; AdaGrad always takes them. False: the plain step, learning_rate * g,
        which moves a score by at most 10. The logistic loss has the plain step either way.
    """

    name = "sgd"

    def __init__(self, *, learning_rate: float | None = None, invariant: bool | None = None) -> None:
        self.learning_rate = learning_rate
        self.invariant = invariant


# Ranges of settings; what is not listed must be at least zero.
_ABOVE_ZERO = ("learning_rate", "eps")


def resolve_optimizer(given: Any, defaults: dict[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The name and all settings of an optimizer, given by name or as an object.

    `defaults` holds, for each optimizer that a classifier knows, its settings.

    >>> resolve_optimizer(AdaGrad(eps=0.5), {"adagrad": {"learning_rate": 2.0, "eps": 0.2}})
    ('adagrad', {'learning_rate': 2.0, 'eps': 0.5})
    """
    if isinstance(given, str):
        name = check_choice("optimizer", given, defaults)
        return name, dict(defaults[name])
    if not isinstance(given, Optimizer) or given.name not in defaults:
        said = " or ".join(repr(name) for name in defaults)
        raise ValueError(f"optimizer must be {said} or an object such as AdaGrad(learning_rate=1.0), got {given!r}")
    settings = dict(defaults[given.name])
    for name, value in given.get_params().items():
        if value is None:
            continue
        if name not in settings:
            raise ValueError(f"optimizer: this classifier's {type(given).__name__} has no {name}; leave it None")
        if isinstance(settings[name], bool):
            settings[name] = check_flag(name, value)
        else:
            settings[name] = check_number(name, value, **({"above": 0} if name in _ABOVE_ZERO else {"at_least": 0}))
    return given.name, settings
