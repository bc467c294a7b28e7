"""Who does the work: Ray's workers, or this process. Ray moves the data and repeats what fails."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

HINT = "pip install 'ramify[ray]'"
_STARTS = 3


class RayMissing(ImportError):
    """Ray is not installed."""

    def __init__(self) -> None:
        super().__init__(f"ramify.cluster needs Ray: {HINT}")


class ClusterError(OSError):
    """A task failed on a worker, or no cluster could be reached."""


class Actor(Protocol):
    """An object on a worker."""

    def call(self, method: str, *arguments: Any) -> Any:
        """A reference to what a method returns."""

    def get(self, reference: Any) -> Any:
        """Its value."""


class Workers(Protocol):
    """Runs functions on values that it keeps. A reference stands for a value, and may be an argument."""

    n_workers: int

    def put(self, value: Any) -> Any:
        """A reference to a value."""

    def submit(self, function: Callable[..., Any], *arguments: Any, n_returns: int = 1) -> Any:
        """A reference to the answer, or a list of `n_returns` of them."""

    def get(self, references: Any) -> Any:
        """The value of a reference, or of each of a list."""

    def completed(self, references: Sequence[Any]) -> Iterator[int]:
        """The place of each reference, as soon as its value is there."""

    def start(self, kind: Callable[..., Any], *arguments: Any, n_bytes: int) -> Actor:
        """An object that stays on a worker with this much memory to spare."""


class LocalActor:
    """An object of this process."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._held, method)(*arguments)

    def get(self, reference: Any) -> Any:
        return reference


class RayActor:
    """An object on a Ray worker, which starts again elsewhere if that dies."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self._handle, method).remote(*arguments)

    def get(self, reference: Any) -> Any:
        return import_ray().get(reference)


class InProcess:
    """Runs everything here and at once: no cluster, the same steps."""

    n_workers = 1

    def put(self, value: Any) -> Any:
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any, n_returns: int = 1) -> Any:
        answer = function(*arguments)
        return answer if n_returns == 1 else list(answer)

    def get(self, references: Any) -> Any:
        return references

    def completed(self, references: Sequence[Any]) -> Iterator[int]:
        return iter(range(len(references)))

    def start(self, kind: Callable[..., Any], *arguments: Any, n_bytes: int) -> Actor:
        return LocalActor(kind(*arguments))


class RayWorkers:
    """Tasks of one CPU on a Ray cluster. What dies with a worker or a node is computed again, as often as needed."""

    def __init__(self, n_workers: int | None = None) -> None:
        self._ray = import_ray()
        self._remote: dict[Callable[..., Any], Any] = {}
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        self.n_workers = max(1, cpus if n_workers is None else n_workers)

    def put(self, value: Any) -> Any:
        return self._ray.put(value)

    def submit(self, function: Callable[..., Any], *arguments: Any, n_returns: int = 1) -> Any:
        if function not in self._remote:
            # No limit of repetitions: an error of ours is not repeated at all, only the death of a process.
            self._remote[function] = self._ray.remote(max_retries=-1, num_cpus=1)(function)
        return self._remote[function].options(num_returns=n_returns).remote(*arguments)

    def get(self, references: Any) -> Any:
        try:
            return self._ray.get(references)
        except self._ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, ValueError) else ClusterError(str(error))) from error

    def completed(self, references: Sequence[Any]) -> Iterator[int]:
        place = {reference: k for k, reference in enumerate(references)}
        waiting = list(references)
        while waiting:
            done, waiting = self._ray.wait(waiting, num_returns=1, fetch_local=False)
            yield from (place[reference] for reference in done)

    def start(self, kind: Callable[..., Any], *arguments: Any, n_bytes: int) -> Actor:
        most = max(node["Resources"].get("memory", 0) for node in self._ray.nodes() if node["Alive"])
        if n_bytes > most:
            raise ClusterError(
                f"a part of the model has {n_bytes / 2**20:,.0f} MiB, and no node has more memory than "
                f"{most / 2**20:,.0f} MiB: split the model into more parts"
            )
        # Ray counts the memory, so that no node gets more than it has. Tasks that ask an actor wait for it: no CPU.
        options = {"num_cpus": 0, "memory": n_bytes, "max_restarts": -1, "max_task_retries": -1}
        remote = self._ray.remote(scheduling_strategy="SPREAD", **options)(kind)
        return RayActor(remote.remote(*arguments))


def import_ray() -> Any:
    """The module `ray`, or one line that says what to install."""
    try:
        import ray
    except ImportError as error:
        raise RayMissing from error
    return ray


@contextmanager
def ray_workers(address: str | None = None, n_workers: int | None = None) -> Iterator[RayWorkers]:
    """Workers of the cluster at `address`, of the one that is connected or running, or else of a local one.

    None and "auto" connect to a running cluster and start a local one where there is none; "local" always starts one.
    A cluster that was started here ends here.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield RayWorkers(n_workers)
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error", "include_dashboard": False}
    if address in (None, "auto"):
        try:
            ray.init("auto", **_without(options, "include_dashboard"))
        except ConnectionError:
            _start(ray, options, n_workers)
    elif address == "local":
        _start(ray, options, n_workers)
    else:
        try:
            ray.init(address, **_without(options, "include_dashboard"))
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ClusterError(
                f"no Ray cluster answers at {address!r}: start one with `ray start --head`, or give --cluster auto"
            ) from error
    try:
        yield RayWorkers(n_workers)
    finally:
        ray.shutdown()


def _start(ray: Any, options: dict[str, Any], n_workers: int | None) -> None:
    """Start a Ray of this machine. It gives itself 30 seconds, which a busy machine may exceed: then start again."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    for attempt in range(1, _STARTS + 1):
        try:
            ray.init("local", num_cpus=n_workers, **options)
            return
        except Exception as error:  # Ray raises no kind of its own
            if "timed out" not in str(error) and not isinstance(error, TimeoutError):
                raise
            ray.shutdown()
            if attempt == _STARTS:
                raise ClusterError(
                    f"Ray did not start on this machine in {_STARTS} attempts ({error}): try again when it is idle,"
                    " or start one with `ray start --head` and give --cluster auto"
                ) from error


def _without(options: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}
