"""MemoryTrace: what one traced step allocates, and when that gets free again.

Stands for `TrackingAllocator` in `framework/tracking_allocator.cc` and `NodeExecStatsWrapper::SetMemory`. Left out:
what kernels use while they run; NumPy's scalars on a CPU, which nobody can watch.

Rules: a node allocates the buffers that its outputs own and that were not there before. Their end is noted when it
really comes: at the last use, or not at all if they outlive the step. A step without a trace pays nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.machine.clock import Clock
from dtflab.machine.memory import Buffer, DeviceMemory, located, owner_of, serials
from dtflab.machine.node_stats import Allocation, Output
from dtflab.ops.cell import Cell
from dtflab.ops.resource_mgr import ResourceMgr, plain_name

# What these hand out was there before, in a kernel, a variable, a queue, or the client. Of a GPU we know it anyway.
_OF_OLD = frozenset(
    "Const _Arg VariableV2 VarHandleOp ReadVariableOp GetSessionTensor QueueDequeue QueueDequeueV2".split()
)
_COPY = "NoOp"  # a copy between host and card stands in the trace as such; its result belongs to the _Recv


class MemoryTrace:
    """The allocations of one step on all devices of this process. `add` may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[int, Any] = {}  # weak references to the arrays that have been seen, by id
        self._began = next(serials)

    def add(self, node: Node, value: Any) -> tuple[list[Output], list[Allocation]]:
        """`node` gave `value`, one output or a list of them: what these are, and what of it is newly allocated."""
        values = value if isinstance(value, list | tuple) else [value]
        outputs: list[Output] = []
        new: list[Allocation] = []
        for array in (each.value if isinstance(each, Cell) else each for each in values):
            memory, buffer = located(owner := owner_of(array))
            outputs.append(_output(array, memory, buffer))
            if hasattr(array, "nbytes") and not isinstance(array, np.generic) and node.op != _COPY:
                new += self._allocations(node, owner, memory, buffer)
        return outputs, new

    def close(self) -> None:
        """The step is over: whatever ends from now on does not belong to it."""
        self._known.clear()

    def _allocations(
        self, node: Node, owner: Any, memory: DeviceMemory | None, buffer: Buffer | None
    ) -> Iterator[Allocation]:
        key = id(owner)
        if key in self._known or not owner.nbytes:
            return
        if memory is None or buffer is None:
            found = Allocation("cpu", owner.nbytes, self._clock.now())
            old = node.op in _OF_OLD
        else:
            found = Allocation(memory.allocator.name, buffer.size, self._clock.now(), memory.bytes_in_use)
            old = node.op == "Const" or (node.op != "Variable" and buffer.serial < self._began)
        self._known[key] = weakref.ref(owner, partial(self._gone, key, found))
        if not old:
            yield found

    def _gone(self, key: int, allocation: Allocation, _: Any) -> None:
        allocation.freed = self._clock.now()
        self._known.pop(key, None)


def variables_in(resources: ResourceMgr) -> Iterator[tuple[Node, Cell]]:
    """The variables of a device, each with a node that stands for what made it before the step."""
    for _, name, cell in resources.items():
        if isinstance(cell, Cell):
            yield Node(f"variable {plain_name(name)}", "Variable"), cell


def _output(array: Any, memory: DeviceMemory | None, buffer: Buffer | None) -> Output:
    nbytes = getattr(array, "nbytes", None)
    facts = nbytes, getattr(array, "shape", None), getattr(array, "dtype", None)
    if memory is None or buffer is None:
        return Output(*facts, "cpu", nbytes or 0)
    return Output(*facts, memory.allocator.name, buffer.size, buffer.number, buffer.address)
