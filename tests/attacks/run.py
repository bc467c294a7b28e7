"""Run every attack of this folder until a number of inputs is reached, and print how often each outcome occurred.

    python tests/attacks/run.py --inputs 1000000 --seed 7

An attack is a function attack_*(count, seed) -> Counter of outcomes in a module of this folder. If it takes more
parameters, their values are those of the test that calls it. All attacks get the same share of the processors' time, so
quick ones run most of the inputs; but each runs at least one of LEAST_SHARE inputs. What an attack raises is a failure,
and so are the outcomes that it writes in capitals, hanging, and ends by a signal.

The work is shared by as many processes as the machine has processors (--jobs), each with seeds of its own. A process
that a signal ends is a failure, too: its seed and the attack it ran are printed.

Files lie in memory (/dev/shm) if that is possible: a disk waits for its journal whenever a file is written again, and
for most attacks that took 90 % of the time.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import inspect
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
FIRST_ROUND, ROUND_SECONDS = 4, 2.0
LEAST_SHARE = 10_000  # of a million inputs, every attack runs at least a hundred
SEEDS_OF_A_JOB = 10_000_000


def processor_seconds():
    """Of this process and its children: on a busy machine, attacks that started processes got too little otherwise."""
    return sum(os.times()[:4])


class Attack:
    """An attack with its parameters, the inputs it has run and the time they took."""

    def __init__(self, function, values):
        self.function, self.values = function, values
        self.name = " ".join([function.__name__.removeprefix("attack_").replace("_", " "), *map(str, values.values())])
        self.outcomes, self.failures = Counter(), []
        self.n_inputs, self.n_rounds, self.seconds = 0, 0, 0.0

    def run(self, most, seed):
        pace = self.n_inputs / self.seconds if self.seconds > 0 else 0.0
        count = max(1, min(most, FIRST_ROUND if self.n_inputs == 0 else max(FIRST_ROUND, int(pace * ROUND_SECONDS))))
        start, n_run = processor_seconds(), count
        try:
            self.outcomes += self.function(count, seed + self.n_rounds, **self.values)
        except Exception as error:
            n_run = getattr(error, "n_run", 0) + 1
            self.failures.append(f"seed {seed + self.n_rounds}, {count} inputs: {type(error).__name__}: {error}")
            traceback.print_exc()
        self.n_inputs, self.n_rounds = self.n_inputs + n_run, self.n_rounds + 1
        self.seconds += processor_seconds() - start
        return n_run

    def found(self):
        """What a process tells the one that started it."""
        return {name: getattr(self, name) for name in ("name", "outcomes", "failures", "n_inputs", "seconds")}

    def add(self, found):
        self.outcomes += Counter(found["outcomes"])
        self.failures += found["failures"]
        self.n_inputs += found["n_inputs"]
        self.seconds += found["seconds"]

    @property
    def is_bad(self):
        return bool(self.failures) or any(name.isupper() or _is_bad(name) for name in self.outcomes)


def _is_bad(outcome):
    words = outcome.replace(",", " ").replace(":", " ").split()
    return outcome in ("hangs", "wrong answer", "other error") or any(len(w) > 2 and w.isupper() for w in words)


def find_attacks():
    """All attacks of this folder, with every combination of their parameters."""
    found = []
    for path in sorted(HERE.glob("*.py")):
        if path.name == Path(__file__).name:
            continue
        module = importlib.import_module(f"attacks.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("attack_") and getattr(function, "__module__", None) == module.__name__:
                found += [Attack(function, values) for values in parameters(module, function)]
    return found


def parameters(module, function):
    """The values of an attack's further parameters that have no default: those of the test that calls it."""
    _, _, *others = inspect.signature(function).parameters.values()
    tests = [test for name, test in vars(module).items() if name.startswith("test_") and callable(test)]
    marks = {
        mark.args[0]: list(mark.args[1])
        for test in tests
        if function.__name__ in test.__code__.co_names
        for mark in getattr(test, "pytestmark", [])
        if mark.name == "parametrize"
    }
    missing = [other.name for other in others if other.default is other.empty and other.name not in marks]
    if missing:
        raise SystemExit(f"{module.__name__}.{function.__name__}: no test that calls it has values for {missing}")
    varied = [other for other in others if other.default is other.empty or is_flag(other, marks)]
    chosen = {other.name: marks[other.name] for other in varied}
    return [dict(zip(chosen, values, strict=True)) for values in itertools.product(*chosen.values())]


