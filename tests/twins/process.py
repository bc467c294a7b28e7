"""Runs a script in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def environment(**changes):
    # The tests' own modules can be imported there too.
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **changes}


def run(script, *arguments, timeout=120, **changes):
    """Standard output of a script that must end well."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
