"""The process engine: one operating system process per task, gRPC on loopback.

A child lives as long as its standard input is open. So it ends with its parent whatever happens to that: `stop`, an
exception, the end of a kernel, a kill.

Run as `python -m dtflab.cluster.process`, this module is the child.
"""

from __future__ import annotations

import base64
import contextlib
import os
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.base.events import Call
from dtflab.base.timeouts import timeouts
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.task import calls_of
from dtflab.machine.clock import REAL
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.protos.tensorflow_server_pb2 import ServerDef

if TYPE_CHECKING:
    from dtflab.cluster.grpc_transport import WorkerStub

_READY = "dtflab task is ready"
_GRACE_S = 2.0  # for a process to end by itself


class ProcessTask:
    """A task in a process of its own, whose environment is this one's with `environment` on it (None takes away)."""

    def __init__(
        self,
        spec: ClusterSpec,
        job: str,
        index: int,
        config: ConfigProto | None = None,
        environment: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        self.name = f"/job:{job}/replica:0/task:{index}"
        self.address = spec.task_address(job, index)
        self.target = f"grpc://{self.address}"
        self.log: deque[str] = deque(maxlen=1000)
        self._devices: list[Any] = []
        definition = ServerDef(job_name=job, task_index=index, protocol="grpc", default_session_config=config)
        definition.cluster.CopyFrom(spec.as_cluster_def())
        self._ready = REAL.event()  # it serves, or has ended
        self._serves = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dtflab.cluster.process", base64.b64encode(definition.SerializeToString()).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is the parent's: it reaches all processes of a session
            env=_environment(environment),
        )
        self._deadline = 0.0  # the moment at which it is made to end, once it has been asked
        try:
            self._reader = REAL.spawn(self._read, name=f"log of {self.name}")
        except BaseException:  # Ctrl-C, before any cluster knows the process
            with self._process:
                self._process.kill()
            raise

    def _read(self) -> None:
        """Keep what the child prints; the last line ends it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == _READY:
                self._serves = True
                self._ready.set()
            else:
                self.log.append(line.rstrip("\n"))
        self._ready.set()

    def wait_ready(self, timeout: float) -> None:
        """Return when the task serves; UnavailableError with its last words if it does not come up."""
        in_time = self._ready.wait(timeout)
        if self._serves:
            return
        why = f"ended with status {self._process.wait()}" if in_time else f"did not start within {timeout:g} s"
        words = "\n".join(list(self.log)[-15:]) or "(it printed nothing)"
        raise errors.UnavailableError.of(
            f"Task {self.name} at {self.address} {why}. Is its address taken? Its last lines:\n{words}"
        )

    @property
    def state(self) -> str:
        return "running" if self._process.poll() is None else f"ended ({self._process.returncode})"

    def devices(self) -> list[Any]:
        """DeviceAttributes of its devices, asked over the wire once."""
        if not self._devices:
            with self._asked() as stub:
                self._devices = stub.get_status()
        return self._devices

    def calls(self) -> list[Call]:
        """The calls that it has kept, asked over the wire; none once it has ended."""
        if self.state != "running":
            return []
        with self._asked() as stub:
            return calls_of(stub.calls())

    def _asked(self) -> contextlib.closing[WorkerStub]:
        from dtflab.cluster.grpc_transport import WorkerStub

        return contextlib.closing(WorkerStub(self.name, self.address))

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

    def kill(self) -> None:
        """End the process at once, as a crash would; nothing happens if it has ended."""
        self._process.kill()
        self._process.wait()

    def _close(self) -> None:
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The child's environment: this process's variables and modules, its timeouts, and the changes."""
    own = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    merged = {**os.environ, **timeouts.as_environment(), **own, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _main(encoded: str) -> Any:
    """Be the task that the encoded ServerDef describes, until standard input ends."""
    from dtflab.cluster.server import Server

    definition = ServerDef.FromString(base64.b64decode(encoded))
    sys.argv = [f"/job:{definition.job_name}/task:{definition.task_index}"]  # so tables of processes call it that
    server = Server(definition)
    print(_READY, flush=True)
    sys.stdin.read()
    REAL.spawn(_end_anyway)
    server.stop()


def _end_anyway() -> None:
    """A kernel that is still at work keeps nobody from ending."""
    REAL.sleep(5)
    os._exit(1)


if __name__ == "__main__":
    _main(sys.argv[1])
