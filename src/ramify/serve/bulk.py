"""Bulk prediction and learning: a line of JSON per row, in and out (NDJSON).

The body is read to its end first, to a temporary file if it is large: a client that sends everything before it reads
would otherwise wait for a service that waits for the client.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from ramify.serve import api_models as models
from ramify.serve.limits import LEAST_BYTES_PER_SECOND
from ramify.serve.problems import Problem
from ramify.serve.routes import PROBLEMS, idempotency_key
from ramify.serve.service import Service

AT_ONCE = 100
LABELS_AT_ONCE = 10_000
MEDIA_TYPE = "application/x-ndjson"
_IN_MEMORY = 4_000_000
_BODY = {"requestBody": {"required": True, "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "A line per row or batch."}
}

Lines = list[tuple[int, bytes]]


def bulk_routes(service: Service) -> APIRouter:
    """The routes of a service."""
    router = APIRouter(responses=PROBLEMS)
    settings = service.settings

    @router.post(
        "/v1/bulk/predict", openapi_extra=_BODY, responses=_ANSWER, response_class=StreamingResponse, tags=["ask"]
    )
    async def bulk_predict(request: Request) -> StreamingResponse:
        """Lines such as {"text": …} or {"features": …}; each answer is {"labels": […], "version": …}."""
        top_k = _parameter(request, "top_k", 5)
        body = await _spooled(request, settings.timeout)

        async def answers(lines: Lines) -> list[dict[str, Any]]:
            rows = [_row(number, line, settings.max_text) for number, line in lines]
            kinds = {kind for kind, _ in rows}
            if len(kinds) > 1:
                raise Problem(422, "all rows must be texts, or all features", where=f"line {lines[0][0]}")
            kind = kinds.pop()
            found = await service.predict({kind: [row for _, row in rows], "top_k": top_k, "threshold": None})
            return [result | {"version": found["version"]} for result in found["results"]]

        at_once = max(1, min(AT_ONCE, LABELS_AT_ONCE // top_k))
        return StreamingResponse(_streamed(body, answers, settings.max_body, at_once), media_type=MEDIA_TYPE)

    @router.post(
        "/v1/bulk/learn", openapi_extra=_BODY, responses=_ANSWER, response_class=StreamingResponse, tags=["teach"]
    )
    async def bulk_learn(request: Request) -> StreamingResponse:
        """Lines such as {"text": …, "labels": […]}; an answer per committed batch: {"lines": …, "version": …}.

        With an Idempotency-Key, a stream that is sent again counts once.
        """
        key = idempotency_key(request)
        body = await _spooled(request, settings.timeout)
        if not await service.learns():
            await service.learn([], None)  # says why it cannot

        async def receipts(lines: Lines) -> list[dict[str, Any]]:
            examples = [_example(number, line, settings.max_text) for number, line in lines]
            batch_key = None if key is None else f"{key}#{lines[0][0]}"
            while True:
                try:
                    receipt = await service.learn(examples, batch_key)
                    break
                except Problem as problem:
                    if problem.status != 503 or problem.retry_after is None:
                        raise
                    await asyncio.sleep(min(problem.retry_after, 1))  # a stream waits instead of failing
            return [{"lines": lines[-1][0], "version": receipt["version"], "duplicate": receipt["duplicate"]}]

        return StreamingResponse(_streamed(body, receipts, settings.max_body, AT_ONCE), media_type=MEDIA_TYPE)

    return router


async def _spooled(request: Request, seconds: float) -> IO[bytes]:
    body = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  (the stream of the answer closes it)
    chunks = request.stream()
    began = time.monotonic()
    try:
        while True:
            left = began + seconds + body.tell() / LEAST_BYTES_PER_SECOND - time.monotonic()
            chunk = await asyncio.wait_for(anext(chunks, None), min(left, seconds))
            if chunk is None:
                break
            body.write(chunk)
    except asyncio.TimeoutError:
        body.close()
        raise Problem(408, "the body came too slowly: send it again, in smaller parts") from None
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body


async def _streamed(body: IO[bytes], answer: Any, longest: int, at_once: int) -> AsyncIterator[bytes]:
    """The answers to the lines of a body; a Problem is the last line."""
    with body:
        try:
            for lines in _batches(body, longest, at_once):
                yield b"".join(json.dumps(line).encode() + b"\n" for line in await answer(lines))
        except Problem as problem:
            yield json.dumps({"problem": problem.content()}).encode() + b"\n"


def _batches(body: IO[bytes], longest: int, at_once: int) -> Iterator[Lines]:
    """Lines with their numbers, some of them at a time, or fewer if they are long."""
    batch: Lines = []
    size = 0
    for number, line in enumerate(iter(lambda: body.readline(longest + 1), b""), 1):
        if len(line) > longest:
            raise Problem(413, f"a line has at most {longest:,} bytes", where=f"line {number}")
        if line.strip():
            batch.append((number, line))
            size += len(line)
        if len(batch) == at_once or size > longest:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Row(models.Request):
    text: str | None = None
    features: models.Features | None = None


def _row(number: int, line: bytes, most: int) -> tuple[str, Any]:
    row = _parsed(_Row, number, line)
    if (row.text is None) == (row.features is None):
        raise Problem(422, "a row has either `text` or `features`", where=f"line {number}")
    _check_length(row.text, number, most)
    return ("texts", row.text) if row.text is not None else ("features", row.features)


def _example(number: int, line: bytes, most: int) -> dict[str, Any]:
    example = _parsed(models.Example, number, line)
    _check_length(example.text, number, most)
    return example.content()


def _check_length(text: str | None, number: int, most: int) -> None:
    if text is not None and len(text) > most:
        raise Problem(413, f"a text has at most {most:,} characters, got {len(text):,}", where=f"line {number}")


def _parsed(model: type[models.Model], number: int, line: bytes) -> models.Model:
    try:
        return models.parse(model, line)
    except Problem as problem:
        where = "" if problem.where in (None, "body") else f", {problem.where}"
        raise Problem(problem.status, problem.detail, where=f"line {number}{where}") from None


def _parameter(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, str(default))
    if not given.isdecimal() or not 1 <= int(given[:9]) <= models.MAX_TOP_K:
        raise Problem(422, f"{name} must be a number from 1 to {models.MAX_TOP_K}, got {given[:20]!r}", where=name)
    return int(given)
