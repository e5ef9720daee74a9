"""FunctionCall: a function bound to a device, for kernels that call functions (those of data sets, say).

Stands for `core/common_runtime/function.cc` (FunctionLibraryRuntimeImpl). Left out: bodies on several devices.
Conditionals, loops and calls that are nodes of a graph are not calls at run time: `graph/inlining.py` has put their
bodies there.

Rule: a call is a step of its own on the calling thread. It ends when the step that it is made for ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base import errors
from dtflab.base.garbage import NO_COLLECTION
from dtflab.graph.function import Function
from dtflab.graph.inlining import inline
from dtflab.machine.clock import Clock
from dtflab.ops.entropy import from_system
from dtflab.runtime.executor import Executor
from dtflab.runtime.partition import partition_by_device
from dtflab.runtime.rendezvous import DEAD, Rendezvous, fetched
from dtflab.runtime.runner import Step
from dtflab.runtime.step_rendezvous import StepRendezvous

if TYPE_CHECKING:
    from dtflab.machine.devices import Device
    from dtflab.runtime.graph_mgr import StepContext


class FunctionCall:
    """`call(values, ctx=None)` runs the function once and returns the list of its results.

    With the context of a kernel, the call is part of that kernel's step: cancelled, timed and traced with it. It keeps
    what its kernels keep from call to call; any number of threads may call it at once.
    """

    @NO_COLLECTION
    def __init__(self, function: Function, device: Device, clock: Clock, context: Callable[..., StepContext]) -> None:
        self.function = function
        self._device = device
        self._clock = clock
        self._context = context
        self._kernel_state: dict[str, Any] = {}
        nodes = [node.replace(device=device.name) for node in inline(function.nodes)]
        parts = partition_by_device(nodes, {device.name: device.incarnation})
        self._executor = Executor(parts.get(device.name, []), device, of_function=True)

    def __call__(self, values: Sequence[Any], ctx: StepContext | None = None) -> list[Any]:
        """Run the body on `values` and return its outputs.

        Raises the error of the body, or InvalidArgumentError for a wrong number of values.
        """
        if len(values) != len(self.function.arguments):
            raise errors.InvalidArgumentError.of(
                f"Function {self.function.name} takes {len(self.function.arguments)} arguments, "
                f"but was given {len(values)}."
            )
        step = Step(from_system() >> 2, self._clock, trace=ctx.step.trace if ctx is not None else None)
        results: list[Any] = [DEAD] * len(self.function.results)
        rendezvous = Rendezvous()  # between the memories of a GPU
        step.on_cancel(rendezvous.abort)

        def between(step: Step) -> StepRendezvous:
            return StepRendezvous(self._device.name.partition("/device:")[0], rendezvous, _no_peers)

        context = self._context(step, self._device, between, self._kernel_state, values, results)
        self._executor.start(step, context)
        step.drive() if ctx is None else ctx.step.drive_inner(step)
        names = [name for name, _ in self.function.results]
        return [fetched(i, names[i], value) for i, value in enumerate(results)]


def _no_peers(task: str, key: str, done: Any) -> None:
    raise errors.InternalError.of(f"A function runs on one device; it can't receive {key} from {task}.")
