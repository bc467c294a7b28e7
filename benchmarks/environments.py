"""One virtual environment per peer, created on first use: they need different versions of numpy."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks import systems


def python_of(name: str, work: Path) -> Path:
    """The interpreter with system `name` installed; for ramify, the running one."""
    return python_with(name, systems.module(name).INSTALL, work)


def python_with(name: str, installs: list[list[str]], work: Path) -> Path:
    """The interpreter of environment `name` with these packages; the running one if there are none to install."""
    if not installs:
        return Path(sys.executable)
    folder = work / "environments" / name
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        print(f"creating the environment of {name} in {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        for arguments in installs:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *arguments], check=True)
        ready.touch()
    return python
