"""Python processes that start in a few milliseconds: forks of one that has imported ramify and scikit-learn already.

Importing them takes two seconds of a processor, and the tests start about a hundred programs. A fork of a process that
has done nothing but import is as good as a new one for most tests. Those about imports, about the start or the end of
the interpreter, or about limits to memory start a real one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

RAMIFY = "import sys; sys.argv[0] = 'ramify'; from ramify.cli.start import main; main()"
PRELOADED = [
    "matplotlib.figure",
    "pandas",
    "rich.live",
    "rich.progress",
    "rich.table",
    "sklearn.isotonic",
    "sklearn.linear_model",
]


def environment(**changes):
    """The variables of a process that can import the tests' own modules too."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **changes}


@functools.cache
def warm_python() -> list[str]:
    """What to write instead of `[sys.executable]`; the server starts at the first call and ends with this process."""
    folder = tempfile.mkdtemp(prefix="ramify-warm-")
    address = os.path.join(folder, "socket")
    client = str(Path(__file__).with_name("warm_client.py"))
    # The server ends when its standard input does: at the end of this process, however that comes.
    server = subprocess.Popen(
        [sys.executable, "-c", "from shared.warm_python import serve; serve()", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert server.stdout.readline() == b"ready\n"
    atexit.register(server.wait)
    atexit.register(server.stdin.close)
    return [sys.executable, "-I", "-S", client, address]


def ramify_command() -> list[str]:
    """What to write instead of `["ramify"]`."""
    return [*warm_python(), "-c", RAMIFY]


def run(script, *arguments, timeout=120, **changes):
    """Standard output of a script that must end well."""
    done = subprocess.run(
        [*warm_python(), "-c", script, *map(str, arguments)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def serve():
    """Forks for each request, says how the fork ended, and kills it if the client goes away."""
    address = sys.argv[1]
    for module in PRELOADED:
        importlib.import_module(module)
    ramify = importlib.import_module("ramify")
    for module in pkgutil.walk_packages(ramify.__path__, "ramify."):
        if module.name != "ramify.river":
            importlib.import_module(module.name)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    clients: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as ready:
        listener.bind(address)
        listener.listen()
        for file in (listener, reader, 0):
            ready.register(file, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in ready.select():
                if key.fileobj == 0:
                    for child in clients:
                        os.kill(child, signal.SIGKILL)
                    shutil.rmtree(os.path.dirname(address))
                    return
                if key.fileobj is listener:
                    client, _ = listener.accept()
                    child = accept(client, listener)
                    clients[child] = client
                    ready.register(client, selectors.EVENT_READ, child)
                elif key.fileobj == reader:
                    os.read(reader, 4096)
                    while clients and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                        client = clients.pop(ended[0])
                        ready.unregister(client)
                        with contextlib.suppress(BrokenPipeError):
                            client.sendall(f"{os.waitstatus_to_exitcode(ended[1])}\n".encode())
                        client.close()
                elif key.data in clients:
                    os.kill(key.data, signal.SIGKILL)  # clients say nothing more: this one was killed


def accept(client, listener):
    """Reads a request and runs it in a fork, whose number is returned."""
    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    request = json.loads(client.makefile("rb").read(int.from_bytes(size, "little")))
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        client.sendall(f"{child}\n".encode())
        return child
    client.close()
    listener.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os._exit(run_program(request))


def run_program(request):
    """Runs what the client asked for and returns the exit code, as the interpreter would."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        file = os.fdopen(number, "rb" if number == 0 else "wb", closefd=False)
        fallback = "backslashreplace" if name == "stderr" else errors or "strict"
        line_buffering = name == "stderr" or file.isatty()
        setattr(sys, name, io.TextIOWrapper(file, encoding, fallback, line_buffering=line_buffering))
    program, *arguments = request["argv"]
    code = 0
    try:
        if program == "-c":
            sys.argv, sys.path[0] = ["-c", *arguments[1:]], ""
            exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv, sys.path[0] = [program, *arguments], os.path.dirname(program)
            runpy.run_path(program, run_name="__main__")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if code and not isinstance(ended.code, int):
            print(ended.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120
    return code
