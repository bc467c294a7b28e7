"""Vowpal Wabbit, in its own environment: train on one file, predict another, print error and CPU seconds as JSON.

python -m benchmarks.lomtree.vw_worker JOB-AS-JSON
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from benchmarks.measure import Stopwatch


def main() -> None:
    job = json.loads(sys.argv[1])
    limit = int(job["most_seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    from vowpalwabbit import Workspace

    folder = Path(job["folder"])
    model, said, cache = folder / "vw.model", folder / "vw.said", folder / "vw.cache"
    passes = f" --passes {job['passes']} -k --cache_file {cache} --holdout_off" if job["passes"] > 1 else ""
    with Stopwatch() as training:
        Workspace(f"{job['options']} -d {job['train']} -f {model} --quiet{passes}").finish()
    plain = folder / "vw.unlabelled"
    with plain.open("w") as out, Path(job["train"]).open() as lines:
        out.writelines(line[line.index("|") :] for line in lines)
    with Stopwatch() as parsing:
        Workspace(f"--noop -d {plain} --quiet").finish()
    with Stopwatch() as testing:
        Workspace(f"-i {model} -t -d {job['test']} -p {said} --quiet").finish()
    truth = [int(line.split(" ", 1)[0]) for line in Path(job["test"]).read_text().splitlines()]
    found = [int(float(line.split()[0])) for line in said.read_text().splitlines()]
    wrong = sum(one != other for one, other in zip(truth, found, strict=True))
    for path in (model, said, cache, plain):
        path.unlink(missing_ok=True)
    print(
        json.dumps(
            {"error": 100 * wrong / len(truth), "train": training.cpu, "parse": parsing.cpu, "test": testing.cpu}
        )
    )


if __name__ == "__main__":
    main()
