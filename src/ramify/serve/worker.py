"""A worker process: serves HTTP on a socket of the supervisor, and calls the writer over another one."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn

from ramify.serve.app import create_app
from ramify.serve.connections import connections_of
from ramify.serve.logs import log_as_json
from ramify.serve.service import Service
from ramify.serve.settings import Settings
from ramify.serve.supervisor import GRACEFUL_SECONDS, SWITCH_SECONDS
from ramify.serve.wire import RemoteWriter


def main() -> None:
    """Arguments: the descriptors of the listening socket, of the writer's socket and of a pipe, then the settings."""
    # Ctrl-C of a terminal is for the supervisor, which stops its workers in order. Not a session of its own: Linux may
    # give each session an equal share of the processor, so that the lower priority of the learner would mean nothing.
    os.setpgid(0, 0)
    # A thread that maps a new snapshot gives way to the answers this soon.
    sys.setswitchinterval(SWITCH_SECONDS)
    listening, calls, lifeline = map(int, sys.argv[1:4])
    settings = Settings.from_json(sys.argv[4])
    _end_with(lifeline)
    log_as_json()
    _event_loop_run()(serve(settings, socket.socket(fileno=listening), socket.socket(fileno=calls)))


def _event_loop_run() -> Callable[..., None]:
    """uvloop's `run` if it is installed: its event loop is twice as fast."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    run: Callable[..., None] = uvloop.run
    return run


def _end_with(lifeline: int) -> None:
    """End this process as soon as the supervisor does, however that ends: its side of the pipe closes then."""

    def wait() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


async def serve(settings: Settings, listening: socket.socket, calls: socket.socket) -> None:
    writer = RemoteWriter(*await asyncio.open_connection(sock=calls))
    config = uvicorn.Config(
        create_app(Service(settings, writer, writer.say_answering)),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
        http=connections_of(settings),
        ws="none",
    )
    await uvicorn.Server(config).serve([listening])


if __name__ == "__main__":
    main()
