"""The engines that start one operating system process per task, gRPC on loopback: dtflab's servers, or TensorFlow's.

A child reads its task and its credentials from its standard input, and lives as long as that is open. So no table of
processes shows them, and it ends with its parent whatever happens to that: `stop`, an exception, the end of a kernel, a
kill.
On Linux a child that is stopped then (SIGSTOP) is continued, so that it reads the end.

Run as `python -m dtflab.cluster.process ENGINE TASK`, this module is the child.

Rule: what the engines differ in is a row of `KINDS`.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.base.limits import limits
from dtflab.base.timeouts import timeouts
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.task import await_task
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.console import mark_lines, say
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.protos.tensorflow_server_pb2 import ServerDef

if TYPE_CHECKING:
    from dtflab.cluster.faults import Setting
    from dtflab.cluster.worker_stub import WorkerStub

_OFTEN = "Vitals"  # the view that a panel asks for twice a second: a new connection takes 8 ms
_READY = "dtflab task is ready"
_SAID = "dtflab says: "  # before a line for the person in front
_LAST = 3  # lines of its log that are shown while a task is waited for
_GRACE_S = 2.0  # for a process to end by itself
_ANSWER_S = 5.0  # for a task that serves to answer
_SHORTEST_S, _PAUSE_S = 0.1, 0.05  # of asking a task whether it answers, and until it is asked again


class Kind(NamedTuple):
    """A kind of server for children, with all that its cluster must know of it."""

    are: str  # what its tasks are, for messages
    serve: Callable[..., Any]  # starts the server, in the child, from a ServerDef, Credentials and options
    stop: Callable[[Any], object]  # ends it
    package: str = ""  # which it needs, and the name of the extra that installs it
    environment: Mapping[str, str] = MappingProxyType({})  # where the parent's says nothing else
    is_dtflab: bool = True  # has simulated GPUs, and keeps the calls that it got

    def check(self, engine: str, simulates: bool, credentials: Credentials) -> None:
        """Raise FailedPreconditionError if the package is missing, ValueError for what its servers can't have."""
        if self.package and importlib.util.find_spec(self.package) is None:
            raise errors.FailedPreconditionError.of(
                f"engine={engine!r} needs the package {self.package}, which is not installed. Install it "
                f"(pip install 'dtflab[{self.package}]'), or choose engine='process'."
            )
        if simulates and not self.is_dtflab:
            raise ValueError(
                f"gpus=… simulates GPUs, which {self.are} can't have. Leave it out, or choose engine='process'."
            )
        if credentials != PLAIN and not self.is_dtflab:
            raise ValueError(f"{self.are} know neither TLS nor tokens: leave credentials, or choose engine='process'.")


def _dtflab_server(definition: ServerDef, credentials: Credentials, **options: Any) -> Any:
    from dtflab.cluster.server import Server

    server = Server(definition, credentials=credentials, **options)
    server.task.faults.allow()
    return server


def _tensorflow_server(definition: ServerDef, credentials: Credentials) -> Any:
    train = importlib.import_module("tensorflow.compat.v1").train
    return train.Server(train.ServerDef.FromString(definition.SerializeToString()))


KINDS: Mapping[str, Kind] = {
    "process": Kind("processes of their own", _dtflab_server, lambda server: server.stop()),
    "tensorflow": Kind(
        "TensorFlow servers",
        _tensorflow_server,
        lambda server: os._exit(0),  # it can't be stopped
        package="tensorflow",
        environment={"TF_CPP_MIN_LOG_LEVEL": "1"},
        is_dtflab=False,
    ),
}


def _ending(status: int) -> str:
    """How a process has ended, in words; a negative status is the number of a signal."""
    if status == 0:
        return "stopped"  # its standard input was closed
    if status > 0:
        return f"failed, exit status {status}"
    name = signal.Signals(-status).name
    return "killed" if name == "SIGKILL" else f"ended by {name}"


