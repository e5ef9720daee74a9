"""Queues, readers and accumulators as programs use them.

Stands for the queues and accumulators in `python/ops/data_flow_ops.py` and the readers in `python/ops/io_ops.py`.
Left out: eager mode, GPUCompatibleFIFOQueue, Barrier, staging, LMDBReader.

Rule: an object here is the graph's side of a queue, reader or accumulator: a handle tensor, dtypes, shapes, names. It
adds operations. The elements live on the device of the handle (`shared_queue.py`, `shared_reader.py`,
`shared_accumulator.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dtflab.files.tfrecord import TFRecordOptions
from dtflab.graph import dtypes as _dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import device, name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import Dimension, TensorShape, as_shape
from dtflab.ops.arrays.functions import cast, stack
from dtflab.ops.control.functions import init_scope
from dtflab.ops.indexing.functions import gather

# ---- queues ----


class QueueBase:
    """A queue in the graph: holds elements between steps, on the device of its handle, the tensor `queue_ref`.

    An element is a tuple of tensors of these `dtypes` and, as far as given, static `shapes`. An enqueue waits while the
    queue is full, a dequeue while it is empty; the op that waits longest is served first. If `names` are given,
    elements are dicts; else `names` is None.
    """

    def __init__(self, dtypes: Sequence[Any], shapes: Sequence[Any] | None, names: Any, queue_ref: Tensor) -> None:
        """The queue behind the handle `queue_ref`. Raises ValueError if the lengths of the lists differ."""
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise ValueError(
                    f"Queue {what} must have the same length as dtypes, "
                    f"received len({what})={len(given)}, len(dtypes)={len(dtypes)}"
                )
        self.dtypes = list(dtypes)
        self.shapes = [TensorShape(s) for s in (shapes if shapes is not None else [None] * len(dtypes))]
        self.names, self.queue_ref = names, queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """The queue number `index`, a scalar tensor, of a list of queues with equal dtypes and names.

        Each step reads the index, so a program can switch between queues. Raises TypeError if the queues differ.
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
    def name(self) -> str:
        """The name of the operation that gives the handle."""
        return self.queue_ref.op.name

    # -- putting ------------------------------------------------------------------------------------------

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that puts one element: a tensor, a tuple of tensors, or a dict if the queue has names.

        A run waits while the queue is full. It raises CancelledError if the queue is closed or the wait is cancelled.
        """
        with name_scope(name, f"{self._name}_enqueue", _scope_values(vals)) as scope:
            components = self._components(vals)
            for value, shape in zip(components, self.shapes, strict=False):
                value.shape.assert_is_compatible_with(shape)
            return self._apply("QueueEnqueue", scope, components=components)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that puts a batch: slices of the components along their first dimension, in order."""
        with name_scope(name, f"{self._name}_EnqueueMany", _scope_values(vals)) as scope:
            components = self._components(vals)
            batch = components[0].shape.with_rank_at_least(1)[0]
            for value, shape in zip(components, self.shapes, strict=False):
                batch = batch.merge_with(value.shape.with_rank_at_least(1)[0])
                value.shape[1:].assert_is_compatible_with(shape)
            return apply_op("QueueEnqueueManyV2", scope, handle=self.queue_ref, components=components)

    def _components(self, vals: Any) -> list[Tensor]:
        """The components of `vals` as tensors of the queue's dtypes."""
        if isinstance(vals, dict):
            if not self.names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self.names, key=str) != sorted(vals, key=str):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: {sorted(vals)},Queue: {sorted(self.names)}"
                )
            vals = [vals[name] for name in self.names]
        elif self.names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        else:
            vals = _listed(vals)
        pairs = enumerate(zip(vals, self.dtypes, strict=False))
        return [convert_to_tensor(val, dtype, name=f"component_{i}") for i, (val, dtype) in pairs]

    # -- taking -------------------------------------------------------------------------------------------

    def dequeue(self, name: str | None = None) -> Any:
        """The next element: a tensor, a list of tensors, or a dict of tensors if the queue has names.

        A run waits while the queue is empty. It raises OutOfRangeError if the queue is closed and empty,
        CancelledError if the wait is cancelled.
        """
        outputs = self._apply("QueueDequeue", name or f"{self._name}_Dequeue", component_types=self.dtypes)
        return self._result(outputs, TensorShape([]))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements, stacked: each component has n as its first dimension.

        The queue must have shapes. A run raises OutOfRangeError if the queue is closed and has fewer; those stay in it.
        """
        outputs = self._dequeue_many("Many", n, name)
        return self._result(outputs, TensorShape([Dimension(constant_value(outputs[0].op.inputs[1]))]))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements as one batch; from a closed queue that has fewer, those that are left."""
        return self._result(self._dequeue_many("UpTo", n, name), TensorShape([None]))

    def _dequeue_many(self, how: str, n: Any, name: str | None) -> Any:
        name = name or f"{self._name}_Dequeue{how}"
        return apply_op(f"QueueDequeue{how}V2", name, handle=self.queue_ref, n=n, component_types=self.dtypes)

    def _result(self, outputs: list[Tensor], batch: TensorShape) -> Any:
        for output, shape in zip(outputs, self.shapes, strict=True):
            output.set_shape(batch.concatenate(shape))
        if self.names:
            return dict(zip(self.names, outputs, strict=True))
        return outputs[0] if len(outputs) == 1 else outputs

    # -- the queue itself ---------------------------------------------------------------------------------

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The operation after which every enqueue fails and no dequeue waits any longer.

        It waits for pending enqueues; with `cancel_pending_enqueues` they fail with a CancelledError.
        """
        return self._apply("QueueClose", name or f"{self._name}_Close", cancel_pending_enqueues=cancel_pending_enqueues)

    def is_closed(self, name: str | None = None) -> Tensor:
        """True once the queue is closed."""
        return self._apply("QueueIsClosed", name or f"{self._name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements in the queue, int32."""
        return self._apply("QueueSize", name or f"{self._name}_Size")

    def _apply(self, op_type: str, name: str, **arguments: Any) -> Any:
        """An op of the family to which the handle belongs."""
        family = "V2" if self.queue_ref.dtype == _dtypes.resource else ""
        return apply_op(op_type + family, name, handle=self.queue_ref, **arguments)


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
        attrs = {"min_after_dequeue": min_after_dequeue, **_seeds(seed, shared_name)}
        handle = _new("RandomShuffle", name, types, shapes, capacity, shared_name, **attrs)
        super().__init__(types, shapes, names, handle)


