"""The `ramify` command: its parts, and how it ends.

Exit codes: 0 all is well; 2 the command line, a file or a value is wrong (the message says where); 1 something
unexpected; 130 interrupted with Ctrl-C; 141 whoever read the output went away (as `head` does).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from ramify.cli.commands import convert, demo, evaluate, explain, plot, predict, stream, train, tree, tune
from ramify.cli.output import print_error

app = typer.Typer(
    name="ramify",
    help="Extreme classification with label trees: train, ask, measure and explain models with very many labels.",
    epilog="Start with:  ramify demo\n\nExit codes: 0 well, 2 bad input, 1 unexpected, 130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: half as long, and quick
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, stream, predict, evaluate, tune, explain, tree, convert, demo):
    app.command(epilog=command.EXAMPLES)(getattr(command, command.__name__.rpartition(".")[2]))
app.add_typer(plot.app, name="plot")

# Typer's own errors derive from click's class, wherever that lives: some releases bring click along.
_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        from ramify import __version__, _core

        print(f"ramify {__version__} ({_core.instruction_set()})")
        raise typer.Exit()


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command of this process and end it."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command and answer with its exit code; what goes wrong is told on stderr, without a traceback."""
    for channel in (sys.stdout, sys.stderr):
        if hasattr(channel, "reconfigure"):
            channel.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 shows what it can
    try:
        command = typer.main.get_command(app)
        with command.make_context("ramify", list(arguments) or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except BaseException as error:
        return _told(error)


def _told(error: BaseException) -> int:
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, BrokenPipeError):
        # What is still buffered has no reader; without this Python complains about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        print_error("interrupted; nothing was written")
        return 130
    if os.environ.get("RAMIFY_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        print_error(error.format_message(), f"see {context.command_path if context else 'ramify'} --help")
        return 2
    return _told_of_work(error)


def _told_of_work(error: BaseException) -> int:
    is_missing_extra = isinstance(error, ImportError) and "pip install" in str(error)
    if isinstance(error, ValueError) or is_missing_extra:
        message, _, hint = str(error).partition("\nhint: ")
        print_error(message, hint or None)
        return 2
    if isinstance(error, OSError):
        print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 2
    if isinstance(error, MemoryError):
        print_error(f"not enough memory ({error})" if str(error) else "not enough memory", "try fewer rows at once")
        return 1
    print_error(
        f"unexpected {type(error).__name__}: {error}",
        "this is a mistake in ramify; RAMIFY_TRACEBACK=1 in the environment shows where",
    )
    return 1
