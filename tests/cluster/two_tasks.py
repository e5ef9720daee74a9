"""Two tasks and the ways to them: direct calls, or gRPC on loopback. What the conversations of the tests need."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

import dtflab as tf
from dtflab.base.thread_frames import current_frames
from dtflab.cluster import inprocess, negotiation, outbox
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.endpoint import Endpoint
from dtflab.cluster.faults import Faults
from dtflab.cluster.master_stub import MasterStub
from dtflab.cluster.worker_stub import WorkerStub
from dtflab.graph.apply_op import apply_op
from dtflab.machine.clock import REAL
from dtflab.machine.meter import Meter
from dtflab.runtime import transport
from dtflab.runtime.local import make_devices
from dtflab.runtime.master import Master
from dtflab.runtime.rendezvous import full_key
from dtflab.runtime.worker import Worker

HERE, THERE = "/job:lab/task:0", "/job:lab/task:1"
_SETTLE = 60.0


class Task:
    """One of the two: a worker and a master that know each other only by `peer(number)`."""

    def __init__(self, number: int, peer: Callable[[int, Task], Any]) -> None:
        self.name = f"/job:lab/replica:0/task:{number}"
        self.address = ""
        self.faults, self.meter = Faults(self.name, REAL), Meter()
        self.worker = Worker(self.name, make_devices("lab", number), lambda task: peer(int(task[-1]), self))
        workers = {
            f"/job:lab/replica:0/task:{n}": lambda n=n: self.worker if n == number else peer(n, self) for n in (0, 1)
        }
        self.master = Master(self.worker, workers)
        self.at: Callable[[str], str] = lambda address: ""
        self.endpoint: Endpoint | None = None
        self.note: Callable[..., None] = lambda *what, pushed=False: None


class Lab:
    """Both tasks, and how a client and they themselves reach them: `master(number)`, `worker(number)`."""

    def __init__(self) -> None:
        self.tasks = [Task(number, self.worker) for number in (0, 1)]
        self.addresses: list[str] = []

    def master(self, number: int) -> Any:
        return self.tasks[number].master

    def worker(self, number: int, own: Task | None = None) -> Any:
        """The worker of a task, as the task `own` reaches it, or a client."""
        return self.tasks[number].worker

    def session(self, graph: tf.Graph | None = None, number: int = 0, config: Any = None) -> tf.Session:
        """A session whose master is task `number`, in the lab's own way."""
        _labs[id(self)] = self
        return tf.Session(f"lab://{id(self)}/{number}", graph=graph, config=config)

    def waiting(self) -> int:
        """How many wait for a value in either task."""
        return sum(len(task.worker.rendezvous.waiting()) for task in self.tasks)

    def steps(self) -> int:
        """How many steps have left something in either task."""
        return sum(len(task.worker.rendezvous._steps) for task in self.tasks)


