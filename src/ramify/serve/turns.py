"""Whose examples are committed next: a correction goes ahead of bulk, and bulk waits while much is to be learned.

Examples are learned in the order of the journal, so a correction waits for everything that was committed before it.
Requests that are not committed yet can still be put in another order: small ones are committed at once, large ones one
by one as the learner catches up. The queue of the learner then never holds much more than `BACKLOG_SECONDS` of work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

Accepted = TypeVar("Accepted")

# A request of at most this many examples is a correction.
CORRECTION = 10
# Bulk waits while the learner needs longer than this for what it has; `fresh` answers are promised within 0.1 s.
BACKLOG_SECONDS = 0.015


class Turns:
    """Lets large requests in one by one, in the order in which they came."""

    def __init__(self, backlog_seconds: Callable[[], float], changed: Callable[[], asyncio.Event]) -> None:
        """`changed` gives an event that is set when the backlog has changed."""
        self._backlog_seconds = backlog_seconds
        self._changed = changed
        self._one_by_one = asyncio.Lock()

    async def enter(self, n_examples: int, accept: Callable[[], Accepted], seconds: float) -> Accepted:
        """Call `accept` when it is the turn of a request; asyncio.TimeoutError if that takes too long."""
        if n_examples <= CORRECTION:
            return accept()
        return await asyncio.wait_for(self._enter_later(accept), seconds)

    async def _enter_later(self, accept: Callable[[], Accepted]) -> Accepted:
        async with self._one_by_one:
            while self._backlog_seconds() > BACKLOG_SECONDS:
                await self._changed().wait()
            return accept()  # before the next one looks at the backlog
