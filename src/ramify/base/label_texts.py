"""Names or descriptions of labels as further training rows, so that labels with few or no rows are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.base.rows import as_texts
from ramify.data.series import is_mapping, plain_column


def with_label_texts(
    X: Any, y: Any, sample_weight: ArrayLike | None, label_texts: Any
) -> tuple[list[str], Any, ArrayLike | None]:
    """The training data, and for each text of a label one more row with this label.

    `label_texts` maps a label to its text or texts. The rows have weight 1.

    >>> with_label_texts(["chest pain"], [["R07.9"]], None, {"N20.0": "kidney stone"})[:2]
    (['chest pain', 'kidney stone'], [['R07.9'], ['N20.0']])
    """
    texts = as_texts(X)
    if texts is None:
        raise ValueError("label_texts needs X as texts: this X holds numbers")
    pairs = list(_pairs(label_texts))
    labels = _labels(y)
    is_multiclass = bool(labels) and not _is_collection(labels[0])
    added = [label if is_multiclass else [label] for label, _ in pairs]
    weight = sample_weight
    if weight is not None:
        weight = np.concatenate([np.asarray(weight, dtype=np.float32), np.ones(len(pairs), dtype=np.float32)])
    return [*texts, *(text for _, text in pairs)], [*labels, *added], weight


def _pairs(label_texts: Any) -> Iterable[tuple[Any, str]]:
    if not is_mapping(label_texts):
        raise ValueError(f"label_texts must be a dict from label to its text or texts, got {label_texts!r:.60}")
    for label, given in label_texts.items():
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list | tuple | np.ndarray) or not all(isinstance(text, str) for text in texts):
            said = f"label_texts[{label!r}] must be a text or a list of texts, got {given!r:.60}"
            raise ValueError(f"{said}; leave out a label without")
        for text in texts:
            yield label, text


def _labels(y: Any) -> list[Any]:
    y = plain_column(y)
    if y is None or hasattr(y, "indptr") or getattr(y, "ndim", 1) != 1 or isinstance(y, str):
        raise ValueError("label_texts needs y as lists of labels or as one class per row, not as a 0/1 array")
    return list(y.tolist() if hasattr(y, "tolist") else y)


def _is_collection(labels: Any) -> bool:
    return isinstance(labels, Iterable) and not isinstance(labels, str | bytes)
