"""The XMC text format (header `n d m`, rows `l1,l2 f:v f:v`) and the libsvm format, parsed by the core."""

from __future__ import annotations

from typing import IO, Any, Literal

import numpy as np
from scipy.sparse import csr_array

from ramify import _core
from ramify.common.validation import number_of_threads
from ramify.data.csr import csr_rows
from ramify.data.dataset import Dataset, as_rows
from ramify.data.errors import DataError
from ramify.data.files import PathLike, check_is_text, read_bytes, replaced_when_complete
from ramify.data.limits import check_width

_ROWS_PER_WRITE = 16384


def load_xmc(path: PathLike, *, n_jobs: int | None = None) -> Dataset:
    """Read a file in XMC text format, plain or gzip.

    Every line after the header is a row. A line that starts with a space or a feature has no labels; a blank line is
    an empty row. Values of a repeated feature are added; a repeated label counts once. The result does not depend on
    `n_jobs`. Raises DataError with line and column.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.txt")
    ...     _ = open(path, "w").write("2 3 4\\n0,3 1:0.5\\n2 0:1 2:0.25\\n")
    ...     data = load_xmc(path)
    >>> data.X.toarray().tolist(), data.Y.toarray().tolist()
    ([[0.0, 0.5, 0.0], [1.0, 0.0, 0.25]], [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]])
    """
    content = _read_text(path)
    try:
        return _checked(_core.parse_xmc(content, n_threads=number_of_threads(n_jobs)), len(content), path)
    except _core.TextError as error:
        raise data_error(path, error) from None


def load_libsvm(
    path: PathLike,
    *,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    n_jobs: int | None = None,
) -> Dataset:
    """Read a libsvm file: rows `label idx:val`, several labels separated by commas, `#` starts a comment.

    Blank lines are skipped. Labels are columns, from 0. Features count from 0 or 1: "auto" assumes 0 if the file has a
    feature 0, so set `zero_based` for a test file, where the guess may differ from its training file. `n_features` and
    `n_labels` set the widths; by default the largest index does.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.svm")
    ...     _ = open(path, "w").write("1 1:0.5 3:1\\n0,1 2:2\\n")
    ...     data = load_libsvm(path)
    >>> data.X.toarray().tolist(), data.Y.toarray().tolist()
    ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [[0.0, 1.0], [1.0, 1.0]])
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}')
    for name, size in (("n_features", n_features), ("n_labels", n_labels)):
        if size is not None and not 0 <= size <= np.iinfo(np.int32).max:
            raise ValueError(f"{name} must be between 0 and 2147483647, got {size}")
    content = _read_text(path)

    def parse(first_feature: int, limit: int | None) -> tuple[Any, ...]:
        return _core.parse_libsvm(
            content,
            first_feature=first_feature,
            n_features=-1 if limit is None else limit,
            n_labels=-1 if n_labels is None else n_labels,
            n_threads=number_of_threads(n_jobs),
        )

    def checked(parsed: tuple[Any, ...]) -> Dataset:
        return _checked(parsed, len(content), path, is_checked=(n_features is None, n_labels is None))

    try:
        if zero_based != "auto":
            return checked(parse(0 if zero_based else 1, n_features))
        width, *rest = parse(0, None)
        features = rest[2]
        first = 1 if features.size and features.min() > 0 else 0
        if n_features is not None and width - first > n_features:
            parse(first, n_features)  # raises with line and column
        features -= first
        return checked((width - first if n_features is None else n_features, *rest))
    except _core.TextError as error:
        raise data_error(path, error) from None


def save_xmc(path: PathLike, X: Any, Y: Any) -> None:
    """Write features and 0/1 labels in XMC text format, gzip if the name ends in .gz; float32 values are kept exactly.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.txt")
    ...     save_xmc(path, [[0.5, 0.0], [0.0, 2.0]], [[1, 0, 1], [0, 0, 0]])
    ...     print(open(path).read(), end="")
    2 2 3
    0,2 0:0.5
     1:2
    """
    X, Y = as_rows(X, Y)
    with replaced_when_complete(path) as stream:
        stream.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        _write_rows(stream, X, Y, first_feature=0)


def save_libsvm(path: PathLike, X: Any, Y: Any) -> None:
    """Write features (counted from 1) and 0/1 labels in libsvm format, gzip if the name ends in .gz.

    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "tiny.svm")
    ...     save_libsvm(path, [[0.5, 0.0], [0.0, 2.0]], [[1, 0, 1], [0, 1, 0]])
    ...     print(open(path).read(), end="")
    0,2 1:0.5
    1 2:2
    """
    X, Y = as_rows(X, Y)
    empty = np.flatnonzero((np.diff(X.indptr) == 0) & (np.diff(Y.indptr) == 0))
    if len(empty):
        message = f"row {empty[0]} has neither labels nor features, which the libsvm format cannot represent"
        raise DataError(message, path, hint="remove such rows, or use another format")
    with replaced_when_complete(path) as stream:
        _write_rows(stream, X, Y, first_feature=1)


def _write_rows(stream: IO[bytes], X: csr_array, Y: csr_array, first_feature: int) -> None:
    feature_ptr, label_ptr = X.indptr.astype(np.int64), Y.indptr.astype(np.int64)
    features = X.indices + np.int32(1) if first_feature else X.indices
    for start in range(0, X.shape[0], _ROWS_PER_WRITE):
        rows = slice(start, start + _ROWS_PER_WRITE + 1)
        stream.write(_core.format_xmc_rows(feature_ptr[rows], features, X.data, label_ptr[rows], Y.indices))


def _read_text(path: PathLike) -> bytes:
    content = read_bytes(path)
    check_is_text(content[:4096], path)
    return content


def data_error(path: PathLike, error: _core.TextError) -> DataError:
    """Add the path to an error of the parser."""
    message, line, column, hint = error.args
    return DataError(message, path, line, column, hint)


def _checked(
    parsed: tuple[Any, ...], n_bytes: int, path: PathLike, is_checked: tuple[bool, bool] = (True, True)
) -> Dataset:
    """The data set; widths that the file announces must not be out of proportion to its size."""
    for what, width, comes_from_file in zip(("features", "labels"), parsed, is_checked, strict=False):
        if comes_from_file:
            check_width(what, width, n_bytes, path)
    return parsed_dataset(parsed)


def parsed_dataset(parsed: tuple[Any, ...]) -> Dataset:
    """Return the data set of the arrays from the parser."""
    n_features, n_labels, feature_ptr, features, values, label_ptr, labels = parsed
    n_rows = len(feature_ptr) - 1
    ones = np.ones(len(labels), dtype=np.float32)
    X = csr_rows(values, features, feature_ptr, (n_rows, n_features))
    Y = csr_rows(ones, labels, label_ptr, (n_rows, n_labels))
    X.has_canonical_format = Y.has_canonical_format = True  # the core sorts, so skip the check
    return Dataset(X, Y)
