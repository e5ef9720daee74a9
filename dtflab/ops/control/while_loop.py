"""tf.while_loop: a piece of graph that runs repeatedly, each time on its last results.

Stands for `python/ops/while_loop.py` in TF1's form, and for BuildLoop of `control_flow_ops.py`: Enter, Merge, Switch,
NextIteration and Exit in one graph, no functions.

Rule: condition and body are built once, when `while_loop` is called. For each loop variable

    Enter → Merge → Switch ─(true)→ Identity → body → NextIteration ─┐
              ↑        └──(false)→ Exit                              │
              └──────────────────────────────────────────────────────┘

and the Merges lead to the condition, whose LoopCond turns all Switches. In a step several iterations may run at once:
each has its own values (see `runtime/frames.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import errors, nest
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.dtypes import dtype_text
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import add_to_collection, get_default_graph, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.control import functions as control
from dtflab.ops.control.while_context import WhileContext
from dtflab.ops.sparse.sparse_tensor import SparseTensor

Condition = Callable[..., Any]
Body = Callable[..., Any]


def while_loop(
    cond: Condition,
    body: Body,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """The loop variables when `cond(*loop_vars)` is false for the first time; `body(*loop_vars)` changes them.

    Args:
      cond: called once, with tensors; returns a scalar bool tensor.
      body: called once; returns the loop variables of the next iteration, nested as `loop_vars`.
      loop_vars: a list or tuple, nested as you like, of tensors, SparseTensors, IndexedSlices and TensorArrays.
      shape_invariants: for each variable the shape that holds in all iterations; else that of its first value.
      parallel_iterations: how many iterations may be under way at the same time in a step.
      back_prop: whether gradients may go back through the loop.
      swap_memory: whether the values that gradients need may wait in the host's memory.
      maximum_iterations: a scalar integer; the loop ends after that many iterations at the latest.
      return_same_structure: return a list or tuple also if there is but one loop variable.
    Raises TypeError and ValueError for arguments that do not fit together, and for a body that changes the nesting,
    the dtype or the shape of a variable.
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    loop_vars = nest.map_structure(control.read_variable, loop_vars)
    with name_scope(name, "while", list(nest.leaves(loop_vars, expand_composites=True))):
        if not loop_vars:
            raise ValueError("'loop_vars' must be provided.")
        limit = _limit(maximum_iterations)
        if limit is not None:
            cond, body, loop_vars = _counting(cond, body, loop_vars, limit, return_same_structure)
            shape_invariants = None if shape_invariants is None else (TensorShape([]), shape_invariants)
        context = WhileContext(limit, parallel_iterations, back_prop, swap_memory)
        if context.outer_context is None:  # a meta graph keeps the outermost contexts, and these those inside
            add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = _Loop(context, loop_vars, shape_invariants).build(cond, body)
    if limit is not None:
        return result[1]
    alone = sum(1 for _ in nest.leaves(result, expand_composites=True)) == 1 and not return_same_structure
    return result[0] if alone else result


def _limit(maximum_iterations: Any) -> Tensor | None:
    if maximum_iterations is None:
        return None
    limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
    if limit.shape.ndims != 0:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {limit.shape}")
    return limit


def _counting(
    cond: Condition, body: Body, loop_vars: Any, limit: Tensor, return_same_structure: bool
) -> tuple[Condition, Body, Any]:
    """The same loop with a counter as first variable; all others are the second one."""
    counter = constant(0, limit.dtype, name="iteration_counter")
    alone = len(loop_vars) == 1 and not return_same_structure

    def counted(function: Callable[..., Any], several: Any) -> Any:
        return function(several) if alone else function(*several)

    return (
        lambda i, several: apply_op("LogicalAnd", x=i < limit, y=counted(cond, several)),
        lambda i, several: (i + 1, counted(body, several)),
        (counter, loop_vars[0] if alone else loop_vars),
    )


