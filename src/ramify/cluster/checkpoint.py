"""What an interrupted run has already computed, in a directory: the tree, trials, and trained parts."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.trees.label_tree import LabelTree

MANIFEST = "run.json"


class Checkpoint:
    """Arrays in a directory, each written under a temporary name and renamed: a file that is there is complete.

    `identity` describes data and settings. A directory of another run is refused.
    """

    def __init__(self, directory: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._digest = _digest(identity)
        manifest = self.directory / MANIFEST
        if manifest.exists():
            self._manifest = json.loads(manifest.read_text())
            if self._manifest.get("identity") != self._digest:
                raise ValueError(
                    f"the checkpoint {self.directory} belongs to a run on other data or with other settings; "
                    "give another directory, or delete this one"
                )
        else:
            if any(self.directory.iterdir()):
                raise ValueError(f"{self.directory} is not empty and holds no checkpoint; give another directory")
            self._manifest = {"identity": self._digest}
            self._write_manifest()

    def n_parts(self, proposed: int) -> int:
        """The number of parts: as in the first run, so that its parts fit."""
        if "n_parts" not in self._manifest:
            self._manifest["n_parts"] = proposed
            self._write_manifest()
        return int(self._manifest["n_parts"])

    def tree(self, seed: int, build: Callable[[], LabelTree]) -> LabelTree:
        """The tree of a seed, built and written if it is not there."""
        path = self.directory / f"tree-{seed}.npz"
        stored = _read(path)
        if stored is not None:
            return LabelTree(stored["parent"], stored["label"], int(stored["n_labels"]))
        tree = build()
        _write(path, {"parent": tree.parent, "label": tree.label, "n_labels": np.array(tree.n_labels)})
        return tree

    def arrays(self, name: str, key: Any, compute: Callable[[], Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
        """A list of arrays for a key of JSON values."""
        stored = self.read(name, key)
        if stored is None:
            stored = {str(k): array for k, array in enumerate(compute())}
            self.write(name, key, stored)
        return [stored[str(k)] for k in range(len(stored))]

    def read(self, name: str, key: Any) -> dict[str, NDArray[Any]] | None:
        """Named arrays for a key of JSON values, if they were written."""
        return _read(self._path(name, key))

    def write(self, name: str, key: Any, arrays: dict[str, NDArray[Any]]) -> None:
        _write(self._path(name, key), arrays)

    def below(self, name: str, rows: NDArray[np.integer]) -> Checkpoint:
        """A checkpoint inside this one, for a training on some of the rows."""
        some = hashlib.blake2b(np.ascontiguousarray(rows, dtype=np.int64).data, digest_size=12).hexdigest()
        return Checkpoint(self.directory / name, {"run": self._digest, "rows": some})

    def _path(self, name: str, key: Any) -> Path:
        return self.directory / f"{name}-{_digest(key)}.npz"

    def _write_manifest(self) -> None:
        path = self.directory / MANIFEST
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._manifest))
        os.replace(temporary, path)


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=12).hexdigest()


def _read(path: Path) -> dict[str, NDArray[Any]] | None:
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is damaged: delete it, and it is computed again") from error


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    os.replace(temporary, path)
