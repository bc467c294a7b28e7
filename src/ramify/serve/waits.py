"""How long predictions wait for learning: the published bound, and the longest wait of this process so far.

A prediction takes no lock that the learner holds, and examples are read and learned in another process. What is left is
the moment at which a worker maps a new snapshot: a thread does so, and answers wait while it holds the interpreter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

# The longest that a prediction may wait for learning, for a model of any size.
BOUND_SECONDS = 0.1
_TICK_SECONDS = 0.001


class LearningWaits:
    """Measures how much later than asked for the event loop comes around while a thread maps a snapshot."""

    def __init__(self, on_longer: Callable[[float], None] = lambda seconds: None) -> None:
        self.longest = 0.0
        self._on_longer = on_longer

    async def during(self, work: Callable[[], Any]) -> None:
        """Run `work` in a thread."""
        done = asyncio.ensure_future(asyncio.to_thread(work))
        while not done.done():
            began, others = time.perf_counter(), _seconds_of_other_threads()
            await asyncio.wait([done], timeout=_TICK_SECONDS)
            late = time.perf_counter() - began - _TICK_SECONDS
            # A processor that was busy with other programs is no wait for learning.
            late = min(late, _seconds_of_other_threads() - others)
            if late > self.longest:
                self.longest = late
                self._on_longer(late)
        await done

    def describe(self) -> dict[str, float]:
        """What `/v1/progress` says."""
        return {"bound_seconds": BOUND_SECONDS, "longest_seconds": round(self.longest, 6)}


def _seconds_of_other_threads() -> float:
    return time.process_time() - time.thread_time()
