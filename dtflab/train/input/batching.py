"""Batches: examples, one by one or in small batches, through a queue into batches of one size.

Stands for `batch`, `shuffle_batch`, their joins and `maybe_` forms in `python/training/input.py`.

Rule: all eight are one pipeline (`_batches`): sets of tensors are enqueued, each by its own threads, into one queue,
and a batch is dequeued. They differ in the queue, in the number of sets, and in whether `keep_input` drops examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import as_shape
from dtflab.ops.arrays.functions import cast
from dtflab.ops.control.cond import smart_cond
from dtflab.ops.control.functions import no_op
from dtflab.ops.indexing.functions import dynamic_partition
from dtflab.ops.math.functions import maximum
from dtflab.ops.queues.functions import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from dtflab.ops.sparse.sparse_tensor import SparseTensor
from dtflab.ops.summaries import functions as summary
from dtflab.train.input.queue_runner import QueueRunner, add_queue_runner
from dtflab.train.input.sparse_batching import restored, stored

Tensors = Any  # a list or dict of tensors and SparseTensors: one example, or with `enqueue_many` a batch of them


# -- in order -----------------------------------------------------------------------------------------------------


def batch(
    tensors: Tensors,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of `batch_size` examples, in the form of `tensors`: a list (or the tensor, of one) or a dict.

    `num_threads` threads evaluate `tensors`, which are one example or, with `enqueue_many`, a batch of examples, and
    keep a queue of `capacity` examples filled; with more than one thread the order is not kept. The shape of an
    example must be known, here or by `shapes`; with `dynamic_pad` sizes may be None and are filled up with zeros to
    the largest in a batch. What remains in the end is lost, or with `allow_smaller_final_batch` a smaller batch.
    """
    more = enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name
    return maybe_batch(tensors, True, batch_size, num_threads, capacity, *more)


