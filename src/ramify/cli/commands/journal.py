"""`ramify journal`: the examples that a service was taught."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import output
from ramify.cli.options import examples

EXAMPLES = examples(
    "ramify journal export live > examples.jsonl", "ramify journal check live", "ramify journal repair live"
)
app = typer.Typer(
    help="The journal of `ramify serve`: every example that was acknowledged.", epilog=EXAMPLES, rich_markup_mode=None
)

Where = Annotated[Path, typer.Argument(metavar="PATH", help="A served directory, or its journal file.")]


@app.command()
def export(path: Where) -> None:
    """Write the examples as JSONL to stdout; works while the service runs."""
    import json

    from ramify.serve.journal import Journal
    from ramify.serve.store import journal_at

    journal = Journal(journal_at(path))
    for piece in journal.after(0):
        for example in piece.examples:
            sys.stdout.write(json.dumps(example, ensure_ascii=False) + "\n")


@app.command()
def check(path: Where) -> None:
    """Read the whole journal and verify every checksum."""
    from ramify.serve.journal import Journal
    from ramify.serve.store import journal_at

    journal = Journal(journal_at(path))
    journal.check()
    n = sum(len(piece.examples) for piece in journal.after(0))
    print(f"{output.count(n, 'example')}, all sound; the last is number {journal.last:,}")


@app.command()
def repair(path: Where) -> None:
    """Keep every example that can be read; the damaged file stays under another name."""
    from ramify.cli.lock import only_writer
    from ramify.serve.repair import repair as repaired
    from ramify.serve.store import journal_at

    file = journal_at(path)
    with only_writer(file.parent, "ramify journal repair"):
        kept, lost, old = repaired(file)
    lost_words = f", {lost:,} could not be read" if lost else ""
    print(f"kept {output.count(kept, 'example')}{lost_words}; the damaged file is {old}")
