"""Training from texts beside the peers: scikit-learn's tf-idf with omikuji (one tree), and fastText with `-loss hs`.

    python -m benchmarks.text_peers --data ../shared/data --sets debian-depends-text,eurlex57k-text

Each set is a folder with `train.jsonl.gz` and `test.jsonl.gz`. CPU seconds of one thread. omikuji trains from a file of
features; writing and parsing it is not counted. fastText has its defaults, with the texts as ramify splits them: words
in lower case. `--omikuji` and `--fasttext` name interpreters that have them; by default environments are created.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.datasets import find
from benchmarks.environments import python_with
from benchmarks.text import read

WORK = Path("benchmarks/work")
_OMIKUJI = """
import json, sys, time
import omikuji
train, test = sys.argv[1:]
lib, ffi = omikuji.lib, omikuji.ffi
chosen = omikuji.Model.default_hyper_param()
chosen.n_trees = 1
pool = ffi.gc(lib.init_omikuji_thread_pool(1), lib.free_omikuji_thread_pool)
data = ffi.gc(lib.load_omikuji_data_set(ffi.new("char[]", train.encode()), pool), lib.free_omikuji_data_set)
began = time.process_time()
model = omikuji.Model(lib.train_omikuji_model(data, chosen, pool))
seconds = time.process_time() - began
answers = []
for line in open(test):
    features = [(int(f), float(v)) for f, v in (pair.split(":") for pair in line.split())]
    answers.append([label for label, _ in model.predict(features, top_k=5)])
print(json.dumps({"seconds": seconds, "answers": answers}))
"""
_FASTTEXT = """
import json, sys, time
import fasttext
began = time.process_time()
model = fasttext.train_supervised(sys.argv[1], loss="hs", thread=1, verbose=0)
seconds = time.process_time() - began
texts = open(sys.argv[2], encoding="utf-8").read().split("\\n")[:-1]
answers = [[int(label.removeprefix("__label__")) for label in row] for row in model.predict(texts, k=5)[0]]
print(json.dumps({"seconds": seconds, "answers": answers}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.text_peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--sets", default="debian-depends-text,eurlex57k-text")
    parser.add_argument("--rows", type=int, default=None, help="training rows to use; all by default")
    parser.add_argument("--omikuji", type=Path, help="a Python that has omikuji")
    parser.add_argument("--fasttext", type=Path, help="a Python that has fasttext-wheel")
    given = parser.parse_args()
    omikuji = given.omikuji or python_with("omikuji", [["omikuji", "scipy"]], WORK)
    fasttext = given.fasttext or python_with("fasttext-wheel", [["fasttext-wheel==0.9.2", "numpy<2"]], WORK)
    print("| set | system | training, CPU s | of which features | P@1/3/5 |\n|---|---|--:|--:|---|")
    for name in given.sets.split(","):
        folder = find(name, given.data)
        train, test = (read(folder / f"{part}.jsonl.gz", given.rows) for part in ("train", "test"))
        numbers: dict[str, int] = {}
        for label in (label for labels in (*train[1], *test[1]) for label in labels):
            numbers.setdefault(label, len(numbers))
        for system, run, python in (
            ("ramify", ours, None),
            ("tf-idf and omikuji", with_omikuji, omikuji),
            ("fastText", with_fasttext, fasttext),
        ):
            seconds, features, answers = run(train, test[0], numbers, python)
            scores = "/".join(f"{100 * precision(answers, test[1], numbers, k):.2f}" for k in (1, 3, 5))
            print(f"| {name} | {system} | {seconds:.2f} | {features:.2f} | {scores} |", flush=True)


def precision(answers: list[list[int]], truth: list[list[str]], numbers: dict[str, int], k: int) -> float:
    hits = sum(len(set(a[:k]) & {numbers[label] for label in labels}) for a, labels in zip(answers, truth, strict=True))
    return hits / (k * len(truth))


def ours(train: Any, test: list[str], numbers: dict[str, int], _: Any) -> tuple[float, float, list[list[int]]]:
    from ramify import PLTClassifier
    from ramify.data.text import default_vectorizer

    began = time.process_time()
    default_vectorizer().fit_transform(train[0])
    features = time.process_time() - began
    began = time.process_time()
    model = PLTClassifier(random_state=0, n_jobs=1).fit(*train)
    seconds = time.process_time() - began
    answers = model.predict_labels(test, top_k=5)
    return seconds, features, [[numbers[label] for label, _ in row] for row in answers]


def with_omikuji(
    train: Any, test: list[str], numbers: dict[str, int], python: Path
) -> tuple[float, float, list[list[int]]]:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    from ramify.data.text import TOKEN_PATTERN

    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=TOKEN_PATTERN)
    began = time.process_time()
    X = vectorizer.fit_transform(train[0])
    features = time.process_time() - began
    with tempfile.TemporaryDirectory() as folder:
        data, questions = Path(folder, "train.txt"), Path(folder, "test.txt")
        with open(data, "w") as file:
            print(*X.shape, len(numbers), file=file)
            for labels, row in zip(train[1], lines_of(X), strict=True):
                print(",".join(str(numbers[label]) for label in labels), row, file=file)
        questions.write_text("".join(f"{row}\n" for row in lines_of(vectorizer.transform(test))))
        found = answer_of(python, _OMIKUJI, data, questions)
    return features + found["seconds"], features, found["answers"]


def lines_of(X: Any) -> Any:
    for row in range(X.shape[0]):
        part = slice(X.indptr[row], X.indptr[row + 1])
        yield " ".join(f"{j}:{v:.6g}" for j, v in zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))


def with_fasttext(
    train: Any, test: list[str], numbers: dict[str, int], python: Path
) -> tuple[float, float, list[list[int]]]:
    with tempfile.TemporaryDirectory() as folder:
        data, questions = Path(folder, "train.txt"), Path(folder, "test.txt")
        with open(data, "w", encoding="utf-8") as file:
            for text, labels in zip(*train, strict=True):
                print(*(f"__label__{numbers[label]}" for label in labels), words(text), file=file)
        questions.write_text("".join(f"{words(text)}\n" for text in test), encoding="utf-8")
        found = answer_of(python, _FASTTEXT, data, questions)
    return found["seconds"], 0.0, found["answers"]


def words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def answer_of(python: Path, script: str, *arguments: Path) -> Any:
    command = [str(python), "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {python} failed\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
