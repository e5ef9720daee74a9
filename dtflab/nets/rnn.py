"""dynamic_rnn: runs a cell along time, in a loop of the graph, with inputs and outputs in TensorArrays.

Stands for the first half of `python/ops/rnn.py`; `static_rnn.py` has the loops that are unrolled, `raw_rnn.py` the one
that a function controls. Left out: eager mode.

Rule: inside the loop tensors are [time, batch, …], and the loop ends with the longest sequence.
"""

from __future__ import annotations

from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.nets import rnn_step
from dtflab.nets.rnn_cell import assert_like_rnncell
from dtflab.nets.rnn_step import known_batch_shape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import stack
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.indexing.functions import reverse_sequence
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.variables.variable_scope import variable_scope


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """(outputs, last state) of `cell` along time.

    Args:
      inputs: [batch, time, …], or with `time_major` [time, batch, …]; or several such tensors, nested.
      sequence_length: how many steps of each row count, [batch]; past its end the output is zero, the state stays.
      initial_state: as nested as `cell.state_size`; by default zeros of `dtype`.
      parallel_iterations: how many steps may run at the same time, 32 by default.
      swap_memory: see `tf.while_loop`.
      scope: the variable scope, "rnn" by default.
    Returns outputs [batch, time, output_size] (or time first), and the state after each row's last step.
    """
    assert_like_rnncell("cell", cell)
    with variable_scope(scope or "rnn") as entered:
        rnn_step.cache_variables(entered)
        flat = [convert_to_tensor(x) for x in nest.flatten(inputs)]
        if not time_major:
            flat = [_batch_and_time_swapped(x) for x in flat]
        lengths = None if sequence_length is None else _lengths(sequence_length)
        batch_size = rnn_step.batch_size_of(flat)
        state = rnn_step.initial_state_of(cell, initial_state, batch_size, dtype)
        if lengths is not None:
            with control_dependencies([_assert_has_shape(lengths, [batch_size])]):
                lengths = arrays.identity(lengths, name="CheckSeqLen")
        loop = _Loop(cell, nest.pack_sequence_as(inputs, flat), state, lengths, dtype)
        outputs, last_state = loop.run(parallel_iterations or 32, swap_memory)
        if not time_major:
            outputs = nest.map_structure(_batch_and_time_swapped, outputs)
        return outputs, last_state


def _batch_and_time_swapped(x: Tensor) -> Tensor:
    shape = x.shape
    if shape.ndims is not None and shape.ndims < 2:
        return x
    rest = arrays.range(2, arrays.rank(x))
    swapped: Tensor = arrays.transpose(x, arrays.concat(([1, 0], rest), axis=0))
    if shape.dims is not None:
        swapped.set_shape(TensorShape([shape.dims[1], shape.dims[0], *shape.dims[2:]]))
    return swapped


def _lengths(sequence_length: Any) -> Tensor:
    lengths: Tensor = arrays.cast(sequence_length, dtypes.int32)
    if lengths.shape.ndims not in (None, 1):
        raise ValueError(
            "Argument sequence_length must be a vector of length batch_size. Received "
            f"sequence_length={lengths} of shape: {lengths.shape}"
        )
    return arrays.identity(lengths, name="sequence_length")  # under a name that can be found in the graph


def _assert_has_shape(x: Tensor, shape: list[Any]) -> Operation:
    found, wanted = arrays.shape(x), stack(shape)
    text = f"Expected shape for Tensor {x.name} is "
    return Assert(reduce.reduce_all(math.equal(found, wanted)), [text, wanted, " but saw shape: ", found])


