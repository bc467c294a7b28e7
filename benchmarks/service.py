"""`ramify serve` under load, as ratios: predictions, learning, start, memory, and kill -9.

    python -m benchmarks.service                          # all but the kills, with a model of ICD-10-CM
    python -m benchmarks.service --only predict --seconds 5
    python -m benchmarks.service --only kill --kills 200
    python -m benchmarks.service --only memory --requests 1000000
    python -m benchmarks.service --only predict --annif http://127.0.0.1:5000/v1/projects/x/suggest

Server and clients share the machine. What is compared takes turns, five rounds of each, and the median ratio counts.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("start", "predict", "learning", "learn", "memory", "kill")
ROUNDS = 5
RAMIFY = [sys.executable, "-c", "from ramify.cli.main import main; main()"]
# An endpoint that does nothing, with the same body and the same server.
EMPTY = """
import sys, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
class Body(BaseModel):
    texts: list[str]
    top_k: int
app = FastAPI()
@app.post("/v1/predict")
async def predict(body: Body) -> dict:
    return {"results": [], "version": 0}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


class Server:
    """A process that listens at a port."""

    def __init__(self, command: list[str], port: int, ready: str) -> None:
        began = time.perf_counter()
        self.port = port
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (the process writes to it)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                raise SystemExit(f"error: something else answers at port {port}: end it first")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        atexit.register(self.process.kill)  # also after an error
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{ready}", timeout=10)
                break
            except urllib.error.HTTPError as error:
                if error.code in (404, 405):
                    break
            except OSError:
                pass
            if self.process.poll() is not None:
                errors.seek(0)
                raise SystemExit(f"error: {' '.join(command)} ended:\n{errors.read().decode()[-3000:]}")
            time.sleep(0.005)
        self.start_seconds = time.perf_counter() - began

    def post(self, path: str, content: Any, key: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(content).encode(), headers)
        try:
            return json.load(urllib.request.urlopen(request, timeout=60))
        except urllib.error.HTTPError as error:
            why = f"{error.reason}: {error.read(1000).decode()}"
            raise urllib.error.HTTPError(error.url, error.code, why, error.headers, None) from None

    def get(self, path: str) -> Any:
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def serve(model: Path, port: int, *options: str) -> Server:
    return Server([*RAMIFY, "serve", "--model", str(model), "--port", str(port), *options], port, "/readyz")


def empty(port: int) -> Server:
    return Server([sys.executable, "-c", EMPTY, str(port)], port, "/nothing")


# --- load ------------------------------------------------------------------------------------------------------------


def requests_of(path: str, bodies: list[Any]) -> list[bytes]:
    made = []
    for body in bodies:
        content = json.dumps(body).encode()
        lines = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json")
        head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
        made.append(head.encode() + content)
    return made


async def client(port: int, requests: list[bytes], deadline: float, times: list[float], most: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(most):
        began = time.perf_counter()
        if began > deadline:
            break
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:16]:
            raise SystemExit(f"error: the service answered {head[:60]!r}")
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
        await reader.readexactly(size)
        times.append(time.perf_counter() - began)
    writer.close()


def load(port: int, requests: list[bytes], n_clients: int, seconds: float, most: int = 10**9) -> np.ndarray:
    """Seconds per request of clients that each wait for their answer before they ask again."""
    times: list[float] = []

    async def run() -> None:
        deadline = time.perf_counter() + seconds
        await asyncio.gather(*(client(port, requests, deadline, times, most) for _ in range(n_clients)))

    asyncio.run(run())
    return np.array(times)


# --- parts -----------------------------------------------------------------------------------------------------------


def measure_start(work: Path, model: Path, texts: list[str], options: argparse.Namespace) -> None:
    seconds = []
    for round_ in range(ROUNDS):
        began = time.perf_counter()
        server = serve(model, 8700 + round_)
        server.post("/v1/predict", {"texts": texts[:1]})
        seconds.append(time.perf_counter() - began)
        server.stop()
    print(f"start to first answer: median {statistics.median(seconds):.2f} s of {ROUNDS} (target 2 s)")


