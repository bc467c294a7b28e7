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
_SIGMA, _FINAL_SIGMA = "\u03a3", "\u03c2"
# Where characters may be cased, or skipped around a sigma: elsewhere are ideographs, Hangul, private use, unassigned.
_AROUND_SIGMA = ((0, 0x3400), (0xA000, 0xAC00), (0xF900, 0x17000), (0x18D00, 0x20000), (0xE0000, 0xE1000))

Codes = NDArray[np.int32]


@functools.cache
def character_table(lowercase: bool, strip_accents: str) -> _core.CharacterTable:
    """The tables for one choice of lower case and accents ("", "ascii" or "unicode"); built once, in some 20 ms."""
    characters = _all_characters()
    strips: dict[str, Callable[[str], str]] = {"": str, "ascii": _strip_to_ascii, "unicode": _strip_accents}
    strip = strips[strip_accents]

    def become(text: str) -> str:
        return strip(text.lower() if lowercase else text)

    changed: list[int] = []
    begin, becomes = [0], list[int]()
    # Characters that combine only change where they are dropped, so an unchanged part has no changed character.
    parts = [part for part in _parts(characters, 0x1000) if become(part) != part]
    for page in (page for part in parts for page in _parts(part, 0x100)):
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
        word=_codes(_runs(r"\w+|\W+", characters)),
        space=_codes(_runs(r"\s+|\S+", characters)),
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


def _parts(characters: str, size: int) -> list[str]:
    return [characters[start : start + size] for start in range(0, len(characters), size)]


def _codes(values: Iterable[int]) -> Codes:
    return np.fromiter(values, dtype=np.int32)


def _runs(either: str, characters: str) -> list[int]:
    """The ends of the runs of one kind, where the other kind, which `either` matches too, comes first.

    Matching both kinds takes a third of the time of searching for one.
    """
    return [place for match in list(re.finditer(either, characters))[1::2] for place in match.span()]


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
    cased, ignorable = list[int](), list[int]()
    for start, end in _AROUND_SIGMA:
        part = characters[start:end]
        alone = _is_final(f" {f'{_SIGMA} '.join(part)}{_SIGMA}", 3)
        after_letter = _is_final(f" a{f'{_SIGMA} a'.join(part)}{_SIGMA}", 4)
        for found, runs in ((alone, cased), (after_letter & ~alone, ignorable)):
            runs.extend(place for code in (np.flatnonzero(found) + start).tolist() for place in (code, code + 1))
    return cased, ignorable


def _is_final(text: str, period: int) -> NDArray[np.bool_]:
    """Whether every `period`-th character, a capital sigma, becomes a final one in lower case."""
    lowered = text.lower().replace("i\u0307", "i")  # the only character that becomes two
    codes = np.frombuffer(lowered.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    is_final: NDArray[np.bool_] = codes[period - 1 :: period] == ord(_FINAL_SIGMA)
    return is_final
