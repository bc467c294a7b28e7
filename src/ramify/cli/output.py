"""What the commands print: results to stdout, errors and progress to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console


@cache
def _console_class() -> Any:
    from rich.console import Console

    class StrictConsole(Console):
        """Leaves a broken pipe to the one place that ends the command."""

        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError

    return StrictConsole


def console(stderr: bool = False) -> Console:
    """Where people read; markup is off, as labels and texts hold brackets of their own."""
    made: Console = _console_class()(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=False)
    return made


def print_error(message: str, hint: str | None = None) -> None:
    print(f"error: {message}", file=sys.stderr)
    if hint:
        print(f"hint: {hint}", file=sys.stderr)


def print_hint(message: str) -> None:
    print(f"hint: {message}", file=sys.stderr)


def is_watched() -> bool:
    """Whether somebody sees stderr, so that progress is worth showing."""
    return sys.stderr.isatty()


@cache
def is_coloured() -> bool:
    """Whether stdout shows colours: a terminal, and nobody has said NO_COLOR."""
    return console().color_system is not None and sys.stdout.isatty()


def json_line(value: Any) -> str:
    """A value as JSON on one line; what is not a number (an undefined mean) becomes null."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(_jsonable(value), ensure_ascii=not is_unicode, allow_nan=False)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def print_json(value: Any) -> None:
    print(json_line(value))


def print_table(
    title: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1
) -> None:
    """A plain table: the first columns hold words, the others numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, name in enumerate(columns):
        is_text = place < text_columns
        table.add_column(name, justify="left" if is_text else "right", header_style="dim", no_wrap=not is_text)
    for row in rows:
        table.add_row(*row)
    console().print(table)


def size_in_words(n_bytes: int) -> str:
    """17 MB; with one decimal below ten.

    >>> size_in_words(17_300_000), size_in_words(2_300), size_in_words(12)
    ('17 MB', '2.3 kB', '12 bytes')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            amount = n_bytes / size
            return f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}"
    return f"{n_bytes} bytes"


def count(number: int, noun: str, several: str | None = None) -> str:
    """
    >>> count(1, "row"), count(45_000, "row"), count(2, "leaf", "leaves")
    ('1 row', '45,000 rows', '2 leaves')
    """
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def seconds(amount: float) -> str:
    """
    >>> seconds(0.0312), seconds(3.14), seconds(75)
    ('0.03 s', '3.1 s', '75 s')
    """
    return f"{amount:.2f} s" if amount < 1 else f"{amount:.1f} s" if amount < 60 else f"{amount:.0f} s"


def directory_size(path: Path) -> int:
    return sum(entry.stat().st_size for entry in path.iterdir() if entry.is_file())
