"""TreeSoftmaxClassifier beside fastText (`-loss hs`), on the same files with the same settings.

    python -m benchmarks.softmax.run --data ../shared/data

stackexchange-cooking is raw text in fastText's own format. For eurlex57k the names of the features serve as words,
because fastText takes no feature values (the last line of the table gives them to ramify). Times are CPU seconds of one
thread, in the same run, from the file to the trained model; both split the text at white space.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import ROOT, WORK
from benchmarks.datasets import find, load, prepare
from benchmarks.environments import python_with
from benchmarks.precision_depth import Point, draw
from ramify import TreeSoftmaxClassifier
from ramify.data import WordNgramVectorizer, load_fasttext

INSTALL = [["fasttext-wheel==0.9.2", "numpy<2", "scipy<1.14"]]
WIDE: dict[str, Any] = {"arity": 16, "max_leaf": 100}
# What is compared: settings of both, then ramify's own by line.
SETS: dict[str, dict[str, Any]] = {
    "stackexchange-cooking": {"dim": 100, "n_epochs": 25, "learning_rate": 0.5, "word_ngrams": 1},
    "stackexchange-cooking, pairs of words": {"dim": 100, "n_epochs": 25, "learning_rate": 0.5, "word_ngrams": 2},
    "eurlex57k": {"dim": 100, "n_epochs": 5, "learning_rate": 0.5, "word_ngrams": 1},
    # Baharav et al. 2021, section 5.4: 200 epochs, 128 dimensions, pairs of words.
    "quick-text, as in the paper": {"dim": 16, "n_epochs": 3, "learning_rate": 0.5, "word_ngrams": 2},
    "stackexchange-cooking, as in the paper": {"dim": 128, "n_epochs": 200, "learning_rate": 0.5, "word_ngrams": 2},
}
LINES: dict[str, dict[str, Any]] = {
    "softmax, Huffman": {"loss": "softmax"},
    "softmax, Huffman, one row a step": {"loss": "softmax", "batch_size": 1},
    "softmax, Huffman, int8": {"loss": "softmax", "storage": "int8"},
    "softmax, lam = 1": {"loss": "softmax", "tree": "interpolated", "tree_options": {"lam": 1.0}},
    "softmax, lam = 0": {"loss": "softmax", "tree": "interpolated", "tree_options": {"lam": 0.0}},
    "softmax, lam = 1.95, leaves of 100": {
        "loss": "softmax",
        "tree": "interpolated",
        "tree_options": {"lam": 1.95},
        "max_leaf": 100,
    },
    "plt, Huffman, arity 2": {"arity": 2},
    "plt, Huffman, arity 16": {},
    "plt, lam = 1.8, arity 16, leaves of 100": {"tree": "interpolated", "tree_options": {"lam": 1.8}, **WIDE},
    "plt, lam = 1, arity 16, leaves of 100": {"tree": "interpolated", "tree_options": {"lam": 1.0}, **WIDE},
    "plt, lam = 0, arity 16, leaves of 100": {"tree": "interpolated", "tree_options": {"lam": 0.0}, **WIDE},
}
# Figure 4 of Baharav et al. 2021: Huffman's tree, and the paper's lambda' with leaves of one label.
FIGURE4: dict[str, dict[str, Any]] = {"softmax, Huffman": {"loss": "softmax"}} | {
    f"softmax, lam' = {prime:g}": {
        "loss": "softmax",
        "tree": "interpolated",
        "tree_options": {"lam": 2 * prime / (1 + prime), "literal": True, "prune": 0.0},
    }
    for prime in (0, 0.25, 0.5, 0.75, 1, 2, 4, 16, 64, 256, 100_000)
}


class Result(NamedTuple):
    """One line of the table."""

    train: float
    predict: float
    size: int
    precision: list[float]
    depth: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--work", type=Path, default=WORK, help="for unpacked data and fastText")
    parser.add_argument(
        "--sets",
        default=";".join(name for name in SETS if "quick" not in name),
        help="names with semicolons between them",
    )
    parser.add_argument("--lines", default=";".join(LINES), help="the same of ramify's lines")
    parser.add_argument("--figure", type=Path, help="draw precision at 1 against depth")
    parser.add_argument("--figure4", action="store_true", help="the lines of the paper's figure 4 instead")
    parser.add_argument("--epochs", type=int, help="instead of the set's own number")
    parser.add_argument("--alone", action="store_true", help="without fastText, for times on a busy machine")
    given = parser.parse_args()
    for name in {one.split(",")[0] for one in given.sets.split(";")}:
        find(name, given.data)  # fail before the environment is built
    fasttext = None if given.alone else python_with("fasttext", INSTALL, given.work)
    for name in given.sets.split(";"):
        settings = SETS[name] | ({"n_epochs": given.epochs} if given.epochs else {})
        files = [text_file(name.split(",")[0], split, given.data, given.work) for split in ("train", "test")]
        print(f"\n{name}: {', '.join(f'{key} {value}' for key, value in settings.items())}\n")
        print("| model | train CPU s | fastText's / its own | us a row | MB | depth | P@1 | P@3 | P@5 |")
        print("|---|---|---|---|---|---|---|---|---|")
        peer = None if fasttext is None else run_fasttext(fasttext, files, settings)
        if peer is not None:
            print_line("fastText 0.9.2, -loss hs", peer, peer)
        chosen = FIGURE4 if given.figure4 else {line: LINES[line] for line in given.lines.split(";")}
        results = {}
        for line, own in chosen.items():
            results[line] = run_ramify(files, {**settings, **own})
            print_line(line, results[line], peer)
        if given.figure:
            points = [Point(one.depth or 0.0, one.precision[0], line) for line, one in results.items()]
            huffman = next((p._replace(name="Huffman's tree") for p in points if "Huffman" in p.name), None)
            others = [
                p._replace(name=p.name.split(", ")[-1].replace("lam", "\N{GREEK SMALL LETTER LAMDA}"))
                for p in points
                if "Huffman" not in p.name
            ]
            draw(name.split(",")[0], {1: others}, given.figure, huffman)
        if name == "eurlex57k" and not given.figure4 and given.lines == ";".join(LINES):
            print_line("plt, lam = 1, with the features' values", run_values(settings, given.data, given.work), peer)


def print_line(name: str, result: Result, peer: Result | None) -> None:
    numbers = " | ".join(f"{value:.2f}" for value in result.precision)
    ratio = "" if peer is None else f"{peer.train / result.train:.1f}"
    depth = "" if result.depth is None else f"{result.depth:.1f}"
    print(
        f"| {name} | {result.train:.2f} | {ratio} | {result.predict * 1e6:.0f} | "
        f"{result.size / 1e6:.1f} | {depth} | {numbers} |",
        flush=True,
    )


def text_file(name: str, split: str, data: list[Path], work: Path) -> Path:
    """The split in fastText's format, unpacked or made from features' names."""
    path = work / "fasttext" / f"{name}.{split}.txt"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = find(name, data) / f"{split}.fasttext.txt.gz"
    if raw.exists():
        path.write_bytes(gzip.decompress(raw.read_bytes()))
        return path
    problem = load(prepare(name, data, work / "data"), split)
    words = gzip.decompress((find(name, data) / "features.txt.gz").read_bytes()).decode().splitlines()
    lines = []
    for row in range(problem.X.shape[0]):
        labels = problem.Y.indices[problem.Y.indptr[row] : problem.Y.indptr[row + 1]]
        features = problem.X.indices[problem.X.indptr[row] : problem.X.indptr[row + 1]]
        lines.append(" ".join([*(f"__label__{label}" for label in labels), *(words[feature] for feature in features)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run_fasttext(python: Path, files: list[Path], settings: dict[str, Any]) -> Result:
    names = {"dim": "dim", "n_epochs": "epoch", "learning_rate": "lr", "word_ngrams": "wordNgrams"}
    theirs = json.dumps({names[key]: value for key, value in settings.items()})
    asked = [str(python), "-m", "benchmarks.softmax.fasttext_worker", *(str(file.resolve()) for file in files), theirs]
    said = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    truth = load_fasttext(files[1])[1]
    return Result(said["train"], said["predict"], said["bytes"], precisions(said["labels"], truth))


def run_ramify(files: list[Path], settings: dict[str, Any]) -> Result:
    rest = dict(settings)
    vectorizer = WordNgramVectorizer(word_ngrams=rest.pop("word_ngrams"), tokens="whitespace", lowercase=False)
    start = time.process_time()
    clf = TreeSoftmaxClassifier(vectorizer=vectorizer, n_jobs=1, random_state=0, **rest)
    clf.fit(*load_fasttext(files[0]))
    trained = time.process_time() - start
    texts, truth = load_fasttext(files[1])
    return answered(clf, texts, truth, trained)


def run_values(settings: dict[str, Any], data: list[Path], work: Path) -> Result:
    folder = prepare("eurlex57k", data, work / "data")
    train, test = load(folder, "train"), load(folder, "test")
    start = time.process_time()
    line = LINES["plt, lam = 1, arity 16, leaves of 100"]
    rest = {name: value for name, value in {**settings, **line}.items() if name != "word_ngrams"}
    clf = TreeSoftmaxClassifier(n_jobs=1, random_state=0, **rest).fit(train.X, train.Y)
    trained = time.process_time() - start
    truth = np.split(test.Y.indices, test.Y.indptr[1:-1])
    return answered(clf, test.X, [row.tolist() for row in truth], trained)


def answered(clf: Any, rows: Any, truth: list[list[Any]], trained: float) -> Result:
    start = time.process_time()
    answers = clf.predict_labels(rows, top_k=5)
    asked = (time.process_time() - start) / len(truth)
    depth = float(np.mean([clf.tree_.depth_of(clf.schema_.labels.columns([row[0][0]])[0]) for row in answers]))
    with tempfile.TemporaryDirectory() as folder:
        clf.save(folder)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    found = [[label for label, _ in row] for row in answers]
    return Result(trained, asked, size, precisions(found, truth), depth)


def precisions(found: list[list[Any]], truth: list[list[Any]]) -> list[float]:
    """P@1, P@3 and P@5 in percent; a missing answer is a miss."""
    hits = [[label in set(right) for label in row] for row, right in zip(found, truth, strict=True)]
    return [100 * float(np.mean([sum(row[:k]) / k for row in hits])) for k in (1, 3, 5)]


if __name__ == "__main__":
    main()
