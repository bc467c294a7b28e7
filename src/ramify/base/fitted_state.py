"""What of a fitted classifier goes into a model file, and how it comes back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.base.naming import check_name_table
from ramify.common.validation import check_integer
from ramify.data.labels import LabelEncoding
from ramify.data.names import NameTable
from ramify.decide.decisions import check_thresholds
from ramify.files import save_load as persist

# Attributes with names for people; a model file holds them without the underscore.
NAMES = ("label_names", "feature_column_names")


class FittedState:
    """Saves what every classifier has (labels, features, names, vectorizer) along with what a model adds.

    A model supplies `_state()` and `_restore(metadata, arrays)`.
    """

    label_encoding_: LabelEncoding
    n_labels_: int
    is_multiclass_: bool
    n_features_in_: int
    label_names_: NameTable
    feature_column_names_: NameTable
    thresholds_: NDArray[np.float32]  # of `predict`, one a label, where they were tuned
    _may_know_no_label = False  # as a model that learns in pieces may

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to a directory; `ramify.load` brings it back."""
        persist.save(self, path)

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a model needs beyond its parameters and the shared attributes: JSON values, and arrays."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved")

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `_state` gave; shared attributes are set already. Bad content raises ValueError."""
        raise NotImplementedError(f"{type(self).__name__} cannot be loaded")

    def _fitted_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        encoding = self.label_encoding_
        fitted: dict[str, Any] = {
            "n_features": self.n_features_in_,
            "seed": self.seed_,
            "labels": {"kind": encoding.kind, "n_labels": encoding.n_labels, **encoding.stored_classes()},
        }
        if "feature_names_in_" in self.__dict__:
            fitted["feature_names"] = NameTable.from_names(self.feature_names_in_)
        fitted |= {name: self.__dict__[f"{name}_"] for name in NAMES if f"{name}_" in self.__dict__}
        if "thresholds_" in self.__dict__:
            fitted["thresholds"] = self.thresholds_
        if "vectorizer_" in self.__dict__:
            from ramify.data.text import vectorizer_state

            fitted["vectorizer"] = vectorizer_state(self.vectorizer_)
        metadata, arrays = self._state()
        return fitted, {"metadata": metadata, "arrays": arrays}

    def _restore_fitted(self, fitted: dict[str, Any], state: dict[str, Any]) -> None:
        self.n_features_in_ = check_integer("n_features", fitted["n_features"], at_least=0)
        self.seed_ = check_integer("seed", fitted["seed"], at_least=0)
        self.label_encoding_ = LabelEncoding.from_stored(**fitted["labels"])
        self.n_labels_ = self.label_encoding_.n_labels
        if self.n_labels_ == 0 and not self._may_know_no_label:
            raise ValueError("the model has no labels")
        self.is_multiclass_ = self.label_encoding_.is_multiclass
        if "feature_names" in fitted:
            self.feature_names_in_ = np.array(fitted["feature_names"].tolist(), dtype=object)
        if "label_names" in fitted:
            self.label_names_ = check_name_table(fitted["label_names"], self.n_labels_, "label")
        if "feature_column_names" in fitted:
            self.feature_column_names_ = check_name_table(
                fitted["feature_column_names"], self.n_features_in_, "feature"
            )
        if "thresholds" in fitted:
            stored = fitted["thresholds"]
            if not isinstance(stored, np.ndarray) or stored.ndim != 1 or len(stored) > self.n_labels_:
                raise ValueError("the thresholds do not fit the labels")
            self.thresholds_ = check_thresholds(stored, len(stored))
        if "vectorizer" in fitted:
            from ramify.data.text import vectorizer_from_state

            self.vectorizer_ = vectorizer_from_state(*fitted["vectorizer"])
        self._restore(state["metadata"], state["arrays"])
