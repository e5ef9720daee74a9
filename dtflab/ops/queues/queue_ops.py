"""Queues on a device: the ops that make them, put, take, close and ask, in both families.

Stands for `core/kernels/queue_op.cc`, `queue_ops.cc` and their part of `core/ops/data_flow_ops.cc`. Left out:
FakeQueue, and `timeout_ms`, which TensorFlow has never supported.

Rules: a queue with a `shared_name` stays in its container until that is reset; one without belongs to its node and
goes with the session. The ops ending in V2 find it by a resource handle, the older ones by a reference to two strings,
container and name. An op that waits holds no thread: it stands in a line of the queue, and leaves it if its step is
cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free
from dtflab.ops.handles import by_reference, resource_of
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.queues.queue_resource import Queue, Spec, Waiter, types_text
from dtflab.ops.queues.queue_state import Close, Get, Put
from dtflab.ops.resource_mgr import name_for
from dtflab.ops.variables.cell import Cell
from dtflab.ops.variables.handle_ops import DEFAULT_CONTAINER, ResourceHandle, kinds

QUEUE_TYPE = "tensorflow::QueueInterface"
kinds[QUEUE_TYPE] = Queue


# -- making queues ------------------------------------------------------------------------------------


class _QueueOp(Op):
    """Gives the handle of a queue, which it makes if it is the first to name it."""

    stateful = True
    needs_ctx = True
    flops = bytes = staticmethod(free)

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any], ResourceHandle]:
        container, shared_name = node["container"].decode() or DEFAULT_CONTAINER, node["shared_name"].decode()
        spec = Spec.of(node)

        def find(ctx: Any) -> ResourceHandle:
            name = name_for(ctx, node.name, container, shared_name, Queue)
            queue = ctx.resources.lookup_or_create(
                container, name, Queue, lambda: Queue(name, spec, ctx.device, container)
            )
            if queue.spec != spec:
                queue.must_be(spec, node.op)
            return ResourceHandle(ctx.device, container, name, QUEUE_TYPE)

        return find

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        return [TensorShape([])]


class _QueueRefOp(_QueueOp):
    """Gives a reference to two strings instead: container and name."""

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any], Cell]:
        return by_reference(super().bind(node, xp))

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        return [TensorShape([2])]


_QUEUE = """
       component_types: list(type) >= 1
       shapes: list(shape) >= 0 = []
       capacity: int = -1
       container: string = ''
       shared_name: string = ''"""
_SHUFFLE = """
       component_types: list(type) >= 1
       shapes: list(shape) >= 0 = []
       capacity: int = -1
       min_after_dequeue: int = 0
       seed: int = 0
       seed2: int = 0
       container: string = ''
       shared_name: string = ''"""
_PRIORITY = """
       component_types: list(type) >= 0 = []
       shapes: list(shape) >= 0
       capacity: int = -1
       container: string = ''
       shared_name: string = ''"""


@op(f"FIFOQueueV2() -> (handle: resource){_QUEUE}")
class FIFOQueueV2(_QueueOp):
    pass


@op(f"FIFOQueue() -> (handle: Ref(string)){_QUEUE}")
class FIFOQueue(_QueueRefOp):
    pass


@op(f"RandomShuffleQueueV2() -> (handle: resource){_SHUFFLE}")
class RandomShuffleQueueV2(_QueueOp):
    pass


@op(f"RandomShuffleQueue() -> (handle: Ref(string)){_SHUFFLE}")
class RandomShuffleQueue(_QueueRefOp):
    pass


@op(f"PaddingFIFOQueueV2() -> (handle: resource){_QUEUE}")
class PaddingFIFOQueueV2(_QueueOp):
    pass


@op(f"PaddingFIFOQueue() -> (handle: Ref(string)){_QUEUE}")
class PaddingFIFOQueue(_QueueRefOp):
    pass


@op(f"PriorityQueueV2() -> (handle: resource){_PRIORITY}")
class PriorityQueueV2(_QueueOp):
    pass


@op(f"PriorityQueue() -> (handle: Ref(string)){_PRIORITY}")
class PriorityQueue(_QueueRefOp):
    pass


# -- using them ---------------------------------------------------------------------------------------


def queue_of(ctx: Any, handle: Any) -> Queue:
    """The queue that a handle of either family names; NotFoundError if it is gone."""
    return resource_of(ctx, handle, Queue)


def _check_types(queue: Queue, types: list[DType], signature: str) -> None:
    """InvalidArgumentError unless elements are of these types; `signature` has a place for them."""
    if types != queue.types:
        have, expected = (signature.format(types_text(each)) for each in (types, queue.types))
        raise invalid(f"Signature mismatch, have: {have} expected: {expected}")


class _QueueUser(Op):
    is_async = True
    flops = bytes = staticmethod(free)
    infer = staticmethod(shapes.none)


class _Enqueue(_QueueUser):
    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        types, name = node["Tcomponents"], node.name

        def enqueue(ctx: Any, handle: Any, *args: Any) -> None:
            values, done = args[:-1], args[-1]
            queue = queue_of(ctx, handle)
            _check_types(queue, types, "resource, {}->")
            queue.check(values)
            who = Waiter(name, ctx.step.step_id)
            queue.join(ctx, Put([values], 1, who, lambda put: done(None, put.error)))

        return enqueue


class _EnqueueMany(_QueueUser):
    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        types, name = node["Tcomponents"], node.name

        def enqueue_many(ctx: Any, handle: Any, *args: Any) -> None:
            values, done = args[:-1], args[-1]
            queue = queue_of(ctx, handle)
            _check_types(queue, types, "resource, {}->")
            count = queue.check_batch(values)
            if not count:
                done(None, None)
                return
            who = Waiter(name, ctx.step.step_id)
            queue.join(ctx, Put(zip(*map(_rows, values), strict=True), count, who, lambda put: done(None, put.error)))

        return enqueue_many


def _rows(value: Any) -> Any:
    """What lies along the first axis; a string as an array of its own, like every value of a tensor."""
    return (np.array(text, object) for text in value) if value.dtype == object and value.ndim == 1 else value


class _Dequeue(_QueueUser):
    infer = Op.infer

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        types, name = node["component_types"], node.name

        def dequeue(ctx: Any, handle: Any, done: Any) -> None:
            queue = queue_of(ctx, handle)
            _check_types(queue, types, "resource->{}")
            who = Waiter(name, ctx.step.step_id)
            queue.join(ctx, Get(1, False, who, lambda get: done(get.held and get.held[0], get.error)))

        return dequeue


class _DequeueMany(_QueueUser):
    up_to = False

    @classmethod
    def infer(cls, operation: Any) -> list[TensorShape]:
        n = folded_value(operation.inputs[1])
        if n is not None and n.ndim == 0 and n < 0 and not cls.up_to:
            raise ValueError(f"Input 'n' must be >= 0, but is {n}")
        return Op.infer(operation)

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., None]:
        types, name, up_to = node["component_types"], node.name, cls.up_to

        def dequeue_many(ctx: Any, handle: Any, n: Any, done: Any) -> None:
            queue, what = queue_of(ctx, handle), f"Dequeue{'UpTo' if up_to else 'Many'}Op"
            if n.size != 1:  # TensorFlow takes what lies first in memory
                raise invalid(f"{what} expects a scalar for n, the number of elements, got shape {shape_text(n.shape)}")
            count = n.item()
            if count < 0:
                raise invalid(f"{what} requested {count} < 0 elements")
            _check_types(queue, types, "resource, int32->{}")
            if not queue.shapes:
                raise invalid(
                    f"{queue.spec.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes."
                )
            if not count:
                done(queue.batch(()), None)
                return

            def finished(get: Get) -> None:
                values, error = None, get.error
                try:
                    values = queue.batch(get.held) if error is None else None
                except MemoryError as problem:  # ours, though this may be the thread of one who put
                    error = problem
                done(values, error)

            queue.join(ctx, Get(count, up_to, Waiter(name, ctx.step.step_id), finished))

        return dequeue_many


class _DequeueUpTo(_DequeueMany):
    up_to = True


class _Close(_QueueUser):
    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        name, cancel = node.name, node["cancel_pending_enqueues"]

        def close(ctx: Any, handle: Any, done: Any) -> None:
            queue = queue_of(ctx, handle)
            if cancel:
                queue.close("putters", Waiter(name, ctx.step.step_id))
                done(None, None)
            else:
                queue.join(ctx, Close(Waiter(name, ctx.step.step_id), lambda end: done(None, end.error)))

        return close


class _Size(Op):
    needs_ctx = True
    infer = staticmethod(shapes.scalar)
    flops = bytes = staticmethod(free)

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[[Any, Any], Any]:
        return lambda ctx, handle: np.array(len(queue_of(ctx, handle)), np.int32)


class _IsClosed(Op):
    needs_ctx = True
    infer = staticmethod(shapes.scalar)
    flops = bytes = staticmethod(free)

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[[Any, Any], Any]:
        return lambda ctx, handle: np.array(queue_of(ctx, handle).closed)


_HANDLES = {"V2": "resource", "": "Ref(string)"}  # of the two families, by the suffix of their names
_COMPONENTS_IN = """
       Tcomponents: list(type) >= 1
       timeout_ms: int = -1"""
_COMPONENTS_OUT = """
       component_types: list(type) >= 1
       timeout_ms: int = -1"""
_USERS: list[tuple[str, str, str, type[Op]]] = [
    ("QueueEnqueue", "components: Tcomponents", f"(){_COMPONENTS_IN}", _Enqueue),
    ("QueueEnqueueMany", "components: Tcomponents", f"(){_COMPONENTS_IN}", _EnqueueMany),
    ("QueueDequeue", "", f"(components: component_types){_COMPONENTS_OUT}", _Dequeue),
    ("QueueDequeueMany", "n: int32", f"(components: component_types){_COMPONENTS_OUT}", _DequeueMany),
    ("QueueDequeueUpTo", "n: int32", f"(components: component_types){_COMPONENTS_OUT}", _DequeueUpTo),
    ("QueueClose", "", "()\n       cancel_pending_enqueues: bool = false", _Close),
    ("QueueSize", "", "(size: int32)", _Size),
    ("QueueIsClosed", "", "(is_closed: bool)", _IsClosed),
]
for _name, _inputs, _rest, _base in _USERS:
    for _family, _handle in _HANDLES.items():
        _declared: dict[str, Any] = {"stateful": _family == "V2"}
        if _family == "" and _name != "QueueIsClosed":  # so TensorFlow has it
            _declared["grad"] = staticmethod(no_gradient)
        op(f"{_name}{_family}(handle: {_handle}, {_inputs}) -> {_rest}")(type(f"{_name}{_family}", (_base,), _declared))
