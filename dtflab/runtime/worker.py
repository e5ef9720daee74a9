"""Worker: one per task. Registers partitions, runs them, hands tensors to other workers.

Stands for `core/distributed_runtime/worker.cc`. Left out: collectives.

Rule: no method waits. `run_graph` starts executors on the caller's step; `recv_tensor` leaves a callback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.runtime.blocked import queues_waits, tensor_wait
from dtflab.runtime.graph_mgr import GraphMgr, StepContext
from dtflab.runtime.pushing import PushingRendezvousMgr
from dtflab.runtime.rendezvous import Done
from dtflab.runtime.step_rendezvous import StepRendezvous
from dtflab.runtime.transport import SHARED, Scope
from dtflab.runtime.worker_session import WorkerSession, session_on

if TYPE_CHECKING:
    from dtflab.graph.node import Node
    from dtflab.machine.devices import Device
    from dtflab.protos.device_attributes_pb2 import DeviceAttributes
    from dtflab.runtime.rendezvous import Rendezvous
    from dtflab.runtime.runner import Step
    from dtflab.runtime.transport import Join, WorkerInterface


class Worker:
    """The worker service of `task` (`/job:worker/replica:0/task:1`), with its devices and all state on them
    (transport.WorkerInterface).

    `peers(task)` gives the worker of another task of the cluster; `join` makes this one a task of a cluster that a
    session brings.
    """

    def __init__(
        self, task: str, devices: Sequence[Device], peers: Callable[[str], WorkerInterface], join: Join | None = None
    ) -> None:
        self.task = task
        self.devices = list(devices)
        self.graphs = GraphMgr(devices)
        self.rendezvous = PushingRendezvousMgr()
        self.join = join
        self.peers = peers
        self._sessions: dict[str, WorkerSession] = {}

    def local(self) -> Worker:
        """This worker."""
        return self

    def get_status(self) -> list[DeviceAttributes]:
        """This task's devices."""
        return self._attributes

    @cached_property
    def _attributes(self) -> list[DeviceAttributes]:
        """Made once: each session keeps those of all tasks, and a cluster of N workers has N sessions."""
        return [device.attributes() for device in self.devices]

    def create_worker_session(
        self, session: str, master_task: str, master_incarnation: int, scope: Scope = SHARED
    ) -> None:
        """Begin to keep what a session has for itself here."""
        if session not in self._sessions:
            self._sessions[session] = session_on(self, scope, master_task)

    def session(self, handle: str) -> WorkerSession:
        """The session of a handle; one that was not announced shares all."""
        return self._sessions.get(handle) or self._sessions.setdefault(handle, session_on(self, SHARED))

    def stateful_devices(self) -> list[Device]:
        """The devices of the task, and those on which isolated sessions have a state of their own."""
        return [*self.devices, *(device for own in list(self._sessions.values()) for device in own.isolated_devices())]

    def delete_worker_session(self, session: str) -> None:
        """End what a session has for itself here."""
        found = self._sessions.pop(session, None)
        if found is not None:
            found.close()

    def register_graph(self, session: str, nodes: Sequence[Node], going: Callable[[], object] = bool) -> str:
        """Bind a partition to the session's devices here; returns its graph handle."""
        return self.session(session).graphs.register(nodes, going)

    def deregister_graph(self, session: str, graph_handle: str) -> None:
        self.session(session).graphs.deregister(graph_handle)

    def run_graph(
        self,
        session: str,
        graph_handle: str,
        step: Step,
        args: Sequence[object] = (),
        results: list[object] | None = None,
    ) -> None:
        """Start a partition as part of `step`, whose driver then runs it."""
        own = self.session(session)
        if not own.pushes:
            self.rendezvous.never_push(step.step_id)
        rendezvous_of = partial(self._step_rendezvous, own)
        for executor in own.graphs.executors(graph_handle):
            executor.start(step, StepContext(step, executor.device, rendezvous_of, own.kernel_state, args, results))

    def _step_rendezvous(self, session: WorkerSession, step: Step) -> StepRendezvous:
        """The rendezvous of a step's kernels here, made when the first of them asks."""
        pull = partial(self._pull, session, step)
        return StepRendezvous(session.task, self._rendezvous_of(step), pull, step.hold)

    def _rendezvous_of(self, step: Step) -> Rendezvous:
        rendezvous = self.rendezvous.find(step.step_id)
        step.on_cancel(rendezvous.abort)
        return rendezvous

    def _pull(self, session: WorkerSession, step: Step, task: str, key: str, done: Done) -> None:
        come: list[str] = []
        forget: Callable[[], object] | None = None

        def arrived(value: object, error: Exception | None) -> None:
            nonlocal forget
            come.append(key)
            if forget is not None:
                forget()
            forget = None  # it knows this function: such a cycle would keep the step's values until a collection
            done(value, error)

        give_up = session.peers(task).recv_tensor(step.step_id, key, arrived)
        if give_up is not None and not come:
            forget = step.on_cancel(lambda error: give_up())
            if come:  # meanwhile, on another thread
                forget()

    def recv_tensor(self, step_id: int, key: str, done: Done) -> Callable[[], object]:
        """Another task pulls a value that is made here, perhaps before the step has begun here."""
        rendezvous = self.rendezvous.find(step_id)
        try:
            rendezvous.recv_async(key, done)
        except errors.OpError as error:
            done(None, error)
        return lambda: rendezvous.forget(key, done)

    def cleanup_graph(self, step_id: int, error: Exception | None = None) -> None:
        """The step is over, or failed with `error`, which ends every wait in it."""
        self.rendezvous.cleanup(step_id, error)

    def abandon_graph(self, step_id: int, why: Exception) -> None:
        """The master of a step is gone: it is over, also at the tasks to which values were pushed from here."""
        others = self.rendezvous.pushed_to(step_id)
        self.cleanup_graph(step_id, why)
        for task in others:
            self.peers(task).cleanup_graph(step_id, why)

    def waits(self) -> list[str]:
        """The waits here for a tensor, or at a queue or an accumulator: a line for each, with its step."""
        tensors = [tensor_wait(key, step_id) for step_id, key in self.rendezvous.waiting()]
        return tensors + queues_waits(self.stateful_devices())

    def cleanup_all(self, containers: Sequence[str]) -> None:
        """Empty resource containers on all devices; not those of isolated sessions."""
        for device in self.devices:
            device.resources.cleanup(containers)

    def close(self) -> None:
        """The task ends: let go of all state."""
        for session in list(self._sessions):
            self.delete_worker_session(session)
        for device in self.devices:
            device.resources.clear()
