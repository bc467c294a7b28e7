"""What a fitted classifier shows of its schema and model, as attributes that end in an underscore."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.base.fitted import FittedModel
from ramify.base.schema import Schema


class FittedAttributes:
    """Read access to `fitted_`, the fitted model; before `fit` every attribute is an AttributeError."""

    @property
    def schema_(self) -> Schema:
        """What reads X and Y and names labels and features."""
        return self._attribute("schema_").schema

    @property
    def model_(self) -> Any:
        """What was learned, over columns and CSR rows."""
        return self._attribute("model_").model

    @property
    def classes_(self) -> NDArray[Any]:
        """The label of each column: for a 0/1 array the column numbers."""
        return self._attribute("classes_").schema.labels.classes

    @property
    def n_labels_(self) -> int:
        """Labels, and columns of an answer."""
        return self._attribute("n_labels_").schema.n_labels

    @property
    def is_multiclass_(self) -> bool:
        """Whether each row has exactly one class."""
        return self._attribute("is_multiclass_").schema.is_multiclass

    @property
    def n_features_in_(self) -> int:
        """Columns of X."""
        return self._attribute("n_features_in_").schema.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The columns of the DataFrame that the classifier was fitted on."""
        names = self._attribute("feature_names_in_").schema.feature_names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was fitted without feature names")
        return names

    @property
    def vectorizer_(self) -> Any:
        """The vectorizer that reads texts."""
        vectorizer = self._attribute("vectorizer_").schema.vectorizer
        if vectorizer is None:
            raise AttributeError(f"this {type(self).__name__} was not fitted on texts")
        return vectorizer

    @property
    def thresholds_(self) -> NDArray[np.float32]:
        """The tuned thresholds of `predict`, one per label."""
        thresholds = self._attribute("thresholds_").thresholds
        if thresholds is None:
            raise AttributeError(f"this {type(self).__name__} has no tuned thresholds")
        return thresholds

    @property
    def hierarchy_(self) -> dict[Any, list[Any]]:
        """The parents of each label that has some, as `hierarchy` gave them."""
        hierarchy = self._attribute("hierarchy_").hierarchy
        if hierarchy is None:
            raise AttributeError(f"this {type(self).__name__} has no hierarchy")
        return hierarchy.to_mapping()

    @property
    def seed_(self) -> int:
        """The seed that was used: `random_state`, or a number drawn from it."""
        return self._attribute("seed_").seed

    @property
    def source_format_(self) -> str | None:
        """The format of the file that the rows came from, if the command line has read them."""
        return self.schema_.source_format if "fitted_" in self.__dict__ else None

    @source_format_.setter
    def source_format_(self, name: str | None) -> None:
        self.schema_.source_format = name

    @property
    def source_columns_(self) -> dict[str, Any]:
        """The columns of that file, as far as the user has named them: "text", "labels", "label_separator"."""
        return self.schema_.source_columns if "fitted_" in self.__dict__ else {}

    @source_columns_.setter
    def source_columns_(self, columns: dict[str, Any]) -> None:
        self.schema_.source_columns = columns

    def _attribute(self, name: str) -> FittedModel:
        fitted: FittedModel | None = self.__dict__.get("fitted_")
        if fitted is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted, so it has no {name}")
        return fitted
