"""raw_rnn: a cell in a loop of the graph that a function controls: the next input, the emissions, the end.

Stands for `raw_rnn` of `python/ops/rnn.py`. Left out: eager mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import as_shape, dimension_at_index
from dtflab.nets import rnn_step
from dtflab.nets.rnn_cell import assert_like_rnncell
from dtflab.nets.rnn_step import batch_shape, known_batch_shape
from dtflab.ops.arrays import functions as arrays_functions
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.variables.variable_scope import variable_scope

LoopFunction = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any, Any, Any]]


def raw_rnn(
    cell: Any,
    loop_fn: LoopFunction,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """(TensorArrays of the emissions, last state, last loop state).

    `loop_fn(time, cell_output, cell_state, loop_state)` returns (which rows are finished: [batch] bools, the next
    input, the next state, what to emit, the next loop state). The first call, before any step, has time 0 and None for
    the others; its emission gives the shapes and dtypes, None for those of the cell's output. The loop ends when all
    rows are finished; a finished row emits zeros and keeps its state.
    """
    assert_like_rnncell("cell", cell)
    if not callable(loop_fn):
        raise TypeError(f"Argument `loop_fn` must be a callable. Received: {loop_fn}.")
    with variable_scope(scope or "rnn") as entered:
        rnn_step.cache_variables(entered)
        time = constant(0, dtypes.int32)
        finished, first_input, state, emitted, loop_state = loop_fn(time, None, None, None)
        kept = constant(0, dtypes.int32) if loop_state is None else loop_state
        batch = _static_batch(nest.flatten(first_input))
        batch_size = arrays_functions.shape(nest.flatten(first_input)[0])[0] if batch is None else batch
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        arrays, zeros = _emissions(cell, emitted, nest.flatten(state)[0].dtype, batch, batch_size)
        returned = while_loop(
            lambda time, finished, *_: math.logical_not(reduce.reduce_all(finished)),
            _body(cell, loop_fn, zeros),
            [time, finished, first_input, arrays, state, kept],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
    arrays, state, last_loop_state = returned[-3:]
    return arrays, state, None if loop_state is None else last_loop_state


def _static_batch(inputs: list[Tensor]) -> int | None:
    first = dimension_at_index(inputs[0].shape, 0)
    for x in inputs:
        first.assert_is_compatible_with(dimension_at_index(x.shape, 0))
    return first.value


def _emissions(cell: Any, emitted: Any, dtype: Any, batch: int | None, batch_size: Any) -> tuple[Any, Any]:
    """The growing TensorArrays of the emissions, and the zeros of finished rows."""
    if emitted is None:
        structure, sizes = cell.output_size, nest.flatten(cell.output_size)
        kinds = [dtype] * len(sizes)
    else:
        structure, flat = emitted, nest.flatten(emitted)
        sizes = [x.shape if x.shape.is_fully_defined() else arrays_functions.shape(x) for x in flat]
        kinds = [x.dtype for x in flat]
    arrays = [
        TensorArray(
            kind, 0, dynamic_size=True, element_shape=known_batch_shape([batch], _known(size)), name=f"rnn_output_{i}"
        )
        for i, (kind, size) in enumerate(zip(kinds, sizes))
    ]
    zeros = [arrays_functions.zeros(batch_shape(batch_size, size), kind) for kind, size in zip(kinds, sizes)]
    return nest.pack_sequence_as(structure, arrays), nest.pack_sequence_as(structure, zeros)


def _known(size: Any) -> Any:
    """The static value of a size that is a tensor, if it is known."""
    if not isinstance(size, Tensor):
        return size
    value = constant_value(size)
    return as_shape(None if value is None else value.tolist())


def _body(cell: Any, loop_fn: LoopFunction, zeros: Any) -> Callable[..., tuple[Any, ...]]:
    def body(time: Any, finished: Any, inputs: Any, arrays: Any, state: Any, loop_state: Any) -> tuple[Any, ...]:
        output, new_state = cell(inputs, state)
        nest.assert_same_structure(state, new_state)
        nest.assert_same_structure(cell.output_size, output)
        next_time = time + 1
        ends, next_inputs, next_state, emitted, next_loop_state = loop_fn(next_time, output, new_state, loop_state)
        nest.assert_same_structure(state, next_state)
        nest.assert_same_structure(inputs, next_inputs)
        nest.assert_same_structure(arrays, emitted)

        def running(old: Any, new: Any) -> Any:
            return nest.map_structure(lambda o, n: rnn_step.old_unless_running(finished, o, n), old, new)

        emitted, next_state = running(zeros, emitted), running(state, next_state)
        written = nest.map_structure(lambda array, value: array.write(time, value), arrays, emitted)
        kept = loop_state if next_loop_state is None else next_loop_state
        return next_time, math.logical_or(finished, ends), next_inputs, written, next_state, kept

    return body
