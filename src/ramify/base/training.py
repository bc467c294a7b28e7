"""Checked training data: what a classifier's `_train` gets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify.base.schema import Schema
from ramify.common.validation import briefly
from ramify.data.masked import check_no_mask


@dataclass(frozen=True)
class TrainingData:
    """X as float32 CSR, Y as 0/1 CSR, weights above zero or None, an integer seed, and the schema that read them."""

    X: sparse.csr_array
    Y: sparse.csr_array
    sample_weight: NDArray[np.float32] | None
    seed: int
    n_threads: int
    schema: Schema

    @property
    def n_labels(self) -> int:
        return self.schema.n_labels

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def is_multiclass(self) -> bool:
        return self.schema.is_multiclass

    def part(self, rows: NDArray[np.integer]) -> TrainingData:
        """Only these rows."""
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], sample_weight=weight)


def weighted_rows(
    rows: sparse.csr_array, indicator: sparse.csr_array, sample_weight: ArrayLike | None
) -> tuple[sparse.csr_array, sparse.csr_array, NDArray[np.float32] | None]:
    """Checked weights; a row of weight zero is left out."""
    if sample_weight is None:
        return rows, indicator, None
    from sklearn.utils.validation import _check_sample_weight

    check_no_mask("sample_weight", sample_weight)
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float32, copy=True, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight is zero for every row: at least one weight must be above zero")
    if weight.all():
        return rows, indicator, weight
    kept = np.flatnonzero(weight)
    return rows[kept], indicator[kept], weight[kept]


def draw_seed(random_state: Any) -> int:
    """The seed that `random_state` stands for: itself, or a number drawn from it."""
    if isinstance(random_state, int | np.integer) and not 0 <= random_state < 2**32:
        raise ValueError(f"random_state must be at least 0 and below 2**32, got {random_state}")
    from sklearn.utils import check_random_state

    try:
        generator = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state must be None, an integer or a numpy.random.RandomState, got {briefly(random_state)}"
        ) from None
    is_seed = isinstance(random_state, int | np.integer)
    return int(random_state) if is_seed else int(generator.randint(2**31 - 1))
