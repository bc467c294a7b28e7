"""Several processes: shared snapshots, restarts, signals, start-up."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ramify import PLTClassifier
from ramify.cli.commands.serve import serve
from shared.serving import RAMIFY, SECONDS, served


def children(pid):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def test_workers_share_a_snapshot_and_all_of_them_see_what_is_learned(tmp_path):
    with served(tmp_path / "live", "--workers", "2", "--publish-seconds", "0.05") as service:
        workers = children(service.process.pid)
        assert len(workers) == 2
        version = service.learn([("kidney stone", ["N20"]), ("cough", ["R05"])] * 5).json()["version"]
        service.wait_for_version(version)
        import httpx

        n_fresh, deadline = 0, time.monotonic() + SECONDS
        while n_fresh < 20:  # in a row, each on a connection of its own, so by any worker
            assert time.monotonic() < deadline, f"a worker does not see version {version}"
            answer = httpx.post(
                f"{service.address}v1/predict", json={"texts": ["kidney stone"], "top_k": 1}, timeout=SECONDS
            ).json()
            n_fresh = n_fresh + 1 if answer["version"] == version else 0
            assert n_fresh == 0 or answer["results"][0]["labels"][0]["label"] == "N20"
        mapped = [Path(f"/proc/{pid}/maps").read_text() for pid in workers]
        files = [{line.split()[-1] for line in maps.splitlines() if "safetensors" in line} for maps in mapped]
        assert files[0] == files[1] != set()
        assert 'ramify_requests_total{route="/v1/predict",status="200"}' in service.client.get("/metrics").text


def test_a_worker_that_dies_is_replaced(tmp_path):
    with served(tmp_path / "live") as service:
        (worker,) = children(service.process.pid)
        os.kill(worker, signal.SIGKILL)
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                assert service.client.get("/readyz", timeout=120).status_code == 200
                break
            except Exception:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert children(service.process.pid) != [worker]
        assert any(line["event"] == "a worker ended" for line in service.log_lines())


def test_workers_end_with_a_killed_supervisor(tmp_path):
    with served(tmp_path / "live") as service:
        (worker,) = children(service.process.pid)
        service.kill()
        deadline = time.monotonic() + SECONDS
        while Path(f"/proc/{worker}").exists() and "zombie" not in Path(f"/proc/{worker}/status").read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_in_order(tmp_path, number):
    with served(tmp_path / "live") as service:
        service.learn([("a", ["a"])])
        service.process.send_signal(number)
        assert service.process.wait(timeout=60) == 0
        assert all("traceback" not in line for line in service.log_lines())


def test_options_come_from_the_environment(tmp_path):
    PLTClassifier(random_state=0).fit(["red apple", "green pear"] * 5, [["apple"], ["pear"]] * 5).save(
        tmp_path / "model"
    )
    environment = {**os.environ, "RAMIFY_MODEL": str(tmp_path / "model"), "RAMIFY_PORT": "0", "RAMIFY_HOST": "0.0.0.0"}
    done = subprocess.run([*RAMIFY, "serve"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "needs keys" in done.stderr


def test_a_model_that_cannot_be_opened_ends_the_service_while_workers_wait_for_it(tmp_path):
    code = """
import sys, time
from ramify.serve import supervisor

def fails(settings):
    time.sleep(5)  # the worker has started, and waits
    raise ValueError("this model is broken")

supervisor._new_writer = fails
from ramify.cli.main import main
sys.argv = ["ramify", "serve", "--new", "--port", "0", "--model", sys.argv[1]]
main()
"""
    command = [sys.executable, "-c", code, str(tmp_path / "live")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "this model is broken" in done.stderr


def test_every_option_is_an_environment_variable_as_well(tmp_path):
    for name, parameter in inspect.signature(serve, eval_str=True).parameters.items():
        assert parameter.annotation.__metadata__[0].envvar == f"RAMIFY_{name.upper()}"
    with served(tmp_path / "live", RAMIFY_MULTICLASS="1") as service:
        assert service.learn([("a", ["b", "c"])]).status_code == 422
