"""The front of an input pipeline: a queue that gives file names, numbers or slices, over and over or some epochs.

Stands for the producers of `python/training/input.py`; its batches are in `batching.py`.

Rule: a producer is a queue, an enqueue operation and a QueueRunner in the graph's collection, so that
`start_queue_runners` starts it. Epochs are counted by a local variable, whose limit ends the queue's input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.indexed_slices import convert_n_to_tensor_or_indexed_slices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import cast, range as range_of
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.indexing.functions import gather
from dtflab.ops.math import functions as math
from dtflab.ops.queues.functions import FIFOQueue
from dtflab.ops.sampling import functions as sampling
from dtflab.ops.summaries import functions as summary
from dtflab.ops.variables.variable import Variable
from dtflab.train.input.queue_runner import QueueRunner, add_queue_runner


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable that is initialized to the names of the files that match `pattern`, a glob or several."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        names, local = apply_op("MatchingFiles", None, pattern=pattern), [GraphKeys.LOCAL_VARIABLES]
        return Variable(names, trainable=False, collections=local, validate_shape=False, name=scope)


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """`tensor`, which can be computed `num_epochs` times and then is OutOfRange; without limit the tensor itself.

    It counts in a local variable, so run `local_variables_initializer()`. ValueError for less than one epoch.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = constant(0, dtypes.int64)
        epochs = Variable(zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return arrays.identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of the rows of `input_tensor`, `num_epochs` times or without end.

    With `shuffle` each epoch has another order. `element_shape` is the shape of a row, where the tensor's own is not
    fully known; else ValueError. A summary of how full the queue is is made if it is given a name.
    """
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        row_shape = rows.shape[1:].merge_with(element_shape)
        if not row_shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = sampling.random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [row_shape], shared_name=shared_name, name=name)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            summary.scalar(summary_name, cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of strings, such as names of files; see `input_producer`.

    ValueError for an empty list; a tensor that turns out to be empty is an InvalidArgumentError in the step.
    """
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor) and not string_tensor:
        raise ValueError(empty)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtypes.string)
        with control_dependencies([Assert(math.greater(arrays.size(strings), 0), [empty])]):
            strings = arrays.identity(strings)
        return input_producer(
            strings, [], num_epochs, shuffle, seed, capacity, shared_name, _fullness(capacity), scope, cancel_op
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """A queue of the integers from 0 to `limit` - 1; see `input_producer`."""
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(
            range_of(limit), [], num_epochs, shuffle, seed, capacity, shared_name, _fullness(capacity), scope
        )


def _fullness(capacity: int) -> str:
    return f"fraction_of_{capacity}_full"


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Slices of all the tensors, which have equal first dimensions, at a row that a queue chooses for each step.

    ValueError for an empty list; see `input_producer`.
    """
    with name_scope(name, "input_producer", tensor_list):
        tensors = convert_n_to_tensor_or_indexed_slices(tensor_list)
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        rows = arrays.shape(tensors[0])[0]
        index = range_input_producer(rows, num_epochs, shuffle, seed, capacity, shared_name).dequeue()
        return [gather(tensor, index) for tensor in tensors]
