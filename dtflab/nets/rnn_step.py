"""Common parts of the loops over time: the cache of variables, the batch size, a step of sequences of many lengths.

Stands for the private functions of `python/ops/rnn.py`.

Rule: past the end of a sequence its state is copied through, and its output is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, get_default_graph
from dtflab.nets.state_shapes import batch_shape, set_batch_shape
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
    """`initial_state`, or if it is None the cell's zeros; raises ValueError if their dtype is unknown."""
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
