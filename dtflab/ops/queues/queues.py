"""Queues for programs: FIFOQueue, RandomShuffleQueue, PaddingFIFOQueue, PriorityQueue, and what they share.

Stands for the queues in `python/ops/data_flow_ops.py`. Left out: eager mode, GPUCompatibleFIFOQueue, Barrier, staging.

Rule: an object here is the graph's side of a queue: a handle tensor, dtypes, shapes, names. It adds operations; the
elements live where the handle's device is (queue.py).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

from dtflab.graph import dtypes as _dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import device, name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import Dimension, TensorShape, as_shape
from dtflab.ops.arrays.gathering import gather
from dtflab.ops.arrays.stacking import stack
from dtflab.ops.variables.variable import init_scope


class QueueBase:
    """A queue in the graph: holds elements between steps, on the device of its handle.

    An element is a tuple of tensors, one per dtype. Putting waits while the queue is full, taking while it is empty;
    who waits longest is served first. If `names` are given, elements are dicts.
    """

    def __init__(self, dtypes: Sequence[Any], shapes: Sequence[Any] | None, names: Any, queue_ref: Tensor) -> None:
        """The queue behind the handle `queue_ref`. ValueError if the lengths of the lists differ."""
        if shapes is not None and len(shapes) != len(dtypes):
            raise ValueError(
                "Queue shapes must have the same length as dtypes, "
                f"received len(shapes)={len(shapes)}, len(dtypes)={len(dtypes)}"
            )
        if names is not None and len(names) != len(dtypes):
            raise ValueError(
                "Queue names must have the same length as dtypes, "
                f"received len(names)={len(names)}, len(dtypes)={len(dtypes)}"
            )
        self._dtypes = list(dtypes)
        self._shapes = [TensorShape(s) for s in (shapes if shapes is not None else [None] * len(dtypes))]
        self._names = names
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """The queue number `index`, a scalar tensor, of a list of queues with equal dtypes and names; else TypeError.

        The index is looked at in each step, so a program can turn from one queue to another.
        """
        if not queues or not isinstance(queues, list) or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        if any(q.dtypes != queues[0].dtypes for q in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(q.names != queues[0].names for q in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [functools.reduce(_common, each) for each in zip(*(q.shapes for q in queues), strict=True)]
        handle = gather(stack([q.queue_ref for q in queues]), index)
        return QueueBase(queues[0].dtypes, shapes, queues[0].names, handle)

    @property
    def queue_ref(self) -> Tensor:
        """The tensor that names the queue: a resource handle."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the operation that gives the handle."""
        return self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        """The dtype of each component of an element."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The static shape of each component of an element, as far as given."""
        return self._shapes

    @property
    def names(self) -> Any:
        """The name of each component, or None if elements are tuples."""
        return self._names

    # -- putting ------------------------------------------------------------------------------------------

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that puts one element: a tensor, a tuple of tensors, or a dict if the queue has names.

        Its run waits while the queue is full. CancelledError if the queue is closed, or if the wait is given up.
        """
        with name_scope(name, f"{self._name}_enqueue", _scope_values(vals)) as scope:
            components = self._components(vals)
            for value, shape in zip(components, self._shapes, strict=False):
                value.shape.assert_is_compatible_with(shape)
            return self._apply("QueueEnqueue", scope, components=components)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that puts a batch: slices of the components along their first dimension, in order."""
        with name_scope(name, f"{self._name}_EnqueueMany", _scope_values(vals)) as scope:
            components = self._components(vals)
            batch = components[0].shape.with_rank_at_least(1)[0]
            for value, shape in zip(components, self._shapes, strict=False):
                batch = batch.merge_with(value.shape.with_rank_at_least(1)[0])
                value.shape[1:].assert_is_compatible_with(shape)
            return apply_op("QueueEnqueueManyV2", scope, handle=self._queue_ref, components=components)

    def _components(self, vals: Any) -> list[Tensor]:
        """The components of `vals` as tensors of the queue's dtypes."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(vals, key=str):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: {sorted(vals)},Queue: {sorted(self._names)}"
                )
            vals = [vals[name] for name in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        elif not isinstance(vals, list | tuple):
            vals = [vals]
        pairs = enumerate(zip(vals, self._dtypes, strict=False))
        return [convert_to_tensor(val, dtype, name=f"component_{i}") for i, (val, dtype) in pairs]

    # -- taking -------------------------------------------------------------------------------------------

    def dequeue(self, name: str | None = None) -> Any:
        """The next element: a tensor, a list of tensors, or a dict of tensors if the queue has names.

        A run waits while the queue is empty. OutOfRangeError if it is closed and empty; CancelledError if the wait is
        given up.
        """
        outputs = self._apply("QueueDequeue", name or f"{self._name}_Dequeue", component_types=self._dtypes)
        return self._result(outputs, TensorShape([]))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements, stacked: each component has n as its first dimension.

        The queue must have shapes. OutOfRangeError if it is closed and fewer are left, which then stay.
        """
        outputs = self._dequeue_many("QueueDequeueManyV2", n, name or f"{self._name}_DequeueMany")
        return self._result(outputs, TensorShape([Dimension(constant_value(outputs[0].op.inputs[1]))]))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As `dequeue_many`, but of a closed queue that has fewer than `n`, but some, it takes those."""
        outputs = self._dequeue_many("QueueDequeueUpToV2", n, name or f"{self._name}_DequeueUpTo")
        return self._result(outputs, TensorShape([None]))

    def _dequeue_many(self, op_type: str, n: Any, name: str) -> list[Tensor]:
        outputs: list[Tensor] = apply_op(op_type, name, handle=self._queue_ref, n=n, component_types=self._dtypes)
        return outputs

    def _result(self, outputs: list[Tensor], batch: TensorShape) -> Any:
        for output, shape in zip(outputs, self._shapes, strict=True):
            output.set_shape(batch.concatenate(shape))
        if self._names:
            return dict(zip(self._names, outputs, strict=True))
        return outputs[0] if len(outputs) == 1 else outputs

    # -- the queue itself ---------------------------------------------------------------------------------

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The operation after which nothing can be put, and no `dequeue` waits any more.

        It waits for those who wait to put; with `cancel_pending_enqueues` it sends them away with a CancelledError.
        """
        name = name or f"{self._name}_Close"
        op: Operation = self._apply("QueueClose", name, cancel_pending_enqueues=cancel_pending_enqueues)
        return op

    def is_closed(self, name: str | None = None) -> Tensor:
        """True once the queue is closed."""
        closed: Tensor = self._apply("QueueIsClosed", name or f"{self._name}_Is_Closed")
        return closed

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements in the queue, int32."""
        size: Tensor = self._apply("QueueSize", name or f"{self._name}_Size")
        return size

    def _apply(self, op_type: str, name: str, **arguments: Any) -> Any:
        """An op of the family to which the handle belongs."""
        family = "V2" if self._queue_ref.dtype == _dtypes.resource else ""
        return apply_op(op_type + family, name, handle=self._queue_ref, **arguments)


class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in random order."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str | None = "random_shuffle_queue",
    ) -> None:
        """A queue for `capacity` elements, of which `min_after_dequeue` stay, for choice, until it is closed.

        Equal seeds, of graph and queue, give TensorFlow's order. `shapes` must be fully defined.
        """
        types, shapes, names = _type_list(dtypes), _shape_list(shapes), _name_list(names, dtypes)
        handle = apply_op(
            "RandomShuffleQueueV2", name, component_types=types, shapes=shapes, capacity=capacity,
            min_after_dequeue=min_after_dequeue, shared_name=shared_name, **_seeds(seed, shared_name),
        )  # fmt: skip
        super().__init__(types, shapes, names, handle)


def _seeds(seed: int | None, shared_name: str | None) -> dict[str, int]:
    """The two seeds; of a shared queue without a seed of its own they follow from its name, equal in all graphs."""
    graph_seed, op_seed = random_seed.get_seed(seed)
    if graph_seed is None or op_seed is None:
        return {"seed": 0, "seed2": 0}
    if seed is None and shared_name is not None:
        digest = hashlib.md5(f"{graph_seed}{shared_name}".encode(), usedforsecurity=False).hexdigest()
        op_seed = int(digest[:8], 16) & 0x7FFFFFFF
    return {"seed": graph_seed, "seed2": op_seed}


class FIFOQueue(QueueBase):
    """A queue that gives its elements in the order in which they came."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        """A queue for `capacity` elements; with fully defined `shapes` it can also give batches.

        With a `shared_name` it is one queue for all sessions of the cluster, else each session has its own.
        """
        types, shapes, names = _type_list(dtypes), _shape_list(shapes), _name_list(names, dtypes)
        with init_scope(), device("CPU"):
            handle = apply_op(
                "FIFOQueueV2", name, component_types=types, shapes=shapes, capacity=capacity, shared_name=shared_name
            )
        super().__init__(types, shapes, names, handle)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue for elements of different sizes: batches are filled up with zeros."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "padding_fifo_queue",
    ) -> None:
        """A queue for `capacity` elements; in `shapes` a dimension may be None, a rank may not."""
        types, shapes, names = _type_list(dtypes), _shape_list(shapes, partial=True), _name_list(names, dtypes)
        if len(types) != len(shapes):
            raise ValueError(
                f"Shapes must be provided for all components, but received {len(types)} dtypes and "
                f"{len(shapes)} shapes."
            )
        handle = apply_op(
            "PaddingFIFOQueueV2", name, component_types=types, shapes=shapes, capacity=capacity,
            shared_name=shared_name,
        )  # fmt: skip
        super().__init__(types, shapes, names, handle)


class PriorityQueue(QueueBase):
    """A queue that gives the element with the lowest priority first; the priority is its first component, an int64."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "priority_queue",
    ) -> None:
        """A queue for `capacity` elements; `types` and `shapes` are those of the components after the priority."""
        types, shapes = _type_list(types), _shape_list(shapes)
        if shapes is None:
            raise TypeError("Expected list for 'shapes' argument to 'priority_queue_v2' Op, not None.")
        handle = apply_op(
            "PriorityQueueV2", name, component_types=types, shapes=shapes, capacity=capacity, shared_name=shared_name
        )
        super().__init__([_dtypes.int64, *types], [TensorShape([]), *shapes] if shapes else None, names, handle)


