"""Sizes of sets, as in the papers' tables of data, and how few labels cover most rows.

    python -m benchmarks.describe --data ../shared/data --sets bibtex,delicious,eurlex57k
    python -m benchmarks.describe --data ../shared/data --sets eurlex57k --figure label-cover.svg

The last two columns: how many of the most frequent labels are needed so that half and nine tenths of the training rows
have one of them (Baharav et al. 2021, figures 1 and 6, which --figure draws).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks import WORK
from benchmarks.datasets import load, prepare
from ramify import metrics, plots

COLUMNS = "set | train rows | test rows | features | labels | labels a row | rows a label | for 50 % | for 90 %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--sets", default="bibtex,delicious,eurlex57k,debian-depends,wordnet-parent")
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--figure", type=Path, help="draw the share of rows against the number of labels")
    given = parser.parse_args()
    print(f"| {COLUMNS} |\n" + "|---" * (COLUMNS.count("|") + 1) + "|")
    for name in given.sets.split(","):
        folder = prepare(name, given.data, given.work / "data")
        train, test = load(folder, "train"), load(folder, "test")
        Y = train.Y
        needed = np.sort(metrics.labels_needed(Y, 1))
        cover = [int(needed[min(int(share * len(needed)), len(needed) - 1)]) for share in (0.5, 0.9)]
        sizes = [train.X.shape[0], test.X.shape[0], train.X.shape[1], Y.shape[1]]
        means = [Y.nnz / Y.shape[0], Y.nnz / Y.shape[1]]
        cells = [f"{n:,}" for n in sizes] + [f"{mean:.2f}" for mean in means] + [f"{n:,}" for n in cover]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        if given.figure:
            out = given.figure.with_name(f"{given.figure.stem}-{name}{given.figure.suffix or '.svg'}")
            out.parent.mkdir(parents=True, exist_ok=True)
            plots.label_cover(Y, out)
            print(f"wrote {out}", flush=True)


if __name__ == "__main__":
    main()
