"""Corrections are committed ahead of bulk that waits for the learner; bulk keeps its order."""

from __future__ import annotations

import asyncio

import pytest

from ramify.serve.turns import CORRECTION, Turns


class Backlog:
    """A learner's queue of which a test takes away."""

    def __init__(self):
        self.examples, self.changed, self.accepted = 0, asyncio.Event(), []
        self.turns = Turns(lambda: self.examples * 0.001, lambda: self.changed)

    async def add(self, name, n_examples, seconds=10.0):
        def accept():
            self.examples += n_examples
            self.accepted.append(name)

        await self.turns.enter(n_examples, accept, seconds)

    def learn_all(self):
        self.examples = 0
        self.changed.set()
        self.changed = asyncio.Event()


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_correction_goes_ahead_of_bulk_that_waits():
    async def check():
        queue = Backlog()
        await queue.add("bulk 1", 100)
        bulk = [asyncio.create_task(queue.add(f"bulk {number}", 100)) for number in (2, 3)]
        await settled()
        await queue.add("correction", CORRECTION)
        assert queue.accepted == ["bulk 1", "correction"]
        queue.learn_all()
        await settled()
        assert queue.accepted == ["bulk 1", "correction", "bulk 2"]  # one at a time, in order
        queue.learn_all()
        await asyncio.gather(*bulk)
        assert queue.accepted[-1] == "bulk 3"

    asyncio.run(check())


def test_bulk_that_waits_too_long_is_not_accepted_and_holds_up_nobody():
    async def check():
        queue = Backlog()
        await queue.add("bulk 1", 100)
        with pytest.raises(asyncio.TimeoutError):
            await queue.add("late", 100, seconds=0.01)
        queue.learn_all()
        await queue.add("bulk 2", 100)
        assert queue.accepted == ["bulk 1", "bulk 2"]

    asyncio.run(check())