# -- arguments ----------------------------------------------------------------------------------------


def _type_list(types: Any) -> list[DType]:
    return [_dtypes.as_dtype(t) for t in (types if isinstance(types, list | tuple) else [types])]


def _shape_list(shapes: Any, partial: bool = False) -> Any:
    """A list of shapes out of a list or a single one; None stays None."""
    if partial and (
        not isinstance(shapes, Sequence) or not shapes or any(s is None or isinstance(s, int) for s in shapes)
    ):
        raise ValueError("When providing partial shapes, a list of shapes must be provided.")
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, list | tuple):
        raise TypeError(f"Shapes must be a TensorShape or a list or tuple of TensorShapes, got {type(shapes)} instead.")
    if all(s is None or isinstance(s, int) for s in shapes):
        shapes = [shapes]
    found = [as_shape(s) for s in shapes]
    if not partial and not all(s.is_fully_defined() for s in found):
        raise ValueError(f"All shapes must be fully defined: {found}")
    if any(s.ndims is None for s in found):
        raise ValueError(f"All shapes must have a defined rank: {found}")
    return found


def _name_list(names: Any, types: Any) -> list[Any] | None:
    if names is None:
        return None
    names = list(names) if isinstance(names, list | tuple) else [names]
    count = len(_type_list(types))
    if len(names) != count:
        raise ValueError(
            "List of names must have the same length as the list of dtypes, received "
            f"len(names)={len(names)},len(dtypes)={count}"
        )
    return names


def _scope_values(vals: Any) -> list[Any]:
    if isinstance(vals, list | tuple):
        return list(vals)
    return list(vals.values()) if isinstance(vals, dict) else [vals]


def _common(one: TensorShape, other: TensorShape) -> TensorShape:
    """What two shapes have in common: sizes that differ are unknown."""
    if one.ndims is None or one.ndims != other.ndims:
        return TensorShape(None)
    return TensorShape([a if a == b else None for a, b in zip(one.as_list(), other.as_list(), strict=True)])
