"""Labelled data files in the form that models take: texts with their labels, or sparse rows with a 0/1 array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from ramify.cli import output
from ramify.cli.options import DataFormat
from ramify.data import DataError, load_data, load_fasttext, load_jsonl, read_names
from ramify.data.files import iter_lines
from ramify.data.load import find_format


@dataclass(frozen=True)
class LabelledRows:
    """X and Y as `fit` takes them, and the names that came along."""

    path: Path
    X: Any
    Y: Any
    label_names: list[str] | None = None
    feature_names: list[str] | None = None
    format: str | None = None

    @property
    def n_rows(self) -> int:
        return len(self.X) if isinstance(self.X, list) else int(self.X.shape[0])

    @property
    def has_one_label_each(self) -> bool:
        if isinstance(self.Y, list):
            return all(len(labels) == 1 for labels in self.Y)
        return bool((np.diff(self.Y.indptr) == 1).all())

    def classes(self, asked_by: str = "--multiclass") -> Any:
        """The class of each row, where each has exactly one label; `asked_by` is the option that needs it."""
        counts = list(map(len, self.Y)) if isinstance(self.Y, list) else np.diff(self.Y.indptr).tolist()
        for row, number in enumerate(counts, start=1):
            if number != 1:
                message = f"row {row} has {output.count(number, 'label')}; {asked_by} needs exactly one in each"
                raise DataError(message, self.path, hint=f"leave {asked_by} out, or drop such rows")
        return [labels[0] for labels in self.Y] if isinstance(self.Y, list) else self.Y.indices


def read_labelled(
    path: Path,
    format: DataFormat | None,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    threads: int = -1,
) -> LabelledRows:
    """Read a data file; the widths and the first number of features are for libsvm, whose files do not tell them."""
    kind = find_format(path) if format is None else format.value
    if kind in ("jsonl", "fasttext"):
        texts, labels = load_jsonl(path) if kind == "jsonl" else load_fasttext(path)
        if not texts:
            raise DataError("the file has no rows", path, hint="check how it was written")
        return LabelledRows(path, texts, labels, format=kind)
    data = load_data(path, kind, n_features=n_features, n_labels=n_labels, zero_based=zero_based, n_jobs=threads)
    if data.n_rows == 0:
        raise DataError("the file has no rows", path, hint="check how it was written")
    return LabelledRows(path, data.X, data.Y, data.label_names, data.feature_names, kind)


def read_for(model: Any, path: Path, format: DataFormat | None, threads: int = -1) -> LabelledRows:
    """Read a data file to be answered by a model, and refuse one that does not fit it."""
    n_labels = model.n_labels_ if model.label_encoding_.kind == "indicator" else None
    source = getattr(model, "source_format_", None)
    data = read_labelled(
        path,
        format,
        n_features=None if takes_any_width(model) else model.n_features_in_,
        n_labels=None if takes_any_width(model) else n_labels,
        zero_based=source == "libsvm-zero-based" if source and source.startswith("libsvm") else "auto",
        threads=threads,
    )
    check_fits(model, data.X, path)
    return data


def check_fits(model: Any, X: Any, path: Path) -> None:
    is_text, takes_text = isinstance(X, list), hasattr(model, "vectorizer_")
    if is_text and not takes_text:
        hint = "train a model on texts, or vectorise them the way its training data were"
        raise DataError("these are texts, but the model was trained on numbers", path, hint=hint)
    if not is_text and not takes_any_width(model) and X.shape[1] != model.n_features_in_:
        hint = "test and training data must be vectorised together"
        raise DataError(f"the data have {X.shape[1]} features, the model {model.n_features_in_}", path, hint=hint)


def takes_any_width(model: Any) -> bool:
    """Whether rows may have features that the model has never seen: an online learner expects it."""
    return hasattr(model, "partial_fit") and not hasattr(model, "vectorizer_")


def truth_for(model: Any, data: LabelledRows) -> tuple[csr_array, int]:
    """The rows' labels in the model's columns, and how many labels the model does not know.

    Unknown labels get columns of their own behind the model's: they are true and never found, as they should count.
    """
    if isinstance(data.Y, list):
        known = model.label_encoding_.names(np.arange(model.n_labels_))
        if known and not isinstance(known[0], str):
            raise DataError("its labels are words, but the model's are numbers", data.path, hint=_SAME_KIND)
        return _widened(data.Y, known)
    if model.label_encoding_.kind == "indicator":
        return data.Y, max(0, int(data.Y.shape[1]) - model.n_labels_)
    known = model.label_encoding_.names(np.arange(model.n_labels_))
    if known and isinstance(known[0], str):
        raise DataError("its labels are numbers, but the model's are words", data.path, hint=_SAME_KIND)
    rows = np.split(data.Y.indices, data.Y.indptr[1:-1])
    return _widened([row.tolist() for row in rows], known)


_SAME_KIND = "use a file written like the training data"


def _widened(labels: Sequence[Sequence[Any]], known: list[Any]) -> tuple[csr_array, int]:
    columns = {label: column for column, label in enumerate(known)}
    indptr, indices = [0], []
    for row in labels:
        indices.extend(sorted({columns.setdefault(label, len(columns)) for label in row}))
        indptr.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    shape = (len(labels), len(columns))
    return csr_array((ones, np.array(indices, np.int32), np.array(indptr)), shape=shape), len(columns) - len(known)


def as_wide_as(answer: csr_array, n_labels: int) -> csr_array:
    """The answer with empty columns for labels that the model does not know."""
    return csr_array((answer.data, answer.indices, answer.indptr), shape=(answer.shape[0], n_labels))


def read_label_names(path: Path) -> list[str] | dict[str, str]:
    """Names in column order, a line each; or lines "label<tab>name"."""
    lines = read_names(path)
    if not lines or not any("\t" in line for line in lines):
        return lines
    names: dict[str, str] = {}
    for number, line in iter_lines(path):
        if not line.strip():
            continue
        label, tab, name = line.partition("\t")
        if not tab:
            raise DataError("no tab between label and name", path, number, hint="other lines are label<tab>name")
        names[label] = name
    return names
