"""Stacks of tensors: how the values of a loop's iterations wait for the loop that computes its gradient.

Stands for `core/kernels/stack.cc` and its part of `core/ops/data_flow_ops.cc`. Left out: the older family, whose
handles are strings; the copying of swapped values beside other work.

Rules: each run of StackV2 makes a stack of its own, which lives as long as its step, on one device. Whoever pops gets
what was pushed last; so the loop that goes back finds the values of the iterations in their reverse order. With
`swap_memory`, while more than 70 % of a GPU's memory is in use, each push moves the oldest value that is still there
to host memory, from where its pop brings it back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.handles import ResourceHandle
from dtflab.ops.messages import dtype_text, invalid, shape_text

_TYPE = "tensorflow::Stack"
_OCCUPANCY = 0.7  # of the card's memory: from then on values are swapped
_SMALL = 2048  # bytes: that is not worth a copy
_numbers = itertools.count()


class OnHost(NamedTuple):
    """A value that has been moved to host memory."""

    array: Any


class StackState:
    """The tensors of one stack, the newest last; at most `max_size` of them, if that is not negative."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name = name
        self.dtype = dtype
        self.max_size = max_size
        self._values: list[Any] | None = []  # None: closed
        self._oldest = 1  # that may be on the device; the first value stays there, it is needed last

    @property
    def values(self) -> list[Any]:
        if self._values is None:
            raise invalid(f"Stack[{self.name}] has already been closed.")
        return self._values

    def push(self, value: Any, dtype: DType) -> None:
        """Put a value of `dtype` on top."""
        if dtype != self.dtype:
            raise invalid(f"Must have type {dtype_text(self.dtype)} but got {dtype_text(dtype)}")
        if 0 <= self.max_size <= len(self.values):
            raise invalid(f"Stack[{self.name}] overflowed its max_size ({self.max_size})")
        self.values.append(value)

    def pop(self) -> Any:
        """Take what is on top."""
        if not self.values:
            raise invalid(f"Stack[{self.name}] is empty when calling Pop().")
        value = self.values.pop()
        self._oldest = max(1, min(self._oldest, len(self.values)))
        return value

    def swap_out(self, to_host: Callable[[Any], Any]) -> None:
        """Move the oldest large value that is on the device to host memory."""
        while self._oldest < len(self.values):
            value, place = self.values[self._oldest], self._oldest
            self._oldest += 1
            if value.nbytes > _SMALL and value is not self.values[0]:
                self.values[place] = OnHost(to_host(value))
                return

    def close(self) -> None:
        """Let go of all values; whoever comes now gets an error."""
        self._values = None


def _find(ctx: Any, handle: ResourceHandle) -> StackState:
    """The stack that `handle` names; NotFoundError if it is another step's, or another device's."""
    found: StackState | None = ctx.step.temporaries.get((handle.name, ctx.device))
    if found is None:
        raise errors.NotFoundError.of(
            f"There is no stack {handle.name} on {ctx.device} in this step: it was made on {handle.device}, and lives "
            "only there and only as long as its step. Push and pop in the step that makes it, on that device.",
        )
    return found


def _is_crowded(memory: Any) -> bool:
    """Whether a GPU's memory is so full that values should leave it; a CPU has none of its own."""
    return memory is not None and memory.bytes_in_use > _OCCUPANCY * memory.allocator.limit


@op("""StackV2(max_size: int32) -> (handle: resource)
       elem_type: type
       stack_name: string = ''""")
class StackV2(Op):
    """A new, empty stack."""

    stateful = True
    needs_ctx = True
    flops = bytes = free

    def infer(operation):
        return [TensorShape([2])]

    def bind(node, xp):
        name, dtype = node["stack_name"].decode() or node.name, node["elem_type"]

        def make(ctx, max_size):
            if np.ndim(max_size):
                raise invalid(f"Stack size must be a scalar, but had shape: {shape_text(max_size)}")
            stack = StackState(f"{name}_{next(_numbers)}", dtype, int(max_size))
            handle = ResourceHandle(ctx.device, str(ctx.step.step_id), f"_stacks{stack.name}", _TYPE)
            ctx.step.temporaries[handle.name, ctx.device] = stack
            return handle

        return make


@op("""StackPushV2(handle: resource, elem: T) -> (output: T)
       T: type
       swap_memory: bool = false""")
class StackPushV2(Op):
    """Its second input, which is on top of the stack now."""

    stateful = True
    needs_ctx = True
    flops = bytes = free

    def infer(operation):
        return [operation.inputs[1].shape]

    def bind(node, xp):
        dtype, swap_memory = node["T"], node["swap_memory"]
        to_host = np.array if xp is np else methodcaller("get")

        def push(ctx, handle, value):
            stack = _find(ctx, handle)
            stack.push(value, dtype)
            if swap_memory and _is_crowded(ctx.resources.memory):
                stack.swap_out(to_host)
            return value

        return push


@op("""StackPopV2(handle: resource) -> (elem: elem_type)
       elem_type: type""")
class StackPopV2(Op):
    """What was on top of the stack, and is not there any more."""

    stateful = True
    needs_ctx = True
    flops = bytes = free

    def infer(operation):
        return [TensorShape(None)]

    def bind(node, xp):
        dtype = node["elem_type"]

        def pop(ctx, handle):
            stack = _find(ctx, handle)
            if stack.dtype != dtype:
                raise invalid(f"Stack[{stack.name}] has elements of {dtype_text(stack.dtype)}, not {dtype_text(dtype)}")
            value = stack.pop()
            return xp.asarray(value.array) if isinstance(value, OnHost) else value

        return pop


@op("StackCloseV2(handle: resource) -> ()")
class StackCloseV2(Op):
    """The end of a stack before that of its step."""

    stateful = True
    needs_ctx = True
    infer = staticmethod(shapes.none)
    flops = bytes = free

    def bind(node, xp):
        return lambda ctx, handle: _find(ctx, handle).close()
