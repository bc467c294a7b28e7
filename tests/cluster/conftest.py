"""A Ray cluster of several nodes on this machine, for the tests that need one."""

import os

import pytest

# What a busy machine takes long for is no failure.
os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")
os.environ.setdefault("RAY_worker_register_timeout_seconds", "300")

MEMORY = 80 * 2**20  # of an object store: about the least that Ray takes


@pytest.fixture(scope="session")
def nodes():
    """A head without CPUs, and two nodes of one CPU each, connected."""
    import ray
    from ray import cluster_utils

    started = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": MEMORY})
    for _ in range(2):
        started.add_node(num_cpus=1, object_store_memory=MEMORY)
    ray.init(address=started.address, log_to_driver=False, logging_level="error")
    started.wait_for_nodes(timeout=300)
    yield started
    ray.shutdown()
    started.shutdown()
