"""Progressive validation on a stream: new labels appear, and two policies are compared in one plot.

Run:  python examples/stream.py
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ramify
from ramify import OnlinePLTClassifier, plots, progressive
from ramify.data.synthetic import make_multilabel


def notes() -> Iterator[tuple[str, list[str]]]:
    """An endless stream of notes; a new fruit appears after the hundredth."""
    for number in itertools.count():
        fruit = "cherry" if number > 100 and number % 3 == 0 else "apple"
        colour = ("red", "green")[number % 2]
        yield f"a {colour} {fruit}", [colour, fruit]


def main() -> None:
    clf = OnlinePLTClassifier(random_state=0)
    result = progressive.evaluate(clf, itertools.islice(notes(), 300), window=100, k=(1, 2))
    for window in result.windows:
        print(f"{window.examples} notes, {window.n_labels} labels: P@2 {window.score.precision[2]:.0%}")

    with tempfile.TemporaryDirectory() as folder:
        clf.save(f"{folder}/notes")
        resumed = ramify.load(f"{folder}/notes").learn_one("a blue plum", ["blue", "plum"])
        print(f"after {resumed.n_examples_} notes it knows {', '.join(resumed.classes_)}")

        data = make_multilabel(3000, 100, 1000, random_state=0)
        runs = [
            progressive.evaluate(OnlinePLTClassifier(policy=policy, random_state=0), data.X, data.Y, name=policy)
            for policy in ("fair", "random")
        ]
        picture = Path(folder) / "policies.png"
        plots.progressive(runs, picture)
        print(f"drew {picture.name}: " + ", ".join(f"{run.name} P@1 {run.so_far.accuracy:.0%}" for run in runs))


if __name__ == "__main__":
    main()
