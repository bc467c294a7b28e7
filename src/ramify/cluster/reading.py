"""Training data as shards on the workers: from (X, Y), from files, or from a Ray Dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ramify.base.answers import no_entries
from ramify.base.rows import as_texts, read_numbers
from ramify.base.schema import Schema
from ramify.base.training import TrainingData
from ramify.cluster import tasks
from ramify.cluster.counter import Counter
from ramify.cluster.workers import Workers
from ramify.common.progress import phase
from ramify.data.columns import Columns
from ramify.data.errors import DataError
from ramify.data.load import Format, find_format, load_data
from ramify.data.text import is_fitted
from ramify.text.shared_vocabulary import TermCounts, can_share, count_terms, learn_terms

ROWS_PER_SHARD = 1 << 17


@dataclass(frozen=True)
class Piece:
    """What the driver gets of a file or block: its labels, its size, and where it came from."""

    labels: Any  # lists of labels, or a 0/1 array
    n_rows: int
    n_features: int | None  # None: texts
    source: str
    format: str | None = None


@dataclass(frozen=True)
class Shards:
    """References to the rows, and everything else that training needs."""

    rows: list[Any]
    facts: list[tasks.ShardFacts]
    data: TrainingData  # its X is to be replaced


def read_shards(
    workers: Workers,
    classifier: Any,
    data: Any,
    *,
    sample_weight: Any = None,
    n_shards: int | None = None,
    multiclass: bool = False,
    n_features: int | None = None,
    columns: Columns | None = None,
    format: Format | None = None,
) -> Shards:
    """Read training data in whatever form it has."""
    if is_pair(data):
        X, Y = data
        return _from_arrays(workers, classifier, X, Y, sample_weight, n_shards)
    if sample_weight is not None:
        raise ValueError("sample_weight goes with (X, Y); give those instead of files or a Ray Dataset")
    if hasattr(data, "to_arrow_refs"):
        references = data.to_arrow_refs()
        read = [workers.submit(read_block, block, k, n_returns=2) for k, block in enumerate(references)]
    else:
        read = [workers.submit(read_file, str(path), columns, format, n_returns=2) for path in checked_files(data)]
    return _from_pieces(workers, classifier, read, multiclass, n_features)


def is_pair(data: Any) -> bool:
    """Whether data are (X, Y), and not two files."""
    return isinstance(data, tuple) and len(data) == 2 and not any(isinstance(part, str | os.PathLike) for part in data)


def checked_files(data: Any) -> list[Path]:
    """A list of files, at least one; a single name counts as one."""
    if isinstance(data, str | os.PathLike):
        data = [data]
    if not isinstance(data, Sequence) or not data or not all(isinstance(p, str | os.PathLike) for p in data):
        raise ValueError(f"data must be (X, Y), a list of files or a Ray Dataset, got {data!r:.60}")
    return [Path(path) for path in data]


# --- files and blocks, on a worker -----------------------------------------------------------------------------------


class TextsAlone:
    """A vectorizer for `load_data` that leaves the texts alone: they are vectorised with the words of all files."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        return no_entries(len(texts), 1)


def read_file(path: str, columns: Columns | None = None, format: Format | None = None) -> tuple[Any, Piece]:
    """The rows of a file, or its texts, and its labels."""
    kind = find_format(path, columns) if format is None else format
    if kind == "libsvm":
        hint = "convert it with `ramify convert` to XMC text or npz"
        raise DataError("a shard in libsvm does not say how many features and labels there are", path, hint=hint)
    loaded = load_data(path, kind, vectorizer=TextsAlone(), columns=columns)
    if loaded.texts is None:
        if loaded.X.shape[0] == 0:
            raise DataError("the file has no rows", path, hint="check how it was written")
        rows = read_numbers(loaded.X, "X", min_features=1)
        return rows, Piece(loaded.Y, rows.shape[0], rows.shape[1], path, kind)
    names = np.array(loaded.label_names, dtype=object)
    labels = [part.tolist() for part in np.split(names[loaded.Y.indices], loaded.Y.indptr[1:-1])]
    return list(loaded.texts), Piece(labels, len(labels), None, path, kind)


