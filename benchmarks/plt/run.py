"""Measure ramify and its peers side by side on the same data; see README.md.

python -m benchmarks.plt.run --data ../shared/data --sets eurlex57k,debian-depends
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import ROOT, WORK, datasets, environments, synthetic, systems
from benchmarks.plt import tables

WALL_FACTOR = (
    4  # the limit is in CPU seconds; a process that hangs is killed after this many times as many wall seconds
)
SETS = "bibtex,delicious,eurlex57k,debian-depends,wordnet-parent"


@dataclass(frozen=True)
class Run:
    """One training and the settings that ask its model."""

    system: str
    settings: tuple[str, ...]
    data: Path
    threads: int

    @property
    def train_parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = systems.module(self.system).SETTINGS[self.settings[0]].train
        return parameters


def plan(arguments: argparse.Namespace, work: Path) -> list[Run]:
    """All runs of one repetition, systems side by side within a set, so that a slow minute hits all of them."""
    runs = []
    for name in arguments.sets.split(","):
        data = prepare(name, arguments.data, work / "data")
        kind = "multiclass" if datasets.load(data, "train").is_multiclass else "multilabel"
        for threads in arguments.threads:
            for system in arguments.systems.split(","):
                for group in groups(system, kind, arguments.settings, arguments.main):
                    runs.append(Run(system, group, data, threads))
    return runs


def prepare(name: str, sources: list[Path], cache: Path) -> Path:
    return synthetic.prepare(name, cache) if name in synthetic.SIZES else datasets.prepare(name, sources, cache)


def groups(system: str, kind: str, patterns: list[str], main_only: bool) -> list[tuple[str, ...]]:
    """Names of the chosen settings, those that share a trained model together."""
    shared: dict[str, list[str]] = {}
    for name, setting in systems.module(system).SETTINGS.items():
        chosen = any(fnmatch.fnmatch(f"{system}:{name}", pattern) for pattern in patterns)
        if chosen and (setting.main or not main_only) and setting.kind in (None, kind):
            shared.setdefault(json.dumps(setting.train, sort_keys=True), []).append(name)
    return [tuple(names) for names in shared.values()]


def measure(run: Run, work: Path, timeout: float) -> list[dict[str, Any]]:
    """Train once, ask once per setting; each in a process of its own. A timeout or a crash is a result too."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{run.system}-{run.data.name}-", dir=work))
    model = scratch / "model"
    model.mkdir()
    common = {"set": run.data.name, "system": run.system, "threads": run.threads, "when": time.strftime("%F %T")}
    common["load_average"] = os.getloadavg()[0]
    if systems.module(run.system).READS_TEXT:
        datasets.write_text(run.data, "train")
    trained = phase("train", run, run.train_parameters, model, work, timeout)
    rows = []
    for name in run.settings:
        row = common | {"setting": name} | trained
        if trained["status"] == "ok":
            setting = systems.module(run.system).SETTINGS[name]
            row |= phase("predict", run, setting.train | setting.predict, model, work, timeout)
        rows.append(row)
    shutil.rmtree(scratch)
    return rows


def phase(kind: str, run: Run, parameters: dict[str, Any], model: Path, work: Path, timeout: float) -> dict[str, Any]:
    result, log = model.parent / "result.json", model.parent / "log.txt"
    result.unlink(missing_ok=True)
    python = environments.python_of(run.system, work)
    command = [str(python), "-m", "benchmarks.plt.worker", kind, run.system, json.dumps(parameters), str(run.threads)]
    threads = {name: str(run.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")}
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, str(run.data), str(model), str(result), f"{timeout:.0f}"],
            stdout=output,
            stderr=output,
            env=os.environ | threads,
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            code = process.wait(WALL_FACTOR * timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return {"status": f"{kind} took more than {WALL_FACTOR * timeout:.0f} s"}
    if code == -signal.SIGXCPU:
        return {"status": f"{kind} took more than {timeout:.0f} CPU s"}
    if code != 0 or not result.exists():
        print(log.read_text()[-2000:])
        return {"status": f"{kind} ended with code {code}"}
    measured: dict[str, Any] = json.loads(result.read_text())
    return measured | {"status": "ok"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be given again")
    parser.add_argument("--work", type=Path, default=WORK, help="environments, unpacked data, results")
    parser.add_argument("--sets", default=SETS, help=f"default: {SETS}; also {', '.join(synthetic.SIZES)}")
    parser.add_argument("--systems", default=",".join(systems.NAMES))
    parser.add_argument("--settings", nargs="+", default=["*"], help="patterns such as 'pecos:leaf*'")
    parser.add_argument("--main", action="store_true", help="only each system's main settings")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument(
        "--timeout", type=float, default=600.0, help="CPU seconds for a training, and for its predictions"
    )
    parser.add_argument(
        "--results", type=Path, help="JSON lines, appended to; default: results.jsonl in the work folder"
    )
    parser.add_argument("--skip-done", action="store_true", help="leave out what the results already hold often enough")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    results = arguments.results or work / "results.jsonl"
    runs = plan(arguments, work)
    for repetition in range(arguments.repeat):
        for run in runs:
            if arguments.skip_done and tables.times_measured(results, run) > repetition:
                continue
            for row in measure(run, work, arguments.timeout):
                with results.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(tables.one_line(row), flush=True)
    print(tables.render(results, sets={run.data.name for run in runs}))


if __name__ == "__main__":
    main()
