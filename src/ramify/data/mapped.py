"""Rows in files that are mapped, not read: X may be larger than the memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from ramify.data.csr import csr_rows
from ramify.data.dataset import Dataset
from ramify.data.files import PathLike
from ramify.data.lines import iter_xmc

_FILES = {"indptr": np.int64, "indices": np.int32, "data": np.float32}


def save_mapped(directory: PathLike, pieces: Iterable[sparse.csr_array]) -> sparse.csr_array:
    """Write rows to a directory, a piece at a time, and return them all, mapped from there.

    Classifiers train on such rows as on rows in memory, and give the same model.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     X = save_mapped(folder, (sparse.csr_array(np.eye(2, 3)) for _ in range(4)))
    ...     X.shape, X.nnz
    ((8, 3), 8)
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    n_rows, n_entries, n_features = 0, 0, None
    with (
        open(folder / "indptr", "wb") as indptr,
        open(folder / "indices", "wb") as indices,
        open(folder / "data", "wb") as data,
    ):
        indptr.write(np.zeros(1, np.int64).tobytes())
        for piece in pieces:
            if n_features is not None and piece.shape[1] != n_features:
                raise ValueError(f"a piece has {piece.shape[1]} columns, and the first has {n_features}")
            n_features = int(piece.shape[1])
            rows = piece.astype(np.float32, copy=True)  # it is the caller's
            rows.sum_duplicates()
            rows.eliminate_zeros()
            (rows.indptr[1:].astype(np.int64) + n_entries).tofile(indptr)
            rows.indices.astype(np.int32).tofile(indices)
            rows.data.tofile(data)
            n_rows, n_entries = n_rows + rows.shape[0], n_entries + rows.nnz
    if n_features is None:
        raise ValueError("there are no pieces to write")
    temporary = folder / "shape.json.tmp"
    temporary.write_text(json.dumps([n_rows, n_features]))
    os.replace(temporary, folder / "shape.json")
    return load_mapped(folder)


def map_xmc(path: PathLike, directory: PathLike, *, rows_at_once: int = 4096, n_jobs: int | None = None) -> Dataset:
    """Read an XMC file some rows at a time: its X is written to a directory and mapped from there, its Y is in memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tiny.txt").write_text("3 2 4\\n0,2 0:0.5\\n1 1:2\\n3 0:1\\n")
    ...     data = map_xmc(Path(folder, "tiny.txt"), Path(folder, "rows"))
    ...     data.X.shape, data.Y.indices.tolist()
    ((3, 2), [0, 2, 1, 3])
    """
    labels: list[sparse.csr_array] = []

    def rows() -> Iterator[sparse.csr_array]:
        for part in iter_xmc(path, rows_at_once, n_jobs=n_jobs):
            labels.append(part.Y)
            yield part.X

    X = save_mapped(directory, rows())
    return Dataset(X, sparse.csr_array(sparse.vstack(labels, format="csr")))


def load_mapped(directory: PathLike) -> sparse.csr_array:
    """Map the rows that `save_mapped` has written."""
    folder = Path(directory)
    n_rows, n_features = json.loads((folder / "shape.json").read_text())
    arrays = {name: _mapped(folder / name, np.dtype(kind)) for name, kind in _FILES.items()}
    if len(arrays["indptr"]) != n_rows + 1 or not len(arrays["indices"]) == len(arrays["data"]) == arrays["indptr"][-1]:
        raise ValueError(f"the files in {folder} do not belong together: write them again")
    return csr_rows(arrays["data"], arrays["indices"], np.asarray(arrays["indptr"]), (n_rows, n_features))


def _mapped(path: Path, kind: np.dtype[np.generic]) -> np.ndarray:
    # An empty file cannot be mapped.
    return np.memmap(path, dtype=kind, mode="r") if path.stat().st_size else np.zeros(0, dtype=kind)
