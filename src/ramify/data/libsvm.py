"""Writing libsvm's text format."""

from __future__ import annotations

from typing import Any

import numpy as np

from ramify import _core
from ramify.data.dataset import as_rows
from ramify.data.errors import DataError
from ramify.data.files import PathLike, replaced_when_complete

_ROWS_PER_WRITE = 16384


def save_libsvm(path: PathLike, X: Any, Y: Any) -> None:
    """Write features (counted from 1, as is usual) and 0/1 labels; packed if the name ends in .gz.

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
        message = f"row {empty[0]} has neither labels nor features, which libsvm's format cannot say"
        raise DataError(message, path, hint="drop such rows, or write another format")
    feature_ptr, label_ptr = X.indptr.astype(np.int64), Y.indptr.astype(np.int64)
    features = X.indices + np.int32(1)
    with replaced_when_complete(path) as stream:
        for start in range(0, X.shape[0], _ROWS_PER_WRITE):
            rows = slice(start, start + _ROWS_PER_WRITE + 1)
            stream.write(_core.format_xmc_rows(feature_ptr[rows], features, X.data, label_ptr[rows], Y.indices))
