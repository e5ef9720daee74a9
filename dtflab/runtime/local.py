"""Local: the cluster of one task behind `Session()`.

Stands for `direct_session.cc`, which in TensorFlow is a second path of 1,933 lines. Here it is the same path without a
cluster: one master, one worker, no peers. Its variables go with the session.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import errors
from dtflab.machine.device_factory import make_devices
from dtflab.runtime import transport
from dtflab.runtime.master import Master
from dtflab.runtime.worker import Worker


def local_master(target: str, config: Any) -> Master:
    """A new task of its own for one session."""
    task = "/job:localhost/replica:0/task:0"
    worker = Worker(task, make_devices("localhost", 0, config), _no_peers)
    return Master(task, {task: lambda: worker})


def _no_peers(task: str) -> Any:
    raise errors.InternalError(None, None, f"A local session has no task {task}.")


transport.register_scheme("", local_master)
