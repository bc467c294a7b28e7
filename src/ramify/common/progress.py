"""Time the phases of long operations, and optionally show their progress on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from types import FrameType

    from rich.progress import Progress, TaskID


class Counter(Protocol):
    """A progress counter, for example `_core.Progress`, which the core updates while it runs."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


class RowCounter:
    """Rows so far, and, where it is known, how much of the input they are: `done` of `total`."""

    def __init__(self, total: int = 0) -> None:
        self.rows = self.done = 0
        self.total = total
        self._started = time.perf_counter()

    def __str__(self) -> str:
        """
        >>> str(RowCounter())
        ''
        """
        took = time.perf_counter() - self._started
        if not self.rows or took < 0.1:
            return ""
        return f"{self.rows:,} rows, {self.rows / took:,.0f}/s"


class Steps:
    """A counter over expected steps, each a phase and its share of the work; steps that do not occur count as done.

    >>> steps = Steps([("reading", 1.0), ("training", 3.0)])
    >>> steps.begin("training", RowCounter())
    True
    >>> steps.done, steps.total
    (250, 1000)
    """

    total = 1000

    def __init__(self, steps: Sequence[tuple[str, float]]) -> None:
        self._steps = list(steps)
        self._at, self._is_inside = -1, False
        self._counter: Counter | None = None

    def begin(self, name: str, counter: Counter | None) -> bool:
        """A phase begins; whether it is one of the steps that are left, and not a part of another."""
        left = [k for k in range(self._at + 1, len(self._steps)) if self._steps[k][0] == name]
        if self._is_inside or not left:
            return False
        self._at, self._is_inside, self._counter = left[0], True, counter
        return True

    def end(self) -> None:
        self._is_inside, self._counter = False, None

    @property
    def done(self) -> int:
        finished = sum(share for _, share in self._steps[: max(self._at, 0)])
        if self._at >= 0:
            counter, fraction = self._counter, 0.0 if self._is_inside else 1.0
            if counter is not None and counter.total > 0:
                fraction = min(1.0, counter.done / counter.total)
            finished += self._steps[self._at][1] * fraction
        return round(self.total * finished / sum(share for _, share in self._steps))


class Phases:
    """The duration of each phase in seconds, and the optional display."""

    def __init__(self, display: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self.owner: FrameType | None = None  # the function whose block this is, while it runs
        self._display = display
        self._steps: Steps | None = None
        self._bar: TaskID | None = None

    @contextmanager
    def phase(self, name: str, counter: Counter | None) -> Iterator[None]:
        is_step = self._steps is not None and self._steps.begin(name, counter)
        task = self._show(name, counter)
        start = time.perf_counter()
        try:
            yield
        finally:
            if is_step and self._steps is not None:
                self._steps.end()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            if self._display is not None and task is not None:
                self._display.remove_task(task)

    @contextmanager
    def in_steps(self, steps: Steps) -> Iterator[None]:
        """Show the phases inside the block as one bar."""
        self._bar = self._show("", steps)
        self._steps = steps
        try:
            yield
        finally:
            self._steps = None
            if self._display is not None and self._bar is not None:
                self._display.remove_task(self._bar)

    def stop(self) -> None:
        """Remove the display and restore the cursor."""
        if self._display is not None:
            self._display.stop()

    def _show(self, name: str, counter: Counter | None) -> TaskID | None:
        if self._display is None:
            return None
        if self._steps is not None and self._bar is not None:
            self._display.update(self._bar, description=name)
            return None
        return self._display.add_task(name, total=None, counter=counter, rows="")


_current: ContextVar[Phases | None] = ContextVar("ramify_phases", default=None)


@contextmanager
def shown(is_shown: bool = True) -> Iterator[Phases]:
    """Time the phases inside the block, and show them on stderr if `is_shown`; a nested call joins the outer one."""
    outer = _current.get()
    if outer is not None and _is_running(outer.owner):
        yield outer
        return
    display = _display() if is_shown else None
    phases = Phases(display)
    phases.owner = _user_of_the_block()
    token = _current.set(phases)
    try:
        if display is None:
            yield phases
        else:
            with display:
                yield phases
    finally:
        _current.reset(token)
        phases.owner = None


def _user_of_the_block() -> FrameType | None:
    """The function that entered the context manager from which this is called."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") == "contextlib":
        frame = frame.f_back
    return frame


def _is_running(owner: FrameType | None) -> bool:
    """Whether this was called from there. An interrupt may end a block before its last lines can take it back."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not owner:
        frame = frame.f_back
    return frame is not None


@contextmanager
def phase(name: str, counter: Counter | None = None) -> Iterator[None]:
    """Mark a phase of a long operation; costs nothing outside `shown`.

    >>> with shown(False) as phases:
    ...     with phase("tree"):
    ...         pass
    >>> list(phases.seconds)
    ['tree']
    """
    phases = _current.get()
    if phases is None:
        yield
        return
    with phases.phase(name, counter):
        yield


@contextmanager
def in_steps(steps: Sequence[tuple[str, float]]) -> Iterator[None]:
    """Show the phases inside the block as one bar: `steps` are expected phases, each with its share of the work."""
    phases = _current.get()
    if phases is None:
        yield
        return
    with phases.in_steps(Steps(steps)):
        yield


def _display() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class PolledProgress(Progress):
        """Reads the counters whenever it is drawn, so the core needs no callback."""

        def get_renderables(self) -> Any:
            for task in self.tasks:
                counter: Counter | None = task.fields.get("counter")
                if counter is not None and counter.total > 0:
                    self.update(task.id, completed=min(counter.done, counter.total), total=counter.total)
                if isinstance(counter, RowCounter):
                    self.update(task.id, rows=str(counter))
            return super().get_renderables()

    return PolledProgress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rows]}"),
        # Without ipywidgets rich would show a warning in a notebook, and no bar.
        console=Console(stderr=True, force_jupyter=None if find_spec("ipywidgets") else False),
        transient=True,
    )
