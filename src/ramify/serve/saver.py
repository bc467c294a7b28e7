"""Writes models to directories beside the learner, which goes on learning.

A forked process has the model as of the moment of the fork, and shares its memory with this one until either changes
it (copy on write). So learning stops for the few milliseconds of a fork, however long it takes to write the model.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ramify.serve.snapshots import Publication

log = logging.getLogger("ramify.serve")

CAN_FORK = sys.platform == "linux"
_NICE = 5  # more than the learner, which has a lower priority than the answers
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_LONGEST_MESSAGE = 2000


class Saver:
    """Writes one model at a time; `on_done` is called after each."""

    def __init__(self, *, forks: bool, on_done: Callable[[], None]) -> None:
        self._forks = forks and CAN_FORK
        self._on_done = on_done
        self._waiting = ThreadPoolExecutor(1, thread_name_prefix="files")
        self._n_begun = self._n_ended = 0  # each counted by one thread
        self.seconds = 0.0  # that the last one took
        self._end_with_parent = _parent_watch() if self._forks else None

    @property
    def is_busy(self) -> bool:
        return self._n_begun > self._n_ended

    def save(self, take: Callable[[], Publication], path: Path, on_saved: Callable[[], None], *, waits: bool) -> None:
        """Write what `take` returns to a directory, then call `on_saved` from another thread.

        An error is logged: the journal has everything, and the caller tries again later. With `waits` this returns when
        it is done, and nothing is forked.
        """
        began = time.monotonic()
        write = None if waits or not self._forks else self._fork(take, path)
        if write is None:
            write = partial(take().write, path)

        def finish() -> None:
            try:
                write()
                on_saved()
            except (OSError, ValueError) as error:
                log.error("a file could not be written", extra={"path": str(path), "why": str(error)})
            finally:
                self.seconds = time.monotonic() - began
                self._n_ended += 1
                self._on_done()

        self._n_begun += 1
        done = self._waiting.submit(finish)
        if waits:
            done.result()

    def close(self) -> None:
        self._waiting.shutdown()

    def _fork(self, take: Callable[[], Publication], path: Path) -> Callable[[], None] | None:
        """Start a process that writes; returns what waits for it, None if there can be no other process."""
        ours, theirs = os.pipe()
        parent = os.getpid()
        try:
            with warnings.catch_warnings():
                # Python warns of locks that other threads hold: the new process uses only those that are renewed.
                warnings.simplefilter("ignore", DeprecationWarning)
                process = os.fork()
        except OSError as error:  # no memory for another process
            log.error("no process could be started", extra={"why": str(error)})
            os.close(ours)
            os.close(theirs)
            return None
        if process == 0:
            self._write_and_exit(take, path, theirs, parent)
        os.close(theirs)

        def wait() -> None:
            with open(ours, "rb") as said:
                message = said.read().decode(errors="replace")
            _, status = os.waitpid(process, 0)
            if status != 0:
                code = os.waitstatus_to_exitcode(status)
                raise OSError(message or f"the process that wrote it ended with {code}")

        return wait

    def _write_and_exit(self, take: Callable[[], Publication], path: Path, pipe: int, parent: int) -> NoReturn:
        """The new process: nothing may return to the code of the old one, or run its exit handlers."""
        code = 1
        try:
            gc.disable()  # connections and threads of the old process are not ours to end
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            assert self._end_with_parent is not None
            self._end_with_parent(parent)
            # The sockets and locks of the service must end with it, not with us. 0 to 2 stay.
            os.closerange(3, pipe)
            os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
            os.nice(_NICE)
            take().write(path)
            code = 0
        except BaseException as error:
            os.write(pipe, f"{type(error).__name__}: {error}".encode(errors="replace")[:_LONGEST_MESSAGE])
        finally:
            os._exit(code)


def _parent_watch() -> Callable[[int], None]:
    """A function that ends the process that calls it as soon as its parent ends: no old writer outlives a service."""
    import ctypes

    library: Any = ctypes.CDLL(None)

    def watch(parent: int) -> None:
        library.prctl(_DIES_WITH_PARENT, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return watch
