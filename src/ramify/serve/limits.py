"""Limits of a service: requests of a client per second, requests at the same time, bytes of a request."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from ramify.serve.problems import Problem

_MAX_CLIENTS = 10_000
# After the timeout of any request, a body that comes slower than this, or an answer that is read slower, is cut off.
LEAST_BYTES_PER_SECOND = 10_000


class RateLimit:
    """A bucket per client that fills with `rate` requests per second and holds two seconds' worth; 0 is no limit."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.capacity = max(2 * rate, 1.0)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> None:
        """Count a request; raise a Problem if the client has sent too many."""
        if not self.rate:
            return
        now = time.monotonic()
        left, since = self._buckets.pop(client, (self.capacity, now))
        left = min(self.capacity, left + (now - since) * self.rate)
        allowed = left >= 1
        self._buckets[client] = (left - 1 if allowed else left, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if not allowed:
            seconds = max(1, round((1 - left) / self.rate + 0.5))
            raise Problem(429, f"at most {self.rate:g} requests per second are answered: wait", retry_after=seconds)


class LimitedBody:
    """A `receive` of ASGI that raises a Problem when a body grows too large, or all bodies that are held together."""

    def __init__(self, receive: Callable[[], Awaitable[Any]], most: int, held: BytesHeld | None) -> None:
        """`held` is None for a body that is not kept in memory."""
        self._receive, self._most, self._held = receive, most, held
        self.size = 0

    async def __call__(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self.size += size
            if self._held is not None:
                self._held.add(size)
            if self.size > self._most:
                raise too_large(self._most)
        return message

    def close(self) -> None:
        if self._held is not None:
            self._held.size -= self.size


class BytesHeld:
    """Bytes of the bodies of all requests that are being answered."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0

    def add(self, size: int) -> None:
        self.size += size
        if self.size > self.most:
            raise Problem(503, "too many large requests are being answered: try again", retry_after=1)


def too_large(most: int) -> Problem:
    return Problem(413, f"a request has at most {most:,} bytes: send fewer rows, or use the bulk endpoints")
