"""Queues on a device: the ops that make them, enqueue, dequeue, close and query, in both families.

Stands for `core/kernels/queue_op.cc`, `queue_ops.cc` and their part of `core/ops/data_flow_ops.cc`. Left out:
FakeQueue, and `timeout_ms`, which TensorFlow has never supported.

Rules: a queue with a `shared_name` stays in its container until that is reset; one without belongs to its node and
goes with the session. The ops ending in V2 find it by a resource handle, the older ones by a reference to two strings,
container and name. An op that waits holds no thread: it stands in a line of the queue, and leaves it if its step is
cancelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base.errors import InvalidArgumentError
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.static_value import folded_value
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp, StatefulOp
from dtflab.ops.handles import kinds, new_or_shared, resource_of
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.queues.queue_state import Close, Get, Put
from dtflab.ops.queues.shared_queue import Queue, Spec, types_text
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER

QUEUE_TYPE = "tensorflow::QueueInterface"
kinds[QUEUE_TYPE] = Queue

FAMILIES = {"V2": "resource", "": "Ref(string)"}  # the suffix of an op's name → the type of its handle


# -- making queues ------------------------------------------------------------------------------------


class _NewQueue(StatefulOp):
    """Gives the handle of a queue. The first op that names a queue makes it."""

    infer = shapes.handle

    def bind(node, xp):
        spec, container = Spec.of(node), node["container"].decode() or DEFAULT_CONTAINER

        def make(ctx, name):
            return Queue(name, spec, ctx.device, container)

        return new_or_shared(node, Queue, QUEUE_TYPE, make, lambda queue, name: queue.must_be(spec, node.op))


_QUEUE = "\n       component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1"
_SHARED = "\n       container: string = '', shared_name: string = ''"
_KINDS = {
    "FIFOQueue": _QUEUE,
    "PaddingFIFOQueue": _QUEUE,
    "RandomShuffleQueue": f"{_QUEUE}, min_after_dequeue: int = 0, seed: int = 0, seed2: int = 0",
    "PriorityQueue": "\n       component_types: list(type) >= 0 = [], shapes: list(shape) >= 0, capacity: int = -1",
}
for _kind, _attrs in _KINDS.items():
    for _family, _handle in FAMILIES.items():
        op(f"{_kind}{_family}() -> (handle: {_handle}){_attrs}{_SHARED}")(type(_kind, (_NewQueue,), {}))


# -- using them ---------------------------------------------------------------------------------------


def _mismatch(queue: Queue, types: list[DType], signature: str) -> InvalidArgumentError:
    """The error for elements whose `types` are not the queue's; `signature` has a place for them."""
    have, expected = (signature.format(types_text(each)) for each in (types, queue.types))
    return invalid(f"Signature mismatch, have: {have} expected: {expected}")


class _UsesQueue(FreeOp):
    is_async = True
    infer = shapes.none


class _Enqueue(_UsesQueue):
    """Puts an element, or many: the slices of its components along their first axis."""

    def bind(node, xp):
        types, name, many = node["Tcomponents"], node.name, node.op.startswith("QueueEnqueueMany")

        def kernel(ctx, handle, *args):
            values, done = args[:-1], args[-1]
            queue = resource_of(ctx, handle, Queue)
            if types != queue.types:
                raise _mismatch(queue, types, "resource, {}->")
            if many:
                count, elements = queue.check_batch(values), zip(*map(_rows, values), strict=True)
            else:
                queue.check(values)
                count, elements = int(not queue.at_once(queue.state.put_at_once, values)), [values]
            if not count:
                return ()
            return queue.join(ctx, Put(elements, count, name, ctx.step.step_id, done))

        return kernel


def _rows(value: Any) -> Any:
    """The slices along the first axis; each string is an array of its own, like every value of a tensor."""
    return (np.array(text, object) for text in value) if value.dtype == object and value.ndim == 1 else value


