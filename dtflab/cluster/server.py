"""tf.train.Server: a task of a cluster, and how others reach it.

Stands for `python/training/server_lib.py` and `grpc_server_lib.cc`.

Rules: an address on this machine's loopback is bound at once, so that other processes can join. Any other address is a
name inside this process, said in one line, unless `insecure=True` or `credentials` for TLS are given: nothing listens
to the world by accident. A server that other machines can reach opens no files for its steps but those in
`allow_files`. Port 0 picks a free one, of a name, too, and the target names it from the beginning.
"""

from __future__ import annotations

import atexit
import weakref
from typing import Any

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import Credentials
from dtflab.cluster import inprocess
from dtflab.cluster.addresses import check_address, with_port
from dtflab.cluster.cluster_spec import ClusterSpec, members
from dtflab.cluster.task import Task
from dtflab.files.env import GuardedEnv
from dtflab.machine import host_memory
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.console import say
from dtflab.machine.hosts import Home, is_loopback
from dtflab.protos.cluster_pb2 import ClusterDef
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.protos.tensorflow_server_pb2 import ServerDef

_running: weakref.WeakSet[Server] = weakref.WeakSet()


class Server:
    """One task of a cluster: its master and worker services, its devices, its variables.

    `server_or_cluster_def` is a ServerDef, ClusterDef, ClusterSpec or dict. `bind` is the address to listen on when it
    is not the task's own; `insecure=True` allows plain text off loopback: then anybody who reaches the port runs graphs
    here, reads and changes all variables and queues, and can use up memory and processor (docs/security.md).
    `credentials` are a dtflab.Credentials, or those of the folder that DTFLAB_CREDENTIALS names: for callers, and for
    what this task calls. `allow_files` is a folder: steps here open only files in it. Without it, they open what the
    server's user may, or no file at all if the server listens beyond loopback.
    `named_by_sessions` is for a server whose cluster is the one that each session brings (`cluster_def`), its own name
    included: it knows no other task itself.
    The server sees the cards of its address's host; of a loopback address, those of this process. A `ps` sees none.
    Raises ValueError for a job or task that the cluster does not have, UnknownError for an address in use.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: ConfigProto | None = None,
        start: bool = True,
        *,
        bind: str | None = None,
        insecure: bool = False,
        allow_files: Any = None,
        credentials: Credentials | None = None,
        listen: bool = True,
        clock: Clock = REAL,
        home: Home | None = None,
        named_by_sessions: bool = False,
    ) -> None:
        self._server_def = _make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        definition = self._server_def
        self._job, self._index = definition.job_name, definition.task_index
        self._clock = clock
        self._bind, self._insecure, self._listen = bind, insecure, listen
        self._credentials = the_credentials.own(credentials)
        self._published = False
        self._stopped = clock.event()
        self.task = self._make_task(home, named_by_sessions)
        if allow_files is not None:
            self.task.open_only(GuardedEnv(self.task.name, allow_files))
        self._allows_files = allow_files is not None
        if start:
            self.start()
        else:
            self._choose_port()

    def _choose_port(self) -> None:
        """In place of port 0, take the port that will be bound, so that the target names it from now on."""
        host, _, port = self.task.address.rpartition(":")
        if not int(port):
            wanted = with_port(self._bind or self.task.address)
            self.task.address = f"{host}:{wanted.rpartition(':')[2]}"
            self._bind = self._bind and wanted

    def _make_task(self, home: Home | None, named: bool) -> Task:
        spec, config = ClusterSpec(self._server_def.cluster), self._server_def.default_session_config
        return Task(spec, self._job, self._index, config, self._clock, home, self._credentials, named)

    def start(self) -> None:
        """Begin to serve; a started server stays as it is."""
        if self._stopped.is_set():
            raise errors.FailedPreconditionError.of("A stopped server can't be started again: make a new one.")
        if self._published:
            return
        address = self.task.address
        wanted = self._bind or address
        binds = self._listen and (is_loopback(wanted) or self._insecure or self._credentials.is_tls)
        if binds and not is_loopback(wanted) and not self._allows_files:
            self.task.open_only(GuardedEnv(self.task.name))
        address = self.task.address = self._serve(wanted, address) if binds else with_port(address)
        if self._listen and not binds:
            say(
                f"{self.task.name}: {address} is a name in this process.\n"
                "  Nothing listens there. So that other machines can join, pass credentials=… or insecure=True;\n"
                "  docs/security.md says what that gives away."
            )
        try:
            inprocess.publish(address, self.task)
        except errors.UnknownError:
            self._close_endpoint()
            raise
        self._published = True
        _running.add(self)

    def _serve(self, wanted: str, address: str) -> str:
        from dtflab.cluster.endpoint import Endpoint

        if inprocess.find(wanted) is not None:
            inprocess.publish(wanted, self.task)  # raises, and says who has it
        host_memory.keep()  # before there are threads, which would get heaps of their own
        endpoint = Endpoint(self.task, wanted, self._credentials)
        host, _, port = address.rpartition(":")
        return address if int(port) else f"{host}:{endpoint.port}"

    @property
    def target(self) -> str:
        """The target of a Session that uses this server as its master."""
        return f"grpc://{self.task.address}"

    @property
    def server_def(self) -> ServerDef:
        return self._server_def

    def join(self, timeout: float | None = None) -> None:
        """Wait until the server is stopped (TensorFlow waits forever), or `timeout` seconds. Ctrl-C ends it."""
        self._stopped.wait(timeout)

    def stop(self) -> None:
        """End the task: its address is free again, its variables are gone. TensorFlow has no such thing."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        if self._published:
            inprocess.withdraw(self.task.address, self.task)
        self._close_endpoint()
        self.task.close()

    def _close_endpoint(self) -> None:
        if self.task.endpoint is not None:
            self.task.endpoint.stop()

    @staticmethod
    def create_local_server(config: ConfigProto | None = None, start: bool = True) -> Server:
        """A cluster of one task, `/job:localhost/task:0`, on a free port of this machine."""
        return Server({"localhost": ["localhost:0"]}, protocol="grpc", config=config, start=start)

    def __repr__(self) -> str:
        state = "stopped" if self._stopped.is_set() else "running" if self._published else "not started"
        return f"<Server {self.task.name} at {self.task.address}, {state}>"


