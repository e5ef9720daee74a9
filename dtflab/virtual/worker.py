"""VirtualWorker: a worker whose messages take time.

Rules: a partition begins when the master's call has arrived. A value that another device asked for is on its way from
when it is both made and asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dtflab.base import errors
from dtflab.base.events import PROCESS, OpenCall
from dtflab.graph import device_spec
from dtflab.graph.node import make_node
from dtflab.graph.op_registry import nbytes
from dtflab.runtime.rendezvous import Done, Key, Rendezvous, full_key
from dtflab.runtime.runner import Step
from dtflab.runtime.step_rendezvous import StepRendezvous
from dtflab.runtime.worker import Worker
from dtflab.runtime.worker_session import WorkerSession
from dtflab.virtual.critical import CRITICAL
from dtflab.virtual.step import VirtualStep


class VirtualWorker(Worker):
    """The worker service of a task in virtual time. A step that is run by hand takes no time."""

    @CRITICAL
    def run_graph(
        self,
        session: str,
        graph_handle: str,
        step: Step,
        args: Sequence[object] = (),
        results: list[object] | None = None,
    ) -> None:
        """Start a partition, once the master's call is here; its own task needs none."""
        if results is not None or not isinstance(step, VirtualStep):
            super().run_graph(session, graph_handle, step, args, results)
            return
        step.helpers.append(self.task)
        step.expect()
        arrived = partial(step.post, self._begin, session, graph_handle, step)
        step.world.wires.call(step.step_id, "RunGraph", step.master, self.task, arrived, partial(step.post, step.fail))

    def _begin(self, session: str, graph_handle: str, step: VirtualStep) -> None:
        try:
            super().run_graph(session, graph_handle, step)
        except errors.OpError as error:
            step.fail(error)

    def _step_rendezvous(self, session: WorkerSession, step: Step) -> StepRendezvous:
        if not isinstance(step, VirtualStep):
            return super()._step_rendezvous(session, step)
        return TimedRendezvous(self.task, self._rendezvous_of(step), partial(self._pull, session, step), step)


class TimedRendezvous(StepRendezvous):
    """The rendezvous as the kernels of a step in a task see it: a value arrives after the time of its way."""

    __slots__ = ("_step",)

    def __init__(self, task: str, local: Rendezvous, pull: Callable[[str, str, Done], None], step: VirtualStep) -> None:
        super().__init__(task, local, pull)
        self._step = step

    def recv_async(self, key: Key, frame_iter: str, done: Done) -> None:
        """Get a value from the device that makes it, when it has arrived on the one that asks."""
        source, _, target, tensor = key
        step = self._step
        if PROCESS.call:
            done = _reporting(step, full_key(key, frame_iter), done)

        def made(value: object, error: Exception | None) -> None:
            if error is not None:
                done(value, error)
                return
            sent = step.clock.now()

            def arrived() -> None:
                if step.trace is not None:  # next to the RecvTensor, which lasts from asking to having
                    node = make_node(tensor, "NoOp", device=target)
                    step.trace.add(f"{target}/wire", node, sent, step.clock.now(), value)
                step.receive(lambda: done(value, None))

            wires = step.world.wires
            if not wires.route(source, target).wires:
                done(value, None)
                return
            lost = partial(_lose, step, done)
            wires.send(step.step_id, tensor, source, target, nbytes(value), arrived, lost)

        super().recv_async(key, frame_iter, made)


def _lose(step: VirtualStep, done: Done, error: Exception) -> None:
    step.receive(lambda: done(None, error))


def _reporting(step: VirtualStep, key: str, done: Done) -> Done:
    """`done`, which also reports to listeners that a value of another task has arrived."""
    source, _, target, *_ = key.split(";")
    owner, puller = device_spec.task_name(source), device_spec.task_name(target)
    if owner == puller:
        return done
    call = OpenCall("RecvTensor", puller, owner, key, step.step_id, now=step.clock.now)

    def arrived(value: object, error: Exception | None) -> None:
        call.received = getattr(value, "nbytes", 0)
        call.ended(error)
        done(value, error)

    return arrived