class ProcessTask:
    """A task in a process of its own, whose environment is this one's with `environment` on it (None takes away).

    `engine` is one of `KINDS`. `options` are further arguments of its server. With port 0 in the spec the task has no
    address until it serves.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        job: str,
        index: int,
        config: ConfigProto | None = None,
        environment: Mapping[str, str | None] = MappingProxyType({}),
        engine: str = "process",
        credentials: Credentials = PLAIN,
        options: Mapping[str, Any] = MappingProxyType({}),  # of its server
    ) -> None:
        self.name = device_spec.name_of_task(job, index)
        self.address = spec.task_address(job, index)
        self.target = f"grpc://{self.address}"
        self.log: deque[str] = deque(maxlen=1000)
        self._devices: list[Any] = []
        self._stub: WorkerStub | None = None  # by which the panel's thread asks
        definition = ServerDef(job_name=job, task_index=index, protocol="grpc", default_session_config=config)
        definition.cluster.CopyFrom(spec.as_cluster_def())
        self._ready = REAL.event()  # it serves, or has ended
        self._serves = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dtflab.cluster.process", engine, device_spec.plain(self.name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is the parent's: it reaches all processes of a session
            env=_environment(KINDS[engine], environment),
        )
        self._credentials = credentials
        the_credentials.remember(self.address, credentials)
        self._deadline = 0.0  # the moment at which it is made to end, once it has been asked
        try:
            self._give(base64.b64encode(definition.SerializeToString()).decode(), asdict(credentials), dict(options))
            self._reader = REAL.spawn(self._read, name=f"log of {self.name}")
        except BaseException:  # Ctrl-C, before any cluster knows the process
            with self._process:
                self._process.kill()
            raise

    def _give(self, *what: str | dict[str, Any]) -> None:
        """Write the task, its credentials and options into the child's standard input."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, which `wait_ready` says
            print(json.dumps(what, default=os.fspath), file=self._process.stdin, flush=True)

    def _read(self) -> None:
        """Keep what the child prints, and repeat what it says; the last line ends it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(_READY):
                self._serves_at(line.split()[-1])
                self._ready.set()
                continue
            self.log.append(line.rstrip("\n").removeprefix(_SAID))
            if line.startswith(_SAID):
                say(f"{device_spec.plain(self.name)}: {self.log[-1]}")
        self._ready.set()

    def _serves_at(self, address: str) -> None:
        """Note that it serves, and where: it may have chosen its port itself."""
        if address != self.address:
            the_credentials.forget(self.address, self._credentials)
            the_credentials.remember(address, self._credentials)
        self.address, self.target, self._serves = address, f"grpc://{address}", True

    def wait_ready(self, timeout: float, since: float | None = None) -> None:
        """Return when the task has answered; UnavailableError with its last words if it does not come up in time.

        That is `timeout` seconds from `since`, or from now. Every `timeouts.notice` seconds a line says what is waited
        for.
        """
        start = REAL.now() if since is None else since
        while not self._has_answered(min(timeouts.notice, max(start + timeout - REAL.now(), 0.0))):
            done = "serves but does not answer" if self._serves else "has not started yet"
            if REAL.now() - start >= timeout:
                raise self._not_up(
                    f"did not start within {timeout:g} s: it {done}. Give a busy machine a longer timeout=…."
                )
            say(
                f"still waiting for {device_spec.plain(self.name)} at {self.address}, which {done} "
                f"(for {REAL.now() - start:.0f} s). Its last lines: {' | '.join(list(self.log)[-_LAST:]) or '(none)'}. "
                "A busy machine takes longer; Ctrl-C gives up"
            )

    def _has_answered(self, seconds: float) -> bool:
        """Whether the task answers within some seconds; UnavailableError if its process has ended."""
        end = REAL.now() + seconds
        in_time = self._ready.wait(seconds)
        while in_time and self._serves and self.state == "running":
            try:
                with self._asked() as stub:
                    self._devices = stub.get_status(max(end - REAL.now(), _SHORTEST_S))
                return True
            except errors.UnavailableError:  # gRPC's connection to its predecessor, perhaps
                if REAL.now() >= end:
                    return False
                REAL.sleep(_PAUSE_S)
        if in_time:
            raise self._not_up(f"ended with status {self._process.wait()}. Is its address taken?")
        return False

    def _not_up(self, why: str) -> errors.OpError:
        words = "\n".join(list(self.log)[-15:]) or "(it printed nothing)"
        return errors.UnavailableError.of(f"Task {self.name} at {self.address} {why} Its last lines:\n{words}")

    @property
    def serves(self) -> bool:
        """True from the moment at which the task can be called; it may have ended since."""
        return self._serves

    @property
    def state(self) -> str:
        status = self._process.poll()
        return "running" if status is None else _ending(status)

    def devices(self) -> list[Any]:
        """DeviceAttributes of its devices, asked over the wire once; none if it has ended.

        A client's connection to a task that was lost takes up to a second to notice that it has restarted.
        """
        if not self._devices:
            with self._asked() as stub:
                await_task(
                    lambda: self._devices.extend(stub.get_status()), self.name, self.address, REAL, _ANSWER_S,
                    lambda: self.state != "running",
                )  # fmt: skip
        return self._devices

    def view(self, name: str) -> Sequence[Any]:
        """The rows of a view of the task (views.VIEWS), asked over the wire; none once it has ended."""
        if self.state != "running":
            return []
        if name != _OFTEN:
            with self._asked() as stub:
                return stub.view(name)
        if self._stub is None:
            self._stub = self._new_stub()
        return self._stub.view(name)

    def _asked(self) -> contextlib.closing[WorkerStub]:
        return contextlib.closing(self._new_stub())

    def _new_stub(self) -> WorkerStub:
        from dtflab.cluster.worker_stub import WorkerStub

        return WorkerStub.at(self.name, self.address, self._credentials)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask_to_end(self, grace: bool = True) -> None:
        """Close the process's standard input, which it reads once it serves; until then, or without grace, kill it."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._deadline = REAL.now() + _GRACE_S
            with contextlib.suppress(BrokenPipeError):  # it has ended already
                self._process.stdin.close()
        if not (grace and self._serves):
            self._process.kill()

    def stop(self) -> None:
        """Ask the process to end, and make it end; several that have been asked before share their grace."""
        self.ask_to_end()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, self._deadline - REAL.now()))
        finally:  # also at a second Ctrl-C
            self.kill()
            self._close()
            the_credentials.forget(self.address, self._credentials)

    def kill(self) -> None:
        """End the process at once, as a crash would; nothing happens if it has ended."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop the process: it does nothing until `go_on`. UnimplementedError on a system that can't."""
        if not hasattr(signal, "SIGSTOP"):
            raise errors.UnimplementedError.of("This system can't stop a process for a while, only kill it.")
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the process continue; nothing happens if it has ended."""
        self._process.send_signal(signal.SIGCONT)

    def set_faults(self, setting: Setting) -> None:
        """Set the faults of the task, over the wire; nothing happens if it has ended."""
        if self.state == "running":
            with self._asked() as stub:
                stub.set_faults(setting)

    def _close(self) -> None:
        if self._stub is not None:
            self._stub.close()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _environment(kind: Kind, changes: Mapping[str, str | None]) -> dict[str, str]:
    """The child's environment: this process's variables and modules, its timeouts and limits, and the changes."""
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    settings = timeouts.as_environment() | limits.as_environment()
    merged = {**kind.environment, **os.environ, **settings, **own, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _main(engine: str, task: str) -> None:
    """Be the task that the ServerDef on standard input describes, until that ends."""
    _continue_at_parents_end()
    mark_lines(_SAID)
    sys.argv = [task]
    encoded, credentials, options = json.loads(sys.stdin.readline())
    definition = ServerDef.FromString(base64.b64decode(encoded))
    server = KINDS[engine].serve(definition, Credentials(**credentials), **options)
    ready = f"{_READY} at {server.target.partition('://')[2]}\n"
    print(ready, end="", flush=True)  # one write, so no line of another thread's gets into it
    sys.stdin.read()
    REAL.spawn(_end_anyway)
    KINDS[engine].stop(server)


def _continue_at_parents_end() -> None:
    """Have the system send SIGCONT when the parent ends, which does nothing to a process that runs.

    Linux sends it also at the end of the parent's thread that started this process, so it must not be a signal to end.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


_PR_SET_PDEATHSIG = 1


def _end_anyway() -> None:
    """A kernel that is still at work keeps nobody from ending."""
    REAL.sleep(5)
    os._exit(1)


if __name__ == "__main__":
    _main(*sys.argv[1:])
