"""static_rnn: a cell along time, unrolled, with a copy of its nodes for each step.

Stands for the second half of `python/ops/rnn.py`.

Rule: the first step makes the variables, the others find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.tensor_shape import TensorShape
from dtflab.nets import rnn_step
from dtflab.nets.rnn_cell import assert_like_rnncell
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import stack, unstack
from dtflab.ops.indexing.functions import reverse_sequence
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.variables.variable_scope import variable_scope


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """(list of outputs, last state) of `cell` for a list of inputs, one per time step.

    Args:
      inputs: tensors [batch, size], or nested tuples of them.
      initial_state: as nested as `cell.state_size`; by default zeros of `dtype`.
      sequence_length: how many steps of each row count, [batch]; past its end the output is zero, the state stays.
      scope: the variable scope, "rnn" by default.
    """
    assert_like_rnncell("cell", cell)
    _check_sequence(inputs)
    outputs = []
    with variable_scope(scope or "rnn") as entered:
        rnn_step.cache_variables(entered)
        batch, batch_size = _batch_size(inputs)
        state = rnn_step.initial_state_of(cell, initial_state, batch_size, dtype)
        masked = None
        if sequence_length is not None:
            masked = _Masked(cell, sequence_length, state, (batch, batch_size), rnn_step.state_dtype(dtype, state))
        for time, x in enumerate(inputs):
            if time > 0:
                entered.reuse_variables()
            output, state = cell(x, state) if masked is None else masked.step(time, x, state)
            outputs.append(output)
    return outputs, state


def _check_sequence(inputs: Any) -> None:
    if not nest.is_nested(inputs):
        raise TypeError(f"Argument `inputs` must be a sequence. Received: {inputs}")
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")


def _batch_size(inputs: Any) -> tuple[Any, Any]:
    """The static batch size (or None), and a number or tensor that is it; checks what is known of the inputs."""
    flat: list[Tensor] = nest.flatten(inputs)
    first = flat[0]
    if first.shape.ndims == 1:
        batch = first.shape[0]
    else:
        batch = first.shape.with_rank_at_least(2)[0]
        for x in flat:
            batch.assert_is_compatible_with(x.shape.with_rank_at_least(2)[0])
            _check_sizes(x, x.shape[1:])
    return batch.value, batch.value or arrays.shape(first)[0]


def _check_sizes(x: Tensor, sizes: TensorShape) -> None:
    for i, size in enumerate(sizes.as_list()):
        if size is None:
            raise ValueError(
                f"Input size (dimension {i} of input {x}) must be accessible via shape inference, but saw value None."
            )


class _Masked:
    """Steps of sequences of many lengths."""

    def __init__(self, cell: Any, sequence_length: Any, state: Any, batch: tuple[Any, Any], dtype: Any) -> None:
        lengths = convert_to_tensor(sequence_length, name="sequence_length")
        if lengths.shape.ndims not in (None, 1):
            raise ValueError(
                f"Argument `sequence_length` must be a vector of length {batch[1]}. Received sequence_length={lengths}."
            )
        self.cell = cell
        self.zero_output = rnn_step.zero_outputs(cell.output_size, batch[1], dtype)
        rnn_step.set_static_shapes(nest.flatten(self.zero_output), nest.flatten(cell.output_size), batch[0])
        self.lengths = arrays.cast(lengths, dtypes.int32)
        self.bounds = reduce.reduce_min(self.lengths), reduce.reduce_max(self.lengths)

    def step(self, time: int, x: Any, state: Any) -> tuple[Any, Any]:
        return rnn_step.step_of_many_lengths(
            time, self.lengths, self.bounds, self.zero_output, state, lambda: self.cell(x, state), False
        )


def static_state_saving_rnn(
    cell: Any, inputs: Sequence[Any], state_saver: Any, state_name: Any, sequence_length: Any = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """`static_rnn` that begins with `state_saver.state(name)`, and passes its last state to `.save_state(name, value)`.

    `state_name` is as nested as `cell.state_size`. A fetch of the last output or the state also saves it.
    """
    size = cell.state_size
    if nest.is_nested(size) != nest.is_nested(state_name):
        raise ValueError(
            "Argument `state_name` should be the same type as `cell.state_size`. Received: "
            f"state_name={state_name}, cell.state_size={size}."
        )
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(size)):
        raise ValueError(
            "Number of elements in argument `state_name` and `cell.state_size` are mismatched. Received "
            f"state_name={state_name} with {len(names)} elements and cell.state_size={size} with "
            f"{len(nest.flatten(size))} elements."
        )
    begin = nest.pack_sequence_as(size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, begin, sequence_length=sequence_length, scope=scope)
    saves = [state_saver.save_state(name, part) for name, part in zip(names, nest.flatten(state))]
    with control_dependencies(saves):
        outputs[-1] = nest.map_structure(arrays.identity, outputs[-1])
        return outputs, nest.map_structure(arrays.identity, state)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """(concatenated outputs of both directions, last state forward, last state backward).

    The arguments are those of `static_rnn`; the variables are under "bidirectional_rnn/fw" and "…/bw".
    """
    assert_like_rnncell("cell_fw", cell_fw)
    assert_like_rnncell("cell_bw", cell_bw)
    _check_sequence(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            forward, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, scope=fw)
        with variable_scope("bw") as bw:
            mirrored = _reversed_in_time(inputs, sequence_length)
            found, state_bw = static_rnn(cell_bw, mirrored, initial_state_bw, dtype, sequence_length, scope=bw)
    backward = _reversed_in_time(found, sequence_length)
    pairs = zip(nest.flatten(forward), nest.flatten(backward))
    outputs = nest.pack_sequence_as(forward, [arrays.concat(pair, 1) for pair in pairs])
    return outputs, state_fw, state_bw


def _reversed_in_time(sequence: Sequence[Any], lengths: Any) -> list[Any]:
    """The reversed list; with `lengths`, each row is reversed from its own end."""
    if lengths is None:
        return list(reversed(sequence))
    columns = [_reversed_rows(steps, lengths) for steps in zip(*(nest.flatten(step) for step in sequence))]
    return [nest.pack_sequence_as(step, list(flat)) for step, flat in zip(sequence, zip(*columns))]


def _reversed_rows(steps: Sequence[Tensor], lengths: Any) -> list[Tensor]:
    shape = TensorShape(None if steps[0].shape.ndims is None else [None] * steps[0].shape.ndims)
    for step in steps:
        shape = shape.merge_with(step.shape)
    rows = unstack(reverse_sequence(stack(steps), lengths, 0, 1))
    for row in rows:
        row.set_shape(shape)
    return rows
