"""Order and choice, the functions: no_op, group, tuple; switch, merge, and values carried through loops.

Stands for `python/ops/control_flow_ops.py`. `cond`, `case` and `while_loop` have pages of their own, as do the contexts
that know which branch or loop an operation is in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base import nest
from dtflab.graph import gradients
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices, as_indexed_slices_list
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, device, get_default_graph, name_scope

# -- order --------------------------------------------------------------------------------------------


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing: a point for control dependencies."""
    return apply_op("NoOp", name)


def group(*inputs: Any, name: str | None = None, **unknown: Any) -> Operation:
    """One operation that has run when all of `inputs` (operations, tensors, nested lists of them) have run.

    Inputs on several devices are first joined on each device, so that one signal per device crosses.
    """
    if unknown:
        raise ValueError("Unknown keyword arguments: " + ", ".join(unknown))
    with name_scope(name, "group_deps", inputs) as scope:
        if not inputs:
            return no_op(name=scope)
        by_device: dict[str, list[Any]] = {}
        for item in nest.leaves(inputs, expand_composites=True):
            if not hasattr(item, "device"):
                raise TypeError(
                    f"'inputs' should be zero or more (nested) Tensors. Received '{item}' with type '{type(item)}'."
                )
            by_device.setdefault(item.device or "", []).append(item)
        if len(by_device) == 1:
            ((where, deps),) = by_device.items()
            return _group_on(where, deps, scope)
        joined = [_group_on(where, by_device[where], None) for where in sorted(by_device)]
        with control_dependencies(joined):
            return no_op(name=scope)


def _group_on(where: str, deps: Sequence[Any], name: str | None) -> Operation:
    with control_dependencies(deps), device(where):
        return no_op(name=name)


def of_kind(tensor: Tensor, op_type: str) -> str:
    """`op_type`, or its twin for references if `tensor` is one."""
    return f"Ref{op_type}" if tensor.dtype._is_ref_dtype else op_type


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Tensor:
    """The value of `output_tensor`, available only after `dependencies` have run."""
    with (
        name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        colocate_with(output_tensor),
        control_dependencies(dependencies),
    ):
        tensor = convert_to_tensor(output_tensor, as_ref=True)
        return apply_op(of_kind(tensor, "Identity"), scope, input=tensor)


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:
    """The same tensors, each available only when all of them (and `control_inputs`) have been computed."""
    with name_scope(name, "tuple", tensors):
        as_they_are = Operation | Tensor | IndexedSlices | None
        members = [t if isinstance(t, as_they_are) else convert_to_tensor(t) for t in tensors]
        gating = [_operation(t) for t in members if t is not None]
        for control in control_inputs or ():
            if not isinstance(control, Operation | Tensor):
                raise TypeError(f"'control_inputs' must only contain Operation or Tensor. Received: {type(control)}")
            gating.append(_operation(control))
        if not gating:
            raise ValueError(f"'tensors' must have at least one Tensor. Received: {tensors}.")
        gate = group(*sorted(set(gating), key=lambda o: o._id))
        return [_gated(t, gate) for t in members]


gradients.gate = tuple


def _operation(element: Any) -> Operation:
    return element if isinstance(element, Operation) else element.op


