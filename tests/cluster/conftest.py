"""A Ray cluster of several nodes on this machine, for the tests that need one."""

import os

import pytest

# What a busy machine takes long for is no failure.
os.environ.setdefault("RAY_worker_register_timeout_seconds", "300")

MEMORY = 80 * 2**20  # of an object store: about the least that Ray takes


@pytest.fixture(scope="session")
def nodes():
    """A head without CPUs, and two nodes of one CPU each, connected."""
    import ray
    from ray import cluster_utils

    started = cluster_utils.Cluster()
    for n_cpus in (0, 1, 1):
        _patiently(lambda n=n_cpus: started.add_node(num_cpus=n, object_store_memory=MEMORY))
    ray.init(address=started.address, log_to_driver=False, logging_level="error")
    started.wait_for_nodes(timeout=300)
    yield started
    ray.shutdown()
    started.shutdown()


def _patiently(start):
    """Ray gives a node 30 seconds, which a busy machine may exceed."""
    for _ in range(4):
        try:
            return start()
        except Exception as error:
            if "timed out" not in str(error):
                raise
    return start()
