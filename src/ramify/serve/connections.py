"""HTTP connections with bounds: what the server itself would wait for, or keep, without end.

Without them, one client could fill the memory with a header or with requests that it sends ahead, and hold connections
that say nothing, or answers that it does not read.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Collection
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ramify.serve.guard import HEADERS
from ramify.serve.limits import LEAST_BYTES_PER_SECOND
from ramify.serve.problems import MEDIA_TYPE, Problem
from ramify.serve.settings import Settings

# Bytes of the first line and the headers of a request.
MAX_HEAD = 65_536
# Requests that a client may send before it has the answer to an earlier one; more are left unread until then.
MAX_AHEAD = 16
# Files of a worker beside its connections.
_OTHER_FILES = 100


def allow_connections(wanted: int) -> int:
    """Let this process open as many files as these connections need; returns how many connections that allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - _OTHER_FILES))


def connections_of(settings: Settings) -> type[HttpToolsProtocol]:
    """The protocol of a service's connections."""
    most, seconds = allow_connections(settings.max_connections), settings.timeout

    class OfSettings(Connection):
        max_connections = most
        timeout = seconds

    return OfSettings


class Connection(HttpToolsProtocol):
    """A client's connection: requests one after another, and their answers."""

    max_connections: int
    timeout: float

    def __init__(self, config: Config, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._is_in_head = True
        self._n_begun = 0  # requests
        self._head_size = 0  # of all but the first part that was received
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._n_unread = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.flow = _PatientFlow(transport, self.pipeline)
        if len(self.connections) > self.max_connections:
            self._refuse(Problem(503, f"{self.max_connections} connections are open: try again", retry_after=1))
            return
        self._head_timer = self.loop.call_later(self.timeout, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        for timer in (self._head_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        self.pipeline.clear()

    # --- requests -------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        n_begun = self._n_begun
        super().data_received(data)
        if not self._is_in_head or self.transport.is_closing():
            return
        self._head_size += len(data) if n_begun == self._n_begun else 0
        if self._head_size > MAX_HEAD:
            self._refuse(Problem(431, f"the headers of a request have at most {MAX_HEAD:,} bytes: send fewer"))
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.timeout, self._head_is_late)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head, self._head_size = True, 0
        self._n_begun += 1

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def _head_is_late(self) -> None:
        if self.flow.read_paused:  # the rest of it is not read before earlier requests are answered
            self._head_timer = self.loop.call_later(self.timeout, self._head_is_late)
        elif not self.transport.is_closing():
            self._refuse(Problem(408, f"no whole request came within {self.timeout:g} s: send it again"))

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, f"{msg} Send HTTP/1.1."))

    def _refuse(self, problem: Problem) -> None:
        """Answer without the application, and close; not before or into the middle of another answer."""
        is_waiting = self.cycle is not None and not self.cycle.response_started and not self.pipeline
        if is_waiting:
            self.cycle.disconnected = True  # the application learns that the client is gone
            self.cycle.message_event.set()
        if is_waiting or self.cycle is None or self.cycle.response_complete:
            body = problem.body()
            headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode()), *HEADERS]
            headers += [(name.encode(), value.encode()) for name, value in problem.headers().items()]
            lines = [name + b": " + value + b"\r\n" for name, value in [*headers, (b"connection", b"close")]]
            self.transport.write(b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", body]))
        self.transport.close()

    # --- answers --------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _watch_unread(self) -> None:
        self._n_unread = self.transport.get_write_buffer_size()
        self._unread_timer = self.loop.call_later(self.timeout, self._check_unread)

    def _check_unread(self) -> None:
        """Give up a client that reads too slowly; closing would wait for it."""
        if self._n_unread - self.transport.get_write_buffer_size() < LEAST_BYTES_PER_SECOND * self.timeout:
            self.transport.abort()
        else:
            self._watch_unread()


class _PatientFlow(FlowControl):
    """Reads on only when few requests wait for the answer to an earlier one."""

    def __init__(self, transport: asyncio.Transport, ahead: Collection[Any]) -> None:
        super().__init__(transport)
        self._ahead = ahead

    def resume_reading(self) -> None:
        if len(self._ahead) < MAX_AHEAD:
            super().resume_reading()
