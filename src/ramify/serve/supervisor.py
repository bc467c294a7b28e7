"""The main process of a service: owns the directory, learns, and keeps the workers running."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from ramify.serve.keys import Keys
from ramify.serve.problems import Problem
from ramify.serve.settings import Settings, check_target
from ramify.serve.wire import answer_calls

if TYPE_CHECKING:
    from ramify.serve.writer import Writer

log = logging.getLogger("ramify.serve")

# A port may be taken for a moment by a service that was just killed.
BIND_SECONDS = 3.0
_RESTART_SECONDS = 1.0
# A worker has this long to answer its last requests, and to end afterwards.
GRACEFUL_SECONDS = 10
SWITCH_SECONDS = 0.0005
_KILL_SECONDS = 5


class AddressError(ValueError):
    """The service cannot listen at an address; says why and what to do."""


def check_settings(settings: Settings) -> None:
    """Refuse what is unsafe or impossible before anything starts."""
    if settings.keys is not None:
        Keys(settings.keys)
    elif not settings.is_loopback:
        raise AddressError(
            f"--host {settings.host} lets other machines in, which needs keys"
            "\nhint: ramify keys add NAME --file keys.json, then  --keys keys.json"
        )
    check_target(settings)


def bind(settings: Settings) -> socket.socket:
    """A listening socket."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((settings.host, settings.port))
            listening.listen(2048)
            return listening
        except OSError as error:
            listening.close()
            if time.monotonic() >= deadline or error.errno != errno.EADDRINUSE:
                raise AddressError(
                    f"cannot listen at {settings.host} port {settings.port}: {error.strerror}"
                    "\nhint: choose another --port, or 0 for any free one"
                ) from None
        time.sleep(0.05)


class Supervisor:
    """Runs the writer in this process, and workers in others; a worker that ends is started again."""

    def __init__(self, settings: Settings, listening: socket.socket) -> None:
        self.settings = settings
        self.listening = listening
        self._processes: set[asyncio.subprocess.Process] = set()
        self._stops = asyncio.Event()
        self._writer: Writer | None = None
        self._is_answering = False
        self._code = 0

    async def run(self, on_ready: Callable[[], None]) -> int:
        """Serve until a signal or an error; return the exit code."""
        # The learner's thread gives way to calls of workers this soon: a correction makes several such hops.
        sys.setswitchinterval(SWITCH_SECONDS)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stops.set)
        with ExitStack() as stack:
            if self.settings.workers > 1:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ramify-metrics-"))
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
            self._lifeline = os.pipe()
            writer_ready: asyncio.Future[Writer] = loop.create_future()
            # Workers import their libraries, and answer if they can, while this process loads the model.
            workers = [asyncio.create_task(self._keep_running(writer_ready)) for _ in range(self.settings.workers)]
            announcing = asyncio.create_task(self._announce(on_ready))
            try:
                writer = await asyncio.to_thread(_new_writer, self.settings)
                await writer.start()
                self._writer = writer
                writer_ready.set_result(writer)
                await self._stops.wait()
                log.info("stopping", extra={"workers": len(self._processes)})
            finally:
                announcing.cancel()
                self._stops.set()
                for process in self._processes:
                    _terminate(process)
                if not writer_ready.done():  # whoever waits for the writer must hear that there will be none
                    writer_ready.set_exception(Problem(503, "the service is stopping: try again", retry_after=1))
                    writer_ready.exception()
                await asyncio.gather(*workers, return_exceptions=True)
            await writer.stop()
        return self._code

    async def _announce(self, on_ready: Callable[[], None]) -> None:
        """Say when a worker answers with all that was acknowledged."""
        while not (self._is_answering or (self._has_called() and self._writer is not None and self._writer.is_ready)):
            await asyncio.sleep(0.01)
        on_ready()

    def _has_called(self) -> bool:
        """Whether a worker has come so far that it called the writer."""
        return self._writer is not None and self._writer.has_workers

    def _answers(self) -> None:
        self._is_answering = True

    async def _keep_running(self, writer_ready: asyncio.Future[Writer]) -> None:
        while not self._stops.is_set():
            began = time.monotonic()
            ours, theirs = socket.socketpair()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ramify.serve.worker",
                *map(str, (self.listening.fileno(), theirs.fileno(), self._lifeline[0])),
                self.settings.to_json(),
                pass_fds=(self.listening.fileno(), theirs.fileno(), self._lifeline[0]),
                stdin=subprocess.DEVNULL,
            )
            theirs.close()
            self._processes.add(process)
            try:
                reader, back = await asyncio.open_connection(sock=ours)
                if not self._stops.is_set():  # else nobody has told this worker to end
                    await answer_calls(writer_ready, reader, back, self._answers)
            finally:
                if self._stops.is_set():
                    _terminate(process)
                code = await _ended(process) if self._stops.is_set() else await process.wait()
                self._processes.discard(process)
            if not self._stops.is_set():
                log.error("a worker ended", extra={"code": code})
                if not (self._is_answering or self._has_called()):  # it never answered, so another one would not either
                    self._code = 1
                    self._stops.set()
                    return
                await asyncio.sleep(max(0.0, _RESTART_SECONDS - (time.monotonic() - began)))


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Wait for a worker that was asked to end; one that does not is killed."""
    try:
        return await asyncio.wait_for(asyncio.shield(process.wait()), GRACEFUL_SECONDS + _KILL_SECONDS)
    except asyncio.TimeoutError:
        log.error("a worker did not end in time", extra={"pid": process.pid})
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        return await process.wait()


def _new_writer(settings: Settings) -> Writer:
    from ramify.serve.store import open_store
    from ramify.serve.writer import Writer

    return Writer(open_store(settings), settings, forks=True)


def _terminate(process: asyncio.subprocess.Process) -> None:
    # Not process.terminate(): it would collect the exit code, which `wait` is for.
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)
