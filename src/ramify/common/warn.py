"""Warnings that point at the line of the user's program, however deep in the library they arise."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

_LIBRARY = str(Path(__file__).parent.parent) + os.sep


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called into the library."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
