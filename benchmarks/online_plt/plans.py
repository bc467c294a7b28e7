"""Which streams are measured for which question."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks import learners

STREAMS = ("debian-depends", "eurlex57k", "S", "yso-finna-en")
FEW_SHOT = ("wordnet-parent", "few-shot-3", "few-shot-5")
PEERS = (("napkinxc", "best"), ("vowpal_wabbit", "plt"))
POLICIES = ("fair", "best", "balanced", "random")
STEPS = "-papers-steps"


@dataclass(frozen=True)
class Job:
    """One learner on one stream. `parameters` replace the setting's own."""

    set: str
    system: str
    setting: str
    order: str = "shuffled"
    seed: int = 0
    passes: int = 1
    threads: int = 1
    progressive: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def throughput(sets: tuple[str, ...], shuffles: int) -> Iterator[Job]:
    """One pass, one thread, beside the peers; ours also on rows as stored and on labels that come one by one."""
    for name in sets:
        for seed in range(shuffles):
            yield from (Job(name, "ramify", policy, seed=seed) for policy in (*POLICIES, "best" + STEPS))
        yield from (Job(name, "ramify", "fair", order) for order in ("stored", "by-label"))
        yield from (Job(name, *peer) for peer in PEERS)


def threads(sets: tuple[str, ...], shuffles: int) -> Iterator[Job]:
    """Two passes with one thread and with two, in turns: the machine's speed drifts."""
    for name in sets:
        for seed in range(shuffles):
            for policy in ("fair", "best"):
                yield from (Job(name, "ramify", policy, seed=seed, passes=2, threads=n) for n in (1, 2))


def paper(sets: tuple[str, ...], shuffles: int) -> Iterator[Job]:
    """The paper's table 2: batch, incremental and online trees after one pass and after three."""
    settings = ("batch", "incremental", *POLICIES, "warm-best", "warm-fair", "warm-only", "incremental-wide")
    settings += tuple(setting + STEPS for setting in ("incremental", *POLICIES, "warm-best"))
    for name in sets:
        for seed in range(shuffles):
            for setting in settings:
                yield Job(name, "ramify", setting, seed=seed, passes=1 if setting == "batch" else 3)


def sweeps(sets: tuple[str, ...], shuffles: int) -> Iterator[Job]:
    """The paper's appendices F and G: alpha, and the size of the warm sample."""
    names = [
        setting for setting in learners.module("ramify").SETTINGS if setting[-1].isdigit() and "max" not in setting
    ]
    for name in sets:
        for seed in range(shuffles):
            yield from (Job(name, "ramify", setting, seed=seed) for setting in names)


def few_shot(sets: tuple[str, ...], shuffles: int) -> Iterator[Job]:
    """The paper's table 3 and figure 2: progressive and test accuracy, and the time of learning without tests."""
    for name in sets:
        for system in ("ramify", "vowpal_wabbit"):
            for setting, options in learners.module(system).SETTINGS.items():
                if options.kind != "multiclass":
                    continue
                for seed in range(shuffles):
                    yield Job(name, system, setting, seed=seed, progressive=True)
                    if system == "ramify":  # the peers' answers before learning are a by-product
                        yield Job(name, system, setting, seed=seed, passes=3)


@dataclass(frozen=True)
class Plan:
    jobs: Callable[[tuple[str, ...], int], Iterator[Job]]
    sets: tuple[str, ...]
    shuffles: int


PLANS = {
    "throughput": Plan(throughput, STREAMS, 1),
    "threads": Plan(threads, STREAMS, 3),
    "paper": Plan(paper, ("eurlex57k", "debian-depends", "yso-finna-en", "delicious", "bibtex"), 5),
    "sweeps": Plan(sweeps, ("eurlex57k", "debian-depends"), 3),
    "few-shot": Plan(few_shot, FEW_SHOT, 1),
}


def jobs(plan: str, sets: list[str] | None, patterns: list[str], shuffles: int | None) -> list[Job]:
    chosen = PLANS[plan]
    made = chosen.jobs(tuple(sets) if sets else chosen.sets, shuffles or chosen.shuffles)
    return [job for job in made if any(fnmatch.fnmatch(f"{job.system}:{job.setting}", one) for one in patterns)]
