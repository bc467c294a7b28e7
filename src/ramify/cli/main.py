"""The entry point: how the `ramify` command starts and how it ends.

Exit codes: 0 success; 2 the command line, a file or a value is wrong (the message says where); 1 unexpected error;
130 interrupted with Ctrl-C; 141 the reader of the output closed the pipe (as `head` does).

This module imports only a few small modules, so that `main` can handle Ctrl-C before the others are loaded.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, CLOSED_PIPE = 130, 141


def main() -> NoReturn:
    """Run the command of this process and end it."""
    # A shell that starts the command in the background ignores Ctrl-C for it; leave that as it is.
    handles_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles_interrupts:
        signal.signal(signal.SIGINT, _exit_at_once)
        import ramify.cli.app  # noqa: F401  (nothing is open yet: an interrupt may end the process)

        signal.signal(signal.SIGINT, _interrupt)
    code = run(sys.argv[1:])
    if handles_interrupts:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done: let the shutdown finish with its exit code
    if code == INTERRUPTED:
        # Skip the interpreter's shutdown, which would complain about objects that the interrupted work still holds.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. Errors are printed to stderr, without a traceback."""
    if sys.stdout is None or sys.stderr is None:  # closed by the caller
        nowhere = open(os.devnull, "w")  # noqa: SIM115
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for channel in (sys.stdout, sys.stderr):
        if hasattr(channel, "reconfigure"):
            channel.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 shows what it can
    _interrupts.clear()
    warnings.showwarning = _print_warning
    try:
        from typer.main import get_command

        from ramify.cli.app import app

        command = get_command(app)
        with command.make_context("ramify", list(arguments) or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()
        return 0
    except BaseException as error:
        return _exit_code(error)


def _print_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Show a warning for users without the place in the library that it comes from, any other as Python does."""
    from ramify.cli.output import visible_lines

    is_for_users = issubclass(category, UserWarning)
    said = f"warning: {message}\n" if is_for_users else warnings.formatwarning(message, category, filename, lineno)
    sys.stderr.write(visible_lines(said))


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------

# Interrupts of the current command. A library may turn the KeyboardInterrupt into an error of its own.
_interrupts: list[int] = []


def _exit_at_once(_number: int, _frame: FrameType | None) -> NoReturn:
    """End the process: for the time when no file is open and no command runs."""
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not where Python would print and drop it: there, come back a moment later."""
    if _drops_exceptions(frame):
        from threading import Timer, get_ident

        Timer(0.01, signal.pthread_kill, (get_ident(), number)).start()
        return
    _interrupts.append(number)
    raise KeyboardInterrupt


def _drops_exceptions(frame: FrameType | None) -> bool:
    """Whether the code that runs is a finalizer or a callback of the import system."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or (code.co_name == "cb" and code.co_filename.startswith("<frozen importlib")):
            return True
        frame = frame.f_back
    return False


# --- errors ----------------------------------------------------------------------------------------------------------


def _exit_code(error: BaseException) -> int:
    """Print an error and return the exit code that it means."""
    if isinstance(error, BrokenPipeError):
        # Buffered output has no reader any more; without this Python complains about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    if isinstance(error, KeyboardInterrupt) or _interrupts:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    return _exit_code_of_command(error)


def _exit_code_of_command(error: BaseException) -> int:
    import typer

    from ramify.cli.output import print_error

    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    if os.environ.get("RAMIFY_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    # Typer's errors derive from click's class, and some releases of typer contain click.
    usage_error = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
    if isinstance(error, usage_error):
        context = getattr(error, "ctx", None)
        message = error.format_message()  # type: ignore[attr-defined]
        print_error(message, f"see {context.command_path if context else 'ramify'} --help")
        return 2
    is_missing_extra = isinstance(error, ImportError) and "pip install" in str(error)
    if isinstance(error, ValueError) or is_missing_extra:
        message, _, hint = str(error).partition("\nhint: ")
        print_error(message, hint or None)
        return 2
    if isinstance(error, OSError):
        from ramify.data.files import DISK_FULL

        # Files are named; what has no name and could not be written is what the command prints.
        place = error.filename or ("the output" if error.errno in DISK_FULL else "")
        print_error(f"{place}: {error.strerror}" if place else error.strerror or str(error))
        return 2
    if isinstance(error, MemoryError):
        print_error(f"not enough memory ({error})" if str(error) else "not enough memory", "try fewer rows at once")
        return 1
    print_error(
        f"unexpected {type(error).__name__}: {error}",
        "this is a bug in ramify; set RAMIFY_TRACEBACK=1 in the environment to see where",
    )
    return 1
