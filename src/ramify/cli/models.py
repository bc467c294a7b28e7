"""Models as the commands handle them: loading, names, and labels given as words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ramify.cli.labelled import LabelledRows, read_label_names
from ramify.cli.options import n_jobs
from ramify.data import DataError, read_names
from ramify.model_directory import MANIFEST
from ramify.naming import label_name


def load_model(path: Path, threads: int | None = None) -> Any:
    """A trained model that answers with this many threads."""
    from ramify.persist import load

    return load(path).set_params(n_jobs=n_jobs(threads))


def check_target(path: Path) -> None:
    """Refuse a place for a model before the training, not after it."""
    if path.is_dir():
        if any(path.iterdir()) and not (path / MANIFEST).exists():
            raise DataError("the directory holds other things than a model", path, hint="choose an empty or new one")
    elif path.exists():
        raise DataError("a file is in the way of the model's directory", path, hint="choose another name")


def apply_names(model: Any, data: LabelledRows, label_file: Path | None, feature_file: Path | None) -> None:
    """Give the model the names that came with the data or in files of their own."""
    labels: Any = data.label_names if label_file is None else read_label_names(label_file)
    features = data.feature_names if feature_file is None else read_names(feature_file)
    if isinstance(labels, dict):
        labels = {parse_label(model, label, label_file): name for label, name in labels.items()}
    elif labels is not None and model.label_encoding_.kind != "indicator":
        labels = _names_of_classes(model, labels, label_file or data.path)
    if features is not None and hasattr(model, "vectorizer_"):
        hint = "leave --feature-names out"
        raise DataError("the features of texts have names already, their words", feature_file, hint=hint)
    try:
        model.set_names(labels=labels, features=features)
    except ValueError as error:
        raise DataError(str(error), label_file or feature_file or data.path) from None


def _names_of_classes(model: Any, names: list[str], path: Path) -> dict[Any, str]:
    classes = model.classes_
    if classes.dtype.kind not in "iu":
        raise DataError("the labels are words, so each line needs one", path, hint="write lines label<tab>name")
    if len(names) <= int(classes.max()):
        raise DataError(f"there are {len(names)} names, but the data have the label {classes.max()}", path)
    return {int(label): names[int(label)] for label in classes}


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
