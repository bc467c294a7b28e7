"""`ramify serve`: a model that many people query and teach over HTTP, with a web page."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli.options import examples

EXAMPLES = examples(
    "ramify serve --model demo/icd10",
    "ramify serve --model team-model --new --port 8080",
    "ramify keys add alice --file keys.json --scope ask --scope teach",
    "ramify serve --model team-model --host 0.0.0.0 --keys keys.json --workers 4",
)
# A service that was just killed may hold the directory for a moment longer.
_PATIENCE = 3.0
_RATE_WITH_KEYS = 200.0


def serve(
    model: Annotated[
        Path,
        typer.Option("--model", "-m", metavar="DIR", envvar="RAMIFY_MODEL", help="Directory of the model to serve."),
    ],
    new: Annotated[
        bool, typer.Option("--new", envvar="RAMIFY_NEW", help="Start with an empty online model if DIR holds none.")
    ] = False,
    host: Annotated[
        str, typer.Option(envvar="RAMIFY_HOST", help="Address to listen at; one of other machines needs --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, envvar="RAMIFY_PORT", help="0: any free port.")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, max=256, envvar="RAMIFY_WORKERS", help="Processes that answer requests.")
    ] = 1,
    keys: Annotated[
        Path | None, typer.Option(metavar="FILE", envvar="RAMIFY_KEYS", help="API keys: see `ramify keys`.")
    ] = None,
    publish_examples: Annotated[
        int, typer.Option(min=1, envvar="RAMIFY_PUBLISH_EXAMPLES", help="Publish a snapshot after this many examples,")
    ] = 1000,
    publish_seconds: Annotated[
        float, typer.Option(min=0.01, envvar="RAMIFY_PUBLISH_SECONDS", help="or after this time.")
    ] = 1.0,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.1, envvar="RAMIFY_CHECKPOINT_SECONDS", help="Time between checkpoints.")
    ] = 60.0,
    max_behind: Annotated[
        int, typer.Option(min=1, envvar="RAMIFY_MAX_BEHIND", help="Examples that may wait to be learned.")
    ] = 20_000,
    keep_examples: Annotated[
        int,
        typer.Option(
            min=0, envvar="RAMIFY_KEEP_EXAMPLES", help="Prune the journal to this many examples; 0 keeps all."
        ),
    ] = 0,
    threads: Annotated[int, typer.Option(min=1, envvar="RAMIFY_THREADS", help="Threads that learn.")] = 1,
    max_body: Annotated[int, typer.Option(min=1000, envvar="RAMIFY_MAX_BODY", help="Bytes of a request.")] = 10_000_000,
    max_rows: Annotated[int, typer.Option(min=1, envvar="RAMIFY_MAX_ROWS", help="Rows of a request.")] = 1000,
    max_text: Annotated[int, typer.Option(min=1, envvar="RAMIFY_MAX_TEXT", help="Characters of a text.")] = 100_000,
    max_requests: Annotated[
        int, typer.Option(min=1, envvar="RAMIFY_MAX_REQUESTS", help="Requests at the same time, per worker.")
    ] = 200,
    max_connections: Annotated[
        int, typer.Option(min=1, envvar="RAMIFY_MAX_CONNECTIONS", help="Connections at the same time, per worker.")
    ] = 1000,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0, envvar="RAMIFY_RATE", help="Requests per second of a client; 0: no limit. Default: 200 with keys."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, envvar="RAMIFY_TIMEOUT", help="Most seconds for a request.")
    ] = 30.0,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", envvar="RAMIFY_LOG_TEXTS", help="Log the texts of requests, too.")
    ] = False,
    multiclass: Annotated[
        bool, typer.Option("--multiclass", envvar="RAMIFY_MULTICLASS", help="--new: each row has exactly one label.")
    ] = False,
    ngrams: Annotated[
        int, typer.Option(min=1, max=5, envvar="RAMIFY_NGRAMS", help="--new: most consecutive words in a feature.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, envvar="RAMIFY_SEED", help="--new: of the model.")] = 0,
) -> None:
    """Serve a model over HTTP, with a web page.

    An online model also learns: a correction is on the disk when it is acknowledged, and survives kill -9. A batch
    model answers only. --multiclass, --ngrams and --seed are for --new. Logs are JSON on stderr.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(f"`ramify serve` needs {error.name}: pip install 'ramify[serve]'") from None
    import asyncio

    from ramify.cli.lock import only_writer
    from ramify.serve.logs import log_as_json
    from ramify.serve.settings import Settings
    from ramify.serve.supervisor import Supervisor, bind, check_settings

    settings = Settings(
        model=model,
        host=host,
        port=port,
        workers=workers,
        keys=keys,
        is_new=new,
        is_multiclass=multiclass,
        ngrams=ngrams,
        seed=seed,
        threads=threads,
        publish_examples=publish_examples,
        publish_seconds=publish_seconds,
        checkpoint_seconds=checkpoint_seconds,
        max_behind=max_behind,
        keep_examples=keep_examples,
        max_body=max_body,
        max_rows=max_rows,
        max_text=max_text,
        max_requests=max_requests,
        max_connections=max_connections,
        rate=rate if rate is not None else 0.0 if keys is None else _RATE_WITH_KEYS,
        timeout=timeout,
        log_texts=log_texts,
    )
    check_settings(settings)
    with ExitStack() as stack:
        folder = model.resolve().parent
        if not folder.exists() or os.access(folder, os.W_OK):  # nothing can be written next to a read-only model
            stack.enter_context(only_writer(model, "ramify serve", _PATIENCE))
        listening = stack.enter_context(bind(settings))
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        log_as_json()

        async def run() -> int:
            return await Supervisor(settings, listening).run(
                lambda: print(f"Serving {model} at {address}  (Ctrl-C stops)", flush=True)
            )

        code = asyncio.run(run())
    if code:
        raise typer.Exit(code)
