"""Label trees as text: a header line, then one line per node.

The header is ``ramify-label-tree 1 nodes N labels M``, where 1 is the format version. Line ``k`` after it describes
node ``k``: its parent (-1 for the root) and its label column (-1 for an inner node), separated by a space.
Empty lines and lines that start with ``#`` are skipped.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from ramify.data.limits import widest

Int32Array = NDArray[np.int32]

MAGIC = "ramify-label-tree"
VERSION = 1
_LIMIT = np.iinfo(np.int32).max


def format_tree(parent: Int32Array, label: Int32Array, n_labels: int) -> str:
    """Return the text of a tree."""
    numbers = np.column_stack((parent, label)).ravel().tolist()
    header = f"{MAGIC} {VERSION} nodes {len(parent)} labels {n_labels}\n"
    return header + ("%d %d\n" * len(parent)) % tuple(
        numbers
    )  # one format string for all nodes: far faster than a loop


def parse_tree(text: str, source: str) -> tuple[Int32Array, Int32Array, int]:
    """Return parent, label and the number of labels. Errors name the source and the line."""
    header, _, body = text.partition("\n")
    n_nodes, n_labels = _parse_header(header, source)
    if n_labels > widest(len(text)):
        raise ValueError(f"{source}, line 1: {n_labels:,} labels cannot be in a file of {len(text):,} characters")
    numbers = _parse_plain_body(body, n_nodes)
    if numbers is None:
        numbers = _parse_lines(body, n_nodes, source)
    return numbers[:, 0].astype(np.int32), numbers[:, 1].astype(np.int32), n_labels


def _parse_header(line: str, source: str) -> tuple[int, int]:
    words = line.split()
    if not words or words[0] != MAGIC:
        raise ValueError(
            f"{source}, line 1: not a label tree; the first line must be '{MAGIC} {VERSION} nodes N labels M'"
        )
    if len(words) > 1 and words[1] != str(VERSION):
        raise ValueError(f"{source}, line 1: unknown format version {words[1]}; this program reads version {VERSION}")
    if len(words) != 6 or words[2] != "nodes" or words[4] != "labels":
        raise ValueError(f"{source}, line 1: expected '{MAGIC} {VERSION} nodes N labels M', got {line.strip()!r}")
    counts = []
    for word, name in ((words[3], "nodes"), (words[5], "labels")):
        if not (word.isascii() and word.isdigit()) or not 1 <= int(word[:12]) <= _LIMIT:
            raise ValueError(f"{source}, line 1: the number of {name} must be between 1 and {_LIMIT}, got {word!r}")
        counts.append(int(word))
    return counts[0], counts[1]


def _parse_plain_body(body: str, n_nodes: int) -> NDArray[np.int64] | None:
    """Parse all numbers at once if the text looks as `format_tree` writes it; otherwise return None."""
    if not body.isascii():
        return None
    characters = np.frombuffer(body.encode("ascii"), dtype=np.uint8)
    separators = characters[(characters == ord(" ")) | (characters == ord("\n"))]
    if len(separators) != 2 * n_nodes or (separators[::2] != ord(" ")).any() or (separators[1::2] != ord("\n")).any():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # older numpy warns where newer numpy raises
        try:
            numbers = np.fromstring(body, dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
    if len(numbers) != 2 * n_nodes or numbers.min() < -1 or numbers.max() > _LIMIT:
        return None
    return numbers.reshape(n_nodes, 2)


def _parse_lines(body: str, n_nodes: int, source: str) -> NDArray[np.int64]:
    numbers: list[tuple[int, int]] = []
    line_number = 1
    for line_number, line in enumerate(body.split("\n"), start=2):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(numbers) == n_nodes:
            raise ValueError(f"{source}, line {line_number}: more nodes than the {n_nodes} declared in line 1")
        if len(words) != 2:
            raise ValueError(
                f"{source}, line {line_number}: expected a parent and a label, for example '0 -1', got {line.strip()!r}"
            )
        numbers.append((_number(words[0], source, line_number), _number(words[1], source, line_number)))
    if len(numbers) < n_nodes:
        raise ValueError(
            f"{source}, line {line_number}: the text ends after {len(numbers)} of the {n_nodes} nodes "
            "declared in line 1; the file may be truncated"
        )
    return np.array(numbers, dtype=np.int64)


def _number(word: str, source: str, line_number: int) -> int:
    digits = word[1:] if word.startswith("-") else word
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 12 or not -1 <= int(word) <= _LIMIT:
        raise ValueError(f"{source}, line {line_number}: {word!r} must be -1 or a number from 0 to {_LIMIT}")
    return int(word)
