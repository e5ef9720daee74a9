"""`%dtf_cluster --engine dask`: on the Dask cluster of the notebook's client."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

import dtflab as tf
from dtflab.notebook import cluster_view
from tests.cluster.dask_clusters import dask_client
from tests.notebook.cells import magic, states


@pytest.fixture(scope="module")
def client():
    with dask_client(workers=1) as client:
        yield client


@pytest.mark.parametrize("which", ["--client mine", ""])
def test_a_cluster_on_the_workers_of_a_dask_cluster(shell, client, which):
    shell.user_ns["mine"] = client
    cluster = magic(shell, f"%dtf_cluster --worker 1 --engine dask {which}", "cluster")
    assert cluster.engine == "dask" and cluster.task("worker").engine.client is client
    assert "1 task, each in a process of its own on a worker of a Dask cluster" in cluster_view.text(cluster)
    assert "CPU:0" in cluster_view.text(cluster)
    with tf.Session(cluster.target) as sess:
        assert sess.run(tf.constant(7)) == 7
    magic(shell, "%dtf_cluster stop")
    assert states(cluster) == {"stopped"}


def test_without_a_client(shell, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(UsageError, match=r"needs a Dask client: client = distributed\.Client\(\)"):
        magic(shell, "%dtf_cluster --worker 1 --engine dask")