def measure_predict(work: Path, model: Path, texts: list[str], options: argparse.Namespace) -> None:
    bodies = [{"texts": [text], "top_k": 5} for text in texts]
    requests = requests_of("/v1/predict", bodies)
    ours, theirs = serve(model, 8710), empty(8711)
    ratios, rates, p50 = [], [], []
    for server in (ours, theirs):
        load(server.port, requests, 8, 1.0)
    for _ in range(ROUNDS):
        mine = load(ours.port, requests, 8, options.seconds)
        other = load(theirs.port, requests, 8, options.seconds)
        ratios.append(len(mine) / len(other))
        rates.append(len(mine) / options.seconds)
        p50.append(float(np.median(load(ours.port, requests, 1, options.seconds))))
    print(
        f"predict: {statistics.median(rates):,.0f} requests/s, {statistics.median(ratios):.2f} of an empty endpoint "
        f"(target 0.60); one client: p50 {1000 * statistics.median(p50):.2f} ms"
    )
    if options.annif:
        ratio = statistics.median(p50) / annif_p50(options.annif, texts)
        print(f"p50 against Annif: {ratio:.2f} (target 0.20)")
    ours.stop()
    theirs.stop()


def annif_p50(address: str, texts: list[str]) -> float:
    from urllib.parse import urlencode

    times = []
    for text in texts[:200]:
        began = time.perf_counter()
        urllib.request.urlopen(address, urlencode({"text": text}).encode(), timeout=60).read()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def learning_lines(texts: list[str], labels: list[list[str]], size: int) -> list[dict[str, Any]]:
    examples = [{"text": text, "labels": row} for text, row in zip(texts, labels, strict=True)]
    return [{"examples": examples[start : start + size]} for start in range(0, len(examples) - size, size)]


def measure_learning(work: Path, model: Path, texts: list[str], options: argparse.Namespace) -> None:
    """p99 of predictions, and the time until a correction is visible, while another client teaches."""
    batches = learning_lines(texts, options.labels, 100)
    learning_of("a new model", serve(work / "p99", 8720, "--new"), batches, texts, options)
    shutil.copytree(model, work / "p99-model", ignore=shutil.ignore_patterns("journal*", "snapshot"))
    learning_of(f"{model.name}", serve(work / "p99-model", 8721), batches, texts, options)


def learning_of(name: str, server: Server, batches: list[Any], texts: list[str], options: argparse.Namespace) -> None:
    for batch in batches[:20]:
        server.post("/v1/learn", batch)
    requests = requests_of("/v1/predict", [{"texts": [text], "top_k": 5} for text in texts[:500]])
    load(server.port, requests, 8, 1.0)
    ratios, worst = [], []
    for round_ in range(ROUNDS):
        quiet = float(np.quantile(load(server.port, requests, 8, options.seconds), 0.99))
        teacher = start_teacher(server, batches[20 + 20 * round_ : 40 + 20 * round_])
        busy = float(np.quantile(load(server.port, requests, 8, options.seconds), 0.99))
        stop_teacher(teacher)
        ratios.append(busy / quiet)
        worst.append(busy)
    alone = sorted(correction_seconds(server, number) for number in range(100))
    n_before = server.get("/v1/progress")["n_examples"]
    teacher = start_teacher(server, batches[120:140])
    try:
        delays = sorted(correction_seconds(server, number) for number in range(100))
    finally:
        stop_teacher(teacher)
    progress = server.get("/v1/progress")
    print(
        f"{name}: p99 of 8 clients while learning runs {statistics.median(ratios):.2f} times that without (target 3), "
        f"{1000 * statistics.median(worst):.1f} ms; longest wait for learning "
        f"{1000 * progress['learning_wait']['longest_seconds']:.1f} ms of "
        f"{1000 * progress['learning_wait']['bound_seconds']:.0f} ms; a correction in a fresh answer: median "
        f"{1000 * statistics.median(alone):.0f} ms, worst of 100 {1000 * alone[-1]:.0f} ms (target 100 ms); while "
        f"{progress['n_examples'] - n_before:,} others were taught: median {1000 * statistics.median(delays):.0f} ms, "
        f"90 % {1000 * delays[89]:.0f} ms, worst {1000 * delays[-1]:.0f} ms"
    )
    server.stop()


