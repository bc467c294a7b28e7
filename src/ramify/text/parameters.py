"""Transformers that scikit-learn accepts (clone, pipelines, grid search), and that do without it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Parameters:
    """What scikit-learn's BaseEstimator supplies: parameters by name, taken from the constructor's signature."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; they take effect with the next `fit`."""
        known = self._get_param_names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not (value is defaults[name].default or value == defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float32"]),
            input_tags=InputTags(string=True, two_d_array=False),
            requires_fit=self._requires_fit,
        )

    _requires_fit = True


def not_fitted(name: str) -> Exception:
    """The exception for a vectorizer without a vocabulary: scikit-learn's, if it is in use, and a ValueError always."""
    import sys

    message = f"This {name} is not fitted yet: call 'fit' with some texts first"
    module = sys.modules.get("sklearn.exceptions")
    return ValueError(message) if module is None else module.NotFittedError(message)
