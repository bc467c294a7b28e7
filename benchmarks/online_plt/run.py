"""Online learners side by side: throughput, the paper's tables, few-shot classes; see README.md.

python -m benchmarks.online_plt.run throughput --data ../shared/data
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import ROOT, WORK, datasets, environments, learners, synthetic
from benchmarks.online_plt import plans, tables
from benchmarks.plt import run


def prepare(name: str, sources: list[Path], cache: Path) -> Path:
    return synthetic.prepare(name, cache) if name in synthetic.SIZES else datasets.prepare(name, sources, cache)


def measure(job: plans.Job, data: Path, work: Path, timeout: float) -> dict[str, Any]:
    """One stream in a process of its own; a timeout or a crash is a result too."""
    row = job.as_dict() | {"when": time.strftime("%F %T"), "load_average": os.getloadavg()[0]}
    scratch = Path(tempfile.mkdtemp(prefix="online-", dir=work))
    result, log = scratch / "result.json", scratch / "log.txt"
    module = learners.module(job.system)
    python = environments.python_with(job.system, module.INSTALL, work)
    order = json.dumps(job.as_dict() | {"timeout": timeout})
    threads = {name: str(job.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(python), "-m", "benchmarks.online_plt.worker", order, str(data), str(scratch), str(result)],
            stdout=output,
            stderr=output,
            env=os.environ | threads,
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            code = process.wait(run.WALL_FACTOR * timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    if code == 0 and result.exists():
        row |= {"status": "ok"} | json.loads(result.read_text())
    elif code in (-signal.SIGXCPU, -signal.SIGKILL):
        row["status"] = f"more than {timeout:.0f} CPU s"
    else:
        print(log.read_text()[-2000:])
        row["status"] = f"ended with code {code}"
    shutil.rmtree(scratch)
    return row


def arguments_for(description: str | None) -> argparse.ArgumentParser:
    """The options of every benchmark of streams: where data and results are, and the time limit."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be given again")
    parser.add_argument("--work", type=Path, default=WORK, help="environments, unpacked data, results")
    parser.add_argument("--timeout", type=float, default=900.0, help="CPU seconds for one stream")
    parser.add_argument("--results", type=Path, help="JSON lines, appended to; what they hold is not measured again")
    return parser


def measure_all(jobs: Iterable[plans.Job], arguments: argparse.Namespace, name: str) -> Path:
    """Run the jobs that the results do not hold yet; return the results file, by default `name` in the work folder."""
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    results: Path = arguments.results or work / name
    for job in jobs:
        if job.as_dict() in tables.measured(results):
            continue
        row = measure(job, prepare(job.set, arguments.data, work / "data"), work, arguments.timeout)
        with results.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        print(tables.one_line(row), flush=True)
    return results


def main() -> None:
    parser = arguments_for(__doc__)
    parser.add_argument("plan", choices=sorted(plans.PLANS))
    parser.add_argument("--sets", help="names, separated by commas; default: the plan's")
    parser.add_argument("--settings", nargs="+", default=["*"], help="patterns such as 'ramify:best*'")
    parser.add_argument("--shuffles", type=int, help="how many orders of a set; default: the plan's")
    arguments = parser.parse_args()
    sets = arguments.sets.split(",") if arguments.sets else None
    jobs = plans.jobs(arguments.plan, sets, arguments.settings, arguments.shuffles)
    results = measure_all(jobs, arguments, "online.jsonl")
    print(tables.render(arguments.plan, results))


if __name__ == "__main__":
    main()
