"""Names of labels and features: from the data file, or from files of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.cli.data import LabelledRows
from ramify.cli.models import labels_are_columns, parse_label
from ramify.data import DataError, read_names
from ramify.data.files import iter_lines


@dataclass(frozen=True)
class Names:
    """Names of labels and features: read and counted before the training, given to the model after it."""

    labels: list[str] | dict[str, str] | None
    features: list[str] | None
    label_file: Path | None

    def give_to(self, model: Any) -> None:
        labels: Any = self.labels
        if isinstance(labels, dict):
            labels = {parse_label(model, label, self.label_file): name for label, name in labels.items()}
        elif labels is not None and not labels_are_columns(model):
            labels = {int(label): labels[int(label)] for label in model.classes_}
        try:
            model.set_names(labels=labels, features=self.features)
        except ValueError as error:
            raise DataError(str(error), self.label_file) from None


def read_names_for(data: LabelledRows, label_file: Path | None, feature_file: Path | None) -> Names:
    """The names in the data file or in files of their own; refuse those that do not fit the data."""
    labels: Any = data.label_names if label_file is None else _read_label_names(label_file)
    features = data.feature_names if feature_file is None else read_names(feature_file)
    is_text = data.is_text
    if isinstance(labels, list) and is_text:
        hint = "write lines label<tab>name"
        raise DataError("the labels are words, so each line needs label and name", label_file, hint=hint)
    if isinstance(labels, list) and len(labels) != data.Y.shape[1]:
        message = f"expected {data.Y.shape[1]} label names, got {len(labels)}"
        raise DataError(message, label_file, hint="write one name per line for each label column")
    if isinstance(labels, dict) and not is_text:
        strange = next((label for label in labels if not label.isdigit()), None)
        if strange is not None:
            raise DataError(f"the labels of the data are numbers, not {strange!r}", label_file)
    if features is not None and is_text:
        hint = "leave --feature-names out"
        raise DataError("the features of texts are words and need no names", feature_file, hint=hint)
    if features is not None and len(features) != data.X.shape[1]:
        message = f"expected {data.X.shape[1]} feature names, got {len(features)}"
        raise DataError(message, feature_file, hint="write one name per line for each feature column")
    return Names(labels, features, label_file)


def _read_label_names(path: Path) -> list[str] | dict[str, str]:
    """One name per line in column order, or lines "label<tab>name"."""
    lines = read_names(path)
    if not any("\t" in line for line in lines):
        return lines
    names: dict[str, str] = {}
    for number, line in iter_lines(path):
        if not line.strip():
            continue
        label, tab, name = line.partition("\t")
        if not tab:
            raise DataError("no tab between label and name", path, number, hint="the other lines are label<tab>name")
        names[label] = name
    return names