def maybe_batch(
    tensors: Tensors,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of those examples only for which the bool `keep_input` is true; see `batch`.

    With `enqueue_many` it may be a vector that has an item for each example.
    """
    queue = _in_order(capacity, dynamic_pad, shared_name)
    size = batch_size, enqueue_many, shapes, allow_smaller_final_batch
    return _batches("batch", name, [tensors], keep_input, queue, *size, num_threads)


def batch_join(
    tensors_list: Sequence[Tensors],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches from several sets of tensors of equal types, each evaluated by its own thread; see `batch`."""
    more = enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name
    return maybe_batch_join(tensors_list, True, batch_size, capacity, *more)


def maybe_batch_join(
    tensors_list: Sequence[Tensors],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of those examples only for which the bool `keep_input` is true; see `batch_join`."""
    queue = _in_order(capacity, dynamic_pad, shared_name)
    size = batch_size, enqueue_many, shapes, allow_smaller_final_batch
    return _batches("batch_join", name, tensors_list, keep_input, queue, *size)


# -- shuffled -----------------------------------------------------------------------------------------------------


def shuffle_batch(
    tensors: Tensors,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of examples taken at random from a queue that keeps at least `min_after_dequeue` to choose from.

    ValueError unless `capacity` is larger than that.
    """
    more = num_threads, seed, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name
    return maybe_shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, True, *more)


def maybe_shuffle_batch(
    tensors: Tensors,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Shuffled batches of those examples only for which the bool `keep_input` is true; see `shuffle_batch`."""
    queue = _shuffled(capacity, min_after_dequeue, seed, shared_name)
    size = batch_size, enqueue_many, shapes, allow_smaller_final_batch
    return _batches("shuffle_batch", name, [tensors], keep_input, queue, *size, num_threads)


def shuffle_batch_join(
    tensors_list: Sequence[Tensors],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Shuffled batches from several sets of tensors of equal types, each evaluated by its own thread."""
    more = seed, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name
    return maybe_shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, True, *more)


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Tensors],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Shuffled batches of those examples only for which the bool `keep_input` is true; see `shuffle_batch_join`."""
    queue = _shuffled(capacity, min_after_dequeue, seed, shared_name)
    size = batch_size, enqueue_many, shapes, allow_smaller_final_batch
    return _batches("shuffle_batch_join", name, tensors_list, keep_input, queue, *size)


# -- the queue in the middle --------------------------------------------------------------------------------------


class _Queue(NamedTuple):
    """How to make the queue, and the summary that shows how full it is."""

    make: Callable[[list[DType], Any], QueueBase]
    summarize: Callable[[QueueBase], Tensor]


def _in_order(capacity: int, dynamic_pad: bool, shared_name: str | None) -> _Queue:
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue

    def summarize(queue: QueueBase) -> Tensor:
        return summary.scalar(f"fraction_of_{capacity}_full", cast(queue.size(), dtypes.float32) * (1.0 / capacity))

    return _Queue(lambda types, shapes: kind(capacity, types, shapes, shared_name=shared_name), summarize)


def _shuffled(capacity: int, kept: int, seed: int | None, shared_name: str | None) -> _Queue:
    def make(types: list[DType], shapes: Any) -> QueueBase:
        return RandomShuffleQueue(capacity, kept, types, shapes, seed=seed, shared_name=shared_name)

    def summarize(queue: QueueBase) -> Tensor:
        over = cast(maximum(0, queue.size() - kept), dtypes.float32) * (1.0 / (capacity - kept))
        return summary.scalar(f"fraction_over_{kept}_of_{capacity - kept}_full", over)

    if capacity <= kept:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {kept}.")
    return _Queue(make, summarize)


# -- the pipeline -------------------------------------------------------------------------------------------------


def _batches(
    family: str,
    name: str | None,
    tensors_list: Sequence[Tensors],
    keep_input: Any,
    queue: _Queue,
    batch_size: Any,
    enqueue_many: bool,
    shapes: Any,
    smaller_final: bool,
    threads: int = 1,
) -> Any:
    sets = _as_lists(tensors_list)
    with name_scope(name, family, [*(t for tensors in sets for t in tensors), keep_input]) as scope:
        sets = [_converted(tensors) for tensors in sets]
        keep = _checked_keep(keep_input, enqueue_many)
        sets, sparse = stored(sets, enqueue_many, keep)
        made = queue.make(_types(sets), _shapes(sets, enqueue_many) if shapes is None else shapes)
        enqueue_ops = [_enqueue(made, tensors, enqueue_many, keep) for tensors in sets]
        add_queue_runner(QueueRunner(made, enqueue_ops * threads))
        queue.summarize(made)
        dequeue = made.dequeue_up_to if smaller_final else made.dequeue_many
        found = dequeue(batch_size, name=scope)
        dequeued = restored(found if isinstance(found, list) else [found], sparse)
        return _as_original_type(tensors_list[0], dequeued)


def _enqueue(queue: QueueBase, tensors: list[Tensor], many: bool, keep: Tensor) -> Any:
    """The operation that puts what is to be kept of one set of tensors into the queue."""
    put = queue.enqueue_many if many else queue.enqueue
    if keep.shape.ndims == 1:
        number = cast(keep, dtypes.int32)
        return put([dynamic_partition(t, number, num_partitions=2)[1] for t in tensors])
    return smart_cond(keep, lambda: put(tensors), no_op)


# -- arguments ----------------------------------------------------------------------------------------------------


def _as_lists(tensors_list: Sequence[Tensors]) -> list[list[Any]]:
    """Each set as a list: a dict in the order of its keys, which are the same in all."""
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    first = tensors_list[0]
    if isinstance(first, Mapping) and any(set(tensors) != set(first) for tensors in tensors_list):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [_as_tensor_list(tensors) for tensors in tensors_list]


def _as_tensor_list(tensors: Tensors) -> list[Any]:
    return [tensors[key] for key in sorted(tensors, key=str)] if isinstance(tensors, Mapping) else list(tensors)


def _as_original_type(tensors: Tensors, found: list[Any]) -> Any:
    """The results for a set of tensors, in the form in which the set was given."""
    if isinstance(tensors, Mapping):
        return dict(zip(sorted(tensors, key=str), found))
    return found[0] if len(found) == 1 else found


def _converted(tensors: list[Any]) -> list[Any]:
    if not tensors:
        raise ValueError("Expected at least one tensor in batch().")
    kept = Tensor | IndexedSlices | SparseTensor
    return [t if isinstance(t, kept) else convert_to_tensor(t) for t in tensors]


def _checked_keep(keep_input: Any, enqueue_many: bool) -> Tensor:
    keep = convert_to_tensor(keep_input)
    if keep.shape.ndims is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and keep.shape.ndims == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if keep.shape.ndims > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _types(sets: list[list[Any]]) -> list[DType]:
    """The dtypes of the components; TypeError unless all sets agree."""
    types, *others = [[t.dtype for t in tensors] for tensors in sets]
    for other in others:
        if other != types:
            a, b = (", ".join(t.name for t in each) for each in (types, other))
            raise TypeError(f"Expected types to be consistent: {a} vs. {b}.")
    return types


def _shapes(sets: list[list[Any]], enqueue_many: bool) -> list[Any]:
    """The shapes of the components of one example; ValueError if they are unknown or do not fit."""
    for tensors in sets:
        for tensor in tensors:
            if tensor.shape.ndims is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
    found = []
    for component in zip(*sets):
        shapes = [as_shape(t.shape) for t in component]
        if enqueue_many:
            shapes = [shape.with_rank_at_least(1)[1:] for shape in shapes]
        for other in shapes[1:]:
            shapes[0].merge_with(other)  # ValueError if they do not fit
        found.append(shapes[0])
    return found
