"""Load a data file of any supported format, detected from its name and content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.sparse import csr_array

from ramify.data.columns import Columns
from ramify.data.dataset import Dataset
from ramify.data.encodings import check_encoding
from ramify.data.errors import DataError
from ramify.data.fasttext import PREFIX
from ramify.data.files import (
    BYTE_ORDER_MARK,
    WIDE_MARKS,
    ZIP_MAGIC,
    PathLike,
    check_is_regular,
    check_is_text,
    read_names,
    read_start,
)
from ramify.data.npz import load_npz
from ramify.data.text_file import TEXT_FORMATS, TextFile
from ramify.data.xmc import load_libsvm, load_xmc

Format: TypeAlias = Literal["xmc", "libsvm", "jsonl", "fasttext", "npz", "csv", "tsv", "parquet", "arrow"]
BY_SUFFIX: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".xmc": "xmc",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_MAGIC: dict[bytes, Format] = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow"}
ARROW_MAGIC = tuple(_MAGIC)
_ARRAY = re.compile(rb"\s*\[\s*\{")
_HEADER = re.compile(rb"\s*\d+[ \t]+\d+[ \t]+\d+\s*")
_LABELS, _NUMBERED = re.compile(rb"\d+(?:,\d+)*"), re.compile(rb"\d+:[-+]?[.\d]\S*")
_LINES_TO_TRY = 20
_TABLE = "for a table name its columns with --text-column and --label-column, or call it .csv or .tsv"
_FEATURE = re.compile(rb"(^|\s)\d+:[-+.\d]")


def load_data(
    path: PathLike,
    format: Format | None = None,
    *,
    label_names: PathLike | Sequence[str] | None = None,
    feature_names: PathLike | Sequence[str] | None = None,
    vectorizer: Any = None,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    n_jobs: int | None = None,
    columns: Columns | None = None,
) -> Dataset:
    """Read a data file: XMC text, libsvm, npz, or texts as JSONL, CSV, TSV, fastText lines, Parquet or Arrow.

    The format is detected from the file's name and content unless you pass `format`. Names are lists, or files with one
    name per line. Texts go through `vectorizer`, which is fitted if it is not fitted yet; the default is
    `ramify.data.text.default_vectorizer()`. `columns` chooses the columns of a table. Labels of texts become columns in
    order of first appearance, after those of `label_names`. Read a test set with the vectorizer and names of its
    training set:
    `load_data("test.jsonl", vectorizer=train.vectorizer, label_names=train.label_names)`.
    `zero_based`, `n_features` and `n_labels` apply to libsvm.
    """
    check_is_regular(path)
    if format is None:
        format = find_data_format(path, columns)
    elif format not in get_args(Format):
        raise ValueError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}")
    labels, features = _names(label_names), _names(feature_names)
    if format in TEXT_FORMATS:
        if features is not None:
            raise ValueError("feature_names must be None for texts: their features are named by the vectorizer")
        return _load_texts(path, format, labels, vectorizer, columns)
    if format == "npz":
        data = load_npz(path)
    elif format == "libsvm":
        data = load_libsvm(path, zero_based=zero_based, n_features=n_features, n_labels=n_labels, n_jobs=n_jobs)
    else:
        data = load_xmc(path, n_jobs=n_jobs)
    _check_count(labels, data.n_labels, "label", path)
    _check_count(features, data.n_features, "feature", path)
    return replace(
        data,
        label_names=data.label_names if labels is None else labels,
        feature_names=data.feature_names if features is None else features,
    )


def find_format(path: PathLike, columns: Columns | None = None) -> Format:
    """Detect the format of a file from its suffix before .gz, or else from its first bytes.

    `columns` that the user has named show that it is a table, or JSON lines.
    """
    start = read_start(path)  # even if the suffix decides: this reports a missing file
    known = suffix_format(path)
    if known is not None:
        return known
    for magic, format in _MAGIC.items():
        if start.startswith(magic):
            return format
    if start.startswith(ZIP_MAGIC):
        return "npz"
    encoding = None if columns is None else columns.encoding
    if encoding is None:
        check_is_text(start, path, is_decoded=True)
    return format_of_content(as_utf8(start, encoding), path, columns)


def find_data_format(path: PathLike, columns: Columns | None = None) -> Format:
    """As `find_format`; raises where it recognised nothing and the first line has letters, so is no header of XMC."""
    format = find_format(path, columns)
    if format == "xmc" and suffix_format(path) is None:
        first_line = read_start(path).split(b"\n", 1)[0]
        if b"\0" not in first_line and re.search(rb"[A-Za-z\x80-\xff]{2}", first_line):
            said = first_line.decode("utf-8", "replace").strip()
            message = f"this is no format that is known here; the first line is {said!r:.60}"
            raise DataError(message, path, 1, hint=_TABLE)
    return format


def as_utf8(start: bytes, encoding: str | None) -> bytes:
    """The first bytes of a file as UTF-8; the last character may be cut off."""
    if encoding is None and start[:2] not in WIDE_MARKS:
        return start
    name = check_encoding(encoding or "utf-16").name
    return start.decode(name, "ignore").removeprefix("\ufeff").encode("utf-8", "ignore")


def suffix_format(path: PathLike) -> Format | None:
    """The format that a file name stands for; raises if it is one that cannot be read."""
    suffix = Path(Path(path).name.removesuffix(".gz")).suffix.lower()
    if suffix in _SPREADSHEETS:
        raise DataError("spreadsheets cannot be read", path, hint="export the sheet as CSV (UTF-8)")
    return BY_SUFFIX.get(suffix)


def format_of_content(
    start: bytes, source: PathLike, columns: Columns | None = None
) -> Literal["xmc", "libsvm", "jsonl", "fasttext", "csv"]:
    """Detect the format of text from its first bytes; raises for JSON arrays, which cannot be read."""
    start = start.removeprefix(BYTE_ORDER_MARK)
    if start.lstrip().startswith(PREFIX.encode()):
        return "fasttext"
    if _ARRAY.match(start):
        hint = "write one object per line, as `jq -c '.[]'` does"
        raise DataError("this is one JSON array, not one JSON object per line", source, hint=hint)
    return find_text_format(start, columns)


def find_text_format(start: bytes, columns: Columns | None = None) -> Literal["xmc", "libsvm", "jsonl", "csv"]:
    """Detect the format of rows from their first bytes."""
    start = start.removeprefix(BYTE_ORDER_MARK)
    return "csv" if _is_table(start, columns) else format_of_text(start)


def format_of_text(start: bytes) -> Literal["xmc", "libsvm", "jsonl"]:
    """Detect the format of lines from their first bytes."""
    start = start.removeprefix(BYTE_ORDER_MARK)
    if start.lstrip().startswith(b"{"):
        return "jsonl"
    first_line = start.split(b"\n", 1)[0]
    if not _HEADER.fullmatch(first_line) and _FEATURE.search(first_line):
        return "libsvm"
    return "xmc"  # if it is something else, the errors about the header say what to do


def holds_numbers(start: bytes) -> bool:
    """Whether the first lines can only be XMC text or libsvm: nothing but labels and features.

    >>> holds_numbers(b"2 3 4\\n0,3 1:0.5\\n"), holds_numbers(b"1 1:0.5 3:1\\n"), holds_numbers(b"call at 5:30\\n")
    (True, True, False)
    """
    lines = start.removeprefix(BYTE_ORDER_MARK).split(b"\n")[:_LINES_TO_TRY]
    if _HEADER.fullmatch(lines[0]):
        del lines[0]
    rows = [line.split(b"#", 1)[0].split() for line in lines]
    if rows and len(rows[-1]) > 1:
        rows[-1].pop()  # may be cut off
    return any(b":" in token for row in rows for token in row) and all(
        _NUMBERED.fullmatch(token) or (place == 0 and _LABELS.fullmatch(token))
        for row in rows
        for place, token in enumerate(row)
    )


def _is_table(start: bytes, columns: Columns | None) -> bool:
    """Whether the first line names columns, and among them those that the user or the model named, or else "text"."""
    first_line = start.lstrip().split(b"\n", 1)[0][:10_000]
    fields = [field.strip(b" \"'\r").lower() for field in re.split(rb"[,;\t|]", first_line)]

    def has(names: tuple[str, ...]) -> bool:
        return all(name.lower().encode() in fields for name in names)

    if columns is not None and not first_line.startswith(b"{"):
        if columns.text:
            return has(columns.text)
        if columns.known_text and has(columns.known_text):
            return True
    return len(fields) > 1 and b"text" in fields and all(re.fullmatch(rb"\w+", field) for field in fields)


def indicator_of(labels: Iterable[Iterable[str]], label_names: Sequence[str] = ()) -> tuple[csr_array, list[str]]:
    """Return label collections as a 0/1 array, and its column names: `label_names`, then others as they appear.

    >>> Y, names = indicator_of([["b"], ["a", "b"]])
    >>> names, Y.toarray().tolist()
    (['b', 'a'], [[1.0, 0.0], [1.0, 1.0]])
    """
    columns: dict[str, int] = {name: column for column, name in enumerate(label_names)}
    if len(columns) != len(label_names):
        raise ValueError("label_names contains a name twice")
    indices: list[int] = []
    indptr = [0]
    for row in labels:
        indices.extend(sorted({columns.setdefault(label, len(columns)) for label in row}))
        indptr.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    arrays = (ones, np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32))
    return csr_array(arrays, shape=(len(indptr) - 1, len(columns))), list(columns)


def _load_texts(
    path: PathLike, format: Format, label_names: list[str] | None, vectorizer: Any, columns: Columns | None
) -> Dataset:
    # Imported here: scikit-learn's text module is slow to import, and numeric files do not need it.
    from ramify.data.text import default_vectorizer, fit_vectorize, is_fitted, vectorize

    texts, labels = list[str](), list[tuple[str, ...]]()
    for chunk in TextFile(path, format, columns).chunks():
        texts += chunk.texts
        labels += chunk.labels
    Y, names = indicator_of(labels, label_names or ())
    if vectorizer is None:
        vectorizer = default_vectorizer()
    X = vectorize(vectorizer, texts) if is_fitted(vectorizer) else fit_vectorize(vectorizer, texts)
    has_names = hasattr(vectorizer, "get_feature_names_out")
    feature_names = vectorizer.get_feature_names_out().tolist() if has_names else None
    return Dataset(X, Y, names, feature_names, texts, vectorizer)


def _names(names: PathLike | Sequence[str] | None) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, Sequence) and not isinstance(names, str):
        return list(names)
    return read_names(names)


def _check_count(names: list[str] | None, size: int, what: str, path: PathLike) -> None:
    if names is not None and len(names) != size:
        raise DataError(f"expected {size} {what} names, got {len(names)}", path, hint=f"give one name per {what}")
