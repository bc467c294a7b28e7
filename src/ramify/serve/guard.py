"""What every request passes: host and origin, key and scope, limits, time, security headers, log and metrics."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ramify.serve.keys import Key, Keys
from ramify.serve.limits import BytesHeld, LimitedBody, RateLimit, too_large
from ramify.serve.metrics import Metrics
from ramify.serve.problems import MEDIA_TYPE, Problem
from ramify.serve.settings import LOOPBACK, Settings

log = logging.getLogger("ramify.serve")

MAX_BULK = 2_000_000_000
_BODIES_HELD = 10  # of the largest size, in memory at the same time
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
]
_PUBLIC = ("/", "/healthz", "/readyz", "/v1/openapi.json")
_LONGEST_CACHED = 300
_MAX_DIGITS = 18  # of a length
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

Scope = MutableMapping[str, Any]
# From the content type and the body of a prediction to its answer, and what the log says about it.
Predict = Callable[[str | None, bytes], Awaitable[tuple[bytes, dict[str, Any]]]]


def needed_scope(path: str) -> str | None:
    """What a key must allow for a path; None if no key is needed."""
    if path in _PUBLIC or path.startswith("/page/"):
        return None
    if path in ("/v1/learn", "/v1/bulk/learn") or (path.startswith("/v1/projects/") and path.endswith("/learn")):
        return "teach"
    return "administer" if path == "/metrics" else "ask"


class Guard:
    """ASGI middleware around the application."""

    def __init__(self, app: Any, *, settings: Settings, metrics: Metrics, predict: Predict) -> None:
        self.app = app
        self.predict = predict
        self.settings = settings
        self.metrics = metrics
        self.keys = None if settings.keys is None else Keys(settings.keys)
        self.rates = RateLimit(settings.rate)
        self.n_running = 0
        self.held = BytesHeld(_BODIES_HELD * settings.max_body)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        await _Exchange(self, scope, receive, send).run()


@lru_cache(1)
def _moment(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@lru_cache(1000)
def _host_name_of_known(host: str) -> str:
    return urlsplit(f"//{host}").hostname or ""


def _host_name(host: str) -> str:
    """The name or number of a Host header, without its port."""
    try:
        return _host_name_of_known(host) if len(host) < _LONGEST_CACHED else ""
    except ValueError:
        return ""


class _Exchange:
    """One request and its answer."""

    def __init__(self, guard: Guard, scope: Scope, receive: Any, send: Any) -> None:
        self.guard, self.scope = guard, scope
        # As the application sees it; the server leaves out the body of the answer to HEAD.
        self.inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        self._receive, self._send = receive, send
        self.path: str = scope["path"]
        self.status = 0
        self.route: str | None = None
        self.logged: dict[str, Any] = {}
        self.key: Key | None = None
        self.headers: dict[bytes, bytes] = dict(scope["headers"])

    async def run(self) -> None:
        began = time.perf_counter()
        guard = self.guard
        try:
            self._check()
            guard.n_running += 1
            try:
                await self._call_in_time()
            finally:
                guard.n_running -= 1
        except Problem as problem:
            await self._refuse(problem)
        except Exception:
            log.exception("a request failed", extra={"path": self.path})
            await self._refuse(Problem(500, "this is a bug in ramify; the log of the service says where"))
        self._record(time.perf_counter() - began)

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        guard, settings = self.guard, self.guard.settings
        host = self.headers.get(b"host", b"").decode("latin-1")
        name = _host_name(host)
        if guard.keys is None and name not in LOOPBACK and name != settings.host:
            # Without keys only this machine may ask; a page on the web that points its own name here may not.
            raise Problem(421, f"the service does not answer for the host {name[:100]!r}", where="Host")
        if self.scope["method"] not in _SAFE_METHODS:
            self._check_origin(host)
        scope = needed_scope(self.path)
        if guard.keys is not None and scope is not None:
            self.key = self._authenticate(guard.keys, scope)
        if self.key is not None:
            guard.rates.take(self.key.id)
        else:
            self._count_address()
        if guard.n_running >= settings.max_requests:
            raise Problem(503, f"{settings.max_requests} requests are being answered: try again", retry_after=1)
        length = self.headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _MAX_DIGITS or int(length) > self._most():
            raise too_large(self._most())

    def _check_origin(self, host: str) -> None:
        origin = self.headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2] != host:
            raise Problem(403, "another web site may not use this service from a browser", where="Origin")

    def _authenticate(self, keys: Keys, scope: str) -> Key:
        kind, _, given = self.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        key = keys.find(given.strip() if kind.lower() == "bearer" else "")
        if key is None:
            self._count_address()  # guesses are limited, too
            raise Problem(401, "send a valid key in the header  Authorization: Bearer KEY", where="Authorization")
        if scope not in key.scopes:
            raise Problem(
                403, f"the key of {key.name!r} may not {scope}: use one with that scope", where="Authorization"
            )
        return key

    def _count_address(self) -> None:
        client = self.scope.get("client") or ("",)
        self.guard.rates.take(client[0])

    def _most(self) -> int:
        return MAX_BULK if self._is_bulk() else self.guard.settings.max_body

    def _is_bulk(self) -> bool:
        return self.path.startswith("/v1/bulk/")

    # --- the call -------------------------------------------------------------------------------------------------

    async def _call_in_time(self) -> None:
        """Run the application; after the timeout its task is cancelled, and the client hears why."""
        receive = LimitedBody(self._receive, self._most(), None if self._is_bulk() else self.guard.held)
        try:
            if self._is_bulk():
                await self.guard.app(self.inner, receive, self.send)
            else:
                await self._call_until_late(receive)
        finally:
            receive.close()

    async def _call_until_late(self, receive: LimitedBody) -> None:
        task = asyncio.current_task()
        assert task is not None
        is_prediction = self.path == "/v1/predict" and self.scope["method"] == "POST"
        is_late = False

        def cancel() -> None:
            nonlocal is_late
            is_late = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(self.guard.settings.timeout, cancel)
        try:
            if is_prediction:
                await self._predict(receive)
            else:
                await self.guard.app(self.inner, receive, self.send)
        except asyncio.CancelledError:
            if not is_late:
                raise
            if hasattr(task, "uncancel"):
                task.uncancel()
            raise Problem(
                503, f"no answer within {self.guard.settings.timeout:g} s: send fewer rows", retry_after=1
            ) from None
        finally:
            timer.cancel()

    async def _predict(self, receive: Any) -> None:
        """Answer the most frequent call without the framework, whose routing takes longer than a prediction."""
        self.route = self.path
        body, has_more = b"", True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            has_more = message.get("more_body", False)
        kind = self.headers.get(b"content-type")
        found, self.logged = await self.guard.predict(None if kind is None else kind.decode("latin-1"), body)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(found)).encode())]
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.send({"type": "http.response.body", "body": found})

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *HEADERS]
        await self._send(message)

    async def _refuse(self, problem: Problem) -> None:
        if self.status:  # the answer has begun: all that is left is to end the connection
            raise problem
        body = problem.body()
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        headers += [(name.encode(), value.encode()) for name, value in problem.headers().items()]
        await self.send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def _record(self, seconds: float) -> None:
        route: str = self.route or getattr(self.inner.get("route"), "path", None) or "other"
        self.guard.metrics.request(route, self.status, seconds)
        line = {
            "time": _moment(int(time.time())),
            "level": "info",
            "event": "request",
            "method": self.scope["method"],
            "route": route,
            "status": self.status,
            "ms": round(1000 * seconds, 3),
        }
        if self.key is not None:
            line["key"] = self.key.name
        line |= self.logged or self.inner.get("state", {}).get("logged", {})
        sys.stderr.write(json.dumps(line) + "\n")