def _seeds(seed: int | None, shared_name: str | None) -> dict[str, int]:
    """The two seeds. Those of a shared queue without its own seed follow from its name, equal in all graphs."""
    graph_seed, op_seed = random_seed.get_seed(seed)
    if graph_seed is None or op_seed is None:
        return {"seed": 0, "seed2": 0}
    if seed is None and shared_name is not None:
        import hashlib  # with OpenSSL: `import dtflab` need not wait for it

        digest = hashlib.md5(f"{graph_seed}{shared_name}".encode(), usedforsecurity=False).hexdigest()
        op_seed = int(digest[:8], 16) & 0x7FFFFFFF
    return {"seed": graph_seed, "seed2": op_seed}


class FIFOQueue(QueueBase):
    """A queue that gives its elements in the order in which they were enqueued."""

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:  # fmt: skip
        """A queue for `capacity` elements; with fully defined `shapes` it can also give batches.

        With a `shared_name` it is one queue for all sessions of the cluster, else each session has its own.
        """
        types, shapes, names = _type_list(dtypes), _shape_list(shapes), _name_list(names, dtypes)
        with init_scope(), device("CPU"):
            handle = _new("FIFO", name, types, shapes, capacity, shared_name)
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
        super().__init__(types, shapes, names, _new("PaddingFIFO", name, types, shapes, capacity, shared_name))


class PriorityQueue(QueueBase):
    """A queue that gives the element with the lowest priority first; the priority is its first component, an int64."""

    def __init__(
        self, capacity: int, types: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        name: str | None = "priority_queue",
    ) -> None:  # fmt: skip
        """A queue for `capacity` elements; `types` and `shapes` are those of the components after the priority."""
        types, shapes = _type_list(types), _shape_list(shapes)
        if shapes is None:
            raise TypeError("Expected list for 'shapes' argument to 'priority_queue_v2' Op, not None.")
        handle = _new("Priority", name, types, shapes, capacity, shared_name)
        super().__init__([_dtypes.int64, *types], [TensorShape([]), *shapes] if shapes else None, names, handle)


