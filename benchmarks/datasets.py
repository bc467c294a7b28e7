"""The sets, unpacked once into the work folder: text for systems that read files, arrays for the others."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Problem:
    """One split of one set: X and Y as CSR (float32, int32 indices), and where its text lies."""

    X: sp.csr_matrix
    Y: sp.csr_matrix
    text: Path

    @property
    def is_multiclass(self) -> bool:
        return bool((np.diff(self.Y.indptr) == 1).all())


def prepare(name: str, sources: list[Path], cache: Path) -> Path:
    """Unpack set `name` from the first source folder that has it; return its folder in the cache."""
    target = cache / name
    if (target / "test.npz").exists():
        return target
    source = find(name, sources)
    partial = cache / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for split in SPLITS:
        unpack(source, split, partial / f"{split}.txt")
        np.savez(partial / f"{split}.npz", **parse(partial / f"{split}.txt"))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    return target


def find(name: str, sources: list[Path]) -> Path:
    """The folder of set `name` in the first source folder that has it."""
    hint = f"hint: --data FOLDER, where FOLDER/{name} holds the set"
    if not sources:
        raise SystemExit(f"error: no folder given for the set '{name}'\n{hint}")
    found = next((folder / name for folder in sources if (folder / name).is_dir()), None)
    if found is None:
        places = ", ".join(str(folder) for folder in sources)
        raise SystemExit(f"error: no folder '{name}' in {places}\n{hint}")
    return found


def unpack(source: Path, split: str, target: Path) -> None:
    packed, plain = source / f"{split}.txt.gz", source / f"{split}.txt"
    if packed.exists():
        with gzip.open(packed, "rb") as reader, target.open("wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
    elif plain.exists():
        shutil.copyfile(plain, target)
    else:
        raise SystemExit(f"error: {source} has neither {packed.name} nor {plain.name}")


def parse(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a text in XMC format; not timed, so plain numpy is fast enough."""
    with path.open() as lines:
        n_rows, n_features, n_labels = (int(part) for part in lines.readline().split())
        labels, features, values, label_ends, feature_ends = [], [], [], [0], [0]
        n_seen_labels = n_seen_features = 0
        for line in lines:
            head, _, rest = line.rstrip("\n").partition(" ")
            if ":" in head:
                head, rest = "", line
            if head:
                row_labels = np.sort(np.array(head.split(","), dtype=np.int32))
                labels.append(row_labels)
                n_seen_labels += len(row_labels)
            pairs = np.array(rest.replace(":", " ").split(), dtype=np.float64)
            features.append(pairs[::2].astype(np.int32))
            values.append(pairs[1::2].astype(np.float32))
            n_seen_features += len(features[-1])
            label_ends.append(n_seen_labels)
            feature_ends.append(n_seen_features)
    if len(feature_ends) - 1 != n_rows:
        raise SystemExit(f"error: {path}: the header says {n_rows} rows, found {len(feature_ends) - 1}")
    return {
        "shape": np.array([n_rows, n_features, n_labels]),
        "features": np.concatenate(features),
        "values": np.concatenate(values),
        "feature_ends": np.array(feature_ends, dtype=np.int32),
        "labels": np.concatenate(labels),
        "label_ends": np.array(label_ends, dtype=np.int32),
    }


def arrays_of(X: sp.csr_matrix, Y: sp.csr_matrix) -> dict[str, np.ndarray]:
    """The same arrays as `parse`, from a set in memory."""
    return {
        "shape": np.array([X.shape[0], X.shape[1], Y.shape[1]]),
        "features": X.indices.astype(np.int32),
        "values": X.data.astype(np.float32),
        "feature_ends": X.indptr.astype(np.int32),
        "labels": Y.indices.astype(np.int32),
        "label_ends": Y.indptr.astype(np.int32),
    }


def write_text(folder: Path, split: str) -> None:
    """Write a split as XMC text, for systems that read only files, unless the file exists."""
    path, partial = folder / f"{split}.txt", folder / f"{split}.partial"
    if path.exists():
        return
    problem = load(folder, split)
    X, Y = problem.X, problem.Y
    with partial.open("w") as out:
        out.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n")
        for row in range(X.shape[0]):
            labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
            cells = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[cells].tolist(), X.data[cells].tolist(), strict=True)
            out.write(",".join(map(str, labels.tolist())) + " " + " ".join(f"{f}:{v:.6g}" for f, v in pairs) + "\n")
    partial.rename(path)


def load(folder: Path, split: str) -> Problem:
    with np.load(folder / f"{split}.npz") as stored:
        n_rows, n_features, n_labels = (int(part) for part in stored["shape"])
        X = sp.csr_matrix((stored["values"], stored["features"], stored["feature_ends"]), shape=(n_rows, n_features))
        ones = np.ones(len(stored["labels"]), dtype=np.float32)
        Y = sp.csr_matrix((ones, stored["labels"], stored["label_ends"]), shape=(n_rows, n_labels))
    return Problem(X, Y, folder / f"{split}.txt")


def text_only(folder: Path, split: str) -> Problem:
    """For systems that read the text themselves."""
    return Problem(sp.csr_matrix((0, 0)), sp.csr_matrix((0, 0)), folder / f"{split}.txt")
