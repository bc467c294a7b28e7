"""Work that can be interrupted: while the core computes in the main thread, Python would not hear Ctrl-C."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_threads: list[threading.Thread] = []


def interruptible(work: Callable[[], T]) -> T:
    """Run the work in a thread and wait for it; KeyboardInterrupt comes at once, and leaves the work behind.

    Only for work that writes no files: whoever is interrupted ends the process without waiting for the thread.
    """
    context = contextvars.copy_context()
    answer: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(context.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    _threads.append(thread)
    thread.start()
    thread.join()
    _threads.remove(thread)
    if failure:
        raise failure[0]
    return answer[0]  # type: ignore[no-any-return]


def is_running() -> bool:
    """Whether interrupted work still goes on."""
    return any(thread.is_alive() for thread in _threads)
