"""One row at a time: `predict_proba` of one csr row beside the peers' fastest call for one row, best five labels.

python -m benchmarks.plt.one_row --data ../shared/data --sets eurlex57k,debian-depends,wordnet-parent

Trains each system once and keeps the models in the work folder; a second run only asks them. Systems take turns, three
rounds by default, and each counts by its best median, in microseconds of wall time. Rows are put into the system's own
form beforehand, except ramify's, which checks a scipy row at each call.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import WORK, systems
from benchmarks.plt.run import Run, phase, prepare

SETS = "eurlex57k,debian-depends,wordnet-parent"
ASKED = (
    ("ramify", "default"),
    ("ramify", "three-trees"),
    ("omikuji", "one-tree"),
    ("omikuji", "one-tree-dense"),
    ("napkinxc", "default"),
    ("napkinxc", "hinge"),
    ("pecos", "default"),
    ("pecos", "leaf-200"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be given again")
    parser.add_argument("--work", type=Path, default=WORK, help="environments, unpacked data, models")
    parser.add_argument("--sets", default=SETS, help=f"default: {SETS}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train-only", action="store_true", help="train what is missing, ask nothing")
    given = parser.parse_args()
    work = given.work.resolve()
    print("| set | system | median µs | ramify is faster by |\n|---|---|--:|--:|")
    for name in given.sets.split(","):
        data = prepare(name, given.data, work / "data")
        models = {asked: trained(*asked, data, work) for asked in ASKED}
        if given.train_only:
            continue
        best: dict[tuple[str, str], float] = {}
        for _ in range(given.rounds):
            for asked, folder in models.items():
                median = ask(*asked, data, folder, work)
                best[asked] = min(median, best.get(asked, median))
        for asked, median in best.items():
            ratio = "" if asked[0] == "ramify" else f"{median / best['ramify', 'default']:.1f}"
            print(f"| {name} | {' '.join(asked)} | {median:.1f} | {ratio} |", flush=True)


def trained(system: str, setting: str, data: Path, work: Path) -> Path:
    """The folder of the system's model of this set, trained on first use."""
    # settings that differ only in prediction share a model
    name = next(n for n, s in systems.module(system).SETTINGS.items() if s.train == train_parameters(system, setting))
    folder = work / "one-row" / data.name / f"{system}-{name}" / "model"
    done = folder.parent / "trained"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        checked("train", system, setting, data, folder, work)
        done.touch()
    return folder


def ask(system: str, setting: str, data: Path, folder: Path, work: Path) -> float:
    median: float = checked("single", system, setting, data, folder, work)["single_us"]
    return median


def checked(kind: str, system: str, setting: str, data: Path, folder: Path, work: Path) -> dict[str, float]:
    chosen = systems.module(system).SETTINGS[setting]
    parameters = chosen.train if kind == "train" else chosen.train | chosen.predict
    done = phase(kind, Run(system, (setting,), data, 1), parameters, folder, work, 900.0)
    if done["status"] != "ok":
        raise SystemExit(f"error: {system} {setting} on {data.name}: {done['status']}")
    return done


def train_parameters(system: str, setting: str) -> dict[str, object]:
    parameters: dict[str, object] = systems.module(system).SETTINGS[setting].train
    return parameters


if __name__ == "__main__":
    main()
