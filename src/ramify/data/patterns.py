"""Vectorizers from model files: only those known to be fast on every text are used, unless they are trusted."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:
    import sre_constants as sre
    import sre_parse as parser

MAX_LENGTH = 1000
# The bounded part of a pattern: characters that it may read at one place of a text, and ways to match them.
MAX_WIDTH = 128
MAX_CHOICES = 64
# Terms of up to this many words or characters: all lengths together would be quadratic in the length of a text.
MAX_NGRAM = 100

# Whether vectorizers are made from a file (False), from a trusted file (True), or from this program's own data.
_trust: ContextVar[bool | None] = ContextVar("ramify_trusts_vectorizers", default=None)

_ONE_CHARACTER = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_WORD = [(sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)])]


class UntrustedVectorizerError(ValueError):
    """A vectorizer in a file that may take for ever on some texts."""


@contextmanager
def vectorizers_of_files(is_trusted: bool) -> Iterator[None]:
    """Inside the block, vectorizers come from files; once trusted, they are in nested blocks too."""
    token = _trust.set(is_trusted or _trust.get() is True)
    try:
        yield
    finally:
        _trust.reset(token)


def check_vectorizer(token_pattern: Any, ngram_range: tuple[Any, ...]) -> None:
    """Reject settings from a file with which a text may never be finished, unless they are trusted."""
    if len(ngram_range) != 2 or not all(type(n) is int for n in ngram_range):
        raise ValueError(f"ngram_range must hold two integers, got {ngram_range!r:.60}")
    if _trust.get() is not False:
        return
    if isinstance(token_pattern, str) and not is_fast_pattern(token_pattern):
        raise UntrustedVectorizerError(f"token_pattern {token_pattern!r:.80} may take for ever on some texts")
    if ngram_range[1] > MAX_NGRAM:
        raise UntrustedVectorizerError(f"ngram_range goes up to {ngram_range[1]}, above {MAX_NGRAM}")


def is_fast_pattern(pattern: str) -> bool:
    r"""Whether finding all matches takes time linear in the text, by the structure of the pattern alone.

    Fast are alternatives of characters and classes, each of which may end with one unbounded repetition of a class, as
    in scikit-learn's default. Rejected are repetitions that something follows or that contain others, look-arounds and
    references to groups: some of them are fast too, but others take time exponential in the length of the text.

    >>> [is_fast_pattern(p) for p in (r"(?u)\b\w\w+\b", r"\w+|[^\w\s]", r"(\w+)+!", r"(?=(a+))\1*b")]
    [True, True, False, False]
    """
    if len(pattern) > MAX_LENGTH:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return _Reader().accepts(list(parsed))


class _Reader:
    def __init__(self) -> None:
        self.n_choices = 1
        self.width = 0

    def accepts(self, items: list[Any]) -> bool:
        starts_at_boundary = items[:1] == [(sre.AT, sre.AT_BOUNDARY)]
        return self._reads(items, starts_at_boundary) and self.n_choices <= MAX_CHOICES and self.width <= MAX_WIDTH

    def _reads(self, items: list[Any], starts_at_boundary: bool) -> bool:
        for place, (kind, what) in enumerate(items):
            rest = items[place + 1 :]
            if kind is sre.SUBPATTERN:
                return self._reads([*what[-1], *rest], starts_at_boundary)
            if kind is sre.BRANCH:
                self.n_choices *= len(what[1])
                if self.n_choices > MAX_CHOICES:
                    return False
                return all(self._reads([*branch, *rest], starts_at_boundary) for branch in what[1])
            if kind is sre.MAX_REPEAT:
                least, most, repeated = what
                if len(repeated) != 1 or repeated[0][0] not in _ONE_CHARACTER:
                    return False
                if most is sre.MAXREPEAT:
                    self.width += least
                    return _cannot_fail(list(repeated), rest, starts_at_boundary)
                self.width += most
                self.n_choices *= most - least + 1
            elif kind in _ONE_CHARACTER:
                self.width += 1
            elif kind is not sre.AT:
                return False
        return True


def _cannot_fail(repeated: list[Any], rest: list[Any], starts_at_boundary: bool) -> bool:
    """Whether no text is read again from its next character, after reading it to the end of a repetition in vain.

    Nothing follows the repetition; or the end of a word does, where the repetition reads whole words, or matches begin
    only where words do.
    """
    if not rest:
        return True
    return rest == [(sre.AT, sre.AT_BOUNDARY)] and (repeated == _WORD or starts_at_boundary)
