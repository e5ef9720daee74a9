"""GraphMgr: graph handle → executors; a step of them → their kernels' context.

Stands for `core/distributed_runtime/graph_mgr.cc`. Left out: cost graphs.

Rule: a registered partition is bound once; every step only makes a context per device and starts the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.base.garbage import NO_COLLECTION
from dtflab.graph.inlining import inline
from dtflab.graph.node import Node
from dtflab.machine.console import say
from dtflab.runtime.executor import Executor
from dtflab.runtime.function_call import FunctionCall
from dtflab.runtime.partition import partition_by_device
from dtflab.runtime.step_rendezvous import StepRendezvous

if TYPE_CHECKING:
    from dtflab.graph.function_attr import FunctionAttr
    from dtflab.machine.devices import Device
    from dtflab.runtime.runner import Step


class StepContext:
    """The kernel's view of the step that runs it."""

    def __init__(
        self,
        step: Step,
        device: Device,
        rendezvous_of: Callable[[Step], StepRendezvous],
        kernel_state: dict[str, Any],
        args: Sequence[Any],
        results: list[Any] | None,
    ) -> None:
        self.step = step
        self._device = device
        self.device = device.name
        self.resources = device.resources
        self.env = device.env
        self.args = args
        self.results = results
        self.frame_id = 0
        self.iteration = 0
        self._kernel_state = kernel_state
        self._rendezvous_of = rendezvous_of
        self._rendezvous: StepRendezvous | None = None

    @property
    def rendezvous(self) -> StepRendezvous:
        """Where values are sent to and received from; a step on one device needs none."""
        if self._rendezvous is None:
            self._rendezvous = self._rendezvous_of(self.step)
        return self._rendezvous

    @property
    def frame_iter(self) -> str:
        """The frame and the turn of a loop, as keys of a rendezvous have them."""
        return f"{self.frame_id}:{self.iteration}"

    def in_frame(self, frame_id: int, iteration: int) -> StepContext:
        """The context of an iteration of a loop."""
        inner = StepContext.__new__(StepContext)
        inner.__dict__ = self.__dict__ | {"frame_id": frame_id, "iteration": iteration}
        return inner

    def state(self, node_name: str, make: Callable[[], Any]) -> Any:
        """The state that the kernel of that node keeps from step to step, as long as the session lives."""
        found = self._kernel_state.get(node_name)  # two steps may come at once: both get what the first has made
        return self._kernel_state.setdefault(node_name, make()) if found is None else found

    def instantiate(self, function: FunctionAttr) -> FunctionCall:
        """The function of an attribute, bound to this device: `call(values, ctx=None)`. To be kept for many calls."""
        return FunctionCall(function.function, self._device, self.step.clock, StepContext)

    def on_cancel(self, callback: Callable[[Exception], Any]) -> Callable[[], Any]:
        """Call `callback(error)` if the step fails; the kernel calls the result once it is done."""
        return self.step.on_cancel(callback)

    def print(self, text: str) -> None:
        """A line for the person who runs the program."""
        say(text)


class GraphMgr:
    """The registered partitions of a worker."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = {device.name: device for device in devices}
        self._graphs: dict[str, list[Executor]] = {}
        self._registered = 0

    @NO_COLLECTION
    def register(self, nodes: Sequence[Node], going: Callable[[], object] = bool) -> str:
        """Split a partition by the devices of this task, bind it, and return its handle.

        `going` is called now and then, and ends the work by an error.
        """
        incarnations = {name: device.incarnation for name, device in self._devices.items()}
        nodes = inline(nodes, going)
        for node in nodes:
            if node.device not in incarnations:
                raise errors.InvalidArgumentError.of(
                    f"This task has no device {node.device!r} (node '{node.name}'); it has {list(self._devices)}."
                )
        parts = partition_by_device(nodes, incarnations)
        executors = [Executor(part, self._devices[name], going=going) for name, part in parts.items()]
        self._registered += 1
        handle = f"{self._registered:016x}"
        self._graphs[handle] = executors
        return handle

    def deregister(self, handle: str) -> None:
        self._graphs.pop(handle, None)

    def executors(self, handle: str) -> list[Executor]:
        """The executors of a handle; AbortedError for one that is not (or no longer) registered."""
        try:
            return self._graphs[handle]
        except KeyError:
            text = f"Graph handle is not found: {handle}. Possibly, this worker just restarted."
            raise errors.AbortedError.of(text) from None
