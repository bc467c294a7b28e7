"""The classifier behind the filter: logistic regression that sees nothing but candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core

WEIGHTS = ("low_rank", "full", "hashed")

# Weights for every label and feature: beyond this, they are refused rather than tried.
MOST_WEIGHTS = 2**30


@dataclass(frozen=True)
class BaseClassifier:
    """Weights of labels, biases of labels and of slots (a candidate in a leaf), and AdaGrad's sums beside them.

    The arrays are described in core/spectral/base.hpp; they may be memory-mapped.
    Paper: Mineiro and Karampatziakis 2015, "A Hierarchical Spectral Method for Extreme Classification", section 3.5.
    """

    arrays: dict[str, NDArray[np.float32]]
    weights: str
    rank: int
    has_slot_weights: bool
    n_features: int

    @classmethod
    def begin(
        cls,
        *,
        weights: str,
        rank: int,
        hash_bits: int,
        has_slot_weights: bool,
        n_features: int,
        n_labels: int,
        n_slots: int,
        seed: int,
    ) -> BaseClassifier:
        """A classifier that has learned nothing; the shared input projection is random."""
        generator = np.random.default_rng(seed)
        arrays: dict[str, NDArray[np.float32]] = {}
        padded = (rank + 7) // 8 * 8 if weights == "low_rank" else 0
        if weights == "low_rank":
            n_outputs = n_slots if has_slot_weights else n_labels
            projection = np.zeros((n_features, padded), dtype=np.float32)
            projection[:, :rank] = generator.normal(0, rank**-0.5, (n_features, rank))
            arrays["input"], arrays["input_sum"] = projection.ravel(), _zeros(n_features)
            arrays["output"], arrays["output_sum"] = _zeros(n_outputs * padded), _zeros(n_outputs)
        else:
            size = 2**hash_bits if weights == "hashed" else n_labels * n_features
            if size > MOST_WEIGHTS:
                raise ValueError(
                    f"weights='full' would need {n_labels:,} x {n_features:,} weights: "
                    "use weights='low_rank' or weights='hashed'"
                )
            arrays["input"], arrays["input_sum"] = _zeros(0), _zeros(0)
            arrays["output"], arrays["output_sum"] = _zeros(size), _zeros(size)
        for name, size in (("label_bias", n_labels), ("slot_bias", n_slots)):
            arrays[name], arrays[f"{name}_sum"] = _zeros(size), _zeros(size)
        return cls(arrays, weights, padded, has_slot_weights, n_features)

    def check(self) -> None:
        """Reject arrays of a file with which learning could not continue; the core checks the others."""
        width = self.rank if self.weights == "low_rank" else 1
        for name in ("input", "output", "label_bias", "slot_bias"):
            size = len(self.arrays[name]) // (width if name in ("input", "output") else 1)
            total = self.arrays[f"{name}_sum"]
            if total.dtype != np.float32 or total.shape != (size,):
                raise ValueError(f"{name}_sum must be {size} numbers of 32 bits, got {total.dtype} of {total.shape}")

    def with_slots(self, n_slots: int) -> BaseClassifier:
        """The same weights behind a tree of so many slots, which have learned nothing yet."""
        return replace(self, arrays={**self.arrays, "slot_bias": _zeros(n_slots), "slot_bias_sum": _zeros(n_slots)})

    @classmethod
    def none(cls, n_features: int, n_labels: int, n_slots: int) -> BaseClassifier:
        """What stands in the core's model where another classifier answers."""
        kind: dict[str, Any] = {"weights": "hashed", "rank": 0, "hash_bits": 0, "has_slot_weights": False}
        return cls.begin(**kind, n_features=n_features, n_labels=n_labels, n_slots=n_slots, seed=0)

    def writable(self) -> BaseClassifier:
        """With arrays of its own, to learn with."""
        arrays = {name: np.array(array, dtype=np.float32) for name, array in self.arrays.items()}
        return replace(self, arrays=arrays)

    def widened(self, n_labels: int, slot_label: NDArray[np.int32], old_slot: NDArray[np.int64]) -> BaseClassifier:
        """For more labels and other slots: `old_slot` says which slot each was, -1 for a new one.

        A new slot of a label that has others begins with the mean of what they have learned.
        """
        if (
            self.weights == "hashed"
            and self.has_slot_weights
            and not np.array_equal(old_slot, np.arange(len(old_slot)))
        ):
            raise ValueError(
                "leaves with hashed weights of their own cannot take new candidates: fit again, or give "
                "output_weights='shared'"
            )
        arrays = dict(self.arrays)
        for name in ("label_bias", "label_bias_sum"):
            arrays[name] = _longer(arrays[name], n_labels)
        for name in ("slot_bias", "slot_bias_sum"):
            arrays[name] = _moved(arrays[name][:, None], old_slot).ravel()
        if self.weights == "low_rank" and self.has_slot_weights:
            output = _moved(self.arrays["output"].reshape(-1, self.rank), old_slot)
            known = np.flatnonzero(old_slot >= 0)
            total = np.zeros((n_labels, self.rank))
            np.add.at(total, slot_label[known], output[known])
            count = np.bincount(slot_label[known], minlength=n_labels)
            new = np.flatnonzero((old_slot < 0) & (count[slot_label] > 0))
            output[new] = (total[slot_label[new]] / count[slot_label[new], None]).astype(np.float32)
            arrays["output"] = output.ravel()
            arrays["output_sum"] = _moved(arrays["output_sum"][:, None], old_slot).ravel()
        elif self.weights == "low_rank":
            arrays["output"] = _longer(arrays["output"], n_labels * self.rank)
            arrays["output_sum"] = _longer(arrays["output_sum"], n_labels)
        elif self.weights == "full":
            size = n_labels * self.n_features
            if size > MOST_WEIGHTS:
                raise ValueError(f"weights='full' cannot hold {n_labels:,} labels x {self.n_features:,} features")
            arrays["output"], arrays["output_sum"] = (_longer(arrays[n], size) for n in ("output", "output_sum"))
        return replace(self, arrays=arrays)

    def core(
        self, tree: dict[str, NDArray[Any]], n_labels: int, n_candidates: int, normalize: bool, is_multiclass: bool
    ) -> _core.SpectralModel:
        """The compiled model over a tree; reads the arrays where they are."""
        features = _core.FeatureSettings(self.n_features, normalize, 1.0)
        return _core.SpectralModel(
            tree,
            self.arrays,
            n_labels,
            n_candidates,
            features,
            is_multiclass,
            self.weights,
            self.rank,
            self.has_slot_weights,
        )


