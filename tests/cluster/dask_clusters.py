"""Dask clusters of processes for the tests, and what happens in them: a worker dies, a task is on a worker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

import pytest

import dtflab as tf
from tests.cluster.two_tasks import until


@contextmanager
def dask_client(workers: int = 2, **options: Any) -> Iterator[Any]:
    """A client of a Dask cluster of as many processes of this machine, each with one thread."""
    distributed = pytest.importorskip("distributed")
    start_threads_that_stay()
    quiet = {"dashboard_address": ":0", "silence_logs": 60}
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **quiet, **options) as local,
        distributed.Client(local) as client,
    ):
        yield client


def start_threads_that_stay() -> None:
    """Start what a process that uses Dask has until its end: a thread for large messages, a helper of its forks."""
    from distributed.utils import _offload_executor

    _offload_executor.submit(int).result()
    resource_tracker.ensure_running()


def kill_worker_of(cluster: tf.Cluster, job: str, index: int = 0) -> None:
    """SIGKILL the Dask worker on which a task is; Dask's nanny starts another one at another address."""
    task: Any = cluster.task(job, index)
    (pid,) = task.engine.client.run(os.getpid, workers=[task.worker]).values()
    os.kill(pid, signal.SIGKILL)


def children_of(client: Any) -> list[int]:
    """The processes of tasks on all workers."""
    return [pid for pids in client.run(_children).values() for pid in pids]


def _children() -> list[int]:
    from dtflab.cluster import dask_worker

    return [held.child.pid for held in dask_worker._held.values()]


def nothing_left(client: Any) -> None:
    until(lambda: not children_of(client), "no worker holds a task")
