"""What `ramify stream` prints: lines for logs, JSON for programs, a live table for terminals."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from ramify.cli import output
from ramify.data import DataError
from ramify.progressive import ProgressiveResult, Window


class Screen:
    """One line per event on stdout, flushed; malformed lines are reported on stderr."""

    def __init__(self, result: ProgressiveResult | None) -> None:
        self.result = result
        self._has_heading = False

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def window(self, window: Window) -> None:
        from ramify.progressive.table import cells, columns

        assert self.result is not None
        names = columns(self.result)
        if not self._has_heading:
            self._has_heading = True
            self._say("  ".join(f"{name:>{_width(name)}}" for name in names))
        self._say("  ".join(f"{c:>{_width(n)}}" for c, n in zip(cells(self.result, window), names, strict=True)))

    def saved(self, facts: dict[str, Any]) -> None:
        self._say(_saved_in_words(facts))

    def bad_line(self, error: DataError) -> None:
        print(_skipped_in_words(error), file=sys.stderr, flush=True)

    def learning(self, n_examples: int, n_labels: int) -> None:
        """Progress, which only a live screen shows."""

    def done(self, facts: dict[str, Any]) -> None:
        self._say(_done_in_words(facts))

    def _say(self, line: str) -> None:
        print(line, flush=True)


class JsonScreen(Screen):
    """One JSON object per line, each with its "event"."""

    def window(self, window: Window) -> None:
        self._say(output.json_line({"event": "window", **window.to_dict()}))

    def saved(self, facts: dict[str, Any]) -> None:
        self._say(output.json_line({"event": "saved", **facts}))

    def bad_line(self, error: DataError) -> None:
        record = {"event": "skipped", "line": error.line, "column": error.column, "message": error.message}
        self._say(output.json_line(record))

    def done(self, facts: dict[str, Any]) -> None:
        self._say(output.json_line({"event": "done", **facts}))


class LiveScreen(Screen):
    """A table that grows and a status line, for a terminal."""

    def __init__(self, result: ProgressiveResult | None) -> None:
        from rich.live import Live

        super().__init__(result)
        self._started = time.perf_counter()
        self._status, self._saved = "waiting for rows", "nothing saved yet"
        self._first: int | None = None
        self._live = Live(self, console=output.console(), refresh_per_second=4)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        parts: list[Any] = []
        if self.result is not None and self.result.windows:
            from ramify.progressive.table import SHOWN

            parts.append(self.result.table(SHOWN))
        return Group(*parts, Text(f"{self._status}; {self._saved}", style="dim"))

    def window(self, window: Window) -> None:
        pass  # drawn from the result

    def learning(self, n_examples: int, n_labels: int) -> None:
        if self._first is None:
            self._first, self._started = n_examples, time.perf_counter()
        took = time.perf_counter() - self._started
        rate = f", {(n_examples - self._first) / took:,.0f} per second" if took > 0.5 else ""
        self._status = f"{output.count(n_examples, 'example')}, {output.count(n_labels, 'label')}{rate}"

    def saved(self, facts: dict[str, Any]) -> None:
        self._saved = _saved_in_words(facts)
        self._live.refresh()

    def bad_line(self, error: DataError) -> None:
        self._live.console.print(_skipped_in_words(error))

    def done(self, facts: dict[str, Any]) -> None:
        self._live.stop()
        print(_done_in_words(facts), flush=True)


def screen_for(result: ProgressiveResult | None, as_json: bool) -> Screen:
    if as_json:
        return JsonScreen(result)
    return LiveScreen(result) if sys.stdout.isatty() else Screen(result)


def _skipped_in_words(error: DataError) -> str:
    return f"skipped: {output.visible(str(error).partition(chr(10))[0])}"


def _saved_in_words(facts: dict[str, Any]) -> str:
    return f"saved {output.count(facts['examples'], 'example')}"


def _done_in_words(facts: dict[str, Any]) -> str:
    ended = "" if facts["stopped_by"] is None else f"Stopped by {facts['stopped_by']}. "
    new = output.count(facts["new_examples"], "example")
    skipped = f", {output.count(facts['skipped_lines'], 'bad line')} skipped" if facts["skipped_lines"] else ""
    return (
        f"{ended}Learned {new} in {output.seconds(facts['seconds'])}{skipped}; {facts['model']}/ holds "
        f"{output.count(facts['examples'], 'example')} and {output.count(facts['labels'], 'label')} "
        f"({output.size_in_words(facts['bytes'])})."
    )


def _width(name: str) -> int:
    return max(len(name), {"examples": 9, "labels": 7, "ex./s": 6}.get(name, 5))
