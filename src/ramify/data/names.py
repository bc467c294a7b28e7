"""Many strings in two flat arrays: the label and feature names in a model file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

# Lone surrogates occur in text read from damaged files; they must survive a round trip like any other name.
_ERRORS = "surrogatepass"
_USUAL_WIDTH = 64
_NEWLINE = ord("\n")


class NameTable:
    """The UTF-8 bytes of all names, and the offset of each; names are decoded on demand.

    A prediction of a model with a million labels needs five of them: decoding all would cost more than the prediction.

    >>> table = NameTable.from_names(["Bein, links", "Übelkeit"])
    >>> len(table), table[1], table.take([1, 0])
    (2, 'Übelkeit', ['Übelkeit', 'Bein, links'])
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        text, offsets = np.asarray(text), np.asarray(offsets)
        if text.dtype != np.uint8 or offsets.dtype != np.int64 or text.ndim != 1 or offsets.ndim != 1:
            raise ValueError("names need a 1-D uint8 array of text and a 1-D int64 array of offsets")
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(text) or bool((np.diff(offsets) < 0).any()):
            raise ValueError("name offsets must increase from 0 to the length of the text")
        self.text, self.offsets = text, offsets

    @classmethod
    def from_names(cls, names: Iterable[str]) -> NameTable:
        encoded = [str(name).encode("utf-8", _ERRORS) for name in names]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def string_dtype(self, name: str) -> np.dtype[np.str_]:
        """The numpy type "<U7" for these names, but not much wider than they need: an array would fill the memory.

        >>> NameTable.from_names(["a", "bcd"]).string_dtype("<U7"), NameTable.from_names(["a"]).string_dtype("<U999999")
        (dtype('<U7'), dtype('<U1'))
        """
        if not isinstance(name, str) or not re.fullmatch(r"<U[0-9]{1,6}", name):
            raise ValueError(f"the type of names must be a numpy string type or object, got {name!r:.60}")
        longest = int(np.diff(self.offsets).max(initial=0))
        width = int(name[2:])
        return np.dtype(f"<U{width if width <= max(_USUAL_WIDTH, longest) else max(longest, 1)}")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, position: int) -> str:
        if not 0 <= position < len(self):
            raise IndexError(f"name {position} does not exist; there are {len(self)} names")
        start, stop = self.offsets[position], self.offsets[position + 1]
        return _decoded(self.text[start:stop].tobytes())

    def widened(self, size: int) -> NameTable:
        """Return a table of at least `size` names, padded with empty names for new columns."""
        if size <= len(self):
            return self
        ends = np.full(size - len(self), self.offsets[-1], dtype=self.offsets.dtype)
        return NameTable(self.text, np.concatenate([self.offsets, ends]))

    def take(self, positions: Sequence[int] | NDArray[np.integer]) -> list[str]:
        numbers = positions.tolist() if isinstance(positions, np.ndarray) else list(map(int, positions))
        known = {position: self[position] for position in set(numbers)}  # the answers to many rows repeat most names
        return [known[position] for position in numbers]

    def tolist(self) -> list[str]:
        if len(self) and not (self.text == _NEWLINE).any():  # one split is five times as fast as one slice per name
            lines = np.insert(self.text, self.offsets[1:-1], _NEWLINE)
            return _decoded(lines.tobytes()).split("\n")
        text, offsets = self.text.tobytes(), self.offsets.tolist()
        return [_decoded(text[a:b]) for a, b in itertools.pairwise(offsets)]


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8", _ERRORS)
    except UnicodeDecodeError as error:
        raise ValueError(f"the names in the file are damaged ({error}); copy the file again") from None