def _make_server_def(
    source: Any, job_name: str | None, task_index: int | None, protocol: str | None, config: ConfigProto | None
) -> ServerDef:
    """The ServerDef that the arguments describe; one job or one task need not be named."""
    definition = ServerDef()
    if isinstance(source, ServerDef):
        definition.CopyFrom(source)
    elif isinstance(source, ClusterDef | ClusterSpec | dict):
        definition.cluster.CopyFrom(ClusterSpec(source).as_cluster_def())
    else:
        raise TypeError(
            f"Argument `server_or_cluster_def` must be a tf.train.ServerDef, tf.train.ClusterDef, "
            f'tf.train.ClusterSpec or dict, but got "{type(source).__name__}".'
        )
    if job_name is not None:
        definition.job_name = job_name
    if task_index is not None:
        definition.task_index = task_index
    if protocol is not None:
        definition.protocol = protocol
    if config is not None:
        definition.default_session_config.MergeFrom(config)
    if not definition.job_name:
        if len(definition.cluster.job) != 1:
            raise ValueError("Must specify an explicit job_name when the cluster has more than one job.")
        definition.job_name = definition.cluster.job[0].name
    if task_index is None and not isinstance(source, ServerDef):
        definition.task_index = _only_task(ClusterSpec(definition.cluster), definition.job_name)
    _check_member(definition)
    definition.protocol = protocol = definition.protocol or "grpc"
    if protocol != "grpc":
        raise errors.NotFoundError.of(f"No server factory registered for protocol {protocol!r}. Known: 'grpc'.")
    return definition


def _only_task(spec: ClusterSpec, job: str) -> int:
    """The task that need not be named; 0 for a job that is not there, which is refused later."""
    indices = spec.task_indices(job) if job in spec.jobs else [0]
    if len(indices) != 1:
        raise ValueError("Must specify an explicit `task_index`.")
    return indices[0]


def _check_member(definition: ServerDef) -> None:
    spec = ClusterSpec(definition.cluster)
    for _, _, address in members(spec):
        check_address(address)
    if definition.job_name not in spec.jobs:
        raise errors.InvalidArgumentError.of(
            f'Job "{definition.job_name}" was not defined in cluster; its jobs are {", ".join(sorted(spec.jobs))}.'
        )
    if definition.task_index not in spec.task_indices(definition.job_name):
        raise errors.InvalidArgumentError.of(
            f'Task {definition.task_index} was not defined in job "{definition.job_name}", which has '
            f"{spec.num_tasks(definition.job_name)} task(s)."
        )


def _finish_calls() -> None:
    """At the end of a program: let the answers out that are on their way, and end the calls that wait.

    So a parameter server may end as soon as its last worker has told it, through a queue, that it is done.
    """
    for server in list(_running):
        if server.task.endpoint is not None and not server._stopped.is_set():
            server.task.endpoint.stop(0.5)


atexit.register(_finish_calls)
