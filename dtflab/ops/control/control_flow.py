"""Order and choice: NoOp, group, tuple; Switch, Merge and the frame ops of loops.

Stands for `control_flow_ops.cc` in `core/ops` and `core/kernels` and `control_flow_ops.py` in `python/ops`. `cond` is
in `cond.py`, the gradients are in `control_flow_gradients.py`. Left out: Abort.

Rule: the seven ops that decide what runs next have no kernel worth the name. The executor knows them by their
class attribute `control_flow` and moves their values, dead or alive, itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dtflab.base import nest
from dtflab.graph import dtypes, gradients
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices, as_indexed_slices_list
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, device, name_scope
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free


def same(node: Any, xp: Any) -> Callable[[Any], Any]:
    """The kernel of every op that hands its input on: the identity."""
    return lambda value: value


# -- order ---------------------------------------------------------------------------------------------


@op("NoOp() -> ()")
class NoOp(Op):
    infer = shapes.none
    flops = bytes = free

    def bind(node, xp):
        return lambda: None


@op("ControlTrigger() -> ()")
class ControlTrigger(Op):
    """A NoOp that runs even if its control inputs are dead: used by gradients of loops."""

    control_flow = "control_trigger"
    infer = shapes.none
    flops = bytes = free

    def bind(node, xp):
        return lambda: None


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing: a point to hang control dependencies on."""
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


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Tensor:
    """The value of `output_tensor`, available only after `dependencies` have run."""
    with (
        name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        colocate_with(output_tensor),
        control_dependencies(dependencies),
    ):
        tensor = convert_to_tensor(output_tensor, as_ref=True)
        return apply_op("RefIdentity" if tensor.dtype._is_ref_dtype else "Identity", scope, input=tensor)


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None) -> list[Any]:
    """The same tensors, each available only when all of them (and `control_inputs`) have been computed."""
    with name_scope(name, "tuple", tensors):
        members = [
            t if t is None or isinstance(t, Operation | Tensor | IndexedSlices) else convert_to_tensor(t)
            for t in tensors
        ]
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


# -- choice --------------------------------------------------------------------------------------------


def _twice(operation: Any) -> list[TensorShape]:
    operation.inputs[1].shape.with_rank(0)
    return [operation.inputs[0].shape] * 2


class _Switch(Op):
    control_flow = "switch"
    infer = staticmethod(_twice)
    flops = bytes = staticmethod(free)
    aliasing = True

    @staticmethod
    def zeros(operation: Operation, index: int) -> Any:
        """The gradient of the side that the branch of `operation` does not use: zeros, made when it is alive."""
        output, context = operation.outputs[index], operation._control_flow_context
        if context is None:
            return apply_op("ZerosLike", "zeros_like", x=output)
        alive = switch(operation.inputs[0], context.pred)[1 - context.branch]
        pivot = apply_op("Identity", None, input=alive)
        if output.dtype == dtypes.resource:
            known = declared(output)
            if known is None:
                return None
            with control_dependencies([pivot]):
                return arrays.zeros(apply_op("VariableShape", None, input=alive), known[1])
        shape = apply_op("Shape", None, input=alive)
        with control_dependencies([pivot]):
            return arrays.zeros(shape, output.dtype)


@op("""Switch(data: T, pred: bool) -> (output_false: T, output_true: T)
       T: type""")
class Switch(_Switch):
    pass


@op("""RefSwitch(data: Ref(T), pred: bool) -> (output_false: Ref(T), output_true: Ref(T))
       T: type""")
class RefSwitch(_Switch):
    allows_uninitialized_input = True


def _merge_shape(operation: Any) -> list[TensorShape]:
    """What all inputs have in common: the rank if they agree on it, and each dimension that they agree on."""
    first, *others = (t.shape for t in operation.inputs)
    common = first
    for shape in others:
        if common.ndims is None or shape.ndims != common.ndims:
            common = TensorShape(None)
            break
        common = TensorShape([a if a == b else None for a, b in zip(common.as_list(), shape.as_list())])
    return [common, TensorShape([])]


class _Merge(Op):
    control_flow = "merge"
    infer = staticmethod(_merge_shape)
    flops = bytes = staticmethod(free)
    aliasing = True


@op("""Merge(inputs: N * T) -> (output: T, value_index: int32)
       T: type
       N: int >= 1""")
class Merge(_Merge):
    pass


@op("""RefMerge(inputs: Ref(N * T)) -> (output: Ref(T), value_index: int32)
       T: type
       N: int >= 1""")
class RefMerge(_Merge):
    pass


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
        parts = [apply_op("Switch", None, data=part, pred=pred) for part in nest.leaves(data, expand_composites=True)]
        return [nest.pack_sequence_as(data, side, expand_composites=True) for side in zip(*parts)]


