"""What the running Python knows about characters, as tables for the core: lower case, word characters, accents."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ramify import _core

_N_CHARACTERS = 0x110000
_SIGMA = "\u03a3"

Codes = NDArray[np.int32]


@functools.cache
def character_table(lowercase: bool, strip_accents: str) -> _core.CharacterTable:
    """The tables for one choice of lower case and accents ("", "ascii" or "unicode"); built once, in some 50 ms."""
    characters = _all_characters()
    strips: dict[str, Callable[[str], str]] = {"": str, "ascii": _strip_to_ascii, "unicode": _strip_accents}
    strip = strips[strip_accents]

    def become(text: str) -> str:
        return strip(text.lower() if lowercase else text)

    changed: list[int] = []
    begin, becomes = [0], list[int]()
    for page in _pages(characters):
        # Characters that combine only change where they are dropped, so an unchanged page has no changed character.
        whole = become(page)
        if whole == page:
            continue
        if not whole:
            changed.extend(map(ord, page))
            begin.extend([len(becomes)] * len(page))
            continue
        for character in page:
            after = become(character)
            if after != character:
                changed.append(ord(character))
                becomes.extend(map(ord, after))
                begin.append(len(becomes))
    cased, ignorable = _around_sigma(characters) if lowercase else ([], [])
    return _core.character_table(
        word=_codes(_runs(r"\w+", characters)),
        space=_codes(_runs(r"\s+", characters)),
        changed=_codes(changed),
        begin=_codes(begin),
        becomes=_codes(becomes),
        cased=_codes(cased),
        ignorable=_codes(ignorable),
        final_sigma=_codes(map(ord, strip("\u03c2"))),
        inner_sigma=_codes(map(ord, strip("\u03c3"))),
    )


def _all_characters() -> str:
    return np.arange(_N_CHARACTERS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _pages(characters: str) -> list[str]:
    return [characters[start : start + 256] for start in range(0, len(characters), 256)]


def _codes(values: Iterable[int]) -> Codes:
    return np.fromiter(values, dtype=np.int32)


def _runs(pattern: str, characters: str) -> list[int]:
    return [place for match in re.finditer(pattern, characters) for place in match.span()]


def _strip_accents(text: str) -> str:
    """As scikit-learn's `strip_accents_unicode`: the compatibility decomposition without combining characters."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _strip_to_ascii(text: str) -> str:
    """As scikit-learn's `strip_accents_ascii`: the ASCII characters of the decomposition."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _around_sigma(characters: str) -> tuple[list[int], list[int]]:
    """Runs of characters that are cased, and of those that are skipped, when `lower` looks around a capital sigma.

    `lower` itself answers: after a cased letter a sigma is a final one, and what is skipped changes nothing.
    """
    cased, ignorable = [], []
    for start in range(0, len(characters), 256):
        page = characters[start : start + 256]
        if 0x20000 <= start < 0xE0000 or start >= 0xE1000:  # ideographs, private use, unassigned: neither
            continue
        alone = "".join([f" {c}{_SIGMA}" for c in page]).lower().replace("i\u0307", "i")[2::3]
        after_letter = "".join([f" a{c}{_SIGMA}" for c in page]).lower().replace("i\u0307", "i")[3::4]
        for code, (first, second) in enumerate(zip(alone, after_letter, strict=True), start):
            if first == "\u03c2":
                cased += [code, code + 1]
            elif second == "\u03c2":
                ignorable += [code, code + 1]
    return cased, ignorable