def read_block(block: Any, number: int) -> tuple[Any, Piece]:
    """The rows of a block of a Ray Dataset: columns text and labels, or indices, values and labels."""
    source, names = f"block {number} of the Dataset", set(block.column_names)
    if "labels" not in names or not ({"text"} <= names or {"indices", "values"} <= names):
        raise ValueError(
            f"{source} has the columns {', '.join(sorted(names))}; needed are labels and text, or labels, indices and "
            "values"
        )
    labels = [[] if found is None else list(found) for found in block.column("labels").to_pylist()]
    if "text" in names:
        return block.column("text").to_pylist(), Piece(labels, len(labels), None, source, "jsonl")
    indices = [np.asarray(row, np.int64) for row in block.column("indices").to_pylist()]
    values = [np.asarray(row, np.float32) for row in block.column("values").to_pylist()]
    indptr = np.cumsum([0, *map(len, indices)])
    columns = np.concatenate([np.zeros(0, np.int64), *indices])
    width = int(columns.max(initial=-1)) + 1
    arrays = (np.concatenate([np.zeros(0, np.float32), *values]), columns, indptr)
    rows = read_numbers(sparse.csr_array(arrays, shape=(len(labels), max(width, 1))), "X")
    return rows, Piece(labels, len(labels), width, source)


def widened(rows: sparse.csr_array, n_features: int) -> sparse.csr_array:
    """The same rows with more columns."""
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], n_features))


def count_texts(vectorizer: Any, texts: list[str]) -> TermCounts:
    """The terms of a shard."""
    return count_terms(vectorizer, texts)


def vectorized(owner: str, vectorizer: Any, texts: list[str]) -> sparse.csr_array:
    """The rows of a shard's texts, as `Schema` reads them."""
    schema = Schema(owner)
    schema.vectorizer = vectorizer
    return schema._text_rows(vectorizer.transform(texts))


# --- the driver ------------------------------------------------------------------------------------------------------


def _from_pieces(
    workers: Workers, classifier: Any, read: list[Any], multiclass: bool, n_features: int | None
) -> Shards:
    counter = Counter(total=len(read))
    with phase("reading shards", counter):
        for _ in workers.completed([piece for _, piece in read]):
            counter.done += 1
        pieces: list[Piece] = workers.get([piece for _, piece in read])
    kept = [k for k, piece in enumerate(pieces) if piece.n_rows > 0]
    if not kept:
        raise ValueError("the data have no rows")
    rows, pieces = [read[k][0] for k in kept], [pieces[k] for k in kept]
    are_texts = {piece.n_features is None for piece in pieces}
    if len(are_texts) > 1:
        raise ValueError("some shards hold texts and others numbers: give shards of one kind")
    schema = classifier._schema_class(type(classifier).__name__)
    if are_texts == {True}:
        rows = _vectorized(workers, classifier, schema, rows)
    else:
        rows = _same_width(workers, rows, pieces, n_features)
    facts: list[tasks.ShardFacts] = workers.get([workers.submit(tasks.facts_of, shard) for shard in rows])
    schema.n_features = facts[0].n_features
    labels = _joined_labels(pieces, multiclass)
    return Shards(rows, facts, _training_data(classifier, schema, labels, facts))


def _same_width(workers: Workers, rows: list[Any], pieces: list[Piece], n_features: int | None) -> list[Any]:
    widths = [piece.n_features or 0 for piece in pieces]
    width = max(widths) if n_features is None else n_features
    for piece, found in zip(pieces, widths, strict=True):
        if found > width or (piece.format is not None and found != width):
            raise DataError(
                f"the shard has {found} features, and another has {width}",
                piece.source,
                hint="write all shards with the same features",
            )
    return [
        shard if found == width else workers.submit(widened, shard, width)
        for shard, found in zip(rows, widths, strict=True)
    ]