class GrpcLab(Lab):
    """The same tasks, every call over the wire."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses = free_addresses(len(self.tasks))  # theirs also between two lives of a task
        for task, address in zip(self.tasks, self.addresses, strict=True):
            task.address = address
            task.at = dict(zip(self.addresses, (task.name for task in self.tasks), strict=True)).get
        self.serving = [Endpoint(*pair) for pair in zip(self.tasks, self.addresses, strict=True)]
        self._stubs: dict[tuple[int, Task | None], Any] = {}

    def master(self, number: int) -> Any:
        self.worker(number)
        return MasterStub.at(self.addresses[number])

    def worker(self, number: int, own: Task | None = None) -> Any:
        if (number, own) not in self._stubs:
            stub = WorkerStub.at(self.tasks[number].name, self.addresses[number], own=own)
            self._stubs[number, own] = stub
            if negotiation.are_on():
                stub.get_status()  # and the link is there
        return self._stubs[number, own]

    def stop(self) -> None:
        for serving in self.serving:
            serving.stop()
        for stub in self._stubs.values():
            stub.close()


_labs: dict[int, Lab] = {}


def _connect(target: str, config: Any, credentials: Any = None) -> Any:
    lab, _, number = target.partition("://")[2].partition("/")
    return _labs[int(lab)].master(int(number))


transport.register_scheme("lab", _connect)


LOCAL = negotiation._HAS_NAMES, outbox._AT_ONCE  # of this system


@contextmanager
def using(wire: str) -> Iterator[None]:
    """In this block, connections that begin are of that kind: `link`, `socket`, `grpc`, or `tcp`: a link on Windows."""
    has_names, at_once = (False, None) if wire == "tcp" else LOCAL
    with (
        mock.patch.dict(os.environ, DTFLAB_WIRE=wire if wire in ("socket", "grpc") else ""),
        mock.patch.object(negotiation, "_HAS_NAMES", has_names),
        mock.patch.object(outbox, "_AT_ONCE", at_once),
    ):
        yield


@contextmanager
def cluster_over(wire: str, **cluster: Any) -> Iterator[tf.Cluster]:
    """A cluster whose tasks are in this process and yet call each other over a wire, as those of several do."""
    with using(wire), tf.Cluster(listen=True, **cluster) as found:
        tasks = [task.server.task for task in found.tasks]
        for task in tasks:
            inprocess.withdraw(task.address, task)
        yield found
        for task in tasks:
            inprocess.publish(task.address, task)


def open_links(cluster: tf.Cluster) -> None:
    """Have each task call each other one, after which there are links between them, unless they have gRPC alone."""
    tasks = [task.server.task for task in cluster.tasks]
    for task, other in itertools.permutations(tasks, 2):
        task.members.way_to(other.name).get_status()


@contextmanager
def lab_over(wire: str) -> Iterator[Lab]:
    """A fresh pair of tasks."""
    if wire == "direct":
        yield Lab()
        return
    with using(wire):
        lab = GrpcLab()
        try:
            yield lab
        finally:
            lab.stop()


def edge_key(task: Task, tensor: str = "edge") -> str:
    """Under which a tensor crosses from the CPU of `task` to another task."""
    (device,) = task.worker.devices
    return full_key((device.name, device.incarnation, "/job:lab/replica:0/task:1/device:CPU:0", tensor), "0:0")


def never(device: str = HERE, dtype: Any = tf.float32) -> tf.Tensor:
    """A tensor that waits for a value that nobody sends."""
    full = device.replace("/task", "/replica:0/task").encode() + b"/device:CPU:0"
    ends = {"send_device": full, "send_device_incarnation": 1, "recv_device": full}
    with tf.device(device):
        return apply_op("_Recv", "never", tensor_type=dtype, tensor_name=b"never", **ends)


def until(condition: Callable[[], Any], what: str) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + _SETTLE
    pause = threading.Event()
    while not (value := condition()):
        assert time.monotonic() < deadline, f"still not so after {_SETTLE:g} s: {what}"
        pause.wait(0.005)
    return value


def is_in(thread: threading.Thread, function: str) -> bool:
    """Whether a thread is in a function of that name, or in what that calls."""
    frame = current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def interrupt_main(function: str) -> None:
    """Ctrl-C, as soon as the main thread stands still in a function of that name."""
    main = threading.main_thread()
    until(lambda: is_in(main, function), f"the main thread is in {function}")
    assert main.ident is not None
    signal.pthread_kill(main.ident, signal.SIGINT)


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Results of `work(number)`, each in a thread of its own; an exception counts as a result."""
    results: list[Any] = [None] * count

    def run(number: int) -> None:
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SETTLE)
    return results


def interrupt_extensions(session: tf.Session, arrives: bool) -> None:
    """Send a Ctrl-C while new nodes are on their way to a session's master: whether they arrive must not matter."""
    a = tf.constant(1.0)
    assert session.run(a) == 1.0
    call, stub = session._master._call, session._master

    def interrupted(method: str, request: Any, timeout: float | None = None) -> Any:
        if arrives or method != "ExtendSession":
            call(method, request, timeout)
        raise KeyboardInterrupt

    for n in range(3):
        b = tf.add(a, n)
        with mock.patch.object(stub, "_call", interrupted), pytest.raises(KeyboardInterrupt):
            session.run(b)
        if n:  # once without other new nodes, then with more
            b = tf.add(b, 0.0)
        assert session.run([a, b]) == [1.0, 1.0 + n]
    with tf.device("/job:nowhere"):
        bad = tf.constant(2.0)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="nowhere"):
            session.run(bad)


def link_to_ps(spec: dict[str, list[str]]) -> Any:
    """The link between the worker of this process and its ps, if there is one."""
    return negotiation.between(spec["worker"][0], spec["ps"][0])
