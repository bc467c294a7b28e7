"""One virtual environment per peer, made on first use: their demands on numpy contradict each other."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import systems


def python_of(name: str, work: Path) -> Path:
    """The interpreter that has system `name`; ramify is the one running now."""
    return python_with(name, systems.module(name).INSTALL, work)


def python_with(name: str, installs: list[list[str]], work: Path) -> Path:
    """The interpreter of the environment `name`, into which these were installed; without any the one running now."""
    if not installs:
        return Path(sys.executable)
    folder = work / "environments" / name
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        print(f"making the environment of {name} in {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        for arguments in installs:
            subprocess.run([str(python), "-m", "pip", "install", "-q", *arguments], check=True)
        ready.touch()
    return python
