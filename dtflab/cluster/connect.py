"""Session target → master: the task of this process that has the address, or a stub for one elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.base.timeouts import timeouts
from dtflab.cluster import inprocess, moving
from dtflab.cluster.cluster import lost_tasks, stopped
from dtflab.cluster.task import await_task
from dtflab.machine.clock import REAL

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.runtime.transport import MasterInterface


def _check_all_there(target: str, address: str, config: ConfigProto | None) -> None:
    """A session waits for tasks that may still come; for those that have ended it would wait in vain."""
    chosen = config is not None and (config.device_filters or config.cluster_def.job)
    lost = [] if chosen else lost_tasks(address)
    if lost:
        raise errors.UnavailableError.of(
            f"The cluster of {target} has lost {', '.join(lost)}. Restart them (`cluster.restart`), or leave them "
            "out of the session: tf.ConfigProto(device_filters=['/job:ps', '/job:worker/task:0'])."
        )


def master_at(target: str, config: ConfigProto | None, credentials: Credentials | None = None) -> MasterInterface:
    """The master behind `grpc://address`; UnavailableError when nobody answers there within `timeouts.connect`.

    It comes at once where this process has stopped a cluster. If the config's `operation_timeout_in_ms` ends before,
    it is a DeadlineExceededError. UnauthenticatedError if the server does not take the credentials; without any,
    `base/credentials.py` finds those for the address.
    """
    address = target.partition("://")[2]
    if (moves := moving.find(address)) is not None:
        return moves.master(config, credentials)
    _check_all_there(target, address, config)
    if (task := inprocess.find(address)) is not None:
        return task.master
    if (port := address.rpartition(":")[2]).isdecimal() and not int(port):
        raise errors.UnavailableError.of(
            f"Nobody can listen at port 0, as in {target}: in a cluster spec it stands for any free port. "
            "`server.target` says which one it is."
        )
    from dtflab.cluster.master_stub import MasterStub
    from dtflab.cluster.worker_stub import WorkerStub

    worker = WorkerStub.at("", address, credentials)
    limit = config.operation_timeout_in_ms / 1000 if config is not None else 0.0
    seconds = 0.0 if address in stopped else min(limit or timeouts.connect, timeouts.connect)
    try:
        await_task(worker.get_status, "", address, REAL, seconds, lambda: inprocess.find(address))
    except errors.UnavailableError as error:
        if address in stopped:
            raise errors.UnavailableError.of(
                f"{target} was a task of the cluster {stopped[address]}, which this program has stopped. Restart that "
                "(`cluster.restart()`), or make a new one and open the session on it: tf.Session(cluster.target)."
            ) from None
        raise errors.DeadlineExceededError.of(error.message) if seconds == limit else error from None
    master = task.master if (task := inprocess.find(address)) is not None else MasterStub.at(address, credentials)
    worker.close()  # after the stub has the connection, which knows by now whose it is
    return master