def _new(
    kind: str, name: str | None, types: Any, shapes: Any, capacity: int, shared_name: str | None, **attrs: Any
) -> Tensor:
    """The handle of a new queue."""
    arguments = {"component_types": types, "shapes": shapes, "capacity": capacity, "shared_name": shared_name}
    return apply_op(f"{kind}QueueV2", name, **arguments, **attrs)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _type_list(types: Any) -> list[DType]:
    return [_dtypes.as_dtype(t) for t in _listed(types)]


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
    names, count = _listed(names), len(_type_list(types))
    if len(names) != count:
        raise ValueError(
            "List of names must have the same length as the list of dtypes, received "
            f"len(names)={len(names)},len(dtypes)={count}"
        )
    return names


def _scope_values(vals: Any) -> list[Any]:
    return list(vals.values()) if isinstance(vals, dict) else _listed(vals)


def _common(one: TensorShape, other: TensorShape) -> TensorShape:
    """The most specific shape that both have: sizes that differ are unknown."""
    if one.ndims is None or one.ndims != other.ndims:
        return TensorShape(None)
    return TensorShape([a if a == b else None for a, b in zip(one.as_list(), other.as_list(), strict=True)])


# ---- readers ----


class ReaderBase:
    """Reads records, as (key, value) pairs of strings, out of units of work, which are mostly files.

    >>> names = tf.train.string_input_producer(["a.csv", "b.csv"])
    >>> key, line = tf.TextLineReader().read(names)

    Each run of `key` or `line` reads one more record. When a file ends, the reader dequeues the next name, and waits if
    the queue is empty. A read raises OutOfRangeError when the queue is closed and empty. Several reads of one reader,
    in one or many threads, share its place in the file. `reader_ref` is the handle of the reader; `supports_serialize`
    says whether `serialize_state` and `restore_state` work for this kind.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        """The reader behind the handle `reader_ref`."""
        self.reader_ref, self.supports_serialize = reader_ref, supports_serialize

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record: (key, value), two string scalars. `queue` holds names, one string per element."""
        return self._apply("ReaderRead", name, queue_handle=_handle(queue))

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """The next records: (keys, values), two vectors of strings, of `num_records` or fewer at the end of a file."""
        return self._apply("ReaderReadUpTo", name, queue_handle=_handle(queue), num_records=num_records)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records have been read: int64."""
        return self._apply("ReaderNumRecordsProduced", name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files have been read to the end: int64."""
        return self._apply("ReaderNumWorkUnitsCompleted", name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The reader's state as a string. UnimplementedError where the place in a file is unknown."""
        return self._apply("ReaderSerializeState", name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Return to a state that `serialize_state` gave."""
        return self._apply("ReaderRestoreState", name, state=state)

    def reset(self, name: str | None = None) -> Operation:
        """Forget the file that is being read, and start counting again."""
        return self._apply("ReaderReset", name)

    def _apply(self, op_type: str, name: str | None, **arguments: Any) -> Any:
        family = "V2" if self.reader_ref.dtype == _dtypes.resource else ""
        return apply_op(op_type + family, name, reader_handle=self.reader_ref, **arguments)


def _handle(queue: Any) -> Tensor:
    return queue if isinstance(queue, Tensor) else queue.queue_ref


class WholeFileReader(ReaderBase):
    """Each file is one record: its name and what is in it."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("WholeFileReaderV2", name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Each line is a record, without its end; the key is `file:number of the line`."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        """The first `skip_header_lines` of every file are not read as records."""
        super().__init__(apply_op("TextLineReaderV2", name, skip_header_lines=skip_header_lines))


class FixedLengthRecordReader(ReaderBase):
    """Records of `record_bytes`, each `hop_bytes` after the one before; the key is `file:number of the record`."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        """The records lie between a header and a footer. `encoding` is None, 'GZIP' or 'ZLIB'."""
        sizes = {"record_bytes": record_bytes, "header_bytes": header_bytes, "footer_bytes": footer_bytes}
        super().__init__(apply_op("FixedLengthRecordReaderV2", name, **sizes, hop_bytes=hop_bytes, encoding=encoding))


class TFRecordReader(ReaderBase):
    """The records of TFRecord files; the key is `file:offset`."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        """`options` says how the files are compressed: a `tf.python_io.TFRecordOptions`."""
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(apply_op("TFRecordReaderV2", name, compression_type=compression))


class IdentityReader(ReaderBase):
    """Each name in the queue is itself a record: key and value are the name."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("IdentityReaderV2", name), supports_serialize=True)


# ---- accumulators ----


class ConditionalAccumulatorBase:
    """Adds up gradients of the current step, and gives their mean once there are enough.

    `accumulator_ref` is the handle, `name` that of the operation which gives it, without scopes, `dtype` that of the
    gradients.
    """

    _FAMILY = "ResourceAccumulator"

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self.dtype, self._shape, self.accumulator_ref = _dtypes.as_dtype(dtype), as_shape(shape), accumulator_ref
        self.name = accumulator_ref.op.name.split("/")[-1]

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """An int32 scalar: how many gradients there are now."""
        return self._apply(f"{self._FAMILY}NumAccumulated", name or f"{self.name}_NumAccumulated")

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """An operation that sets the accumulator's step; gradients of earlier steps are dropped from then on."""
        return self._apply(f"{self._FAMILY}SetGlobalStep", name, new_global_step=_step(new_global_step))

    def _apply(self, op_type: str, name: str | None, **arguments: Any) -> Any:
        return apply_op(op_type, name, handle=self.accumulator_ref, **arguments)


def _accumulator(kind: str, dtype: Any, shape: Any, shared_name: Any, name: str, reduction_type: str) -> Tensor:
    """The handle of a new accumulator."""
    declared = {"dtype": dtype, "shape": as_shape(shape), "reduction_type": reduction_type}
    return apply_op(f"{kind}ConditionalAccumulator", name, shared_name=shared_name, **declared)


def _step(value: Any) -> Tensor:
    return cast(convert_to_tensor(value), _dtypes.int64)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of dense gradients.

    >>> accumulator = tf.ConditionalAccumulator(tf.float32, shape=[3])
    >>> add = accumulator.apply_grad([1.0, 2.0, 3.0], local_step=0)
    >>> mean = accumulator.take_grad(num_required=2)  # waits until two gradients were added, by any session

    With a `shared_name` it is the same for all sessions of a cluster. `reduction_type` is "MEAN" or "SUM".
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(dtype, shape, _accumulator("Resource", dtype, shape, shared_name, name, reduction_type))

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """An operation that adds `grad`, unless `local_step` is less than the accumulator's step.

        Raises ValueError if its shape can't be the accumulator's.
        """
        grad = convert_to_tensor(grad, self.dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        return self._apply("ResourceAccumulatorApplyGradient", name, local_step=_step(local_step), gradient=grad)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean of all gradients, once there are `num_required`; then there are none, and the step is the next.

        A run raises InvalidArgumentError if `num_required` is not positive, CancelledError if its session is closed
        while it waits.
        """
        take = "ResourceAccumulatorTakeGradient"
        mean: Tensor = self._apply(take, name, num_required=num_required, dtype=self.dtype)
        mean.set_shape(self._shape)
        return mean


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of gradients of rows: IndexedSlices, their indices in increasing order.

    Each row is averaged over those gradients that have it.
    """

    _FAMILY = "Accumulator"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__(dtype, shape, _accumulator("Sparse", dtype, shape, shared_name, name, reduction_type))

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None) -> Operation:
        """An operation that adds `grad`, unless `local_step` is less than the accumulator's step."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """An operation that adds the rows `grad_values` at `grad_indices`, unless they are of an earlier step."""
        step, indices = _step(local_step), cast(grad_indices, _dtypes.int64)
        shape = cast([] if grad_shape is None else grad_shape, _dtypes.int64)
        parts = {"gradient_indices": indices, "gradient_values": grad_values, "gradient_shape": shape}
        known = {"has_known_shape": grad_shape is not None}
        return self._apply("SparseAccumulatorApplyGradient", name, local_step=step, **parts, **known)

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Indices, values and dense shape of the mean of all gradients, once there are `num_required`.

        The first size of the shape is -1 if the accumulator was made without it.
        """
        return self._apply("SparseAccumulatorTakeGradient", name, num_required=num_required, dtype=self.dtype)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad` as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
