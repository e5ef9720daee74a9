"""Local: the cluster of one task behind `Session()`.

Stands for `direct_session.cc`, which in TensorFlow is a second path of 1,933 lines. Here it is the same path without a
cluster: one master, one worker, no peers. Its variables go with the session. Next to a cluster in virtual time its
waits are virtual, too, and its steps take no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from dtflab.base import errors
from dtflab.machine.clock import session_clock
from dtflab.machine.device_factory import make_devices
from dtflab.machine.pools import SessionPools
from dtflab.runtime.master import Master
from dtflab.runtime.worker import Worker

if TYPE_CHECKING:
    from dtflab.protos.config_pb2 import ConfigProto, RunOptions


class DirectMaster(Master):
    """The master of a new task that one session has for itself."""

    def __init__(self, config: ConfigProto | None) -> None:
        task = "/job:localhost/replica:0/task:0"
        worker = Worker(task, make_devices("localhost", 0, config, session_clock()), _no_peers)
        self._pools = SessionPools(config, worker.devices)
        super().__init__(worker, {task: lambda: worker}, session_clock())

    is_direct = True

    def inter_op_pool(self, options: RunOptions | None) -> int:
        """The number of the pool that a RunOptions asks for; InvalidArgumentError if no pool has that number."""
        return self._pools.choose(options)

    def close_session(self, handle: str, error: errors.OpError | None = None) -> None:
        """Release the session, and the threads that were its own."""
        super().close_session(handle, error)
        self._pools.close()


def _no_peers(task: str) -> NoReturn:
    raise errors.InternalError.of(f"A local session has no task {task}.")