def start_teacher(server: Server, batches: list[Any]) -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path.insert(0, '.'); from benchmarks.service import teach; teach({server.port})"
    teacher = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert teacher.stdin is not None
    before = server.get("/v1/progress")["n_examples"]
    teacher.stdin.write(json.dumps(batches).encode())
    teacher.stdin.close()
    while server.get("/v1/progress")["n_examples"] == before:  # it has to start first
        time.sleep(0.01)
    return teacher


def stop_teacher(teacher: subprocess.Popen[bytes]) -> None:
    teacher.kill()
    teacher.wait()


def correction_seconds(server: Server, number: int) -> float:
    """The time from a correction with a new label to a fresh answer that has it."""
    unique = f"{number}x{time.time_ns()}"  # words of its own: no other label competes
    text, label = f"rare{unique} thing{unique}", f"new {unique}"
    time.sleep(0.03)
    began = time.perf_counter()
    server.post("/v1/learn", {"examples": [{"text": text, "labels": [label], "sure": 0.5}]})
    found = server.post("/v1/predict", {"texts": [text], "top_k": 20, "fresh": True})
    assert label in [one["label"] for one in found["results"][0]["labels"]]
    return time.perf_counter() - began


def teach(port: int) -> None:
    """Teach without end; a process of `measure_learning`."""
    batches = json.load(sys.stdin)
    server = Server.__new__(Server)
    server.port = port
    while True:
        for batch in batches:
            try:
                server.post("/v1/learn", batch)
            except urllib.error.HTTPError:
                time.sleep(0.5)  # too many wait


def measure_learn(work: Path, model: Path, texts: list[str], options: argparse.Namespace) -> None:
    server = serve(work / "learn", 8730, "--new")
    batches = learning_lines(texts, options.labels, 100)[:150]
    began = time.perf_counter()
    for batch in batches:
        server.post("/v1/learn", batch)
    acknowledged = time.perf_counter() - began
    server.post("/v1/predict", {"texts": ["x"], "fresh": True})
    learned = time.perf_counter() - began
    n = sum(len(batch["examples"]) for batch in batches)
    print(f"learn: {n / acknowledged:,.0f} acknowledged examples/s (target 2,000), {n / learned:,.0f} learned/s")
    delays = [correction_seconds(server, number) for number in range(100)]
    print(
        f"a correction until it is in a fresh answer: median {1000 * statistics.median(delays):.0f} ms, "
        f"worst {1000 * max(delays):.0f} ms (target 100 ms)"
    )
    server.stop()


