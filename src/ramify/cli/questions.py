"""Ask a model about a chunk of rows: labels with names, notices, and only certain labels where the user says so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.cli.answers import NO_KNOWN_WORD, Answer
from ramify.cli.models import columns_of, parse_label, with_names
from ramify.cli.rows import Chunk
from ramify.data import DataError
from ramify.data.files import iter_lines

# Probabilities that are computed at a time where only certain labels are wanted.
_MOST_PROBABILITIES = 1 << 22


def ask(
    model: Any, chunk: Chunk, top_k: int | None, threshold: Any, only: NDArray[np.int32] | None = None
) -> list[Answer]:
    """The answers for a chunk. A text without a known word gets none: they would be the most frequent labels."""
    fitted = model.fitted_
    rows = fitted.schema.rows(chunk.X)
    pairs = _pairs(fitted, rows, fitted.query(top_k, threshold), only)
    is_unknown = np.diff(rows.indptr) == 0 if chunk.texts is not None else np.zeros(rows.shape[0], dtype=bool)
    return [
        Answer((), NO_KNOWN_WORD) if unknown else Answer(with_names(model, answer))
        for answer, unknown in zip(pairs, is_unknown.tolist(), strict=True)
    ]


def _pairs(fitted: Any, rows: Any, query: Any, only: NDArray[np.int32] | None) -> Sequence[Any]:
    if only is None:
        return fitted.pairs(fitted.search(rows, query))  # type: ignore[no-any-return]
    from ramify.base.answers import keep_best

    at_once = max(1, _MOST_PROBABILITIES // len(only))
    pairs: list[Any] = []
    for start in range(0, rows.shape[0], at_once):
        found = fitted.search_named(rows[start : start + at_once], only, query)
        pairs += fitted.pairs(keep_best(found, query.top_k, query.threshold))
    return pairs


def read_label_set(model: Any, path: Path) -> NDArray[np.int32]:
    """The columns of the labels in a file: one per line, or label<tab>name."""
    columns: dict[int, None] = {}
    for number, line in iter_lines(path):
        if not line.strip():
            continue
        try:
            label = parse_label(model, line)
            column = columns_of(model, [label])[0]
        except ValueError as error:
            first, tab, _ = line.partition("\t")
            try:
                column = columns_of(model, [parse_label(model, first)])[0] if tab else None
            except ValueError:
                column = None
            if column is None:
                raise DataError(str(error), path, number, hint="write one label of the model per line") from None
        columns[int(column)] = None
    if not columns:
        raise DataError("the file names no label", path, hint="write one label of the model per line")
    return np.array(sorted(columns), dtype=np.int32)
