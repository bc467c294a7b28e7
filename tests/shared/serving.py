"""A service as a process of its own, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

RAMIFY = [sys.executable, "-c", "from ramify.cli.start import main; main()"]
SECONDS = 120


class Served:
    """A running `ramify serve`: its process, its address, and a client."""

    def __init__(self, model: Path, *arguments: str, new: bool = True, **environment: str) -> None:
        self.model = model
        self.log_path = model.parent / f"{model.name}.log"
        self._log = self.log_path.open("ab")
        command = [*RAMIFY, "serve", "--model", str(model), "--port", "0", *(["--new"] if new else []), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._log, env={**os.environ, **environment}, cwd=model.parent
        )
        said = self.process.stdout.readline().decode()
        if " at http" not in said:
            self.process.wait(timeout=SECONDS)
            raise RuntimeError(f"the service did not start: {said} {self.log()}")
        self.address = said.split(" at ")[1].split()[0]
        self.client = httpx.Client(base_url=self.address, timeout=SECONDS)

    def log(self) -> str:
        return self.log_path.read_text()

    def log_lines(self) -> list[dict]:
        return [json.loads(line) for line in self.log().splitlines()]

    def learn(self, examples, key=None, **headers):
        if key is not None:
            headers["Idempotency-Key"] = key
        content = {"examples": [{"text": text, "labels": labels} for text, labels in examples]}
        return self.client.post("/v1/learn", json=content, headers=headers)

    def predict(self, *texts, **options):
        answer = self.client.post("/v1/predict", json={"texts": list(texts), **options})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_for_version(self, version):
        deadline = time.monotonic() + SECONDS
        while (found := self.predict("x")["version"]) < version:
            assert time.monotonic() < deadline, f"version {found} instead of {version}: {self.log()}"
            time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self._ended()

    def stop(self):
        self.process.terminate()
        return self._ended()

    def _ended(self):
        code = self.process.wait(timeout=SECONDS)
        self.process.stdout.close()
        self.client.close()
        self._log.close()
        return code


@contextmanager
def served(model, *arguments, new=True, **environment):
    service = Served(Path(model), *arguments, new=new, **environment)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()
