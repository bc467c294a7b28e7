"""A classifier inside another: trained on its rows as its own `fit` would, and saved as a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ramify import registry
from ramify.base.fitted import FittedModel
from ramify.base.training import TrainingData
from ramify.common.validation import check_jobs

if TYPE_CHECKING:
    from ramify.base.classifier import ExtremeClassifier


class Nested(NamedTuple):
    """The class and the fitted model of the inner classifier."""

    class_name: str
    fitted: FittedModel

    def classifier(self, given: ExtremeClassifier, n_jobs: int | None) -> Any:
        """The inner classifier: the given parameters around the fitted model."""
        from sklearn.base import clone

        inner = clone(given)
        if n_jobs is not None:
            inner.n_jobs = n_jobs
        inner._set_fitted(self.fitted)
        return inner

    def state(self) -> dict[str, Any]:
        """Values and arrays, as a part of the outer model's state."""
        return {
            "class": self.class_name,
            "fitted": self.fitted.values(),
            "model": self.fitted.model.state()._asdict(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Nested:
        """Take back what `state` gave."""
        name = state["class"]
        if name not in registry.CLASSIFIERS:
            raise ValueError(f"{str(name)[:60]!r} is not a classifier of this library")
        model_class = registry.load_model_class(name)
        return cls(name, FittedModel.restore(name, state["fitted"], model_class, state["model"]))


def train_inside(given: ExtremeClassifier, n_jobs: int | None, data: TrainingData) -> Nested:
    """Train a copy of `given` on data that the outer classifier has read; its own `random_state` comes first."""
    from sklearn.base import clone

    inner: Any = clone(given)
    if n_jobs is not None:
        inner.n_jobs = n_jobs
    inner._check_parameters()
    check_jobs(inner.n_jobs)
    name = type(inner).__name__
    schema = inner._schema_class.sharing(name, data.schema)
    seed = data.seed if inner.random_state is None else inner._draw_seed()
    model = inner._train(replace(data, schema=schema, seed=seed))
    hierarchy = inner._hierarchy_of(schema)
    fitted = FittedModel(schema, model, seed=seed, options=inner._search_options(), hierarchy=hierarchy)
    return Nested(name, fitted)


def check_no_hierarchy(owner: str, inner: Any) -> None:
    """Reject an inner classifier with a hierarchy where only the outer one's answers are seen."""
    if getattr(inner, "hierarchy", None) is not None:
        raise ValueError(f"give hierarchy= to the {owner}, not to the {type(inner).__name__} inside it")
