"""Data files as models take them: labelled rows for training and measuring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array

from ramify.cli import output
from ramify.cli.models import labels_are_columns, labels_at, takes_any_width, takes_text
from ramify.cli.options import DataFormat
from ramify.cli.sources import Source
from ramify.common.progress import RowCounter
from ramify.data import Columns, DataError, TextFile, load_data
from ramify.data.load import find_data_format
from ramify.data.series import plain_column
from ramify.data.text_file import TEXT_FORMATS, LabelColumn, TextColumn

_OF_TEXTS = "but the model was trained on texts"
_GIVE_TEXTS = "give texts (CSV, JSONL, or one per line), or numbers that `ramify convert --model` has made of them"
_SAME_KIND = "use a file written like the training data"


@dataclass(frozen=True)
class LabelledRows:
    """X and Y as `fit` takes them, and the names in the file.

    The texts of a file are read while the model is trained, chunk by chunk; their labels are known after that.
    """

    path: Path
    X: Any
    labels: Any
    label_names: list[str] | None = None
    feature_names: list[str] | None = None
    format: str | None = None
    source: Source | None = None

    @property
    def Y(self) -> Any:
        return plain_column(self.labels)

    @property
    def is_text(self) -> bool:
        return holds_texts(self.X)

    @property
    def n_rows(self) -> int:
        return len(self.Y) if self.is_text else int(self.X.shape[0])

    @property
    def labels_per_row(self) -> list[int]:
        return list(map(len, self.Y)) if isinstance(self.Y, list) else np.diff(self.Y.indptr).tolist()

    @property
    def has_one_label_each(self) -> bool:
        return all(number == 1 for number in self.labels_per_row)

    def no_label(self) -> DataError:
        """The error that no row has a label."""
        if isinstance(self.labels, LabelColumn):
            return self.labels.file.nothing_in("labels")
        return DataError("no row has a label", self.path, hint="give labelled rows")

    def classes(self, needed_by: str = "--multiclass") -> Any:
        """The class of each row. Every row must have exactly one label; `needed_by` is the option that requires it."""
        for row, number in enumerate(self.labels_per_row, start=1):
            if number != 1:
                message = f"row {row} has {output.count(number, 'label')}; {needed_by} needs exactly one in each"
                raise DataError(message, self.path, hint=f"leave {needed_by} out, or drop such rows")
        return [labels[0] for labels in self.Y] if isinstance(self.Y, list) else self.Y.indices

    def targets(self, multiclass: bool, needed_by: str = "--multiclass") -> Any:
        """What `fit` takes as y; it is read after X, so that the texts of a file are read once."""
        return _Classes(self, needed_by) if multiclass else self.labels

    def chunks(self) -> Iterator[Any]:
        """X in pieces: the chunks of a file's texts, anything else at once."""
        if isinstance(self.X, TextColumn):
            yield from self.X.text_chunks()
        else:
            yield self.X


@dataclass(frozen=True)
class _Classes:
    """The class of each row, when it is needed."""

    rows: LabelledRows
    needed_by: str

    def label_rows(self) -> Any:
        return self.rows.classes(self.needed_by)


def holds_texts(X: Any) -> bool:
    return isinstance(X, list | TextColumn)


def stacked(parts: Sequence[Any]) -> Any:
    """The answers for all chunks: sparse arrays as one, classes in one array."""
    if len(parts) == 1:
        return parts[0]
    if not sparse.issparse(parts[0]):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    return csr_array(sparse.vstack([widen(part, width) for part in parts], format="csr"))


def read_labelled(
    path: Path,
    format: DataFormat | None,
    columns: Columns | None = None,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    threads: int = -1,
    counter: RowCounter | None = None,
    source: Source | None = None,
) -> LabelledRows:
    """Open a file of texts, or read one of numbers. The widths and `zero_based` are for libsvm, which lacks them."""
    source = Source(path) if source is None else source
    with source.errors():
        kind = find_data_format(source.path, columns) if format is None else format.value
        if kind in TEXT_FORMATS:
            file = TextFile(source.path, kind, columns, name=source.name, counter=counter)
            return LabelledRows(Path(source.name), file.texts, file.labels, format=kind, source=source)
        sizes: Any = {"n_features": n_features, "n_labels": n_labels, "zero_based": zero_based}
        data = load_data(source.path, kind, **sizes, n_jobs=threads)
        rows = LabelledRows(Path(source.name), data.X, data.Y, data.label_names, data.feature_names, kind, source)
        if rows.n_rows == 0:
            raise DataError("the file has no rows", source.name, hint="check how it was written")
    return rows


