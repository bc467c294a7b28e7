"""`ramify keys`: the API keys of a service."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import output
from ramify.cli.options import examples

EXAMPLES = examples(
    "ramify keys add alice --file keys.json --scope ask --scope teach",
    "ramify keys list --file keys.json",
    "ramify keys remove 0123456789ab --file keys.json",
)
app = typer.Typer(
    help="API keys of `ramify serve`. Changes count at once, without a restart.", epilog=EXAMPLES, rich_markup_mode=None
)


class Scope(str, Enum):
    ask = "ask"
    teach = "teach"
    administer = "administer"


KeyFile = Annotated[Path, typer.Option("--file", "-f", metavar="FILE", envvar="RAMIFY_KEYS", help="File of the keys.")]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is; logs show this name.")],
    file: KeyFile = Path("keys.json"),
    scope: Annotated[
        list[Scope] | None, typer.Option(help="ask, teach or administer; repeatable. Default: ask.")
    ] = None,
) -> None:
    """Add a key and print it: only its hash is stored, so it cannot be shown again."""
    from ramify.serve.keys import add_key

    print(add_key(file, name, [one.value for one in scope or [Scope.ask]]))


@app.command("list")
def list_keys(file: KeyFile = Path("keys.json")) -> None:
    """List the keys: id, scopes, name."""
    from ramify.serve.keys import read_keys

    for key in read_keys(file).values():
        output.show(f"{key.id}  {','.join(sorted(key.scopes)):20}  {output.visible(key.name)}")


@app.command()
def remove(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The id of the key: see `ramify keys list`.")],
    file: KeyFile = Path("keys.json"),
) -> None:
    """Remove a key; the service refuses it at once."""
    from ramify.serve.keys import remove_key

    output.show(f"removed {identity} of {output.visible(remove_key(file, identity).name)}")