def old_slots(before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]], n_labels: int) -> NDArray[np.int64]:
    """Where each slot of the leaves was before; -1 for a label that is a candidate of its leaf for the first time.

    >>> before = {"label_begin": np.array([0, 2]), "label": np.array([3, 7])}
    >>> old_slots(before, {"label_begin": np.array([0, 3]), "label": np.array([3, 5, 7])}, 10).tolist()
    [0, -1, 1]
    """
    keys = []
    for tree in (before, after):
        node = np.repeat(np.arange(len(tree["label_begin"]) - 1), np.diff(tree["label_begin"]))
        keys.append(node.astype(np.int64) * n_labels + tree["label"])
    old, new = keys
    place = np.searchsorted(old, new)
    found = np.zeros(len(new), dtype=bool)
    inside = place < len(old)
    found[inside] = old[place[inside]] == new[inside]
    return np.where(found, place, -1)


def _zeros(size: int) -> NDArray[np.float32]:
    return np.zeros(size, dtype=np.float32)


def _longer(array: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    return np.concatenate([array, _zeros(size - len(array))])


def _moved(rows: NDArray[np.float32], old: NDArray[np.int64]) -> NDArray[np.float32]:
    """Rows in their new places; zeros where there was none."""
    result = np.zeros((len(old), rows.shape[1]), dtype=np.float32)
    result[old >= 0] = rows[old[old >= 0]]
    return result