class _Loop:
    """A loop while it is built."""

    def __init__(self, context: WhileContext, loop_vars: Any, shape_invariants: Any) -> None:
        self.context = context
        self.loop_vars = nest.map_structure(_to_tensor, loop_vars)
        self.tensors: list[Tensor] = list(nest.leaves(self.loop_vars, expand_composites=True))
        self.invariants = _shapes_of(self.loop_vars, shape_invariants)

    def build(self, cond: Condition, body: Body) -> Any:
        """Add the loop to the graph; returns what the body returned, the values being those after the loop."""
        context = self.context
        # No session may take the graph before the back edges are there.
        with get_default_graph()._lock, context.entered():
            context.loop_enters = self._enters()
            merges = [control.merge([tensor, tensor])[0] for tensor in context.loop_enters]
            context.pivot_for_pred = merges[0]
            going_on = convert_to_tensor(cond(*self._packed(merges)))
            context.pivot = apply_op("LoopCond", "LoopCond", input=going_on)
            switches = [control.switch_ref_or_tensor(tensor, context.pivot) for tensor in merges]
            returned = self._body(body, [if_true for _, if_true in switches])
            _close(merges, list(nest.leaves(returned, expand_composites=True)))
            context.loop_exits = [control.exit(if_false) for if_false, _ in switches]
            context.ExitResult(context.loop_exits)
        return nest.pack_sequence_as(returned, context.loop_exits, expand_composites=True)

    def _packed(self, tensors: Sequence[Tensor]) -> Any:
        return nest.pack_sequence_as(self.loop_vars, tensors, expand_composites=True)

    def _enters(self) -> list[Tensor]:
        """The first values of the variables, inside."""
        context = self.context
        context.know_only(self.tensors)
        outer = context.outer_context
        values = self.tensors if outer is None else [outer.AddValue(tensor) for tensor in self.tensors]
        enters = [self._enter(value, shape) for value, shape in zip(values, self.invariants, strict=True)]
        pivot = _pivot_around(context)
        for tensor in enters:
            if pivot is not None and control.is_constant_enter(tensor.op.inputs[0].op):
                tensor.op._add_control_input(pivot.op)
        context._fix_enters(enters)
        context.know_only(enters)
        return enters

    def _enter(self, value: Tensor, invariant: TensorShape) -> Tensor:
        if not _at_least_as_known(value.shape, invariant):
            raise ValueError(
                f"The shape invariant specified for {value.name} is not compatible with the initial shape of the loop "
                f"variable. It enters the loop with shape {value.shape}, but the specified shape invariant is "
                f"{invariant}."
            )
        inside = self.context.enter(value, use_input_shape=False)
        inside.set_shape(invariant)
        return inside

    def _body(self, body: Body, values: Sequence[Tensor]) -> Any:
        """The body's results, tensors throughout."""
        values = [apply_op(control.of_kind(tensor, "Identity"), input=tensor) for tensor in values]
        self.context.pivot_for_body = values[0]
        packed = self._packed(values)
        returned = body(*packed)
        returned = nest.map_structure(control.read_variable, returned if nest.is_nested(returned) else [returned])
        nest.assert_same_structure(list(packed), list(returned), expand_composites=True)
        return nest.map_structure(_to_tensor, returned)


def _to_tensor(value: Any) -> Any:
    return value if nest.is_composite(value) else convert_to_tensor(value)


def _pivot_around(context: WhileContext) -> Tensor | None:
    """The pivot of the next context around that has one."""
    outer, pivot = context.outer_context, None
    while outer is not None and pivot is None:
        pivot, outer = outer.GetControlPivot(), outer.outer_context
    return pivot


def _close(merges: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """The back edges: what the body returned goes to the Merges of the next iteration."""
    for merged, value in zip(merges, values, strict=True):
        following = control.next_iteration(value)
        first = merged.op.inputs[0].op.inputs[0]
        if following.dtype.base_dtype != merged.dtype.base_dtype:  # TensorFlow says so when the graph first runs
            expected, given = dtype_text(merged.dtype.base_dtype), dtype_text(following.dtype.base_dtype)
            raise errors.InvalidArgumentError(
                None,
                merged.op,
                f"Input 1 of node {merged.op.name} was passed {given} from {following.name} incompatible with "
                f"expected {expected}. A loop variable keeps its type: '{first.name}' enters the loop as {expected}, "
                f"so the body has to return it as that; see tf.cast.",
            )
        if not _at_least_as_known(following.shape, merged.shape):
            raise ValueError(
                f"Input tensor '{first.name}' enters the loop with shape {first.shape}, but has shape "
                f"{following.shape} after one iteration. To allow the shape to vary across iterations, use the "
                "`shape_invariants` argument of tf.while_loop to specify a less-specific shape."
            )
        merged.op._update_input(1, following)


# -- shapes that hold in all iterations ---------------------------------------------------------------------------


def _at_least_as_known(shape: TensorShape, invariant: TensorShape) -> bool:
    """Whether what `invariant` says of each dimension is known of `shape`."""
    if invariant.ndims is None:
        return True
    if shape.ndims != invariant.ndims:
        return False
    return all(wanted in (None, size) for size, wanted in zip(shape.as_list(), invariant.as_list(), strict=True))


def _shapes_of(loop_vars: Any, shape_invariants: Any) -> list[TensorShape]:
    """For each tensor of the variables its invariant."""
    if shape_invariants is None:
        given = [None for _ in nest.leaves(loop_vars)]
    else:
        nest.assert_same_structure(loop_vars, shape_invariants)
        given = list(nest.leaves(shape_invariants))
    shapes: list[TensorShape] = []
    for value, invariant in zip(nest.leaves(loop_vars), given, strict=True):
        shapes += _shapes_of_parts(value, invariant)
    return shapes


def _shapes_of_parts(value: Any, invariant: Any) -> list[TensorShape]:
    if invariant is not None and not isinstance(invariant, TensorShape):
        raise TypeError(f"'shape' must be one of TypeSpec, TensorShape or None. Received: {type(invariant)}")
    if isinstance(value, SparseTensor):
        rank = value.shape.ndims if invariant is None else invariant[0].value
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]
    if isinstance(value, IndexedSlices):
        of_values = value.values.shape if invariant is None else invariant
        shapes = [of_values, of_values[:1], TensorShape([of_values.ndims])]
        return shapes[: 2 + (value.dense_shape is not None)]
    parts = list(nest.leaves(value, expand_composites=True))  # a tensor, or the flow of a TensorArray
    return [part.shape if invariant is None else invariant for part in parts]
