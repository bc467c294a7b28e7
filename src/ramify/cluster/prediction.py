"""Answers for a whole data set: workers map the model and write a file for each shard."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ramify.base.rows import as_texts
from ramify.cluster.counter import Counter
from ramify.cluster.reading import checked_files
from ramify.cluster.split import Part, Router, is_split, parts_of
from ramify.cluster.workers import Actor, Workers, ray_workers
from ramify.common.progress import phase, shown
from ramify.common.validation import check_choice
from ramify.data.columns import Columns
from ramify.data.files import replaced_when_complete
from ramify.data.lines import iter_xmc
from ramify.data.load import find_format, load_data
from ramify.data.text_file import TEXT_FORMATS, TextFile

# Rows that are read, answered and written at a time.
CHUNK = 4096
Answers = list[list[tuple[Any, float]]]


def predict(
    model: Any,
    data: Any,
    output: str | os.PathLike[str],
    *,
    top_k: int | None = 5,
    threshold: float | None = None,
    format: str = "jsonl",
    address: str | None = None,
    n_workers: int | None = None,
    columns: Columns | None = None,
    verbose: bool = False,
    workers: Workers | None = None,
) -> list[Path]:
    """Answer every row of a data set, and return the files with the answers, in order.

    Parameters
    ----------
    model : path or classifier
        A saved model, which every node must see: a worker maps its files, so a node reads them once however many
        workers it has. Or a fitted classifier, which is saved to a temporary directory first. Or the directory of
        `split`: each part is loaded by one worker, and the answers are the same.
    data : list of files, X, or a Ray Dataset
        Files as `ramify predict` takes them, X as `predict_proba` takes it, or a Dataset with a column text or the
        columns indices and values.
    output : path
        A directory that every node sees; `part-00000.jsonl` answers the first file or block, and so on. A file is
        written under a temporary name and renamed, so one that is there is complete: a run that failed goes on.
    top_k, threshold
        As in `predict_labels`.
    format : "jsonl" or "parquet"
        JSON lines as `ramify predict --json` writes them, rows counted from 1 in each part; or the columns row, labels
        and probabilities.
    address, n_workers, columns, workers
        As in `fit`.
    """
    check_choice("format", format, ["jsonl", "parquet"])
    directory = Path(output)
    directory.mkdir(parents=True, exist_ok=True)
    connected: AbstractContextManager[Workers] = (
        ray_workers(address, n_workers) if workers is None else nullcontext(workers)
    )
    with shown(verbose), connected as hands, _saved(model) as path:
        how = {
            "top_k": top_k,
            "threshold": threshold,
            "format": format,
            "parts": _started_parts(hands, path),
            "columns": columns,
        }
        sources = _sources(hands, data)
        targets = [(directory / f"part-{k:05d}.{format}").resolve() for k in range(len(sources))]
        running = [
            hands.submit(task, str(path), source, str(target), how)
            for (task, source), target in zip(sources, targets, strict=True)
            if not target.exists()
        ]
        counter = Counter(total=len(sources), done=len(sources) - len(running))
        with phase("predicting", counter):
            for place in hands.completed(running):
                hands.get(running[place])
                counter.done += 1
    return targets


def _started_parts(workers: Workers, model: Path) -> list[Actor] | None:
    """The parts of a split model, each on a worker."""
    if not is_split(model):
        return None
    return [workers.start(Part, str(path), n_bytes=_bytes_of(path)) for path in parts_of(model)]


def _bytes_of(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


def _saved(model: Any) -> AbstractContextManager[Any]:
    """The directory of a model; a classifier is saved to a temporary one."""
    return nullcontext(Path(model).resolve()) if isinstance(model, str | os.PathLike) else _temporary(model)


class _temporary:
    def __init__(self, model: Any) -> None:
        self._model, self._directory = model, tempfile.TemporaryDirectory(prefix="ramify-model-")

    def __enter__(self) -> Path:
        path = Path(self._directory.name) / "model"
        self._model.save(path)
        return path

    def __exit__(self, *_: Any) -> None:
        self._directory.cleanup()


def _sources(workers: Workers, data: Any) -> list[tuple[Callable[..., int], Any]]:
    if hasattr(data, "to_arrow_refs"):
        return [(predict_block, block) for block in data.to_arrow_refs()]
    if isinstance(data, str | os.PathLike) or _are_paths(data):
        return [(predict_file, str(path.resolve())) for path in checked_files(data)]
    texts = as_texts(data)
    rows: Any = data if texts is None else list(texts)
    n_rows = len(rows) if texts is not None else rows.shape[0]
    bounds = range(0, max(n_rows, 1), max(CHUNK, -(-n_rows // (4 * workers.n_workers))))
    step = bounds.step
    return [(predict_rows, workers.put(rows[first : first + step])) for first in bounds]


def _are_paths(data: Any) -> bool:
    if not isinstance(data, list | tuple) or not data:
        return False
    if all(isinstance(path, os.PathLike) for path in data):
        return True
    return all(isinstance(path, str) for path in data) and all(os.path.exists(path) for path in data)


# --- on a worker -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _loaded(path: str, stamp: int) -> Any:
    """The model, loaded once in this process; its arrays are mapped from files, which all processes of a node share."""
    from ramify import load

    model = load(path)
    if hasattr(model, "n_jobs"):
        model.set_params(n_jobs=1)
    return model


def _model(path: str, how: dict[str, Any]) -> Any:
    """The model; of a split one its router."""
    if how["parts"] is not None:
        return Router(path, how["parts"])
    return _loaded(path, os.stat(Path(path) / "manifest.json").st_mtime_ns)


def predict_file(model: str, path: str, target: str, how: dict[str, Any]) -> int:
    """Answer the rows of a file, a chunk at a time."""
    return _write(_model(model, how), _chunks_of(path, how["columns"]), target, how)


def predict_rows(model: str, rows: Any, target: str, how: dict[str, Any]) -> int:
    """Answer rows or texts."""
    return _write(_model(model, how), _chunks(rows), target, how)


def predict_block(model: str, block: Any, target: str, how: dict[str, Any]) -> int:
    """Answer a block of a Ray Dataset."""
    loaded = _model(model, how)
    if "text" in block.column_names:
        return _write(loaded, _chunks(block.column("text").to_pylist()), target, how)
    from scipy import sparse

    indices, values = block.column("indices").to_pylist(), block.column("values").to_pylist()
    indptr = np.cumsum([0, *map(len, indices)])
    arrays = (np.array(list(itertools.chain(*values)), np.float32), np.array(list(itertools.chain(*indices))), indptr)
    rows = sparse.csr_array(arrays, shape=(len(indices), loaded.n_features_in_))
    return _write(loaded, _chunks(rows), target, how)


def _chunks(rows: Any) -> Iterator[tuple[Any, Sequence[str] | None]]:
    for first in _starts(rows):
        part = rows[first : first + CHUNK]
        yield part, part if isinstance(rows, list) else None


def _starts(rows: Any) -> range:
    return range(0, len(rows) if isinstance(rows, list) else rows.shape[0], CHUNK)


def _chunks_of(path: str, columns: Columns | None) -> Iterator[tuple[Any, Sequence[str] | None]]:
    """Rows of a file, with the texts if they are texts."""
    kind = find_format(path, columns)
    if kind in TEXT_FORMATS:
        for chunk in TextFile(path, kind, Columns() if columns is None else columns, labels_required=False).chunks():
            yield list(chunk.texts), chunk.texts
    elif kind == "xmc":
        for data in iter_xmc(path, CHUNK, n_jobs=1):
            yield data.X, None
    else:
        rows = load_data(path, n_jobs=1).X
        for first in _starts(rows):
            yield rows[first : first + CHUNK], None


def _write(model: Any, chunks: Iterable[tuple[Any, Sequence[str] | None]], target: str, how: dict[str, Any]) -> int:
    answered = (
        (model.predict_labels(rows, how["top_k"], how["threshold"]), texts) for rows, texts in chunks if _n(rows) > 0
    )
    return _WRITERS[how["format"]](answered, target)


def _n(rows: Any) -> int:
    return len(rows) if isinstance(rows, list) else int(rows.shape[0])


def _write_jsonl(answered: Iterable[tuple[Answers, Sequence[str] | None]], target: str) -> int:
    number = 0
    with replaced_when_complete(target) as stream:
        for answers, texts in answered:
            for place, answer in enumerate(answers):
                number += 1
                labels = [{"label": _plain(label), "probability": float(p)} for label, p in answer]
                text = {} if texts is None else {"text": texts[place]}
                line = json.dumps({"row": number, **text, "labels": labels}, ensure_ascii=False)
                stream.write(line.encode("utf-8", "backslashreplace") + b"\n")
    return number


def _write_parquet(answered: Iterable[tuple[Answers, Sequence[str] | None]], target: str) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    with replaced_when_complete(target) as stream:
        writer = None
        for answers, _ in answered:
            table = pa.table(
                {
                    "row": pa.array(range(number + 1, number + len(answers) + 1), pa.int64()),
                    "labels": pa.array(
                        [[str(label) for label, _ in answer] for answer in answers], pa.list_(pa.string())
                    ),
                    "probabilities": pa.array([[float(p) for _, p in a] for a in answers], pa.list_(pa.float32())),
                }
            )
            writer = pq.ParquetWriter(stream, table.schema) if writer is None else writer
            writer.write_table(table)
            number += len(answers)
        if writer is not None:
            writer.close()
    return number


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


_WRITERS = {"jsonl": _write_jsonl, "parquet": _write_parquet}