def _joined_labels(pieces: list[Piece], multiclass: bool) -> Any:
    if sparse.issparse(pieces[0].labels):
        widths = {piece.labels.shape[1] for piece in pieces}
        if len(widths) > 1:
            raise ValueError(f"the shards have {', '.join(map(str, sorted(widths)))} labels: write all with the same")
        Y = sparse.vstack([piece.labels for piece in pieces], format="csr")
        if not multiclass:
            return Y
        _check_one_label(np.diff(Y.indptr))
        return Y.indices
    labels = [row for piece in pieces for row in piece.labels]
    if not multiclass:
        return labels
    _check_one_label(np.fromiter(map(len, labels), np.int64, len(labels)))
    return [row[0] for row in labels]


def _check_one_label(counts: Any) -> None:
    if (counts != 1).any():
        row = int(np.argmax(counts != 1))
        raise ValueError(f"row {row} has {counts[row]} labels; multiclass=True needs exactly one in each")


def _vectorized(workers: Workers, classifier: Any, schema: Schema, texts: list[Any]) -> list[Any]:
    """Shards of texts as rows of one vocabulary."""
    vectorizer = classifier._new_vectorizer()
    with phase("vectorising"):
        if can_share(vectorizer):
            shared = workers.put(vectorizer)
            counts = workers.get([workers.submit(count_texts, shared, shard) for shard in texts])
            learn_terms(vectorizer, counts)
        elif not is_fitted(vectorizer):
            vectorizer.fit([text for shard in workers.get(texts) for text in shard])
        schema.vectorizer = vectorizer
        shared = workers.put(vectorizer)
        return [workers.submit(vectorized, schema.owner, shared, shard) for shard in texts]


def _from_arrays(workers: Workers, classifier: Any, X: Any, Y: Any, sample_weight: Any, n_shards: int | None) -> Shards:
    texts = as_texts(X)
    if texts is not None and sample_weight is None:
        classifier._check_parameters()
        schema = classifier._schema_class(type(classifier).__name__)
        places = _bounds(len(texts), n_shards, workers.n_workers)
        shards = [workers.put(list(texts[low:high])) for low, high in places]
        rows = _vectorized(workers, classifier, schema, shards)
        facts: list[tasks.ShardFacts] = workers.get([workers.submit(tasks.facts_of, shard) for shard in rows])
        schema.n_features = facts[0].n_features
        return Shards(rows, facts, _training_data(classifier, schema, Y, facts))
    data = classifier._read_training_data(X, Y, sample_weight)
    places = _bounds(data.X.shape[0], n_shards, workers.n_workers)
    local = [data.X[low:high] for low, high in places]
    return Shards([workers.put(shard) for shard in local], [tasks.facts_of(shard) for shard in local], data)


def _bounds(n_rows: int, n_shards: int | None, n_workers: int) -> list[tuple[int, int]]:
    wanted = max(n_workers, -(-n_rows // ROWS_PER_SHARD)) if n_shards is None else n_shards
    cuts = np.linspace(0, n_rows, min(wanted, max(n_rows, 1)) + 1).astype(int)
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def _training_data(classifier: Any, schema: Schema, labels: Any, facts: list[tasks.ShardFacts]) -> TrainingData:
    n_rows = sum(len(of_shard.lengths) for of_shard in facts)
    indicator = schema.read_training_labels(labels, n_rows)
    if schema.n_labels == 0:
        raise ValueError("Y has no labels: at least one row must have one")
    no_rows = no_entries(0, facts[0].n_features)
    return TrainingData(no_rows, indicator, None, classifier._draw_seed(), classifier._n_threads(), schema)


def with_rows(shards: Shards, rows: Any) -> TrainingData:
    """The training data with rows in shards."""
    return replace(shards.data, X=rows)