def is_flag(parameter, marks):
    return isinstance(parameter.default, bool) and parameter.name in marks


def use_memory_for_files():
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and memory.is_dir() and os.access(memory, os.W_OK):
        os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


def run_share(attacks, given, left, least, seed):
    """Run `left` inputs in this process, and at least `least` of each attack."""
    end = time.monotonic() + given.seconds
    while attacks and time.monotonic() < end:
        too_few = [attack for attack in attacks if attack.n_inputs < least]
        if left <= 0 and not too_few:
            break
        attack = min(attacks if left > 0 else too_few, key=lambda attack: attack.seconds)
        print(f"{left:,} inputs left; {attack.name}, seed {seed + attack.n_rounds}", file=sys.stderr, flush=True)
        left -= attack.run(left if left > 0 else least - attack.n_inputs, seed)
        if given.found:  # a process that was ended by a signal has reported all but its last round
            Path(given.found).write_text(json.dumps([attack.found() for attack in attacks]))


def run_jobs(attacks, given):
    """Share the work among processes; returns what ended them too early."""
    command = [sys.executable, __file__, "--jobs", "1", "--seconds", str(given.seconds), "--only", given.only]
    jobs = []
    with tempfile.TemporaryDirectory(prefix="ramify-attacks-") as folder:
        for k in range(given.jobs):
            inputs = given.inputs // given.jobs + (k < given.inputs % given.jobs)
            mine = ["--inputs", str(inputs), "--seed", str(given.seed + k * SEEDS_OF_A_JOB), "--found", f"{folder}/{k}"]
            with open(f"{folder}/{k}.log", "wb") as log:
                jobs.append(subprocess.Popen([*command, *mine], stderr=log, stdout=subprocess.DEVNULL))
        ended = []
        by_name = {attack.name: attack for attack in attacks}
        for k, job in enumerate(jobs):
            code, log = job.wait(), Path(f"{folder}/{k}.log").read_text(errors="replace").splitlines()
            if code not in (0, 1):
                ended.append(f"process {k} ended with {code}; it said last:\n" + "\n".join(log[-60:]))
            for line in log:
                if not line.endswith(tuple("0123456789")) or "inputs left; " not in line:
                    print(line, file=sys.stderr)
            found = Path(f"{folder}/{k}")
            for attack in json.loads(found.read_text()) if found.exists() else []:
                by_name[attack["name"]].add(attack)
    return ended


def main():
    parser = argparse.ArgumentParser(description="Run every attack and print how often each outcome occurred.")
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs of all attacks together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after about this time")
    parser.add_argument("--only", default="", help="only attacks whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that share the work")
    parser.add_argument("--found", help="file for what was found, as JSON")
    given = parser.parse_args()
    use_memory_for_files()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE.parent))
    attacks = [attack for attack in find_attacks() if given.only in attack.name]
    ended = []
    if given.jobs > 1:
        ended = run_jobs(attacks, given)
    else:
        run_share(attacks, given, given.inputs, given.inputs // LEAST_SHARE, given.seed)
    total = Counter()
    for attack in attacks:
        outcomes = ", ".join(f"{name} {n:,}" for name, n in attack.outcomes.most_common())
        pace = f"{attack.n_inputs / attack.seconds:.0f}/s" if attack.seconds else "not run"
        print(f"{attack.name}: {attack.n_inputs:,} inputs in {attack.seconds:.0f} s ({pace}): {outcomes}")
        for failure in attack.failures:
            print(f"  FAILED: {failure}")
        total += attack.outcomes
    n_inputs = sum(attack.n_inputs for attack in attacks)
    print(f"all {n_inputs:,}: " + ", ".join(f"{name} {n:,}" for name, n in total.most_common()))
    for reason in ended:
        print(f"FAILED: {reason}")
    return 1 if ended or any(attack.is_bad for attack in attacks) else 0


if __name__ == "__main__":
    sys.exit(main())
