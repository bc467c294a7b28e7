"""Data files as models take them: labelled rows for training and measuring, and rows to predict in chunks."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from scipy.sparse import csr_array

from ramify.cli import output
from ramify.cli.models import labels_are_columns, labels_at, parse_label, takes_any_width, takes_text
from ramify.cli.options import DataFormat, RowFormat, open_stdin
from ramify.data import DataError, iter_fasttext, iter_jsonl, load_data, load_fasttext, load_jsonl, read_names
from ramify.data.fasttext import parse_line
from ramify.data.files import (
    BYTE_ORDER_MARK,
    GZIP_MAGIC,
    ZIP_MAGIC,
    check_is_text,
    decode_line,
    iter_lines,
    read_start,
    split_lines,
)
from ramify.data.jsonl import parse_record
from ramify.data.lines import iter_xmc
from ramify.data.load import find_format, format_of_content, holds_numbers, suffix_format

# Rows that `predict` reads, answers and writes at a time.
CHUNK = 4096

_TEXT_KINDS = ("text", "jsonl", "fasttext")
_OF_TEXTS = "but the model was trained on texts"
_GIVE_TEXTS = "give texts (JSONL, or one per line), or numbers that `ramify convert --model` has made of them"
_SAME_KIND = "use a file written like the training data"


# --- labelled rows ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelledRows:
    """X and Y as `fit` takes them, and the names in the file."""

    path: Path
    X: Any
    Y: Any
    label_names: list[str] | None = None
    feature_names: list[str] | None = None
    format: str | None = None

    @property
    def n_rows(self) -> int:
        return _n_rows(self.X)

    @property
    def labels_per_row(self) -> list[int]:
        return list(map(len, self.Y)) if isinstance(self.Y, list) else np.diff(self.Y.indptr).tolist()

    @property
    def has_one_label_each(self) -> bool:
        return all(number == 1 for number in self.labels_per_row)

    def classes(self, needed_by: str = "--multiclass") -> Any:
        """The class of each row. Every row must have exactly one label; `needed_by` is the option that requires it."""
        for row, number in enumerate(self.labels_per_row, start=1):
            if number != 1:
                message = f"row {row} has {output.count(number, 'label')}; {needed_by} needs exactly one in each"
                raise DataError(message, self.path, hint=f"leave {needed_by} out, or drop such rows")
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
    """Read a data file. The widths and `zero_based` are for libsvm, whose files do not contain them."""
    kind = find_format(path) if format is None else format.value
    if kind in ("jsonl", "fasttext"):
        texts, labels = load_jsonl(path) if kind == "jsonl" else load_fasttext(path)
        rows = LabelledRows(path, texts, labels, format=kind)
    else:
        data = load_data(path, kind, n_features=n_features, n_labels=n_labels, zero_based=zero_based, n_jobs=threads)
        rows = LabelledRows(path, data.X, data.Y, data.label_names, data.feature_names, kind)
    if rows.n_rows == 0:
        raise DataError("the file has no rows", path, hint="check how it was written")
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


def read_for(model: Any, path: Path, format: DataFormat | None, threads: int = -1) -> LabelledRows:
    """Read a data file that a model will predict; refuse one that does not fit the model."""
    has_fixed_width = not takes_any_width(model)
    source = model.source_format_
    if format is None:
        format = DataFormat(find_format(path))
        check_libsvm_fits(model, format.value, path)
    data = read_labelled(
        path,
        format,
        n_features=model.n_features_in_ if has_fixed_width else None,
        n_labels=model.n_labels_ if has_fixed_width and labels_are_columns(model) else None,
        zero_based=source == "libsvm-zero-based" if source and source.startswith("libsvm") else "auto",
        threads=threads,
    )
    check_fits(model, data.X, path)
    return data


def check_fits(model: Any, X: Any, path: Path) -> None:
    """Refuse texts for a model of numbers, and rows of another width than the model's."""
    is_text = isinstance(X, list)
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


# --- names of labels and features ------------------------------------------------------------------------------------


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
    is_text = isinstance(data.X, list)
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


# --- rows to predict -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chunk:
    """Some rows: X, and the texts if the rows are texts."""

    X: Any
    texts: Sequence[str] | None = None


def rows_to_predict(
    model: Any, path: Path | None, texts: Sequence[str] | None, format: RowFormat | None, threads: int = -1
) -> Iterator[Chunk]:
    """The rows that a command line names: `--text`, a file, or stdin ("-", or no file at all in a pipe)."""
    if texts:
        if path is not None:
            raise ValueError("give either --text or a file, not both")
        check_takes_text(model, "--text")
        return iter([Chunk(list(texts), texts)])
    if path is None or str(path) == "-":
        stdin = open_stdin(path is not None, "give a file, --text, or texts on stdin, one per line")
        return _from_stdin(model, stdin, format, threads)
    return _from_file(model, path, format, threads)


