"""`ramify backup`: copy a served model and its journal while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import output
from ramify.cli.options import examples

EXAMPLES = examples("ramify backup --model live --to backup-2026-11-16", "ramify serve --model backup-2026-11-16")


def backup(
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Directory that is served.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="New directory for the copy.")],
) -> None:
    """Copy a model and its journal, also while `ramify serve` runs.

    The copy holds everything acknowledged before the command started. To restore it, serve it, or copy it back.
    """
    from ramify.serve.backup import back_up

    n = back_up(model, to)
    print(f"Copied {model} with {output.count(n, 'example')} in the journal to {to}.")
