"""Common parts of cells and of the loops over time: shapes of states, the batch size, a step of many lengths.

Stands for the private functions of `python/ops/rnn.py`, and for `_concat` and `_zero_state_tensors` of
`rnn_cell_impl.py`.

Rule: past the end of a sequence its state is copied through, and its output is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, get_default_graph
from dtflab.graph.static_value import get_static_value
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.variables.variable_scope import VariableScope


def cache_variables(scope: VariableScope) -> None:
    """Read variables once for all time steps, on their own device.

    Inside a loop (of training steps, for example) this is not done: its iterations must see each other's updates.
    """
    context = get_default_graph()._blocks.control_flow_context
    if scope.caching_device is None and (context is None or context.GetWhileContext() is None):
        scope.set_caching_device(lambda op: op.device)


def initial_state_of(cell: Any, initial_state: Any, batch_size: Any, dtype: Any) -> Any:
    """`initial_state`, or if it is None the cell's zeros. Raises ValueError if their dtype is unknown."""
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError("If no initial_state is provided, argument `dtype` must be specified")
    if hasattr(cell, "get_initial_state"):
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def state_dtype(dtype: Any, state: Any) -> Any:
    """`dtype`, or if it is None the one of all tensors of `state`."""
    if dtype is not None:
        return dtype
    found = [part.dtype for part in nest.flatten(state)]
    if not found:
        raise ValueError(f"Unable to infer dtype from argument state={state}.")
    if any(one != found[0] for one in found):
        raise ValueError(
            f"Argument state={state} has tensors of different inferred dtypes. Unable to infer a single "
            f"representative dtype. Dtypes received: {found}"
        )
    return found[0]


def batch_size_of(inputs: Sequence[Tensor]) -> Any:
    """The batch size of [time, batch, …] tensors: a number if it is known, else a scalar tensor."""
    for x in inputs:
        if x.shape.ndims is not None and x.shape.ndims < 2:
            raise ValueError(f"Input tensor should have rank >= 2. Received input={x} of rank {x.shape.ndims}")
        if x.shape.dims is not None and x.shape.dims[1].value is not None:
            return x.shape.dims[1].value
    return arrays.shape(inputs[0])[1]


def zero_outputs(output_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros of [batch, size] for each output of a cell."""
    return nest.map_structure(lambda size: arrays.zeros(batch_shape(batch_size, size), dtype), output_size)


def set_static_shapes(outputs: Sequence[Tensor], sizes: Sequence[Any], batch: Any) -> None:
    """Set the known part of [batch, size]; `batch` is a size or several."""
    for output, size in zip(outputs, sizes):
        set_batch_shape(output, batch, size)


def step_of_many_lengths(
    time: Any,
    lengths: Tensor,
    bounds: tuple[Tensor, Tensor],
    zero_output: Any,
    state: Any,
    call_cell: Callable[[], Any],
    always_copy: bool,
) -> tuple[Any, Any]:
    """(output, new state) at `time`, of sequences that are `lengths` long; `bounds` are the least and greatest.

    With `always_copy` the cell is called and results past the end are replaced. Otherwise the cell is skipped when all
    sequences have ended, and nothing is copied before the first one has.
    """
    old = [*nest.flatten(zero_output), *nest.flatten(state)]
    finished = time >= lengths

    def computed() -> list[Tensor]:
        new_output, new_state = call_cell()
        nest.assert_same_structure(zero_output, new_output)
        nest.assert_same_structure(state, new_state)
        return [*nest.flatten(new_output), *nest.flatten(new_state)]

    def copied(new: list[Tensor]) -> list[Tensor]:
        return [old_unless_running(finished, before, after) for before, after in zip(old, new)]

    def some_run() -> Any:
        new = computed()
        return cond(time < bounds[0], lambda: new, lambda: copied(new))

    results = copied(computed()) if always_copy else cond(time >= bounds[1], lambda: old, some_run)
    for result, before in zip(results, old):
        if not isinstance(result, TensorArray):
            result.set_shape(before.shape)
    outputs = len(nest.flatten(zero_output))
    output = nest.pack_sequence_as(zero_output, results[:outputs])
    return output, nest.pack_sequence_as(state, results[outputs:])


def old_unless_running(finished: Tensor, old: Any, new: Any) -> Any:
    """For each row, the old value if that sequence is finished, else the new one; TensorArrays and scalars are new."""
    if isinstance(old, TensorArray) or old.shape.ndims == 0:
        return new
    with colocate_with(new):
        return indexing.where(finished, old, new)


# -- shapes of states: a batch size before the size that a cell defines ---------------------------------


def batch_shape(batch: Any, size: Any) -> Tensor:
    """The shape [batch, size] as a tensor; both are numbers, shapes or tensors, and known."""
    parts = _as_vector(batch), _as_vector(size)
    if None in (parts[0], parts[1]):
        raise ValueError(f"Prefix or suffix can't be None. Received prefix = {batch} and suffix = {size}")
    return arrays.concat(parts, 0)


def known_batch_shape(batch: Any, size: Any) -> TensorShape:
    """The shape [batch, size], as far as it is known while the graph is built."""
    return _known(batch).concatenate(_known(size))


def set_batch_shape(tensor: Tensor, batch: Any, size: Any) -> None:
    """Set the known part of a tensor's shape [batch, size]."""
    for part in (batch, size):
        _as_vector(part)  # TensorFlow makes these unused nodes here, which count for the names of others
    tensor.set_shape(known_batch_shape(batch, size))


def zeros_of(batch: Any, size: Any, dtype: Any) -> Tensor:
    """Zeros of [batch, size]."""
    zeros = arrays.zeros(batch_shape(batch, size), dtype)
    set_batch_shape(zeros, batch, size)
    return zeros


def _as_vector(part: Any) -> Any:
    if not isinstance(part, Tensor):
        shape = shape_of_size(part)
        return constant(shape.as_list(), dtypes.int32) if shape.is_fully_defined() else None
    if part.shape.ndims not in (0, 1):
        raise ValueError(f"A batch size must be a scalar or a vector, but is: {part}")
    return arrays.expand_dims(part, 0) if part.shape.ndims == 0 else part


def _known(part: Any) -> TensorShape:
    if not isinstance(part, Tensor):
        return shape_of_size(part)
    value = get_static_value(part)
    if value is not None:
        return as_shape(value.reshape(-1).tolist())
    return as_shape([None] if part.shape.ndims == 0 else None)


def shape_of_size(part: Any) -> TensorShape:
    """The size that a cell defines, an int or a shape, as a shape."""
    return as_shape([part]) if isinstance(part, int) else as_shape(part)
