"""Many strings in two flat arrays: what a model file holds of label and feature names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

# Lone surrogates occur in text read from broken files; they must survive a round trip like any other name.
_ERRORS = "surrogatepass"
_NEWLINE = ord("\n")


class NameTable:
    """UTF-8 bytes of all names one after another, and where each begins; a name is decoded when it is asked for.

    A model with a million labels answers with five of them: decoding all would cost more than the answer.

    >>> table = NameTable.from_names(["Bein, links", "Übelkeit"])
    >>> len(table), table[1], table.take([1, 0])
    (2, 'Übelkeit', ['Übelkeit', 'Bein, links'])
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        text, offsets = np.asarray(text), np.asarray(offsets)
        if text.dtype != np.uint8 or offsets.dtype != np.int64 or text.ndim != 1 or offsets.ndim != 1:
            raise ValueError("names need a flat uint8 array of text and a flat int64 array of offsets")
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(text) or bool((np.diff(offsets) < 0).any()):
            raise ValueError("name offsets must rise from 0 to the length of the text")
        self.text, self.offsets = text, offsets

    @classmethod
    def from_names(cls, names: Iterable[str]) -> NameTable:
        encoded = [str(name).encode("utf-8", _ERRORS) for name in names]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> str:
        if not 0 <= position < len(self):
            raise IndexError(f"name {position} of {len(self)}")
        start, stop = self.offsets[position], self.offsets[position + 1]
        return _decoded(self.text[start:stop].tobytes())

    def widened(self, size: int) -> NameTable:
        """With empty names at the end, at least so many in all: nobody has said what new columns are called."""
        if size <= len(self):
            return self
        ends = np.full(size - len(self), self.offsets[-1], dtype=self.offsets.dtype)
        return NameTable(self.text, np.concatenate([self.offsets, ends]))

    def take(self, positions: Sequence[int] | NDArray[np.integer]) -> list[str]:
        return [self[int(position)] for position in positions]

    def tolist(self) -> list[str]:
        if len(self) and not (self.text == _NEWLINE).any():  # one split is five times as fast as a slice for each name
            lines = np.insert(self.text, self.offsets[1:-1], _NEWLINE)
            return _decoded(lines.tobytes()).split("\n")
        text, offsets = self.text.tobytes(), self.offsets.tolist()
        return [_decoded(text[a:b]) for a, b in itertools.pairwise(offsets)]


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8", _ERRORS)
    except UnicodeDecodeError as error:
        raise ValueError(f"names in the file are damaged, copy it again: {error}") from None
