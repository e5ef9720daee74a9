"""Stacks of tensors: how the values of a loop's iterations wait for the loop that computes its gradient.

Stands for `core/kernels/stack.cc` and its part of `core/ops/data_flow_ops.cc`. Left out: the older family, whose
handles are strings.

Rule: each run of StackV2 makes a stack of its own, which lives as long as its step, on one device. Whoever pops gets
what was pushed last; so the loop that goes back finds the values of the iterations in their reverse order.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from dtflab.graph import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.control_flow import free
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.resource import ResourceHandle

_TYPE = "tensorflow::Stack"
_numbers = itertools.count()


class StackState:
    """The tensors of one stack, the newest last; at most `max_size` of them, if that is not negative."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name = name
        self.dtype = dtype
        self.max_size = max_size
        self._values: list[Any] | None = []  # None: closed

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
        return self.values.pop()

    def close(self) -> None:
        """Let go of all values; whoever comes now gets an error."""
        self._values = None


def _find(ctx: Any, handle: ResourceHandle) -> StackState:
    """The stack that `handle` names; NotFoundError if it is another step's, or another device's."""
    found: StackState | None = ctx.step.temporaries.get((handle.name, ctx.device))
    if found is None:
        raise errors.NotFoundError(
            None,
            None,
            f"There is no stack {handle.name} on {ctx.device} in this step: it was made on {handle.device}, and lives "
            "only there and only as long as its step. Push and pop in the step that makes it, on that device.",
        )
    return found


@op("""StackV2(max_size: int32) -> (handle: resource)
       elem_type: type
       stack_name: string = ''""")
class StackV2(Op):
    """A new, empty stack."""

    stateful = True
    needs_ctx = True
    flops = free

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
    flops = free

    def infer(operation):
        return [operation.inputs[1].shape]

    def bind(node, xp):
        dtype = node["T"]

        def push(ctx, handle, value):
            _find(ctx, handle).push(value, dtype)
            return value

        return push


@op("""StackPopV2(handle: resource) -> (elem: elem_type)
       elem_type: type""")
class StackPopV2(Op):
    """What was on top of the stack, and is not there any more."""

    stateful = True
    needs_ctx = True
    flops = free

    def infer(operation):
        return [TensorShape(None)]

    def bind(node, xp):
        dtype = node["elem_type"]

        def pop(ctx, handle):
            stack = _find(ctx, handle)
            if stack.dtype != dtype:
                raise invalid(f"Stack[{stack.name}] has elements of {dtype_text(stack.dtype)}, not {dtype_text(dtype)}")
            return stack.pop()

        return pop


@op("StackCloseV2(handle: resource) -> ()")
class StackCloseV2(Op):
    """The end of a stack before that of its step."""

    stateful = True
    needs_ctx = True
    infer = staticmethod(shapes.none)
    flops = free

    def bind(node, xp):
        return lambda ctx, handle: _find(ctx, handle).close()
