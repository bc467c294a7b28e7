"""Annif and `ramify serve` on the same texts in the same minute, and Annif as a client of the service (`backend=http`).

    python -m benchmarks.service_annif --annif path/to/venv/bin/annif --model demo/icd10

Annif needs an environment of its own (`pip install annif omikuji`) and the `punkt_tab` of NLTK, which it fetches. The
script writes a vocabulary and a project for each backend, trains those on texts of the demo, and runs Annif. Both
services then take turns, a request each on one connection each, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.service import Server, serve

ANNIF_PORT, OUR_PORT = 8790, 8791
HTTP_PROJECT = "by-ramify"
_PROJECT = """
[{name}]
name={name}
language=en
backend={backend}
vocab=codes
{more}
"""


def projects(backends: list[str], model: Path) -> str:
    endpoint = f"endpoint=http://127.0.0.1:{OUR_PORT}/v1/projects/{model.name}/suggest"
    trained = [_PROJECT.format(name=name, backend=name, more="analyzer=simple") for name in backends]
    return "".join([*trained, _PROJECT.format(name=HTTP_PROJECT, backend="http", more=endpoint)])


def is_uri(label: str) -> bool:
    """Whether Annif takes a label as a URI; chapters, such as "chapter 9", are no codes anyway."""
    return " " not in label


def write_rows(path: Path, rows: list[tuple[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\").writerows(rows)


def prepare(folder: Path, data: Any, annif: str, backends: list[str], model: Path, n_rows: int) -> dict[str, str]:
    """Vocabulary, projects and trained backends in a folder; the environment of `annif`."""
    environment = {**os.environ, "ANNIF_PROJECTS": str(folder / "projects.cfg"), "ANNIF_DATADIR": str(folder / "data")}
    environment.pop("PYTHONPATH", None)  # Annif has its own packages
    (folder / "projects.cfg").write_text(projects(backends, model))
    rows = list(zip(data.train.texts, data.train.labels, strict=True))[:n_rows]
    labels = sorted({label for _, row in rows for label in row if is_uri(label)})
    write_rows(folder / "vocab.tsv", [(f"<{label}>", str(label)) for label in labels])
    written = [(text.replace("\t", " "), " ".join(f"<{one}>" for one in row if is_uri(one))) for text, row in rows]
    write_rows(folder / "train.tsv", written)

    def run(*arguments: str) -> None:
        subprocess.run([annif, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)

    run("load-vocab", "--language", "en", "codes", str(folder / "vocab.tsv"))
    for backend in backends:
        run("train", backend, str(folder / "train.tsv"))
    return environment


class Client:
    """Forms to one path on one connection."""

    def __init__(self, port: int, project: str) -> None:
        self.path = f"/v1/projects/{project}/suggest"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def suggest(self, text: str, limit: int = 5) -> tuple[float, list[dict[str, Any]]]:
        """Seconds, and the subjects."""
        body = urlencode({"text": text, "limit": limit})
        began = time.perf_counter()
        self._connection.request("POST", self.path, body, {"Content-Type": "application/x-www-form-urlencoded"})
        answer = self._connection.getresponse()
        content = answer.read()
        seconds = time.perf_counter() - began
        if answer.status != 200:
            raise SystemExit(f"error: {self.path} answered {answer.status}: {content[:300]!r}")
        return seconds, json.loads(content)["results"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annif", required=True, help="the command `annif` of its environment")
    parser.add_argument("--model", type=Path, required=True, help="the demo's model: `ramify demo`")
    parser.add_argument("--backend", action="append", help="default: tfidf and omikuji")
    parser.add_argument(
        "--rows", type=int, default=20_000, help="training rows of Annif's backends, whose labels are its vocabulary"
    )
    parser.add_argument("--texts", type=int, default=200)
    options = parser.parse_args()
    from ramify.data.icd10 import load_icd10

    data = load_icd10()
    backends = options.backend or ["tfidf", "omikuji"]
    order = np.random.default_rng(1).permutation(options.rows)[: options.texts]
    texts = [data.train.texts[row] for row in order]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = prepare(folder, data, options.annif, backends, options.model, options.rows)
        os.environ.update({key: environment[key] for key in ("ANNIF_PROJECTS", "ANNIF_DATADIR")})
        ours = serve(options.model, OUR_PORT)
        path = os.environ.pop("PYTHONPATH", None)
        theirs = Server([options.annif, "run", "--host", "127.0.0.1", "--port", str(ANNIF_PORT)], ANNIF_PORT, "/v1/")
        if path is not None:
            os.environ["PYTHONPATH"] = path
        try:
            compare(backends, texts, options.model.name)
        finally:
            ours.stop()
            theirs.stop()


def compare(backends: list[str], texts: list[str], project: str) -> None:
    mine = Client(OUR_PORT, project)
    for backend in backends:
        other = Client(ANNIF_PORT, backend)
        for client in (mine, other):
            client.suggest(texts[0])
        times = [(mine.suggest(text)[0], other.suggest(text)[0]) for text in texts]
        ours, annif = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"p50 of suggest: ramify {1000 * ours:.2f} ms, Annif's {backend} {1000 * annif:.2f} ms: "
            f"{ours / annif:.2f} (target 0.20)"
        )
    through = Client(ANNIF_PORT, HTTP_PROJECT)
    same = [relayed(through.suggest(text)[1], mine.suggest(text, 1000)[1]) for text in texts[:50]]
    print(f"Annif's http backend relays the service's subjects for {sum(same)} of {len(same)} texts")


def relayed(through: list[dict[str, Any]], direct: list[dict[str, Any]]) -> bool:
    """Whether Annif relays what the service says, as far as Annif's vocabulary has it."""
    scores = {one["uri"]: one["score"] for one in direct}
    return bool(through) and all(abs(scores[one["uri"]] - one["score"]) < 1e-4 for one in through)


if __name__ == "__main__":
    main()
