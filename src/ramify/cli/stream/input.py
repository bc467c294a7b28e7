"""Bytes from a pipe or a file as they arrive, until they end or a signal asks to stop."""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import signal
import stat
import tempfile
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

from ramify.data import DataError
from ramify.data.files import GZIP_MAGIC, data_errors
from ramify.data.limits import check_unpacked

_READ_AT_ONCE = 1 << 18
_COPY_AGAIN = "the input was truncated or damaged: copy it again"
# Ctrl-C reaches a whole pipeline: the end of a writer that it stops may arrive just before the signal itself.
_SECONDS_FOR_A_SIGNAL = 0.1


class Stopped(Exception):
    """A signal asked to stop: whatever has not arrived completely is dropped, wherever it is held."""


class StopSignal:
    """SIGINT or SIGTERM: finish the work at hand, then stop. A second signal ends the process."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None

    def __enter__(self) -> StopSignal:
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)
        self._wakeup_before = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._before: dict[int, Any] = {
            number: signal.signal(number, self._receive) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._woken)
        os.close(self._waker)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        # The checkpoint on the disk is always complete, so a second signal may end the process at once.
        signal.signal(number, signal.SIG_DFL)

    def check(self) -> None:
        """Raise `Stopped` if a signal has come."""
        if self.received is not None:
            raise Stopped

    def wait_for(self, descriptor: int) -> None:
        """Wait for input; raise `Stopped` if a signal came first."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        poll.register(self._woken, select.POLLIN)
        ready: set[int] = set()
        while descriptor not in ready:
            self.check()
            ready = {fd for fd, _ in poll.poll()}
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
        self.check()

    def check_soon(self, seconds: float) -> None:
        """Raise `Stopped` if a signal has come, or comes within `seconds`."""
        self.check()
        select.select([self._woken], [], [], seconds)
        self.check()


@contextlib.contextmanager
def opened(path: Path | None, stdin: Any = None) -> Iterator[tuple[str, int]]:
    """The name of the source of lines, and its descriptor; without a path it is `stdin`."""
    if path is None:
        with _stdin(stdin) as descriptor:
            yield "stdin", descriptor
        return
    with data_errors(path):
        descriptor = os.open(path, os.O_RDONLY)
        if os.path.isdir(path):
            os.close(descriptor)
            raise IsADirectoryError
    try:
        yield str(path), descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _stdin(stdin: Any) -> Iterator[int]:
    try:
        descriptor = stdin.fileno()
    except io.UnsupportedOperation:  # a program that calls `run` may have replaced it
        with tempfile.TemporaryFile() as spooled:
            shutil.copyfileobj(stdin, spooled)
            spooled.seek(0)
            yield spooled.fileno()
    else:
        yield descriptor


def blocks_of(name: str, descriptor: int, stop: StopSignal) -> Iterator[bytes]:
    """Bytes as soon as they arrive; gzip is unpacked. Raises `Stopped` when a signal asks to stop."""
    return _unpacked(name, _blocks(descriptor, stop))


def _blocks(descriptor: int, stop: StopSignal) -> Iterator[bytes]:
    block = b""
    while True:
        stop.wait_for(descriptor)
        last, block = block, os.read(descriptor, _READ_AT_ONCE)
        if not block:
            # The end of a line that a signal cut off must not be taken for the end of the input.
            is_cut = bool(last) and not last.endswith(b"\n") and not stat.S_ISREG(os.fstat(descriptor).st_mode)
            stop.check_soon(_SECONDS_FOR_A_SIGNAL if is_cut else 0)
            return
        yield block


def _unpacked(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = b""
    while len(first) < len(GZIP_MAGIC) and (more := next(blocks, None)) is not None:
        first += more
    if first.startswith(GZIP_MAGIC):
        yield from _unpack(name, chain([first], blocks))
        return
    if first:
        yield first
    yield from blocks


def _unpack(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The content of gzip blocks, a piece at a time; compressed files may be concatenated."""
    unpacker = zlib.decompressobj(wbits=31)
    n_packed = n_unpacked = 0
    for block in blocks:
        n_packed += len(block)
        is_full = False  # more of what zlib has read may follow
        while block or is_full:
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
            try:
                text = unpacker.decompress(block, _READ_AT_ONCE)
            except zlib.error as error:
                raise DataError(f"broken gzip data ({error})", name, hint=_COPY_AGAIN) from None
            n_unpacked += len(text)
            check_unpacked(n_unpacked, n_packed, name)
            if text:
                yield text
            block = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            is_full = len(text) == _READ_AT_ONCE and not unpacker.eof
    if not unpacker.eof:
        raise DataError("the gzip data end too early", name, hint=_COPY_AGAIN)
