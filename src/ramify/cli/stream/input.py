"""Lines from a pipe or a file as they come, until they end or somebody asks to stop."""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from ramify.data import DataError
from ramify.data.files import GZIP_MAGIC, told_as_data_error

_READ_AT_ONCE = 1 << 18


class StopSignal:
    """SIGINT and SIGTERM as a wish, to be fulfilled when the work at hand is done; the second one ends the process."""

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
        # A checkpoint outlives any end, so whoever is in a hurry may have it.
        signal.signal(number, signal.SIG_DFL)

    def wait_for(self, descriptor: int) -> bool:
        """Wait until there is something to read, or a signal: then the answer is False."""
        if os.name == "nt":  # no poll there: the signal is noticed when the next lines come
            return self.received is None
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        poll.register(self._woken, select.POLLIN)
        while self.received is None:
            ready = {fd for fd, _ in poll.poll()}
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            if descriptor in ready:
                return self.received is None
        return False


@contextlib.contextmanager
def opened(path: Path | None) -> Iterator[tuple[str, int]]:
    """What to call the source of lines, and its descriptor; None is stdin."""
    if path is None:
        with _stdin() as descriptor:
            yield "stdin", descriptor
        return
    with told_as_data_error(path):
        descriptor = os.open(path, os.O_RDONLY)
        if os.path.isdir(path):
            os.close(descriptor)
            raise IsADirectoryError
    try:
        yield str(path), descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _stdin() -> Iterator[int]:
    try:
        descriptor = sys.stdin.fileno()
    except io.UnsupportedOperation:  # a program that calls the command may have put something else in its place
        with tempfile.TemporaryFile() as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled)
            spooled.seek(0)
            yield spooled.fileno()
    else:
        yield descriptor


def lines_of(name: str, descriptor: int, stop: StopSignal) -> Iterator[list[bytes]]:
    """Whatever whole lines have come, at once; gzip is unpacked. When stopped, half a line is left out."""
    left = b""
    for block in _unpacked(name, _blocks(descriptor, stop)):
        lines = (left + block).split(b"\n")
        left = lines.pop()
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if left and stop.received is None:
        yield [left.removesuffix(b"\r")]


def _blocks(descriptor: int, stop: StopSignal) -> Iterator[bytes]:
    while stop.wait_for(descriptor):
        block = os.read(descriptor, _READ_AT_ONCE)
        if not block:
            return
        yield block


def _unpacked(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    first = b""
    while len(first) < len(GZIP_MAGIC) and (more := next(blocks, None)) is not None:
        first += more
    if not first.startswith(GZIP_MAGIC):
        if first:
            yield first
        yield from blocks
        return
    unpacker = zlib.decompressobj(wbits=31)
    block: bytes | None = first
    try:
        while block is not None:
            text = unpacker.decompress(block)
            if text:
                yield text
            block = unpacker.unused_data
            if unpacker.eof and block:
                unpacker = zlib.decompressobj(wbits=31)  # packed files may be joined
                continue
            block = next(blocks, None)
            if block is not None and unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
    except zlib.error as error:
        raise DataError(f"broken gzip data ({error})", name, hint="it was cut off or damaged on its way") from None
    if not unpacker.eof:
        raise DataError("the gzip data end too early", name, hint="it was cut off or damaged on its way")