def _gated(member: Any, gate: Operation) -> Any:
    if isinstance(member, Tensor):
        return with_dependencies([gate], member)
    if isinstance(member, IndexedSlices):
        return IndexedSlices(with_dependencies([gate], member.values), member.indices, member.dense_shape)
    if member is None:
        return None
    with control_dependencies([gate]):
        return group(member)


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Operations made inside wait for nothing: they must also run in a step of their own."""
    with get_default_graph()._lifted(), control_dependencies(None):
        yield


# -- choice -------------------------------------------------------------------------------------------


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> list[Any]:
    """`data` at the first output if `pred` is false, at the second if true; the other output is dead.

    IndexedSlices and SparseTensors are switched as a whole.
    """
    with name_scope(name, "Switch", [data, pred]) as scope:
        # A resource variable is a composite in TensorFlow, one of a single part.
        if not nest.is_composite(data) and not isinstance(getattr(data, "handle", None), Tensor):
            data = convert_to_tensor(data, dtype, name="data", as_ref=True)
        pred = convert_to_tensor(pred, name="pred")
        if isinstance(data, Tensor):
            return apply_op("Switch", scope, data=data, pred=pred)
        parts = [apply_op("Switch", data=part, pred=pred) for part in nest.leaves(data, expand_composites=True)]
        return [nest.pack_sequence_as(data, side, expand_composites=True) for side in zip(*parts)]


def switch_ref_or_tensor(data: Any, pred: Any, name: str = "Switch") -> list[Any]:
    """`switch` on the device of `data`, keeping a reference a reference."""
    data = data if nest.is_composite(data) else convert_to_tensor(data, name="data")
    with colocate_with(data.op, ignore_existing=True):
        if data.dtype._is_ref_dtype:
            return apply_op("RefSwitch", name, data=data, pred=pred)
        return switch(data, pred, name=name)


class Merged(NamedTuple):
    """The result of `merge`."""

    output: Any
    value_index: Tensor


def merge(inputs: Sequence[Any], name: str | None = None) -> Merged:
    """The one input that is available, and its index. With IndexedSlices among the inputs all become such."""
    if any(value is None for value in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    with name_scope(name, "Merge", inputs) as scope:
        values = [v if nest.is_composite(v) else convert_to_tensor(v, as_ref=True) for v in inputs]
        if not any(map(nest.is_composite, values)):
            refs = all(t.dtype._is_ref_dtype for t in values)
            return Merged(*apply_op("RefMerge" if refs else "Merge", scope, inputs=values))
        return _merge_composites(values)


def _merge_composites(values: Sequence[Any]) -> Merged:
    """The merge of SparseTensors, or of IndexedSlices and tensors: part by part."""
    if all(isinstance(v, Tensor | IndexedSlices) for v in values):
        values = as_indexed_slices_list(values)
    for value in values[1:]:
        nest.assert_same_structure(values[0], value, expand_composites=True)
    parts = zip(*(nest.leaves(v, expand_composites=True) for v in values))
    merged = [apply_op("Merge", inputs=list(part)) for part in parts]
    together = nest.pack_sequence_as(values[0], [output for output, _ in merged], expand_composites=True)
    return Merged(together, merged[0][1])


def read_variable(value: Any) -> Any:
    """The value of a resource variable, read here; anything else as it is."""
    is_variable = isinstance(getattr(value, "handle", None), Tensor) and not nest.is_composite(value)
    return convert_to_tensor(value) if is_variable else value


# -- loops --------------------------------------------------------------------------------------------


def is_exit(operation: Operation) -> bool:
    """Whether a value leaves a loop at this op."""
    return operation.op_class.control_flow == "exit"


def is_switch(operation: Operation) -> bool:
    """Whether a value goes one of two ways at this op."""
    return operation.op_class.control_flow == "switch"


def is_enter(operation: Operation) -> bool:
    """Whether a value enters a loop at this op."""
    return operation.op_class.control_flow == "enter"


def is_constant_enter(operation: Operation) -> bool:
    """Whether a value that all iterations see enters a loop at this op."""
    return is_enter(operation) and bool(operation.attrs["is_constant"])


def output_context(operation: Operation) -> Any:
    """The branch or loop in which the outputs of `operation` are: those of an Exit are outside of its loop."""
    context = operation._control_flow_context
    return context.outer_context if context is not None and is_exit(operation) else context


def enter(
    tensor: Tensor,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Tensor:
    """`tensor` inside the loop `frame_name`: in its first iteration, or if `is_constant` in all."""
    frame = {"frame_name": frame_name, "is_constant": is_constant, "parallel_iterations": parallel_iterations}
    inside: Tensor = apply_op(of_kind(tensor, "Enter"), name, data=tensor, **frame)
    if use_input_shape:
        inside.set_shape(tensor.shape)
    return inside


def exit(tensor: Tensor, name: str | None = None) -> Tensor:
    """The value that `tensor` has in the last iteration, outside of its loop."""
    return apply_op(of_kind(tensor, "Exit"), name, data=tensor)


def next_iteration(tensor: Tensor) -> Tensor:
    """The value of `tensor`, in the iteration that follows."""
    return apply_op(of_kind(tensor, "NextIteration"), data=tensor)