def read_journal(path: Path) -> LabelledRows:
    """Read the examples that a served directory was taught: texts, or rows of features."""
    from ramify.serve.journal import Journal
    from ramify.serve.store import journal_at

    file = journal_at(path)
    examples = [example for piece in Journal(file).after(0) for example in piece.examples]
    if not examples:
        raise DataError("the journal has no examples", file, hint="teach the service first")
    labels = [example["labels"] for example in examples]
    if "text" in examples[0]:
        return LabelledRows(file, [example["text"] for example in examples], labels, format="jsonl")
    rows = [example["features"] for example in examples]
    names = list(dict.fromkeys(name for row in rows for name in row))
    are_numbers = all(map(str.isdigit, names))
    column = {name: int(name) if are_numbers else place for place, name in enumerate(names)}
    values = [value for row in rows for value in row.values()]
    indices = [column[name] for row in rows for name in row]
    bounds = np.cumsum([0, *map(len, rows)])
    X = csr_array((values, indices, bounds), shape=(len(rows), max(column.values(), default=0) + 1), dtype=np.float32)
    return LabelledRows(file, X, labels, feature_names=None if are_numbers else names, format="journal")


def read_for(
    model: Any,
    path: Path,
    format: DataFormat | None,
    columns: Columns | None = None,
    *,
    threads: int = -1,
    counter: RowCounter | None = None,
) -> LabelledRows:
    """Open a data file that a model will predict; refuse one that does not fit the model."""
    has_fixed_width = not takes_any_width(model)
    source, file = model.source_format_, Source(path)
    if format is None:
        with file.errors():
            format = DataFormat(find_data_format(file.path, columns))
        check_libsvm_fits(model, format.value, Path(file.name))
    data = read_labelled(
        path,
        format,
        columns,
        n_features=model.n_features_in_ if has_fixed_width else None,
        n_labels=model.n_labels_ if has_fixed_width and labels_are_columns(model) else None,
        zero_based=source == "libsvm-zero-based" if source and source.startswith("libsvm") else "auto",
        threads=threads,
        counter=counter,
        source=file,
    )
    check_fits(model, data.X, data.path)
    return data


def check_fits(model: Any, X: Any, path: Path) -> None:
    """Refuse texts for a model of numbers, and rows of another width than the model's."""
    is_text = holds_texts(X)
    if is_text and not takes_text(model):
        hint = "train a model on texts, or vectorise these as the training data were"
        raise DataError("these are texts, but the model was trained on numbers", path, hint=hint)
    if not is_text and not takes_any_width(model) and X.shape[1] != model.n_features_in_:
        if takes_text(model):
            raise DataError(f"these are numbers ({X.shape[1]} features), {_OF_TEXTS}", path, hint=_GIVE_TEXTS)
        hint = "vectorise test and training data together"
        raise DataError(f"the data have {X.shape[1]} features, the model {model.n_features_in_}", path, hint=hint)


def check_libsvm_fits(model: Any, kind: str, path: Path) -> None:
    """Refuse libsvm for a model of texts unless --format asks for it: such files do not say how wide they are."""
    if kind == "libsvm" and takes_text(model):
        raise DataError(f"these are numbers (libsvm), {_OF_TEXTS}", path, hint=f"{_GIVE_TEXTS} (with --format libsvm)")


def truth_for(model: Any, data: LabelledRows) -> tuple[csr_array, int]:
    """The rows' labels in the model's columns, and the number of labels that the model does not know.

    Unknown labels get columns behind the model's: they count as true and never found.
    """
    is_text = isinstance(data.Y, list)
    if not is_text and labels_are_columns(model):
        return data.Y, max(0, int(data.Y.shape[1]) - model.n_labels_)
    known = labels_at(model, np.arange(model.n_labels_))  # type: ignore[arg-type]
    if known and isinstance(known[0], str) != is_text:
        these, others = ("words", "numbers") if is_text else ("numbers", "words")
        raise DataError(f"its labels are {these}, but the model's are {others}", data.path, hint=_SAME_KIND)
    labels = data.Y if is_text else [row.tolist() for row in np.split(data.Y.indices, data.Y.indptr[1:-1])]
    return _widened(labels, known)


def _widened(labels: Sequence[Sequence[Any]], known: list[Any]) -> tuple[csr_array, int]:
    columns = {label: column for column, label in enumerate(known)}
    indptr, indices = [0], []
    for row in labels:
        indices.extend(sorted({columns.setdefault(label, len(columns)) for label in row}))
        indptr.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    shape = (len(labels), len(columns))
    return csr_array((ones, np.array(indices, np.int32), np.array(indptr)), shape=shape), len(columns) - len(known)


def widen(answer: csr_array, n_labels: int) -> csr_array:
    """The answer with empty columns for labels that the model does not know."""
    return csr_array((answer.data, answer.indices, answer.indptr), shape=(answer.shape[0], n_labels))
