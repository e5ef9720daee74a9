"""Tasks and clients in processes of their own, started by the same program for both libraries.

Run as `python -m benchmarks.servers LIBRARY SPEC JOB INDEX PROGRAM`, this module is such a process. It prints its
target. Then it reads numbers: it runs that many steps of its program, and answers with a line. Rule: it ends when its
standard input does, whatever it is doing, so it does not outlive the process that started it.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.players import MODULES, load

# A function of the library, the cluster's addresses, the target of the own process and its index; it returns a step.
Program = Callable[[Any, dict[str, list[str]], str, int], Callable[[], Any]]


class ServerProcess:
    """`tf.train.Server(spec, job, index)` in a new process; without a job, a client of the first address."""

    def __init__(
        self, module: str, spec: dict[str, list[str]], job: str, index: int, program: Program | None = None
    ) -> None:
        library = next(name for name, known in MODULES.items() if known == module)
        name = f"{program.__module__}:{program.__qualname__}" if program else ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.servers", library, json.dumps(spec), job, str(index), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> str:
        """Wait for the next line: the target of the process, then one line per request."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError("a server's process ended before it answered")
        return line

    def request(self, steps: int) -> None:
        """Ask for that many steps of the program; the first request also sets the program up."""
        assert self._process.stdin is not None
        print(steps, file=self._process.stdin, flush=True)

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def started(module: str, spec: dict[str, list[str]], program: Program | None = None) -> list[ServerProcess]:
    """A process for each task of the spec, once all of them serve; the program is that of the workers."""
    processes = [
        ServerProcess(module, spec, job, index, program if job == "worker" else None)
        for job, addresses in spec.items()
        for index in range(len(addresses))
    ]
    for process in processes:
        process.wait()
    return processes


def set_up(processes: Sequence[ServerProcess]) -> None:
    """Set up the programs of the processes, one after the other, so that the first initializes for the others."""
    for process in processes:
        process.request(0)
        process.wait()


def seconds_together(processes: Sequence[ServerProcess], steps: int) -> float:
    """How long it takes until each of the processes, at the same time, has run that many steps."""
    start = time.perf_counter()
    for process in processes:
        process.request(steps)
    for process in processes:
        process.wait()
    return time.perf_counter() - start


_kept: list[socket.socket] = []


def free_addresses(count: int) -> list[str]:
    """Loopback addresses that nobody uses now.

    They stay bound, without listening: so none is given away before its server is there, which may bind it too.
    """
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    _kept.extend(sockets)
    return [f"localhost:{each.getsockname()[1]}" for each in sockets]


def free_cluster(**tasks: int) -> dict[str, list[str]]:
    """A spec with that many tasks of each job."""
    addresses = iter(free_addresses(sum(tasks.values())))
    return {job: [next(addresses) for _ in range(count)] for job, count in tasks.items()}


def _serve(library: str, spec: str, job: str, index: str, program: str) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is not an answer
    tf, cluster = load(library), json.loads(spec)
    target, _server = _target(tf, cluster, job, int(index))
    print(target, file=answers, flush=True)
    requests: queue.SimpleQueue[int] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    step = None
    while True:
        steps = requests.get()
        if step is None:
            module, _, function = program.partition(":")
            step = getattr(importlib.import_module(module), function)(tf, cluster, target, int(index))
        for _ in range(steps):
            step()
        print(steps, file=answers, flush=True)


def _target(tf: Any, cluster: dict[str, list[str]], job: str, index: int) -> tuple[str, Any]:
    """The target of this process, and the server that it leads to if that is here."""
    if not job:
        address = next(iter(cluster.values()))[0]
        return (f"grpc://{address}" if tf else address), None
    if tf:
        server = tf.train.Server(cluster, job_name=job, task_index=index)
        return server.target, server
    from benchmarks import bare_wire

    bare_wire.serve(cluster[job][index])
    return cluster[job][index], None


def _read(requests: queue.SimpleQueue[int]) -> None:
    for line in sys.stdin:
        requests.put(int(line))
    os._exit(0)  # also in the middle of a step; and TensorFlow's servers can't be stopped


if __name__ == "__main__":
    _serve(*sys.argv[1:])
