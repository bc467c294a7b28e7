"""The `ramify` command, put together from the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from ramify.cli.commands import (
    backup,
    convert,
    demo,
    evaluate,
    explain,
    journal,
    keys,
    plot,
    predict,
    serve,
    stream,
    train,
    tree,
    tune,
)

app = typer.Typer(
    name="ramify",
    help="Extreme classification with trees: train, query, measure and explain models with very many labels.",
    epilog="Start with:  ramify demo\n\nExit codes: 0 success, 2 bad input, 1 unexpected error, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: half as long, and fast
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, stream, predict, evaluate, tune, explain, tree, convert, serve, backup, demo):
    app.command(epilog=command.EXAMPLES)(getattr(command, command.__name__.rpartition(".")[2]))
app.add_typer(plot.app, name="plot")
app.add_typer(keys.app, name="keys")
app.add_typer(journal.app, name="journal")


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from ramify import __version__, _core

        print(f"ramify {__version__} ({_core.instruction_set()})")
        raise typer.Exit()


@app.callback()
def common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    max_unpacked: Annotated[
        int | None,
        typer.Option(
            "--max-unpacked",
            metavar="BYTES",
            min=1,
            help="How far a compressed file may expand; a hundredfold, but at least 64 MB, by default.",
        ),
    ] = None,
    trust_vectorizer: Annotated[
        bool,
        typer.Option(
            "--trust-vectorizer",
            help="Load models whose regular expression for words may take for ever on some texts.",
        ),
    ] = False,
) -> None:
    if max_unpacked is not None:
        from ramify.data import limits

        context.with_resource(limits.max_unpacked(max_unpacked))
    if trust_vectorizer:
        from ramify.data.patterns import vectorizers_of_files

        context.with_resource(vectorizers_of_files(is_trusted=True))
