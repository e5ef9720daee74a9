"""Variables that a loop is given afterwards, for its gradient: counters of its iterations, and sums over all of them.

Stands for `AddForwardLoopCounter`, `AddBackpropLoopCounter`, `AddBackpropAccumulator` and
`AddBackpropIndexedSlicesAccumulator` of WhileContext in `python/ops/control_flow_ops.py`. Left out: TensorFlow 2's
loops, whose gradients are functions.

Rule: a later variable is a loop variable like those that a program wrote: Enter, Merge, Switch, NextIteration, Exit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import concat, zeros, zeros_like
from dtflab.ops.control.control_flow_context import ControlFlowContext
from dtflab.ops.control.functions import enter, exit, merge, next_iteration, switch
from dtflab.ops.control.while_context import WhileContext
from dtflab.ops.math import functions as math

if TYPE_CHECKING:
    from dtflab.ops.control.backward_loop import BackwardLoop


def within(context: ControlFlowContext | None) -> contextlib.AbstractContextManager[None]:
    """Inside `context`, if there is one."""
    return contextlib.nullcontext() if context is None else context.entered()


def shape_of(value: Tensor) -> Tensor:
    """The shape of a tensor, or of the variable that a handle names."""
    return apply_op("VariableShape" if value.dtype == dtypes.resource else "Shape", input=value)


def _carried(
    loop: WhileContext,
    starts: Sequence[Tensor],
    change: Callable[[list[Tensor]], list[Tensor]],
    name: str,
    merge_name: str | None,
    shapes: Sequence[TensorShape] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Further variables of `loop`, to be called inside; returns their last values, and those of the next iteration."""
    loop._values.update(tensor.name for tensor in starts)
    enters = [
        enter(tensor, loop.name, False, loop.parallel_iterations, use_input_shape=shapes is None, name=name)
        for tensor in starts
    ]
    for tensor, shape in zip(enters, shapes or ()):
        tensor.set_shape(shape)
    loop.loop_enters += enters
    merges = [merge([tensor, tensor], name=merge_name)[0] for tensor in enters]
    switches = [switch(tensor, loop.pivot) for tensor in merges]
    following = [next_iteration(tensor) for tensor in change([if_true for _, if_true in switches])]
    for merged, tensor in zip(merges, following, strict=True):
        merged.op._update_input(1, tensor)
    exits = [exit(if_false, name=name) for if_false, _ in switches]
    loop.loop_exits += exits
    loop.ExitResult(exits)
    return exits, following


def count_up(loop: WhileContext, outer: BackwardLoop | None) -> tuple[Tensor, Tensor]:
    """A counter for a loop: how many iterations there were, and how many there are with the next one."""
    start = constant(0, name="f_count")
    if outer is not None:  # the pushes of one run of this loop come before those of the next run
        start.op._add_control_input(outer.forward_index.op.inputs[0].op)
    with loop.entered():
        (total,), (index,) = _carried(loop, [start], lambda counts: [math.add(counts[0], 1)], "f_count", None)
    return total, index


def count_down(loop: WhileContext, count: Tensor, outer: BackwardLoop | None) -> Tensor:
    """Make `loop` run `count` times; returns how many times more it will after the next iteration."""
    one = constant(1, name="b_count")
    with loop.entered():
        loop._values.add(count.name)
        first = enter(count, loop.name, False, loop.parallel_iterations, name="b_count")
        loop.loop_enters.append(first)
        merged = loop.pivot_for_pred = merge([first, first])[0]
        loop.pivot = apply_op("LoopCond", "b_count", input=apply_op("GreaterEqual", x=merged, y=one))
        if_false, if_true = switch(merged, loop.pivot)
        loop.pivot_for_body = math.subtract(if_true, one)
        following = next_iteration(loop.pivot_for_body)
        merged.op._update_input(1, following)
        zero = exit(if_false, name="b_count")
        loop.loop_exits.append(zero)
        if outer is not None:  # the pops of one run of this loop come before those of the next run
            outer.grad_sync._add_control_input(zero.op)
        loop.ExitResult([zero])
    return following


def summed(state: BackwardLoop, constant_enter: Operation, dy: Any) -> Any:
    """The gradient of a loop constant: the sum of `dy` over all iterations."""
    loop = state.grad_context
    if isinstance(dy, IndexedSlices):
        return _summed_slices(state, constant_enter, dy)
    with loop.left():
        start = _zeros_to_sum(state, constant_enter.inputs[0], dy)
    (total,), _ = _carried(loop, [start], lambda sums: [math.add(sums[0], dy)], "b_acc", "b_acc")
    return total


def _zeros_to_sum(state: BackwardLoop, value: Tensor, dy: Tensor) -> Tensor:
    """Zeros in the shape of a loop constant."""
    around = state.grad_context.outer_context
    if dy.shape.is_fully_defined():
        with within(around):
            return constant(0, dy.dtype, shape=dy.shape, name="b_acc")
    if state.outer is None:
        with within(around):
            return zeros(shape_of(value), dy.dtype)
    with within(state.forward_context.outer_context):
        shape = shape_of(value)
    stack = state.outer.remember(shape)
    with within(around):
        return zeros(state.outer.recall(stack, shape), dy.dtype)


def _summed_slices(state: BackwardLoop, constant_enter: Operation, dy: IndexedSlices) -> IndexedSlices:
    """The rows of all iterations one after the other; one row of zeros comes first."""
    loop = state.grad_context
    with loop.left(), within(loop.outer_context):
        starts = _no_slices(constant_enter.inputs[0], dy)
    parts = [dy.indices, dy.values]

    def longer(sums: list[Tensor]) -> list[Tensor]:
        joined = [concat([before, part], 0) for before, part in zip(sums, parts)]
        return joined + [math.maximum(dy.dense_shape, shape) for shape in sums[2:]]

    rows = starts[1].shape
    of_values = TensorShape(None) if rows.ndims is None else TensorShape([None]).concatenate(rows[1:])
    shapes = [TensorShape([None]), of_values, TensorShape(None)]
    exits, _ = _carried(loop, starts, longer, "b_acc", "b_acc", shapes)
    return IndexedSlices(exits[1], exits[0], exits[2] if len(exits) > 2 else None)


def _no_slices(value: Tensor, dy: IndexedSlices) -> list[Tensor]:
    """Indices, values and, if there is one, dense shape to begin with."""
    if dy.values.shape.is_fully_defined():
        values = constant(0, dy.values.dtype, shape=[1, *dy.values.shape.as_list()[1:]], name="b_acc")
    else:
        values = zeros(concat([[1], shape_of(value)[1:]], 0), dy.values.dtype)
    starts = [constant([0], dy.indices.dtype), values]
    if dy.dense_shape is None:
        return starts
    if dy.dense_shape.shape.is_fully_defined():
        return [*starts, constant(0, dy.dense_shape.dtype, shape=dy.dense_shape.shape)]
    shape = apply_op("Shape", input=value, out_type=dy.dense_shape.dtype)
    return [*starts, zeros_like(shape, optimize=False)]
