"""Attacks as functions of a number of inputs and a seed that return how often each outcome occurred.

The tests run a few thousand inputs. With `RAMIFY_ATTACKS=1000000` in the environment they run that many of each kind;
`pytest -s` prints the outcomes: the names of the errors, or "ok".
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

Outcomes = Counter[str]


class UnexpectedError(AssertionError):
    """An input that broke the library, with what is needed to run it again; `n_run` inputs were tried before it."""

    n_run = 0


def n_inputs(default: int) -> int:
    return int(os.environ.get("RAMIFY_ATTACKS", default))


def attack(
    one_input: Callable[[random.Random], str], count: int, seed: int, allowed: tuple[type[Exception], ...]
) -> Outcomes:
    """Run `one_input` with `count` generators of their own; errors of other types than `allowed` are failures."""
    outcomes: Outcomes = Counter()

    def unexpected(error: Exception) -> UnexpectedError:
        found = UnexpectedError(f"input {number} of seed {seed} raised {type(error).__name__}: {error}")
        found.n_run = number
        return found

    for number in range(count):
        generator = random.Random(f"{seed}/{number}")
        try:
            outcomes[one_input(generator)] += 1
        except allowed as error:
            if type(error) not in allowed:  # a subclass, such as UnicodeDecodeError of ValueError, is none of ours
                raise unexpected(error) from error
            outcomes[type(error).__name__] += 1
        except Exception as error:
            raise unexpected(error) from error
    return outcomes


def report(kind: str, outcomes: Outcomes) -> None:
    """Print the counts, which pytest shows with -s."""
    print(f"\n{kind}: " + ", ".join(f"{name} {count:,}" for name, count in outcomes.most_common()))


# --- damage ----------------------------------------------------------------------------------------------------------

_NUMBERS = [b"0", b"-1", b"1", b"2147483647", b"2147483648", b"99999999999999999999", b"1e999", b"nan", b"0x10", b""]
_BYTES = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r\n", b",", b":", b" ", b"\t", b"{", b"}", b"[", b'"', b"\\", b"#"]


def damaged(content: bytes, generator: random.Random, most: int = 3) -> bytes:
    """The content with one to `most` random changes: bits, bytes, numbers, lines, and parts cut, moved or repeated."""
    for _ in range(generator.randint(1, most)):
        content = generator.choice(_CHANGES)(content, generator)
    return content


def _span(content: bytes, generator: random.Random) -> tuple[int, int]:
    start = generator.randint(0, len(content))
    return start, min(len(content), start + generator.choice([1, 2, 8, 64, 1000]))


def _flip(content: bytes, generator: random.Random) -> bytes:
    if not content:
        return content
    place = generator.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << generator.randrange(8))]) + content[place + 1 :]


def _insert(content: bytes, generator: random.Random) -> bytes:
    place = generator.randint(0, len(content))
    return content[:place] + generator.choice(_BYTES) * generator.choice([1, 1, 1, 50]) + content[place:]


def _cut(content: bytes, generator: random.Random) -> bytes:
    start, stop = _span(content, generator)
    return content[:start] + content[stop:]


def _repeat(content: bytes, generator: random.Random) -> bytes:
    start, stop = _span(content, generator)
    return content[:stop] + content[start:]


def _truncate(content: bytes, generator: random.Random) -> bytes:
    return content[: generator.randint(0, len(content))]


def _number(content: bytes, generator: random.Random) -> bytes:
    """Another number in place of one of those at a random place."""
    place = generator.randint(0, len(content))
    start = next((at for at in range(place, len(content)) if content[at : at + 1].isdigit()), None)
    if start is None:
        return content
    stop = next((at for at in range(start, len(content)) if not content[at : at + 1].isdigit()), len(content))
    return content[:start] + generator.choice(_NUMBERS) + content[stop:]


def _lines(content: bytes, generator: random.Random) -> bytes:
    lines = content.split(b"\n")
    generator.shuffle(lines)
    return b"\n".join(lines)


_CHANGES = (_flip, _insert, _cut, _repeat, _truncate, _number, _number, _lines)