def measure_memory(work: Path, model: Path, texts: list[str], options: argparse.Namespace) -> None:
    """Resident memory of the worker and of the process that learns, after each tenth of many requests of all kinds.

    The same thousand examples are taught again and again, so that the model itself does not grow.
    """
    server = serve(model, 8740)
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    processes = {"worker": int(children[0]), "supervisor": server.process.pid}
    requests = requests_of("/v1/predict", [{"texts": [text], "top_k": 5} for text in texts])
    requests[::100] = requests_of("/v1/explain", [{"text": text} for text in texts[::100]])
    others = ("/v1/progress", "/v1/labels?search=pain", "/v1/labels?sort=frequency", "/v1/tree?node=1", "/readyz")
    for number, path in enumerate(others):
        requests[number + 1 :: 5000] = [f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()] * len(
            requests[number + 1 :: 5000]
        )
    batches = learning_lines(texts[:1100], options.labels[:1100], 100)
    sizes: dict[str, list[float]] = {name: [] for name in processes}
    began = time.perf_counter()
    for tenth in range(10):
        for batch in batches:
            server.post("/v1/learn", batch)
        load(server.port, requests, 8, 1e9, most=options.requests // 80)
        for name, pid in processes.items():
            sizes[name].append(resident(pid))
        found = ", ".join(f"{name} {of_process[-1]:.1f} MB" for name, of_process in sizes.items())
        print(f"  {tenth + 1} tenths after {time.perf_counter() - began:.0f} s: {found}", file=sys.stderr, flush=True)
    rate = options.requests / (time.perf_counter() - began)
    learned = server.get("/v1/progress")["n_learned"]
    print(
        f"{options.requests:,} requests, {rate:,.0f} per second, {learned:,} examples learned; memory in MB after each "
        "tenth:"
    )
    for name, found in sizes.items():
        print(f"  {name}: {', '.join(f'{size:.1f}' for size in found)}: {found[-1] - found[0]:+.1f} since the first")
    server.stop()


def resident(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_kill(work: Path, model: Path, texts: list[str], options: argparse.Namespace) -> None:
    """Kill the service at random moments, a quarter while it starts: every acknowledged example must be there, once."""
    generator = random.Random(options.seed)
    folder, sent, unclear = work / "killed", 0, []
    arguments = ("--new", "--checkpoint-seconds", "0.5", "--publish-seconds", "0.1")
    for life in range(options.kills + 1):
        if life % 4 == 0 and life < options.kills:
            kill_early(folder, arguments, generator.uniform(0.0, 2.0))
            continue
        server = serve(folder, 8750, *arguments)
        for key, batch in unclear:
            server.post("/v1/learn", batch, key)
        sent += len(unclear)
        unclear = []
        found = server.get("/v1/progress")["n_examples"]
        if found != 5 * sent:
            raise SystemExit(f"error: {found} examples instead of {5 * sent} after {life} kills")
        if life == options.kills:
            break
        kill = f"import os, time; time.sleep({generator.uniform(0.05, 1.0)}); os.kill({server.process.pid}, 9)"
        killer = subprocess.Popen([sys.executable, "-c", kill])
        while True:
            start = 5 * (sent + len(unclear)) % (len(texts) - 5)
            rows = zip(texts[start : start + 5], options.labels[start : start + 5], strict=True)
            batch = {"examples": [{"text": text, "labels": labels} for text, labels in rows]}
            unclear.append((f"batch {sent}", batch))
            try:
                server.post("/v1/learn", *unclear[-1][::-1])
            except (OSError, ValueError):
                break
            unclear.pop()
            sent += 1
        killer.wait()
        server.process.wait()
        if (life + 1) % 20 == 0:
            print(f"{life + 1} kills, {5 * sent:,} examples acknowledged", file=sys.stderr, flush=True)
    server.process.send_signal(signal.SIGTERM)
    server.process.wait()
    print(
        f"{options.kills} kills: all {5 * sent:,} acknowledged examples there, each once; bits {compare_bits(folder)}"
    )


def kill_early(folder: Path, arguments: tuple[str, ...], seconds: float) -> None:
    """Kill a service that may still be starting: creating its journal, replaying it, saving."""
    process = subprocess.Popen(
        [*RAMIFY, "serve", "--model", str(folder), "--port", "8751", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.kill()
    if process.wait() != -signal.SIGKILL:
        raise SystemExit(f"error: the service ended with {process.returncode} before it was killed")


def compare_bits(folder: Path) -> str:
    """Whether the saved model equals one that learned the journal without a crash."""
    import ramify
    from ramify.serve.journal import Journal
    from ramify.serve.settings import Settings
    from ramify.serve.store import open_store
    from ramify.serve.teaching import learn

    again = open_store(Settings(model=folder.with_name("again"), is_new=True)).classifier
    for piece in Journal(folder / "journal.sqlite").after(0):
        learn(again, piece.examples, is_multiclass=False)
    one, other = ramify.load(folder).model_.state().arrays, again.model_.state().arrays
    is_equal = one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
    return "equal" if is_equal else "DIFFER"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part; by default all but kill and memory")
    parser.add_argument("--model", type=Path, help="a batch model of texts; by default one of ICD-10-CM is trained")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--requests", type=int, default=100_000, help="of the memory part")
    parser.add_argument("--annif", help="address of a project's suggest call, to compare with")
    options = parser.parse_args()
    from ramify.data.icd10 import load_icd10

    data = load_icd10()
    order = np.random.default_rng(0).permutation(len(data.train.texts))[:40_000]
    texts = [data.train.texts[row] for row in order]
    options.labels = [list(data.train.labels[row]) for row in order]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        model = options.model or work / "icd10"
        if options.model is None and options.only not in ("learning", "learn", "kill"):
            subprocess.run([*RAMIFY, "demo", "--model", str(model)], stdout=subprocess.DEVNULL, check=True)
        for part in [options.only] if options.only else PARTS[:4]:
            globals()[f"measure_{part}"](work, model, texts, options)


if __name__ == "__main__":
    main()
