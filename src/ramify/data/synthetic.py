"""Synthetic data of any size with the properties of real extreme classification, determined by `random_state`.

Labels are the leaves of a hierarchy of topics (label, group of 16, field of 256); every node has its own words. A row's
labels come from a power law and from the group of the first label. Its words come from its labels, their groups and
fields, and a background that follows Zipf's law. Columns are in random order, so they do not reveal topic or frequency.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data.csr import csr_rows
from ramify.data.dataset import Dataset

Split: TypeAlias = Literal["train", "validation", "test"]

_SPLITS = ("train", "validation", "test")
_GROUP = 16
_WORDS = (16, 32, 48)  # words of a label, a group, a field
_SHARES = (0.25, 0.12, 0.08)  # fractions of a row's words from its labels, groups, fields; the rest is background
_NEAR_SHARE = 0.7  # fraction of a row's other labels from the group of the first
_SHARED_SHARE = 0.3  # fraction of the topic words that are also background words, so ambiguous
_CALIBRATION_ROWS = 2048
_ROWS_AT_ONCE = 16384


def make_multilabel(
    n_rows: int,
    n_labels: int,
    n_features: int,
    *,
    labels_per_row: float = 5.0,
    features_per_row: float = 60.0,
    exponent: float = 0.9,
    label_noise: float = 0.1,
    empty_share: float = 0.0,
    split: Split = "train",
    random_state: int = 0,
) -> Dataset:
    """Return multi-label data whose label frequencies follow a power law with the given exponent.

    `labels_per_row` and `features_per_row` are means, capped at a third of all labels and features. `label_noise` is
    the fraction of labels unrelated to the row's words, `empty_share` the fraction of rows without labels. Another
    `split` has other rows of the same distribution.

    >>> make_multilabel(1000, 50, 400, random_state=1)
    Dataset(1,000 rows, 400 features, 50 labels, 4.9 labels per row)
    """
    _check_sizes(n_rows=n_rows, n_labels=n_labels, n_features=n_features)
    _check_shares(label_noise=label_noise, empty_share=empty_share)
    if not labels_per_row >= 1:
        raise ValueError(f"labels_per_row must be at least 1, got {labels_per_row}")
    topics = _Topics(n_labels, n_features, features_per_row, exponent, random_state)
    topics.calibrate_labels(max(1.0, min(labels_per_row, n_labels / 3)))
    topics.calibrate_words(topics.draw_labels(topics.fixed_rng(1), _CALIBRATION_ROWS))
    rng = _rng(random_state, split)
    parts = []
    for n in _parts(n_rows):
        labels = topics.draw_labels(rng, n)
        X = topics.draw_words(rng, labels)
        parts.append((X, topics.observed(rng, labels, label_noise, empty_share)))
    return _dataset(parts, n_features, n_labels)


def make_multiclass(
    n_rows: int,
    n_classes: int,
    n_features: int,
    *,
    features_per_row: float = 60.0,
    split: Split = "train",
    random_state: int = 0,
) -> Dataset:
    """Return multi-class, text-like data with equally frequent classes; few-shot if `n_rows` is near `n_classes`.

    The classes are in `Dataset.y`. Another `split` has other rows of the same distribution.

    >>> np.bincount(make_multiclass(30, 10, 100).y).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    _check_sizes(n_rows=n_rows, n_classes=n_classes, n_features=n_features)
    topics = _Topics(n_classes, n_features, features_per_row, 0.9, random_state)
    topics.calibrate_words(_one_label_each(topics.fixed_rng(1).integers(0, n_classes, _CALIBRATION_ROWS), n_classes))
    rng = _rng(random_state, split)
    leaves = rng.permutation(np.arange(n_rows) % n_classes)
    parts = []
    start = 0
    for n in _parts(n_rows):
        labels = _one_label_each(leaves[start : start + n], n_classes)
        parts.append((topics.draw_words(rng, labels), topics.observed(rng, labels, 0.0, 0.0)))
        start += n
    return _dataset(parts, n_features, n_classes)


