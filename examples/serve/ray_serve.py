"""The same application under Ray Serve: one replica that learns, several that answer.

Needs Ray:  pip install 'ray[serve]'.  The directory must be readable from every machine of the cluster:

    python examples/serve/ray_serve.py /shared/live

Teach at http://127.0.0.1:8000/teach/v1/learn, ask at http://127.0.0.1:8000/v1/predict. With --try it teaches and asks a
little, prints the answers, and ends. Ray's HTTP proxy has no keys: put it behind one that has.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import ray
from fastapi import FastAPI
from ray import serve

from ramify.cli.lock import only_writer
from ramify.serve.app import create_app
from ramify.serve.follower import Follower
from ramify.serve.service import Service
from ramify.serve.settings import Settings
from ramify.serve.store import open_store
from ramify.serve.writer import Writer


async def learning_app(settings: Settings) -> FastAPI:
    """The application with the writer in the same process."""
    writer = Writer(await asyncio.to_thread(open_store, settings), settings)
    await writer.start()
    service = Service(settings, writer)
    await service.start()
    return create_app(service)


async def answering_app(settings: Settings) -> FastAPI:
    """The application that follows the snapshots of the writer."""
    service = Service(settings, Follower(settings))
    await service.start()
    return create_app(service)


class Replica:
    """Passes requests of Ray's proxy to an application."""

    def __init__(self, settings: Settings, learns: bool) -> None:
        self.settings, self.learns = settings, learns
        self.client: httpx.AsyncClient | None = None
        self.starting = asyncio.Lock()
        self.held = ExitStack()

    async def start(self) -> httpx.AsyncClient:
        """The application of this replica; requests that come meanwhile wait."""
        async with self.starting:
            if self.client is None:
                if self.learns:  # no other process may serve the directory
                    self.held.enter_context(only_writer(self.settings.model, "ray serve", patience=3.0))
                app = await (learning_app if self.learns else answering_app)(self.settings)
                self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
        return self.client

    async def __call__(self, request):
        from starlette.responses import Response

        client = self.client or await self.start()
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        answer = await client.request(
            request.method,
            path,
            params=request.query_params,
            content=await request.body(),
            headers={"content-type": request.headers.get("content-type", "application/json")}
            | {name: value for name, value in request.headers.items() if name == "idempotency-key"},
        )
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        return Response(answer.content, answer.status_code, headers)


def start(model: Path, n_answering: int, address: str) -> None:
    """Deploy both applications."""
    ray.init(address=address)  # said, since Ray would otherwise join any cluster that it finds on this machine
    settings = Settings(model=model, is_new=True)
    replica = serve.deployment(ray_actor_options={"num_cpus": 0.5})(Replica)
    one, many = replica.options(num_replicas=1), replica.options(num_replicas=n_answering)
    serve.run(one.bind(settings, True), name="teach", route_prefix="/teach")
    serve.run(many.bind(settings, False), name="ask", route_prefix="/")


def try_it(address: str) -> None:
    """Teach the one replica, and ask the others until they know it."""
    examples = [{"text": "kidney stone", "labels": ["N20"]}, {"text": "dry cough", "labels": ["R05"]}] * 5
    receipt = httpx.post(f"{address}/teach/v1/learn", json={"examples": examples}, timeout=60).json()
    print("taught:", receipt)
    while True:
        answer = httpx.post(f"{address}/v1/predict", json={"texts": ["kidney"], "top_k": 1}, timeout=60).json()
        if answer["version"] >= receipt["version"]:
            break
        time.sleep(0.1)
    print("asked:", answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--answering", type=int, default=2, help="replicas that answer")
    parser.add_argument("--address", default="local", help="of a Ray cluster; by default a new one on this machine")
    parser.add_argument("--try", dest="tries", action="store_true")
    options = parser.parse_args()
    start(options.model.absolute(), options.answering, options.address)
    if options.tries:
        try_it("http://127.0.0.1:8000")
        serve.shutdown()
        ray.shutdown()
        return
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
