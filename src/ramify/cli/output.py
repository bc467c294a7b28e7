"""What the commands print: results to stdout, errors and progress to stderr.

Everything that may hold a label, a name or a text passes `visible` on its way to a terminal.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console

# Lines in a file or a pipe are not wrapped; rich needs some width.
LOG_WIDTH = 10_000

# Characters that act on a terminal or reorder its text: C0, DEL, C1, line separators, bidirectional controls.
_ACTIVE = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_NAMED = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_VISIBLE = {code: _NAMED.get(code, f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}") for code in _ACTIVE}
_VISIBLE_LINES = {code: shown for code, shown in _VISIBLE.items() if code != 0x0A}
_IN_JSON = {code: f"\\u{code:04x}" for code in _ACTIVE}


def visible(text: str) -> str:
    r"""Replace control characters by escapes, so that a label cannot move the cursor or change the terminal.

    >>> print(visible("red\x1b[2J\n"))
    red\x1b[2J\n
    """
    return text.translate(_VISIBLE)


def visible_lines(text: str) -> str:
    """As `visible`, but keep line breaks."""
    return text.translate(_VISIBLE_LINES)


@cache
def _console_class() -> Any:
    from rich.console import Console

    class SafeConsole(Console):
        """Shows control characters instead of sending them, and leaves a broken pipe to `main`."""

        def render(self, renderable: Any, options: Any = None) -> Iterable[Any]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=visible_lines(segment.text))

        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError

    return SafeConsole


def console(stderr: bool = False) -> Console:
    """A console for people. Markup is off, because labels and texts contain brackets."""
    stream = sys.stderr if stderr else sys.stdout
    made: Console = _console_class()(
        stderr=stderr,
        width=None if stream.isatty() or "COLUMNS" in os.environ else LOG_WIDTH,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )
    return made


def show(renderable: Any, **options: Any) -> None:
    """Print something rich can render, without the spaces that it adds at the ends of lines in a file or a pipe."""
    target = console()
    if target.is_terminal:
        target.print(renderable, **options)
        return
    with target.capture() as captured:
        target.print(renderable, **options)
    for line in captured.get().removesuffix("\n").split("\n"):
        print(line.rstrip())


def print_error(message: str, hint: str | None = None) -> None:
    print(f"error: {visible_lines(message)}", file=sys.stderr)
    if hint:
        print_hint(hint)


def print_hint(message: str) -> None:
    print(f"hint: {visible_lines(message)}", file=sys.stderr)


def is_watched() -> bool:
    """Whether stderr is a terminal, so that progress is worth showing."""
    return sys.stderr.isatty()


@cache
def is_coloured() -> bool:
    """Whether stdout shows colours: a terminal that supports them, and NO_COLOR is not set."""
    return console().color_system is not None and sys.stdout.isatty()


def json_line(value: Any) -> str:
    """A value as JSON on one line. Infinities and NaN become null, control characters are escaped."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(_jsonable(value), ensure_ascii=not is_unicode, allow_nan=False).translate(_IN_JSON)


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


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table: the first column holds words, the others numbers."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", header_style="dim", no_wrap=place > 0)
    for row in rows:
        table.add_row(*row)
    show(table)


# A label, its probability, and its name ("" if it has none).
LabelRow = tuple[Any, float, str]


def title_line(title: str) -> str:
    shown = visible(title)
    return f"\x1b[1m{shown}\x1b[0m" if is_coloured() else shown


def label_lines(answer: Sequence[LabelRow]) -> str:
    """Labels with probabilities and names, one per line, cut to the terminal's width."""
    if not answer:
        return "  no label\n"
    width = console().width
    shown = [(visible(str(label)), probability, visible(name)) for label, probability, name in answer]
    widest = min(max(len(label) for label, _, _ in shown), 40)
    lines = []
    for label, probability, name in shown:
        line = f"  {probability:6.1%}  {label:<{widest}}  {name}".rstrip()
        line = line if len(line) <= width else line[: width - 1] + "…"
        lines.append(f"\x1b[36m{line[:8]}\x1b[0m{line[8:]}" if is_coloured() else line)
    return "\n".join(lines) + "\n"


def marked(text: str, spans: Sequence[Any]) -> Any:
    """A text with its supporting places underlined, the strongest also bold; without colours, the text alone."""
    from rich.text import Text

    # Each control character is shown as several, so the text is put together piece by piece.
    spans = [span for span in spans if span.weight > 0]
    strongest = max((span.weight for span in spans), default=0.0)
    styles = [""] * len(text)
    for span in sorted(spans, key=lambda span: span.weight):
        style = "bold underline" if span.weight >= strongest / 2 else "underline"
        styles[span.start : span.end] = [style] * (span.end - span.start)
    shown = Text()
    for style, piece in itertools.groupby(zip(styles, text, strict=True), key=lambda pair: pair[0]):
        shown.append(visible_lines("".join(character for _, character in piece)), style=style)
    return shown


def save_plot(draw: Callable[[Path], Any], out: Path) -> None:
    """Draw into a temporary folder beside `out` and rename at the end, so that `out` is never half a picture."""
    if out.suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"cannot save a plot as {str(out)!r}: the name must end in .png or .svg")
    if not out.parent.is_dir():
        raise ValueError(f"{out}: its directory does not exist\nhint: create {out.parent} first")
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        drawn = Path(folder) / out.name
        draw(drawn)
        os.replace(drawn, out)


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
