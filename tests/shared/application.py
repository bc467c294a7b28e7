"""An application with its writer in this process, for tests of the API."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx

from ramify.serve.app import create_app
from ramify.serve.service import Service
from ramify.serve.settings import Settings
from ramify.serve.store import open_store
from ramify.serve.writer import Writer


class Client:
    """Synchronous calls of an application whose event loop runs in a thread."""

    def __init__(self, loop, client, service, writer):
        self._loop, self._client = loop, client
        self.service, self.writer = service, writer

    def request(self, method, path, **arguments):
        asked = self._client.request(method, path, **arguments)
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(60)

    def get(self, path, **arguments):
        return self.request("GET", path, **arguments)

    def post(self, path, **arguments):
        return self.request("POST", path, **arguments)

    def learn(self, *examples, key=None):
        headers = {} if key is None else {"Idempotency-Key": key}
        content = {"examples": [{"text": text, "labels": labels} for text, labels in examples]}
        return self.post("/v1/learn", json=content, headers=headers)

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)


@contextmanager
def application(model, base="http://127.0.0.1:8000", **settings):
    """A client of the application of a model directory."""
    settings = Settings(model=Path(model), **settings)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start():
        writer = Writer(open_store(settings), settings)
        await writer.start()
        service = Service(settings, writer)
        app = create_app(service)
        await service.start()
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base, timeout=60)
        while not writer.is_ready:
            await asyncio.sleep(0.005)
        return Client(loop, client, service, writer)

    async def stop(client):
        await client._client.aclose()
        await client.service.stop()
        await client.writer.stop()

    client = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    try:
        yield client
    finally:
        asyncio.run_coroutine_threadsafe(stop(client), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