def switch_ref_or_tensor(data: Any, pred: Any, name: str = "Switch") -> list[Any]:
    """As `switch`, on the device of `data`, keeping a reference a reference."""
    data = data if nest.is_composite(data) else convert_to_tensor(data, name="data")
    with colocate_with(data.op, ignore_existing=True):
        if data.dtype._is_ref_dtype:
            return apply_op("RefSwitch", name, data=data, pred=pred)
        return switch(data, pred, name=name)


class Merged(NamedTuple):
    """What `merge` gives."""

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
    merged = [apply_op("Merge", None, inputs=list(part)) for part in parts]
    together = nest.pack_sequence_as(values[0], [output for output, _ in merged], expand_composites=True)
    return Merged(together, merged[0][1])


# -- loops ---------------------------------------------------------------------------------------------


def _passed(control_flow: str) -> type:
    """The base of the ops that carry one value into, around or out of a frame."""
    attributes = {
        "control_flow": control_flow, "infer": staticmethod(shapes.unchanged), "bind": staticmethod(same),
        "flops": staticmethod(free), "bytes": staticmethod(free), "aliasing": True,
    }  # fmt: skip
    return type(f"_{control_flow}", (Op,), attributes)


_Enter, _Exit, _NextIteration = _passed("enter"), _passed("exit"), _passed("next_iteration")


@op("""Enter(data: T) -> (output: T)
       T: type
       frame_name: string
       is_constant: bool = false
       parallel_iterations: int = 10""")
class Enter(_Enter):  # type: ignore[valid-type]
    def infer(operation):
        """Only a loop constant surely keeps its shape; `while_loop` sets that of the others."""
        return [operation.inputs[0].shape if operation.get_attr("is_constant") else TensorShape(None)]


@op("""RefEnter(data: Ref(T)) -> (output: Ref(T))
       T: type
       frame_name: string
       is_constant: bool = false
       parallel_iterations: int = 10""")
class RefEnter(_Enter):  # type: ignore[valid-type]
    pass


@op("""Exit(data: T) -> (output: T)
       T: type""")
class Exit(_Exit):  # type: ignore[valid-type]
    pass


@op("""RefExit(data: Ref(T)) -> (output: Ref(T))
       T: type""")
class RefExit(_Exit):  # type: ignore[valid-type]
    pass


@op("""NextIteration(data: T) -> (output: T)
       T: type""")
class NextIteration(_NextIteration):  # type: ignore[valid-type]
    pass


@op("""RefNextIteration(data: Ref(T)) -> (output: Ref(T))
       T: type""")
class RefNextIteration(_NextIteration):  # type: ignore[valid-type]
    pass


@op("LoopCond(input: bool) -> (output: bool)")
class LoopCond(Op):
    control_flow = "loop_cond"
    bind = same
    flops = bytes = free
    aliasing = True
    grad = no_gradient

    def infer(operation):
        return [operation.inputs[0].shape.with_rank(0)]


def is_exit(operation: Operation) -> bool:
    """Whether a value leaves a loop there."""
    return operation.op_class.control_flow == "exit"


def is_switch(operation: Operation) -> bool:
    """Whether a value goes one of two ways there."""
    return operation.op_class.control_flow == "switch"


def is_enter(operation: Operation) -> bool:
    """Whether a value comes into a loop there."""
    return operation.op_class.control_flow == "enter"


def is_constant_enter(operation: Operation) -> bool:
    """Whether a value comes into a loop there that all iterations see."""
    return is_enter(operation) and bool(operation.attrs["is_constant"])


def output_context(operation: Operation) -> Any:
    """The branch or loop in which the outputs of `operation` are: those of an Exit are outside of its loop."""
    context = operation._control_flow_context
    return context.outer_context if context is not None and is_exit(operation) else context


def enter(
    tensor: Tensor, frame_name: str, is_constant: bool = False, parallel_iterations: int = 10,
    use_input_shape: bool = True, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`tensor` inside the loop `frame_name`: in its first iteration, or if `is_constant` in all."""
    kind = "RefEnter" if tensor.dtype._is_ref_dtype else "Enter"
    inside: Tensor = apply_op(
        kind, name, data=tensor, frame_name=frame_name, is_constant=is_constant,
        parallel_iterations=parallel_iterations,
    )  # fmt: skip
    if use_input_shape:
        inside.set_shape(tensor.shape)
    return inside


def exit(tensor: Tensor, name: str | None = None) -> Tensor:
    """The value that `tensor` has in the last iteration, outside of its loop."""
    return apply_op("RefExit" if tensor.dtype._is_ref_dtype else "Exit", name, data=tensor)


def next_iteration(tensor: Tensor) -> Tensor:
    """The value of `tensor`, in the iteration that follows."""
    return apply_op("RefNextIteration" if tensor.dtype._is_ref_dtype else "NextIteration", data=tensor)


@op("""RefIdentity(input: Ref(T)) -> (output: Ref(T))
       T: type""")
class RefIdentity(Op):
    """The same variable, not its value."""

    allows_uninitialized_input = True
    aliasing = True
    infer = shapes.unchanged
    bind = same
    flops = bytes = free

    def grad(operation, dy):
        return [dy]
