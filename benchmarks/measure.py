"""Clocks and memory of the process that asks: wall seconds, CPU seconds of all its threads, resident megabytes."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from types import TracebackType


def cpu_seconds() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Stopwatch:
    """Wall and CPU seconds of a `with` block."""

    wall = 0.0
    cpu = 0.0

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), cpu_seconds()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.wall, self.cpu = time.perf_counter() - self._wall, cpu_seconds() - self._cpu


def _status_megabytes(field: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")), None)


def resident_megabytes() -> float | None:
    return _status_megabytes("VmRSS")


def peak_megabytes() -> float:
    """The highest resident size since the start or the last `forget_peak`."""
    peak = _status_megabytes("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if peak is None else peak


def forget_peak() -> None:
    """Start the peak anew, so that reading the data does not count as training. Linux only, elsewhere it counts."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def folder_megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
