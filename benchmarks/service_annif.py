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
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.service import Server, serve

ANNIF_PORT, OUR_PORT, RELAY_PORT = 8790, 8791, 8792
HTTP_PROJECT = "by-ramify"
_PROJECT = """
[{name}]
name={name}
language=en
backend={backend}
vocab=codes
{more}
"""


def projects(backends: list[str]) -> str:
    endpoint = f"endpoint=http://127.0.0.1:{RELAY_PORT}/v1/projects/{HTTP_PROJECT}/suggest"
    trained = [_PROJECT.format(name=name, backend=name, more="analyzer=simple") for name in backends]
    return "".join([*trained, _PROJECT.format(name=HTTP_PROJECT, backend="http", more=endpoint)])


def is_uri(label: str) -> bool:
    """Whether Annif takes a label as a URI; chapters, such as "chapter 9", are no codes anyway."""
    return " " not in label


def write_rows(path: Path, rows: list[tuple[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\").writerows(rows)


def prepare(folder: Path, data: Any, annif: str, backends: list[str], n_rows: int) -> dict[str, str]:
    """Vocabulary, projects and trained backends in a folder; the environment of `annif`."""
    environment = {**os.environ, "ANNIF_PROJECTS": str(folder / "projects.cfg"), "ANNIF_DATADIR": str(folder / "data")}
    environment.pop("PYTHONPATH", None)  # Annif has its own packages
    (folder / "projects.cfg").write_text(projects(backends))
    rows = list(zip(data.train.texts, data.train.labels, strict=True))[:n_rows]
    labels = sorted({label for _, row in rows for label in row if is_uri(label)})
    write_rows(folder / "vocab.tsv", [(f"<{label}>", str(label)) for label in labels])
    written = [(text.replace("\t", " "), " ".join(f"<{one}>" for one in row if is_uri(one))) for text, row in rows]
    write_rows(folder / "train.tsv", written)

    def run(*arguments: str) -> None:
        subprocess.run(
            [annif, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    run("load-vocab", "--language", "en", "codes", str(folder / "vocab.tsv"))
    for backend in backends:
        run("train", backend, str(folder / "train.tsv"))
    return environment


class Client:
    """Suggest calls on one connection; without a project, the service's own predict call."""

    def __init__(self, port: int, project: str | None) -> None:
        self.path = "/v1/predict" if project is None else f"/v1/projects/{project}/suggest"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def suggest(self, text: str, limit: int = 5) -> tuple[float, list[dict[str, Any]]]:
        """Seconds, and the subjects."""
        if self.path == "/v1/predict":
            kind, body = "application/json", json.dumps({"texts": [text], "top_k": limit})
        else:
            kind, body = "application/x-www-form-urlencoded", urlencode({"text": text, "limit": limit})
        began = time.perf_counter()
        self._connection.request("POST", self.path, body, {"Content-Type": kind})
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
        environment = prepare(folder, data, options.annif, backends, options.rows)
        os.environ.update({key: environment[key] for key in ("ANNIF_PROJECTS", "ANNIF_DATADIR")})
        ours = serve(options.model, OUR_PORT)
        path = os.environ.pop("PYTHONPATH", None)
        theirs = Server([options.annif, "run", "--host", "127.0.0.1", "--port", str(ANNIF_PORT)], ANNIF_PORT, "/v1/")
        if path is not None:
            os.environ["PYTHONPATH"] = path
        relay = serve(folder / HTTP_PROJECT, RELAY_PORT, "--new")
        try:
            compare(backends, texts, (ours, theirs))
            check_relay(relay, data, options.rows)
        finally:
            for server in (ours, theirs, relay):
                server.stop()


def compare(backends: list[str], texts: list[str], servers: tuple[Server, Server]) -> None:
    mine = Client(OUR_PORT, None)
    for backend in backends:
        other = Client(ANNIF_PORT, backend)
        for client in (mine, other):
            client.suggest(texts[0])
        before = [cpu_seconds(server.process.pid) for server in servers]
        times = [(mine.suggest(text)[0], other.suggest(text)[0]) for text in texts]
        ours, annif = (1000 * statistics.median(column) for column in zip(*times, strict=True))
        used = [cpu_seconds(server.process.pid) - start for server, start in zip(servers, before, strict=True)]
        cpu = [1000 * seconds / len(texts) for seconds in used]
        print(
            f"p50: predict {ours:.2f} ms, Annif's {backend} {annif:.2f} ms: {ours / annif:.2f} (target 0.20); "
            f"processor time: {cpu[0]:.2f} and {cpu[1]:.2f} ms: {cpu[0] / cpu[1]:.2f}"
        )


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children, which does not depend on what else the machine does."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(cpu_seconds(int(c)) for c in children)


def check_relay(relay: Server, data: Any, n_rows: int) -> None:
    """Teach a new model by Annif's learn call; then an Annif project with `backend=http` must give its subjects."""
    taught = [
        {"text": text, "subjects": [{"uri": one} for one in row if is_uri(one)]}
        for text, row in zip(data.train.texts[:n_rows:20], data.train.labels[:n_rows:20], strict=True)
    ]
    taught = [document for document in taught if document["subjects"]]
    body = json.dumps(taught).encode()
    headers = {"Content-Type": "application/json"}
    path = f"http://127.0.0.1:{RELAY_PORT}/v1/projects/{HTTP_PROJECT}/learn"
    urllib.request.urlopen(urllib.request.Request(path, body, headers), timeout=60).read()
    while relay.post("/v1/predict", {"texts": ["x"]})["version"] < len(taught):
        time.sleep(0.1)
    through, direct = Client(ANNIF_PORT, HTTP_PROJECT), Client(RELAY_PORT, HTTP_PROJECT)
    asked = [document["text"] for document in taught[:50]]
    same = sum(agrees(through.suggest(text)[1], direct.suggest(text, limit=100)[1]) for text in asked)
    print(f"Annif's http backend relays the service's subjects and scores for {same} of {len(asked)} texts")


def agrees(relayed: list[dict[str, Any]], answered: list[dict[str, Any]]) -> bool:
    """Whether these are the best subjects with their scores; which of those with equal scores come last is open."""
    scores = {one["uri"]: round(one["score"], 4) for one in answered}
    best = sorted(scores.values(), reverse=True)[: len(relayed)]
    return bool(relayed) and [scores.get(one["uri"]) for one in relayed] == best


if __name__ == "__main__":
    main()