class _Loop:
    """The while loop of one dynamic_rnn: the tensors from outside that its steps read, and the step."""

    def __init__(self, cell: Any, inputs: Any, state: Any, lengths: Tensor | None, dtype: Any) -> None:
        self.cell, self.inputs, self.state, self.lengths = cell, inputs, state, lengths
        flat: list[Tensor] = nest.flatten(inputs)
        self.steps = arrays.shape(flat[0])[0]
        batch_size = rnn_step.batch_size_of(flat)
        self.shapes = _checked_shapes(flat)
        self.dtype = rnn_step.state_dtype(dtype, state)
        self.zero_output = rnn_step.zero_outputs(cell.output_size, batch_size, self.dtype)
        if lengths is not None:
            self.bounds = reduce.reduce_min(lengths), reduce.reduce_max(lengths)

    def run(self, parallel_iterations: int, swap_memory: bool) -> tuple[Any, Any]:
        """(outputs, last state), the outputs [time, batch, output_size]."""
        longest = self.steps if self.lengths is None else self.bounds[1]
        time = constant(0, dtypes.int32, name="time")
        outputs = self._arrays()
        # One step at least, so that the arrays of outputs know a shape.
        bound = math.minimum(self.steps, math.maximum(1, longest))
        options: dict[str, Any] = {"parallel_iterations": parallel_iterations, "swap_memory": swap_memory}
        options |= {"maximum_iterations": self.steps}
        _, outputs, last_state = while_loop(
            lambda time, *_: time < bound, self.step, (time, outputs, self.state), **options
        )
        stacked = [array.stack() for array in outputs]
        known = [self.shapes[0][axis].value for axis in (0, 1)]
        rnn_step.set_static_shapes(stacked, nest.flatten(self.cell.output_size), known)
        return nest.pack_sequence_as(self.cell.output_size, stacked), last_state

    def _arrays(self) -> tuple[TensorArray, ...]:
        """The empty arrays of the outputs; those of the inputs are filled here."""
        with name_scope("dynamic_rnn") as prefix:
            pass
        batch = self.shapes[0][1].value

        def array_of(dtype: Any, shape: Any, name: str) -> TensorArray:
            return TensorArray(dtype, self.steps, element_shape=shape, tensor_array_name=f"{prefix}{name}")

        shapes = [known_batch_shape([batch], size) for size in nest.flatten(self.cell.output_size)]
        outputs = tuple(array_of(self.dtype, shape, f"output_{i}") for i, shape in enumerate(shapes))
        flat = nest.flatten(self.inputs)
        inputs = [array_of(x.dtype, x.shape[1:], f"input_{i}") for i, x in enumerate(flat)]
        self.input_arrays = [array.unstack(x) for array, x in zip(inputs, flat)]
        return outputs

    def step(self, time: Any, outputs: tuple[TensorArray, ...], state: Any) -> tuple[Any, Any, Any]:
        """The loop variables after one step."""
        now = [array.read(time) for array in self.input_arrays]
        for x, shape in zip(now, self.shapes):
            x.set_shape(shape[1:])
        inputs = nest.pack_sequence_as(self.inputs, now)
        if self.lengths is None:
            output, new_state = self.cell(inputs, state)
        else:
            output, new_state = rnn_step.step_of_many_lengths(
                time, self.lengths, self.bounds, self.zero_output, state, lambda: self.cell(inputs, state), True
            )
        written = tuple(array.write(time, x) for array, x in zip(outputs, nest.flatten(output)))
        return time + 1, written, new_state


def _checked_shapes(inputs: list[Tensor]) -> list[Any]:
    """The shapes of the inputs, [time, batch, …]. Raises ValueError if a size is unknown or time or batch differ."""
    shapes = [x.shape.with_rank_at_least(3) for x in inputs]
    time, batch = shapes[0][0].value, shapes[0][1].value
    for x, shape in zip(inputs, shapes):
        if not shape[2:].is_fully_defined():
            raise ValueError(
                "Input size (depth of inputs) must be accessible via shape inference, but saw value None for "
                f"input={x}."
            )
        if shape[0].value != time:
            raise ValueError(
                "Time steps is not the same for all the elements in the input in a batch. Received time "
                f"steps={shape[0].value} for input={x}."
            )
        if shape[1].value != batch:
            raise ValueError(
                "Batch_size is not the same for all the elements in the input. Received batch "
                f"size={shape[1].value} for input={x}."
            )
    return shapes


def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None, initial_state_fw: Any = None,
    initial_state_bw: Any = None, dtype: Any = None, parallel_iterations: int | None = None,
    swap_memory: bool = False, time_major: bool = False, scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:  # fmt: skip
    """((outputs forward, backward), (last states forward, backward)): `cell_bw` begins at each row's last step.

    The arguments are those of `dynamic_rnn`; the variables are under "bidirectional_rnn/fw" and "…/bw".
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def reversed_in_time(x: Any) -> Any:
        if sequence_length is None:
            return arrays.reverse(x, [time_axis])
        return reverse_sequence(x, sequence_length, time_axis, batch_axis)

    more = parallel_iterations, swap_memory, time_major
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            forward, state_fw = dynamic_rnn(cell_fw, inputs, sequence_length, initial_state_fw, dtype, *more, scope=fw)
        with variable_scope("bw") as bw:
            mirrored = nest.map_structure(reversed_in_time, inputs)
            found, state_bw = dynamic_rnn(cell_bw, mirrored, sequence_length, initial_state_bw, dtype, *more, scope=bw)
    return (forward, reversed_in_time(found)), (state_fw, state_bw)
