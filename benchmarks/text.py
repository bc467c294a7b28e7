"""Texts: vectorizing, training, single rows and streams, beside scikit-learn's vectorizers in the same run.

    python -m benchmarks.text --data ../shared/data --sets eurlex57k-text,debian-depends-text
    python -m benchmarks.text --data ../shared/data --sets wordnet-parent-text --rows 20000 --only vectorize

Each set is a folder with `train.jsonl.gz` and `test.jsonl.gz`, lines {"text": …, "labels": […]}. "before" is the same
model with scikit-learn's vectorizer, which was the default before the core read texts itself. All numbers are CPU time
of one thread, except where threads are compared; single rows are medians.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

from benchmarks.datasets import find
from ramify import OnlinePLTClassifier, PLTClassifier
from ramify.data.text import TOKEN_PATTERN, default_vectorizer
from ramify.text import HashingTextVectorizer, TextVectorizer

PARTS = ("vectorize", "train", "rows", "stream", "shell")
WORDS = "acute pain in the left side of the chest after a long run"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.text",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder of sets; may be repeated")
    parser.add_argument("--sets", default="eurlex57k-text,debian-depends-text")
    parser.add_argument("--rows", type=int, default=None, help="training rows to use; all by default")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    given = parser.parse_args()
    wanted = given.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        raise SystemExit(f"error: --only has {', '.join(sorted(unknown))}\nhint: choose from {', '.join(PARTS)}")
    for name in given.sets.split(","):
        folder = find(name, given.data)
        texts, labels = read(folder / "train.jsonl.gz", given.rows)
        test, test_labels = read(folder / "test.jsonl.gz", given.rows)
        size = sum(map(len, texts))
        print(f"\n## {name}: {len(texts):,} texts of {size // len(texts):,} characters\n")
        print("| work | scikit-learn's vectorizer | ramify's | ratio |\n|---|--:|--:|--:|")
        if "vectorize" in wanted:
            vectorize(texts)
        if "train" in wanted or "rows" in wanted or "shell" in wanted:
            models(texts, labels, test, test_labels, wanted)
        if "stream" in wanted:
            stream(texts, labels)


def read(path: Path, n_rows: int | None) -> tuple[list[str], list[list[str]]]:
    if not path.exists():
        raise SystemExit(f"error: {path} does not exist\nhint: the set needs train.jsonl.gz and test.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, n_rows)]
    return [row["text"] for row in rows], [row["labels"] for row in rows]


def print_row(work: str, theirs: float, ours: float, unit: str = "s", scale: float = 1.0) -> None:
    print(f"| {work} | {theirs * scale:.4g} {unit} | {ours * scale:.4g} {unit} | {theirs / ours:.1f} |", flush=True)


def cpu(run: Callable[[], Any], repeats: int = 1) -> float:
    """The fewest CPU seconds of some runs."""
    return min(_cpu_once(run) for _ in range(repeats))


def _cpu_once(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def median_seconds(run: Callable[[Any], Any], rows: list[Any]) -> float:
    """The median time of single calls, one after the other."""
    seconds = []
    for row in rows:
        began = time.perf_counter()
        run(row)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def vectorize(texts: list[str]) -> None:
    how: dict[str, Any] = {"sublinear_tf": True, "token_pattern": TOKEN_PATTERN}
    theirs, ours = TfidfVectorizer(**how, dtype=np.float32), TextVectorizer(**how)
    print_row("fit_transform", cpu(lambda: theirs.fit_transform(texts)), cpu(lambda: ours.fit_transform(texts), 3))
    print_row("transform", cpu(lambda: theirs.transform(texts)), cpu(lambda: ours.transform(texts), 3))
    hashed: dict[str, Any] = {"n_features": 2**22, "alternate_sign": False, "token_pattern": TOKEN_PATTERN}
    their_hash, our_hash = HashingVectorizer(**hashed, dtype=np.float32), HashingTextVectorizer(**hashed)
    print_row("hashing", cpu(lambda: their_hash.transform(texts)), cpu(lambda: our_hash.transform(texts), 3))
    pairs = texts[: max(1, len(texts) // 4)]
    their_pairs, our_pairs = TfidfVectorizer(**how, ngram_range=(1, 2)), TextVectorizer(**how, ngram_range=(1, 2))
    print_row(
        f"fit_transform, words and pairs, {len(pairs):,} texts",
        cpu(lambda: their_pairs.fit_transform(pairs)),
        cpu(lambda: our_pairs.fit_transform(pairs), 3),
    )
    wall = {}
    for threads in (1, 2):
        several = TextVectorizer(**how, n_jobs=threads)
        for work in ("fit_transform", "transform"):
            run = getattr(several, work)
            run(texts)
            wall[threads, work] = min(_wall_once(lambda run=run: run(texts)) for _ in range(3))
    for work in ("fit_transform", "transform"):
        one, two = wall[1, work], wall[2, work]
        print(f"| {work}: one thread, two threads (wall) | {one:.3g} s | {two:.3g} s | {one / two:.2f} |", flush=True)


def _wall_once(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def models(
    texts: list[str], labels: list[Any], test: list[str], test_labels: list[list[str]], wanted: list[str]
) -> None:
    before = PLTClassifier(
        vectorizer=TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=TOKEN_PATTERN), random_state=0
    )
    now = PLTClassifier(vectorizer=default_vectorizer(), random_state=0)
    times = [cpu(lambda model=model: model.fit(texts, labels)) for model in (before, now)]
    if "train" in wanted:
        print_row("training from texts", *times)
        precision = [precision_at_1(model, test, test_labels) for model in (before, now)]
        print(f"| P@1 | {precision[0]:.4f} | {precision[1]:.4f} | |")
    if "rows" in wanted:
        single_rows(before, now, test)
    if "shell" in wanted:
        shell(now)


def precision_at_1(model: Any, texts: list[str], labels: list[list[str]]) -> float:
    answers = model.predict_labels(texts, top_k=1)
    return float(np.mean([bool(a) and a[0][0] in truth for a, truth in zip(answers, labels, strict=True)]))


def single_rows(before: Any, now: Any, test: list[str]) -> None:
    some = test[:500]
    for what, rows in ((f"{len(WORDS.split())} words", [WORDS] * 500), ("a text of the set", some)):
        times = [median_seconds(model.predict_one, rows) for model in (before, now)]
        print_row(f"predict_one, {what}", *times, "us", 1e6)
        times = [median_seconds(lambda x, m=model: m.predict_labels([x]), rows) for model in (before, now)]
        print_row(f"predict_labels of one, {what}", *times, "us", 1e6)
    times = [cpu(lambda model=model: model.predict_labels(test)) / len(test) for model in (before, now)]
    print_row("predict_labels of all, per text", *times, "us", 1e6)
    X = now.vectorizer_.transform(some)
    rows = [X[[row]] for row in range(X.shape[0])]
    print_row(
        "predict_proba of one csr row (beside: predict_labels)",
        median_seconds(now.predict_labels, rows),
        median_seconds(now.predict_proba, rows),
        "us",
        1e6,
    )
    print(f"| explain with spans | | {median_seconds(now.explain, some[:100]) * 1e6:.0f} us | |", flush=True)


def stream(texts: list[str], labels: list[Any]) -> None:
    hashing = HashingVectorizer(n_features=2**22, alternate_sign=False, dtype=np.float32, token_pattern=TOKEN_PATTERN)
    own_hashing = HashingTextVectorizer(n_features=2**22, alternate_sign=False, token_pattern=TOKEN_PATTERN)
    kinds = {"hashing": own_hashing, "a growing vocabulary": None}
    first, rest = 2000, slice(2000, 2500)
    for words in (8, 200, None):
        cut = [" ".join(text.split()[:words]) for text in texts]
        what = "whole texts" if words is None else f"texts of at most {words} words"
        for kind, vectorizer in kinds.items():
            times = []
            for given in (hashing, vectorizer):
                model = OnlinePLTClassifier(vectorizer=given, random_state=0)
                model.partial_fit(
                    cut[:first], labels[:first], classes=sorted(set(itertools.chain(*labels[: rest.stop])))
                )
                pairs: Iterator[Any] = zip(cut[rest], labels[rest], strict=True)
                times.append(median_seconds(lambda pair, m=model: m.learn_one(*pair), list(pairs)))
            print_row(f"learn_one, {what}, {kind}", *times, "us", 1e6)


def shell(model: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        start = "from ramify.cli.main import main; import sys; sys.argv = sys.argv[1:]; main()"
        command = [sys.executable, "-c", start, "ramify", "predict", "--model", folder, "--text", WORDS]
        seconds = []
        for _ in range(5):
            before = os.times()
            subprocess.run(command, check=True, capture_output=True)
            after = os.times()
            seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    print(f"| `ramify predict --text`, CPU | | {statistics.median(seconds):.2f} s | |", flush=True)


if __name__ == "__main__":
    main()
