"""Local: the cluster of one task behind `Session()`.

Stands for `direct_session.cc`, which in TensorFlow is a second path of 1,933 lines. Here it is the same path without a
cluster: one master, one worker, no peers. Its variables go with the session.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import device_spec, errors
from dtflab.runtime import transport
from dtflab.runtime.clock import REAL, Clock
from dtflab.runtime.devices import Device
from dtflab.runtime.master import Master
from dtflab.runtime.worker import Worker


def make_devices(job: str, task: int, config: Any = None, clock: Clock = REAL) -> list[Device]:
    """The devices of a task: as many CPUs as `config.device_count["CPU"]` says, one by default."""
    count = config.device_count["CPU"] if config is not None and "CPU" in config.device_count else 1
    return [Device(device_spec.full_name(job, 0, task, "CPU", i), clock) for i in range(max(1, count))]


def local_master(target: str, config: Any) -> Master:
    """A new task of its own for one session."""
    task = "/job:localhost/replica:0/task:0"
    worker = Worker(task, make_devices("localhost", 0, config), _no_peers)
    return Master(task, {task: lambda: worker})


def _no_peers(task: str) -> Any:
    raise errors.InternalError(None, None, f"A local session has no task {task}.")


transport.register_scheme("", local_master)