def one_row(model: Any, path: Path, number: int, format: RowFormat | None) -> Any:
    """Row `number` (from 1) of a file, as `explain` takes it."""
    seen = 0
    for chunk in _from_file(model, path, format, 1):
        size = _n_rows(chunk.X)
        if number <= seen + size:
            position = number - seen - 1
            return chunk.X[position] if isinstance(chunk.X, list) else chunk.X[[position]]
        seen += size
    raise DataError(f"there is no row {number}: the file has {seen}", path, hint="rows count from 1")


def check_takes_text(model: Any, source: str) -> None:
    if not takes_text(model):
        raise ValueError(
            f"{source} gives texts, but the model was trained on numbers\n"
            f"hint: give a file with rows of {model.n_features_in_} features"
        )


def _n_rows(X: Any) -> int:
    return len(X) if isinstance(X, list) else int(X.shape[0])


def _from_file(model: Any, path: Path, format: RowFormat | None, threads: int) -> Iterator[Chunk]:
    kind = _kind_of(model, path) if format is None else format.value
    if format is None:
        check_libsvm_fits(model, kind, path)
    if kind in _TEXT_KINDS:
        check_is_text(read_start(path, 4096), path)
        check_fits(model, [], path)
        lines = (text for _, text in iter_lines(path)) if kind == "text" else _texts(path, kind)
        return (Chunk(texts, texts) for texts in _in_chunks(lines))
    if kind == "xmc":
        return _from_xmc(model, path, threads)
    return iter([Chunk(read_for(model, path, DataFormat(kind), threads).X)])


def _kind_of(model: Any, path: Path) -> str:
    kind = find_format(path)
    return kind if suffix_format(path) is not None else _kind_for(model, kind, read_start(path))


def _kind_for(model: Any, kind: str, start: bytes) -> str:
    """Text of no recognised format counts as XMC; for a model of texts it is plain text, unless it can only be rows."""
    return "text" if kind in ("xmc", "libsvm") and takes_text(model) and not holds_numbers(start) else kind


def _texts(path: Path, kind: str) -> Iterator[str]:
    records = iter_jsonl(path, labels_required=False) if kind == "jsonl" else iter_fasttext(path)
    return (record.text for record in records)


def _in_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    texts = iter(texts)
    while chunk := list(itertools.islice(texts, CHUNK)):
        yield chunk


def _from_xmc(model: Any, path: Path, threads: int) -> Iterator[Chunk]:
    for data in iter_xmc(path, CHUNK, n_jobs=threads):
        check_fits(model, data.X, path)
        yield Chunk(data.X)


def _from_stdin(model: Any, stream: BinaryIO, format: RowFormat | None, threads: int) -> Iterator[Chunk]:
    """Texts as soon as their lines arrive, so that a person or a slow program gets an answer to each; else all at once.

    Numbers and compressed data are copied to a file first.
    """
    blocks = iter(lambda: stream.read1(1 << 16) if hasattr(stream, "read1") else stream.read(1 << 16), b"")
    start = b""
    while not start.strip() and (block := next(blocks, b"")):
        start += block
    if not start:
        return
    blocks = itertools.chain([start], blocks)
    if not start.startswith((GZIP_MAGIC, ZIP_MAGIC)):
        check_is_text(start[:4096], "stdin")
        kind = _kind_for(model, format_of_content(start, "stdin"), start) if format is None else format.value
        starts_with_digit = start.removeprefix(BYTE_ORDER_MARK).lstrip()[:1].isdigit()
        if kind in _TEXT_KINDS or (format is None and not starts_with_digit):
            check_takes_text(model, "stdin")
            yield from _texts_of_lines(blocks, kind)
            return
    with tempfile.NamedTemporaryFile(prefix="ramify-stdin-") as copy:
        copy.writelines(blocks)
        copy.flush()
        try:
            yield from _from_file(model, Path(copy.name), format, threads)
        except DataError as error:
            raise DataError(error.message, "stdin", error.line, error.column, error.hint) from None


def _texts_of_lines(blocks: Iterable[bytes], kind: str) -> Iterator[Chunk]:
    number = 0
    for lines in split_lines(blocks):
        texts = []
        for line in lines:
            number += 1
            text = decode_line(line, "stdin", number)
            if kind == "text":
                texts.append(text)
            elif text.strip():
                parse = parse_line if kind == "fasttext" else partial(parse_record, labels_required=False)
                texts.append(parse(text, "stdin", number).text)
        if texts:
            yield Chunk(texts, texts)
