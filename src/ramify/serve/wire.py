"""Calls from workers to the writer: JSON messages over a socket that only the two have; bodies follow as they came."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ramify.serve.problems import Problem

if TYPE_CHECKING:
    from ramify.serve.journal import Content
    from ramify.serve.writer import Writer

log = logging.getLogger("ramify.serve")

CALLS = ("describe", "learn", "learn_body", "predict", "explain", "progress", "counts", "most_frequent")
# What a worker says if it can answer before the writer is ready.
ANSWERING = "answering"
_HEAD = 4


async def _read(reader: asyncio.StreamReader) -> Any:
    size = int.from_bytes(await reader.readexactly(_HEAD), "big")
    return json.loads(await reader.readexactly(size))


def _write(writer: asyncio.StreamWriter, message: Any, body: bytes = b"") -> None:
    head = json.dumps(message).encode()
    writer.write(len(head).to_bytes(_HEAD, "big") + head)
    if body:
        writer.write(body)


async def answer_calls(
    ready: asyncio.Future[Writer],
    reader: asyncio.StreamReader,
    back: asyncio.StreamWriter,
    on_answering: Callable[[], None],
) -> None:
    """Answer the calls of one worker until it closes its end; they wait for the writer to be ready."""
    running: set[asyncio.Task[None]] = set()

    async def answer(number: int, name: str, arguments: list[Any]) -> None:
        try:
            if name not in CALLS:
                raise ValueError(f"no call {name!r}")
            writer = await asyncio.shield(ready)
            result = await getattr(writer, name)(*arguments)
            message = {"number": number, "result": result}
        except Problem as problem:
            message = {"number": number, "problem": problem.content()}
        except Exception:
            log.exception("a call of a worker failed", extra={"call": name})
            message = {"number": number, "problem": Problem(500, "this is a bug in ramify; see the log").content()}
        _write(back, message)

    try:
        while True:
            message = await _read(reader)
            if message == ANSWERING:
                on_answering()
                continue
            arguments = message["arguments"]
            if message["body"] is not None:
                arguments.append(await reader.readexactly(message["body"]))
            task = asyncio.create_task(answer(message["number"], message["call"], arguments))
            running.add(task)
            task.add_done_callback(running.discard)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        if running:
            await asyncio.wait(running)
        back.close()


class RemoteWriter:
    """The writer of another process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.create_task(self._listen())
        self.is_closed = asyncio.Event()

    async def _listen(self) -> None:
        try:
            while True:
                message = await _read(self._reader)
                future = self._waiting.pop(message["number"], None)
                if future is not None and not future.done():
                    if "problem" in message:
                        future.set_exception(Problem.from_content(message["problem"]))
                    else:
                        future.set_result(message["result"])
        except (asyncio.IncompleteReadError, ConnectionError):
            self.is_closed.set()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Problem(503, "the writer has stopped: try again", retry_after=1))

    def say_answering(self) -> None:
        """Tell the supervisor that this worker answers."""
        _write(self._writer, ANSWERING)

    async def _call(self, name: str, *arguments: Any, body: bytes | None = None) -> Any:
        if self.is_closed.is_set():
            raise Problem(503, "the writer has stopped: try again", retry_after=1)
        number = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        size = None if body is None else len(body)
        _write(self._writer, {"number": number, "call": name, "arguments": arguments, "body": size}, body or b"")
        try:
            return await future
        finally:
            self._waiting.pop(number, None)

    async def describe(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("describe")
        return found

    async def learn(self, examples: Sequence[Content], key: str | None) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("learn", examples, key)
        return found

    async def learn_body(self, kind: str, key: str | None, body: bytes) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("learn_body", kind, key, body=body)
        return found

    async def predict(self, request: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("predict", request)
        return found

    async def explain(self, request: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("explain", request)
        return found

    async def progress(self) -> dict[str, Any]:
        found: dict[str, Any] = await self._call("progress")
        return found

    async def counts(self, labels: list[Any]) -> list[int]:
        found: list[int] = await self._call("counts", labels)
        return found

    async def most_frequent(self, limit: int, offset: int) -> list[Any]:
        found: list[Any] = await self._call("most_frequent", limit, offset)
        return found
