"""Models as the commands handle them: loading, names, and labels given as words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.base.naming import label_name
from ramify.cli.labelled import LabelledRows, read_label_names
from ramify.cli.options import n_jobs
from ramify.data import DataError, read_names
from ramify.files.directory import MANIFEST


def load_model(path: Path, threads: int | None = None) -> Any:
    """A trained model that answers with this many threads."""
    from ramify.files.save_load import load

    return load(path).set_params(n_jobs=n_jobs(threads))


def trees_of(model: Any) -> list[Any]:
    """The label trees of a model: those of an ensemble, or the one that an online learner has grown; or none."""
    trained = getattr(model, "trees_", None)
    if trained is not None:
        return [part.tree for part in trained]
    return [model.tree_] if hasattr(type(model), "tree_") or hasattr(model, "tree_") else []


def save_without_machine(classifier: Any, path: Path) -> None:
    """Save; how many threads this machine has is no part of a model."""
    threads = classifier.n_jobs
    classifier.set_params(n_jobs=None).save(path)
    classifier.set_params(n_jobs=threads)


def check_target(path: Path) -> None:
    """Refuse a place for a model before the training, not after it."""
    if path.is_dir():
        if any(path.iterdir()) and not (path / MANIFEST).exists():
            raise DataError("the directory holds other things than a model", path, hint="choose an empty or new one")
        place = path
    elif os.path.lexists(path):
        raise DataError("a file is in the way of the model's directory", path, hint="choose another name")
    else:
        place = next(parent for parent in path.absolute().parents if parent.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise DataError(f"no permission to write to {place}", path, hint="choose another place for the model")


@dataclass(frozen=True)
class Names:
    """Names for people, read and counted before the training, given to the model after it."""

    labels: list[str] | dict[str, str] | None
    features: list[str] | None
    label_file: Path | None

    def give_to(self, model: Any) -> None:
        labels: Any = self.labels
        if isinstance(labels, dict):
            labels = {parse_label(model, label, self.label_file): name for label, name in labels.items()}
        elif labels is not None and model.label_encoding_.kind != "indicator":
            labels = {int(label): labels[int(label)] for label in model.classes_}
        try:
            model.set_names(labels=labels, features=self.features)
        except ValueError as error:
            raise DataError(str(error), self.label_file) from None


def read_names_for(data: LabelledRows, label_file: Path | None, feature_file: Path | None) -> Names:
    """The names that came with the data or in files of their own, if they fit the data."""
    labels: Any = data.label_names if label_file is None else read_label_names(label_file)
    features = data.feature_names if feature_file is None else read_names(feature_file)
    is_text = isinstance(data.X, list)
    if isinstance(labels, list) and is_text:
        raise DataError("the labels are words, so each line needs one", label_file, hint="write lines label<tab>name")
    if isinstance(labels, list) and len(labels) != data.Y.shape[1]:
        message = f"there are {len(labels)} names for {data.Y.shape[1]} labels"
        raise DataError(message, label_file, hint="name each label column, a line each")
    if isinstance(labels, dict) and not is_text:
        strange = next((label for label in labels if not label.isdigit()), None)
        if strange is not None:
            raise DataError(f"the labels of the data are numbers, not {strange!r}", label_file)
    if features is not None and is_text:
        hint = "leave --feature-names out"
        raise DataError("the features of texts have names already, their words", feature_file, hint=hint)
    if features is not None and len(features) != data.X.shape[1]:
        message = f"there are {len(features)} names for {data.X.shape[1]} features"
        raise DataError(message, feature_file, hint="name each feature column, a line each")
    return Names(labels, features, label_file)


def parse_label(model: Any, text: str, path: Path | None = None) -> Any:
    """A label as the model knows it: numbers are written as words on a command line."""
    is_number = model.label_encoding_.kind == "indicator" or model.classes_.dtype.kind in "iu"
    if not is_number:
        return text
    try:
        return int(text)
    except ValueError:
        message = f"the model's labels are numbers, got {text!r}"
        raise DataError(message, path) if path is not None else ValueError(message) from None


class LabelTitles(Mapping[int, str]):
    """Label column -> the label and its name; made when asked for, as a model has very many."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._has_words = model.label_encoding_.kind != "indicator"

    def __getitem__(self, column: int) -> str:
        label = self._model.label_encoding_.names([column])[0] if self._has_words else ""
        return f"{label} {label_name(self._model, column)}".strip()

    def __contains__(self, column: object) -> bool:
        return self._has_words or "label_names_" in self._model.__dict__

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return int(self._model.n_labels_)