class _Dequeue(_UsesQueue):
    infer = Op.infer

    def bind(node, xp):
        types, name = node["component_types"], node.name

        def kernel(ctx, handle, done):
            queue = resource_of(ctx, handle, Queue)
            if types != queue.types:
                raise _mismatch(queue, types, "resource->{}")
            if element := queue.at_once(queue.state.take_at_once):
                return element
            finished = lambda held, error: done(held and held[0], error)  # noqa: E731
            return queue.join(ctx, Get(1, False, name, ctx.step.step_id, finished))

        return kernel


class _DequeueMany(_UsesQueue):
    """Takes `n` elements as one batch; from a closed queue, QueueDequeueUpTo also takes fewer."""

    def infer(operation):
        n = folded_value(operation.inputs[1])
        if n is not None and n.ndim == 0 and n < 0 and "UpTo" not in operation.type:
            raise ValueError(f"Input 'n' must be >= 0, but is {n}")
        return Op.infer(operation)

    def kernel(node, xp, ctx, handle, n, done):
        types, name, up_to = node["component_types"], node.name, "UpTo" in node.op
        queue, what = resource_of(ctx, handle, Queue), f"Dequeue{'UpTo' if up_to else 'Many'}Op"
        if n.size != 1:  # TensorFlow reads the first number in memory
            raise invalid(f"{what} expects a scalar for n, the number of elements, got shape {shape_text(n.shape)}")
        count = n.item()
        if count < 0:
            raise invalid(f"{what} requested {count} < 0 elements")
        if types != queue.types:
            raise _mismatch(queue, types, "resource, int32->{}")
        if not queue.shapes:
            raise invalid(
                f"{queue.spec.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes."
            )
        if not count:
            return queue.batch(())

        def finished(held, error):
            values = None
            try:
                values = queue.batch(held) if error is None else None
            except MemoryError as problem:  # this step's error, though this may be the thread of an enqueue
                error = problem
            done(values, error)

        return queue.join(ctx, Get(count, up_to, name, ctx.step.step_id, finished))


class _Close(_UsesQueue):
    def kernel(node, xp, ctx, handle, done):
        queue, step = resource_of(ctx, handle, Queue), ctx.step.step_id
        if node["cancel_pending_enqueues"]:
            queue.close("putters", node.name, step)
            return ()
        return queue.join(ctx, Close(node.name, step, done))


class _Size(FreeOp):
    needs_ctx = True
    infer = shapes.scalar

    def kernel(node, xp, ctx, handle):
        return np.array(len(resource_of(ctx, handle, Queue)), np.int32)


class _IsClosed(_Size):
    def kernel(node, xp, ctx, handle):
        return np.array(resource_of(ctx, handle, Queue).closed)


_IN = "\n       Tcomponents: list(type) >= 1\n       timeout_ms: int = -1"
_OUT = "\n       component_types: list(type) >= 1\n       timeout_ms: int = -1"
_USERS: list[tuple[str, str, str, type[Op]]] = [
    ("Enqueue", "components: Tcomponents", f"(){_IN}", _Enqueue),
    ("EnqueueMany", "components: Tcomponents", f"(){_IN}", _Enqueue),
    ("Dequeue", "", f"(components: component_types){_OUT}", _Dequeue),
    ("DequeueMany", "n: int32", f"(components: component_types){_OUT}", _DequeueMany),
    ("DequeueUpTo", "n: int32", f"(components: component_types){_OUT}", _DequeueMany),
    ("Close", "", "()\n       cancel_pending_enqueues: bool = false", _Close),
    ("Size", "", "(size: int32)", _Size),
    ("IsClosed", "", "(is_closed: bool)", _IsClosed),
]
for _use, _inputs, _rest, _base in _USERS:
    for _family, _handle in FAMILIES.items():
        _declared: dict[str, Any] = {"stateful": _family == "V2"}
        if _family == "" and _use != "IsClosed":  # as TensorFlow declares it
            _declared["grad"] = no_gradient
        op(f"Queue{_use}{_family}(handle: {_handle}, {_inputs}) -> {_rest}")(type(f"Queue{_use}", (_base,), _declared))
