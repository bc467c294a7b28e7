"""A table or figure of a paper, and the commands that make our counterpart; see reproduce.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One benchmark script with its arguments; {data}, {work} and {sets} are filled in, minutes are an estimate."""

    module: str
    arguments: str
    minutes: float
    sets: str = ""
    quick: str | None = None  # arguments of --quick, which runs on the generated sets; None: the same ones


@dataclass(frozen=True)
class Item:
    """A table or figure: the paper's numbers as text, our steps, and one sentence on how they compare."""

    title: str
    paper: str
    steps: tuple[Step, ...]
    verdict: str
