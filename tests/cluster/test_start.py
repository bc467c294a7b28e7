"""Starting a Ray of this machine, when the machine is so busy that Ray gives up; Ray itself is not needed."""

from __future__ import annotations

import pytest

from ramify.cluster.workers import ClusterError, _start

LATE = "The current node timed out during startup. This could happen because some of the raylet failed to startup"


class BusyRay:
    """Starts after some failures."""

    def __init__(self, failures):
        self.failures, self.n_ended = list(failures), 0

    def init(self, address, num_cpus, **options):
        if self.failures:
            raise self.failures.pop(0)

    def shutdown(self):
        self.n_ended += 1


def test_a_ray_that_is_late_is_started_again():
    ray = BusyRay([Exception(LATE), TimeoutError("gcs")])
    _start(ray, {}, 2)
    assert (ray.failures, ray.n_ended) == ([], 2)


def test_a_ray_that_never_starts_is_said_with_what_to_do():
    ray = BusyRay([Exception(LATE)] * 9)
    with pytest.raises(ClusterError, match=r"3 attempts .*timed out.*idle.*ray start --head"):
        _start(ray, {}, 2)
    assert len(ray.failures) == 6


def test_another_error_of_a_start_is_not_repeated():
    ray = BusyRay([ValueError("num_cpus must be positive")] * 9)
    with pytest.raises(ValueError, match="positive"):
        _start(ray, {}, -1)
    assert len(ray.failures) == 8
