"""The ops of stacks, on which the values of a loop's iterations wait for its gradient, and of mutexes.

Stands for `core/kernels/stack.cc`, its part of `core/ops/data_flow_ops.cc`, and `mutex_ops.cc`. Left out: the older
family of stacks, whose handles are strings.

Rules: each run of StackV2 makes a new stack, which lives as long as its step, on one device. A pop gives what was
pushed last, so that the backward loop finds the values of the iterations in reverse order. With `swap_memory`,
while more than 70% of a GPU's memory is in use, each push moves the oldest value that is still there to host memory,
from where its pop brings it back. MutexLock gives out a Token; the mutex is free again when the token is consumed, when
its step fails, or when nothing holds the token any more.
"""

from __future__ import annotations

import itertools
from operator import methodcaller
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import op
from dtflab.ops import shapes
from dtflab.ops.control.state import Mutex, OnHost, StackState
from dtflab.ops.costs import FreeOp, StatefulOp
from dtflab.ops.handles import found_in_step, handle_in_step, new_or_shared, resource_of
from dtflab.ops.messages import check_rank, dtype_text, invalid

_OCCUPANCY = 0.7  # of the card's memory: from then on values are swapped
_numbers = itertools.count()


def _is_crowded(memory: Any) -> bool:
    """Whether a GPU's memory is so full that values should leave it; a CPU has none of its own."""
    return memory is not None and memory.bytes_in_use > _OCCUPANCY * memory.allocator.limit


@op("StackV2(max_size: int32) -> (handle: resource) where elem_type: type, stack_name: string = ''")
class StackV2(StatefulOp):
    """A new, empty stack."""

    infer = shapes.fixed([2])

    def kernel(node, xp, ctx, max_size):
        name, dtype = node["stack_name"].decode() or node.name, node["elem_type"]
        check_rank(max_size, 0, "Stack size must be a scalar, but had shape: {}")
        stack = StackState(f"{name}_{next(_numbers)}", dtype, int(max_size))
        return handle_in_step(ctx, f"_stacks{stack.name}", "tensorflow::Stack", lambda: stack)


@op("StackPushV2(handle: resource, elem: T) -> (output: T) where T: type, swap_memory: bool = false")
class StackPushV2(StatefulOp):
    """Push the second input on the stack, and return it."""

    def infer(operation):
        return [operation.inputs[1].shape]

    def bind(node, xp):
        dtype, swap_memory = node["T"], node["swap_memory"]
        to_host = np.array if xp is np else methodcaller("get")

        def push(ctx, handle, value):
            stack = found_in_step(ctx, handle, "stack", StackState)
            stack.push(value, dtype)
            if swap_memory and _is_crowded(ctx.resources.memory):
                stack.swap_out(to_host)
            return value

        return push


@op("StackPopV2(handle: resource) -> (elem: elem_type) where elem_type: type")
class StackPopV2(StatefulOp):
    """Remove and return the top element of the stack."""

    def kernel(node, xp, ctx, handle):
        dtype = node["elem_type"]
        stack = found_in_step(ctx, handle, "stack", StackState)
        if stack.dtype != dtype:
            raise invalid(f"Stack[{stack.name}] has elements of {dtype_text(stack.dtype)}, not {dtype_text(dtype)}")
        value = stack.pop()
        return xp.asarray(value.array) if isinstance(value, OnHost) else value


@op("StackCloseV2(handle: resource) -> ()")
class StackCloseV2(StatefulOp):
    """The end of a stack before that of its step."""

    infer = shapes.none

    def bind(node, xp):
        return lambda ctx, handle: found_in_step(ctx, handle, "stack", StackState).close()


# -- mutexes -----------------------------------------------------------------------------------------


@op("MutexV2() -> (resource: resource) where container: string = '', shared_name: string = ''")
class MutexV2(StatefulOp):
    infer = shapes.scalar

    def bind(node, xp):
        return new_or_shared(node, Mutex, "Mutex", lambda ctx, name: Mutex())


@op("MutexLock(mutex: resource) -> (mutex_lock: variant)")
class MutexLock(FreeOp):
    stateful = is_async = True
    infer = shapes.scalar

    def kernel(node, xp, ctx, handle, done):
        mutex = resource_of(ctx, handle, Mutex)
        forget = []

        def entered(token, error):
            for take_back in forget:
                take_back()
            token.forget = ctx.on_cancel(lambda why: token.release())
            done(token)

        def give_up(why):
            if mutex.forget(entered):
                done(None, errors.CancelledError.of("Lock acquisition cancelled."))

        mutex.lock(entered)
        forget.append(ctx.on_cancel(give_up))


@op("ConsumeMutexLock(mutex_lock: variant) -> ()")
class ConsumeMutexLock(FreeOp):
    stateful = True
    infer = shapes.none

    def bind(node, xp):
        return lambda token: token.release()