def make_dense(
    n_rows: int,
    n_classes: int = 1000,
    n_features: int = 128,
    *,
    noise: float = 0.75,
    split: Split = "train",
    random_state: int = 0,
) -> Dataset:
    """Return multi-class data with dense, non-negative, unit rows, similar to the ALOI images of objects.

    Class means are in a low-dimensional space, near others of their family. Each class has two modes, so no linear
    function of the features separates it exactly.

    >>> make_dense(500, 20, 32).X.nnz
    16000
    """
    _check_sizes(n_rows=n_rows, n_classes=n_classes, n_features=n_features)
    fixed = _fixed_rng(random_state, 0)
    n_latent = min(40, n_features)
    family = fixed.integers(0, max(2, n_classes // 25), n_classes)
    means = fixed.normal(0, 1, (family.max() + 1, n_latent))[family] + fixed.normal(0, 1, (n_classes, n_latent))
    modes = means[:, None, :] + fixed.normal(0, 0.45, (n_classes, 2, n_latent))
    mixing = fixed.normal(0, n_latent**-0.5, (n_latent, n_features))
    rng = _rng(random_state, split)
    classes = rng.permutation(np.arange(n_rows) % n_classes)
    dense = np.empty((n_rows, n_features), dtype=np.float32)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        rows = classes[start : start + _ROWS_AT_ONCE]
        latent = modes[rows, rng.integers(0, 2, len(rows))] + rng.normal(0, noise, (len(rows), n_latent))
        values = np.maximum(latent @ mixing + 0.5, 0) + 0.01  # a floor keeps every entry stored
        dense[start : start + len(rows)] = values / np.linalg.norm(values, axis=1, keepdims=True)
    return Dataset(csr_array(dense), _one_label_each(classes, n_classes))


class _Topics:
    """The state shared by all splits: the words of the topics, the label frequencies and the word weights."""

    def __init__(self, n_labels: int, n_features: int, features_per_row: float, exponent: float, seed: int) -> None:
        if not features_per_row >= 1:
            raise ValueError(f"features_per_row must be at least 1, got {features_per_row}")
        if not 0 <= exponent <= 3:
            raise ValueError(f"exponent must be between 0 and 3, got {exponent}")
        self._seed = seed
        self._n_labels, self._n_features = n_labels, n_features
        self._features_per_row = max(1.0, min(features_per_row, n_features / 3))
        self._exponent = exponent
        rng = self.fixed_rng(0)
        self._column = rng.permutation(n_labels).astype(np.int32)  # of each leaf: separates neighbours in the hierarchy
        self._leaf_by_rank = rng.permutation(n_labels).astype(np.int32)
        self._word_by_rank = rng.permutation(n_features).astype(np.int32)
        self._words = []
        for level, n_words in enumerate(_WORDS):
            n_nodes = -(-n_labels // _GROUP**level)
            words = rng.integers(0, n_features, (n_nodes, n_words), dtype=np.int32)
            is_shared = rng.random((n_nodes, n_words), dtype=np.float32) < _SHARED_SHARE
            words[is_shared] = self._background(rng, int(is_shared.sum()))
            self._words.append(words)
        self._extra_labels = 0.0
        self._words_per_row = 1.25 * self._features_per_row
        self._idf = np.ones(n_features, dtype=np.float32)

    def fixed_rng(self, stream: int) -> np.random.Generator:
        return _fixed_rng(self._seed, stream)

    def calibrate_labels(self, labels_per_row: float) -> None:
        """Set the number of draws so that rows have `labels_per_row` distinct labels on average."""
        self._extra_labels = labels_per_row - 1
        for _ in range(3):
            found = self.draw_labels(self.fixed_rng(2), _CALIBRATION_ROWS).nnz / _CALIBRATION_ROWS
            if found > 1:
                self._extra_labels *= (labels_per_row - 1) / (found - 1)

    def calibrate_words(self, labels: csr_array) -> None:
        """Set the number of draws for words, and their idf, from a separate sample so that all splits share it."""
        rng = self.fixed_rng(3)
        counts = self._draw_counts(rng, labels)
        self._words_per_row *= self._features_per_row * labels.shape[0] / max(counts.nnz, 1)
        frequency = np.bincount(counts.indices, minlength=self._n_features)
        self._idf = (np.log((1 + labels.shape[0]) / (1 + frequency)) + 1).astype(np.float32)

    def draw_labels(self, rng: np.random.Generator, n_rows: int) -> csr_array:
        """Return the true leaves of each row."""
        n_drawn = 1 + rng.poisson(self._extra_labels, n_rows)
        row = np.repeat(np.arange(n_rows), n_drawn)
        leaf = self._popular_leaves(rng, len(row))
        first = leaf[np.cumsum(n_drawn) - n_drawn]
        # Prefer the first leaves of a group, so that some pairs of labels often occur together.
        near = first[row] // _GROUP * _GROUP + (_GROUP * rng.random(len(row)) ** 2).astype(np.int64)
        is_near = rng.random(len(row)) < _NEAR_SHARE
        is_near[np.cumsum(n_drawn) - n_drawn] = False
        leaf = np.where(is_near & (near < self._n_labels), near, leaf)
        return _counted(row, leaf, (n_rows, self._n_labels))

    def draw_words(self, rng: np.random.Generator, labels: csr_array) -> csr_array:
        """Return the TF-IDF of the rows: logarithmic counts, unit length."""
        X = self._draw_counts(rng, labels)
        X.data = (1 + np.log(X.data)) * self._idf[X.indices]
        # reduceat needs at least one entry per row, and every row has at least one word.
        norms = np.sqrt(np.add.reduceat(X.data.astype(np.float64) ** 2, X.indptr[:-1]))
        X.data = (X.data / np.repeat(norms, np.diff(X.indptr))).astype(np.float32)
        return X

    def observed(
        self, rng: np.random.Generator, labels: csr_array, label_noise: float, empty_share: float
    ) -> csr_array:
        """Return the observed labels: columns instead of leaves, some of them wrong, some rows empty."""
        row = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
        is_wrong = rng.random(len(row)) < label_noise
        leaf = np.where(is_wrong, self._popular_leaves(rng, len(row)), labels.indices)
        is_kept = ~(rng.random(labels.shape[0]) < empty_share)[row]
        Y = _counted(row[is_kept], self._column[leaf[is_kept]], labels.shape)
        Y.data[:] = 1
        return Y

    def _draw_counts(self, rng: np.random.Generator, labels: csr_array) -> csr_array:
        n_rows = labels.shape[0]
        n_drawn = 1 + rng.poisson(max(self._words_per_row - 1, 0), n_rows)
        row = np.repeat(np.arange(n_rows), n_drawn)
        # The square prefers a row's first labels, so some labels have few words, as in real texts.
        n_labels = np.diff(labels.indptr)[row]
        leaf = labels.indices[labels.indptr[row] + (n_labels * rng.random(len(row)) ** 2).astype(np.int64)]
        word = self._background(rng, len(row))
        level = np.searchsorted(np.cumsum(_SHARES), rng.random(len(row), dtype=np.float32), side="right")
        for number, words in enumerate(self._words):
            chosen = np.flatnonzero(level == number)
            place = (words.shape[1] * rng.random(len(chosen)) ** 1.5).astype(np.int64)
            word[chosen] = words[leaf[chosen] // _GROUP**number, place]
        return _counted(row, word, (n_rows, self._n_features))

    def _popular_leaves(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        return self._leaf_by_rank[_power_law_ranks(rng, size, self._n_labels, self._exponent, 4.0)]

    def _background(self, rng: np.random.Generator, size: int) -> NDArray[np.int32]:
        return self._word_by_rank[_power_law_ranks(rng, size, self._n_features, 1.0, 16.0)]


def _power_law_ranks(rng: np.random.Generator, size: int, n: int, exponent: float, offset: float) -> NDArray[np.int64]:
    """Draw ranks r below n with density (r + offset)^-exponent by inverting the distribution, without a table."""
    u = rng.random(size)
    if exponent == 1.0:
        x = offset * np.exp(u * np.log1p(n / offset))
    else:
        low, high = offset ** (1 - exponent), (offset + n) ** (1 - exponent)
        x = (low + u * (high - low)) ** (1 / (1 - exponent))
    ranks: NDArray[np.int64] = np.clip((x - offset).astype(np.int64), 0, n - 1)
    return ranks


def _counted(row: NDArray[np.integer], column: NDArray[np.integer], shape: tuple[int, int]) -> csr_array:
    """Count each pair of row and column, as csr_array with sorted indices."""
    keys = row.astype(np.int64) * shape[1] + column
    keys.sort()
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(starts, append=len(keys)).astype(np.float32)
    rows, columns = np.divmod(keys[starts], shape[1])
    indptr = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
    return csr_rows(counts, columns.astype(np.int32), indptr, shape)


def _one_label_each(labels: NDArray[np.integer], n_labels: int) -> csr_array:
    n = len(labels)
    arrays = (np.ones(n, dtype=np.float32), labels.astype(np.int32), np.arange(n + 1, dtype=np.int32))
    return csr_array(arrays, shape=(n, n_labels))


def _dataset(parts: list[tuple[csr_array, csr_array]], n_features: int, n_labels: int) -> Dataset:
    X, Y = (_stacked([part[i] for part in parts], width) for i, width in ((0, n_features), (1, n_labels)))
    return Dataset(X, Y)


def _stacked(parts: list[csr_array], width: int) -> csr_array:
    indptr = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]).cumsum(dtype=np.int64)
    indices = np.concatenate([part.indices for part in parts]).astype(np.int32, copy=False)
    result = csr_rows(np.concatenate([part.data for part in parts]), indices, indptr, (len(indptr) - 1, width))
    result.has_canonical_format = True  # each part is canonical, so skip the check
    return result


def _parts(n_rows: int) -> list[int]:
    """Split n_rows into batches, which bounds the memory needed."""
    return [min(_ROWS_AT_ONCE, n_rows - start) for start in range(0, n_rows, _ROWS_AT_ONCE)]


def _fixed_rng(seed: int, stream: int) -> np.random.Generator:
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"random_state must be an integer of at least 0, got {seed!r}")
    return np.random.default_rng([int(seed), stream])


def _rng(seed: int, split: Split) -> np.random.Generator:
    if split not in _SPLITS:
        raise ValueError(f"split must be one of {', '.join(_SPLITS)}, got {split!r}")
    return _fixed_rng(seed, 100 + _SPLITS.index(split))


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if not isinstance(size, (int, np.integer)) or not 1 <= size <= np.iinfo(np.int32).max:
            raise ValueError(f"{name} must be an integer of at least 1, got {size!r}")


def _check_shares(**shares: float) -> None:
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must be between 0 and 1, got {share}")
