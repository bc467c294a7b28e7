"""Metrics for Prometheus: requests of all workers, and the state of the writer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from ramify.serve.waits import BOUND_SECONDS

_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
# Writer's values: name -> (metric, help).
_OF_WRITER = {
    "n_examples": ("ramify_examples", "Examples acknowledged, those of the first model included"),
    "n_learned": ("ramify_examples_learned", "Examples learned"),
    "n_rejected": ("ramify_examples_rejected", "Examples that the model rejected after they were acknowledged"),
    "n_labels": ("ramify_labels", "Labels of the model"),
    "version": ("ramify_version", "Last example that the live model has learned"),
    "published_version": ("ramify_published_version", "Last example of the published snapshot"),
    "saved_version": ("ramify_saved_version", "Last example of the checkpoint"),
}


class Metrics:
    """Counts and times of this process's requests; with several workers the files they share are summed."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("ramify_requests", "Requests", ["route", "status"], registry=self.registry)
        self._seconds = Histogram(
            "ramify_request_seconds", "Time to answer a request", ["route"], buckets=_BUCKETS, registry=self.registry
        )
        self._rows = Counter("ramify_rows", "Rows predicted or learned", ["what"], registry=self.registry)
        self._wait = Gauge(
            "ramify_learning_wait_seconds",
            "Longest time that a prediction could wait for learning",
            registry=self.registry,
            multiprocess_mode="max",
        )
        self._by_route: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._by_kind = {what: self._rows.labels(what) for what in ("predicted", "learned")}

    def request(self, route: str, status: int, seconds: float) -> None:
        found = self._by_route.get((route, status))
        if found is None:
            found = (self._requests.labels(route, str(status)), self._seconds.labels(route))
            self._by_route[route, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def rows(self, what: str, number: int) -> None:
        self._by_kind[what].inc(number)

    def learning_wait(self, seconds: float) -> None:
        self._wait.set(seconds)

    def text(self, progress: Mapping[str, Any]) -> bytes:
        """The text format of Prometheus."""
        registry = self.registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(_gauges(progress))


def _gauges(progress: Mapping[str, Any]) -> CollectorRegistry:
    registry = CollectorRegistry()
    for name, (metric, description) in _OF_WRITER.items():
        if name in progress:
            _Value(metric, description, float(progress[name]), registry)
    _Value("ramify_learning_wait_bound_seconds", "What that time may be at most", BOUND_SECONDS, registry)
    for k, value in progress.get("precision", {}).items():
        _Value(f"ramify_progressive_precision_at_{k}", f"P@{k} of examples before they were learned", value, registry)
    return registry


class _Value:
    """A gauge without the files of the multi-process mode."""

    def __init__(self, name: str, description: str, value: float, registry: CollectorRegistry) -> None:
        self.name, self.description, self.value = name, description, value
        registry.register(self)

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        yield GaugeMetricFamily(self.name, self.description, value=self.value)
