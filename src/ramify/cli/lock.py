"""One process that writes a model directory: another is rejected with the name and process id of the first."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = ".stream-lock"


@contextlib.contextmanager
def only_writer(model: Path, command: str = "ramify stream", patience: float = 0.0) -> Iterator[None]:
    """Hold the directory for a whole run; the lock goes with the process, however it ends.

    `patience`: seconds to wait for a process that is just ending.
    """
    model = model.resolve()
    path = _place(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(path, model, time.monotonic() + patience)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{command}, process {os.getpid()}".encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _place(model: Path) -> Path:
    """Beside the directory, which may not exist yet; inside, if that is all that may be written (a mounted volume)."""
    is_inside = model.is_dir() and not os.access(model.parent, os.W_OK)
    return model / LOCK if is_inside else model.parent / f".{model.name}{LOCK}"


def _locked(path: Path, model: Path, deadline: float) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(model)) from None  # users know nothing of the lock's name
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode("utf-8", "replace") or "another process"
            os.close(descriptor)
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            raise ValueError(
                f"{model} is in use by {holder}: wait until it ends, or give another --model directory"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # its holder has removed it in between
