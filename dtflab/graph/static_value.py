"""The value that the graph alone determines: for programs that choose by it, and for shape rules.

Stands for `constant_value` in `python/framework/tensor_util.py` and for `core/common_runtime/eval_const_tensor.cc`.

Rule: the two differ, because in TensorFlow they do, and names and constants of a graph follow from what they know.
Python's `constant_value` reads a short list of ops, and what it has read can no longer be fed. The rules of shapes see
more: `folded_value` runs any stateless kernel whose inputs are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base.errors import OpError
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape

Array = np.ndarray[Any, Any]
ValueOf = Callable[[Tensor], Array | None]


def constant_value(tensor: Any) -> Any:
    """The value of `tensor` if it is a constant or follows from static shapes, else None.

    Anything but a tensor is returned as it is.
    """
    if not isinstance(tensor, Tensor):
        return tensor
    rule = _PYTHON_RULES.get(tensor.op.type)
    value = rule(tensor) if rule is not None else None
    if value is not None:
        tensor.graph.prevent_feeding(tensor)
    return value


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of `tensor` as far as the graph alone gives it: an array, or None.

    With `partial`, a tensor packed from known and unknown ones gives a list with None for the unknown.
    """
    if partial and isinstance(tensor, Tensor) and tensor.op.type == "Pack" and constant_value(tensor) is None:
        return [constant_value(part) for part in tensor.op.inputs]
    return constant_value(tensor)


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """`tensor`, an integer vector, as a static shape: known entries where the graph gives them, -1 is unknown."""
    return _as_shape(tensor, constant_value)


def folded_value(tensor: Tensor) -> Array | None:
    """The value of `tensor` if it can be computed now, else None: what a rule of shapes may look at."""
    known: dict[Tensor, Any] = {}
    todo = [tensor]
    while todo:
        op = todo[-1].op
        if todo[-1] in known:
            todo.pop()
        elif (value := _value_by_rule(todo[-1])) is not None:
            known[todo.pop()] = value
        elif not _is_foldable(op) or len(known) > _MOST_FOLDED:
            return None
        elif missing := [t for t in op.inputs if t not in known]:
            todo += missing
        else:
            results = _run(op, [known[t] for t in op.inputs])
            if results is None:
                return None
            known.update(zip(op.outputs, results, strict=True))
    return np.asarray(known[tensor])


def folded_shape(tensor: Tensor) -> TensorShape:
    """`tensor`, an integer vector, as a static shape, for a rule of shapes."""
    return _as_shape(tensor, folded_value)


# -- values -------------------------------------------------------------------------------------------------

_MOST_FOLDED = 1000


def _value_by_rule(tensor: Tensor) -> Array | None:
    """The value of a constant, or of an op that asks for a shape which is known."""
    rule = _SHAPE_RULES.get(tensor.op.type) or _SIZE_RULES.get(tensor.op.type)
    return rule(tensor) if rule is not None else None


def _shape(tensor: Tensor) -> Array | None:
    """The value of Shape and ShapeN, which have an output per input."""
    shape = tensor.op.inputs[tensor.value_index].shape
    return np.array(shape.as_list(), tensor.dtype.as_numpy_dtype) if shape.is_fully_defined() else None


def _size(tensor: Tensor) -> Array | None:
    size = tensor.op.inputs[0].shape.num_elements()
    return None if size is None else np.array(size, tensor.dtype.as_numpy_dtype)


def _rank(tensor: Tensor) -> Array | None:
    rank = tensor.op.inputs[0].shape.ndims
    return None if rank is None else np.array(rank, np.int32)


def _sliced_size(tensor: Tensor) -> Array | None:
    """`tf.shape(x)[i]`, where that one size is known."""
    attrs = tensor.op.attrs
    if attrs["shrink_axis_mask"] != 1 or any(attrs[f"{m}_mask"] for m in ("begin", "end", "ellipsis", "new_axis")):
        return None
    begin = folded_value(tensor.op.inputs[1])
    return None if begin is None or len(begin) != 1 else _one_size(tensor, int(begin[0]))


def _unpacked_size(tensor: Tensor) -> Array | None:
    return _one_size(tensor, tensor.value_index)


def _one_size(tensor: Tensor, index: int) -> Array | None:
    source = tensor.op.inputs[0].op
    shape = source.inputs[0].shape if source.type == "Shape" else TensorShape(None)
    if shape.ndims is None or not -shape.ndims <= index < shape.ndims:
        return None
    size = shape.as_list()[index]
    return None if size is None else np.array(size, tensor.dtype.as_numpy_dtype)


def _is_foldable(op: Operation) -> bool:
    kind = op.op_class
    special = kind.stateful or kind.needs_ctx or kind.is_async or kind.control_flow
    return bool(op.inputs) and not special and op.type != "PlaceholderWithDefault"


def _run(op: Operation, values: list[Any]) -> list[Any] | None:
    """The outputs of a kernel, or None if it refuses the values: that error belongs to the step."""
    try:
        with np.errstate(all="ignore"):
            result = op.op_class.bind(op.node(), np)(*values)
    except (OpError, ValueError, IndexError, NotImplementedError):
        return None
    return [result] if len(op.op_def.outputs) == 1 and not op.op_def.outputs[0].is_list else list(result)


def _by_kernel(tensor: Tensor) -> Array | None:
    values = [constant_value(t) for t in tensor.op.inputs]
    if not values or any(v is None for v in values):
        return None
    results = _run(tensor.op, values)
    return None if results is None else np.asarray(results[tensor.value_index])


def _fill(tensor: Tensor) -> Array | None:
    value = constant_value(tensor.op.inputs[1])
    if value is None or not tensor.shape.is_fully_defined():
        return None
    return np.full(tensor.shape.as_list(), value, value.dtype)


def _along_first_axis(tensor: Tensor) -> Array | None:
    return _by_kernel(tensor) if tensor.op.attrs["axis"] == 0 else None


def _same(tensor: Tensor) -> Array | None:
    found: Array | None = constant_value(tensor.op.inputs[0])
    return found


_SHAPE_RULES: dict[str, Callable[[Tensor], Array | None]] = {
    "Const": lambda tensor: tensor.op.attrs["value"],
    "Shape": _shape,
    "ShapeN": _shape,
    "Size": _size,
    "Rank": _rank,
}
_SIZE_RULES: dict[str, Callable[[Tensor], Array | None]] = {"StridedSlice": _sliced_size, "Unpack": _unpacked_size}
_PYTHON_RULES: dict[str, Callable[[Tensor], Array | None]] = {
    **{op: rule for op, rule in _SHAPE_RULES.items() if op != "ShapeN"},
    **dict.fromkeys(("Range", "Cast", "Concat", "ConcatV2", "Split", "Equal", "NotEqual"), _by_kernel),
    **dict.fromkeys(("Pack", "Unpack"), _along_first_axis),
    **dict.fromkeys(("Identity", "StopGradient", "CheckNumericsV2", "DebugIdentityV2"), _same),
    "Fill": _fill,
}


# -- values that are shapes ---------------------------------------------------------------------------------


def _as_shape(tensor: Tensor, value_of: ValueOf) -> TensorShape:
    if tensor.shape.ndims == 0:
        return _scalar_as_shape(tensor, value_of)
    length = tensor.shape.with_rank(1)[0].value
    rule = _PARTIAL_RULES.get(tensor.op.type)
    found = rule(tensor.op, value_of) if rule is not None and length != 0 else None
    if found is not None:
        return found
    value = value_of(tensor)
    if value is not None:
        return TensorShape([None if d < 0 else int(d) for d in value])
    return TensorShape(None) if length is None else TensorShape([None] * length)


def _scalar_as_shape(tensor: Tensor, value_of: ValueOf) -> TensorShape:
    value = value_of(tensor)
    if value is None or value != -1:
        given = "with unknown value" if value is None else f"value '{value}'"
        raise ValueError(
            f"Received a scalar {given} as shape; require a statically known scalar with value '-1' to describe "
            "an unknown shape."
        )
    return TensorShape(None)


def _cast(op: Operation, value_of: ValueOf) -> TensorShape | None:
    return _as_shape(op.inputs[0], value_of) if op.outputs[0].dtype.size >= 4 else None


def _pack(op: Operation, value_of: ValueOf) -> TensorShape:
    values = [value_of(t) for t in op.inputs]
    return TensorShape([None if v is None or v < 0 else int(v) for v in values])


def _concat(op: Operation, value_of: ValueOf) -> TensorShape:
    shape = TensorShape([])
    for part in op.inputs[1:] if op.type == "Concat" else op.inputs[:-1]:
        shape = shape.concatenate(_as_shape(part, value_of))
    return shape


def _slice(op: Operation, value_of: ValueOf) -> TensorShape | None:
    """A slice of one axis with at most open ends; anything else is not known in part."""
    bounds = [value_of(t) for t in op.inputs[1:]]
    masks = {name: op.attrs[f"{name}_mask"] for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    simple = max(masks["begin"], masks["end"]) <= 1 and not any(list(masks.values())[2:])
    if not simple or any(b is None or len(b) != 1 for b in bounds):
        return None
    begin, end, stride = (int(b[0]) for b in bounds if b is not None)
    whole = _as_shape(op.inputs[0], value_of)
    if whole.ndims is None:
        return None
    cut = slice(None if masks["begin"] else begin, None if masks["end"] else end, stride)
    return TensorShape(whole.as_list()[cut])


_PARTIAL_RULES: dict[str, Callable[[Operation, ValueOf], TensorShape | None]] = {
    "Cast": _cast,
    "Shape": lambda op, value_of: op.inputs[0].shape,
    "Pack": _pack,
    "Concat": _concat,
    "ConcatV2": _concat,
    "StridedSlice": _slice,
    "VariableShape": lambda op, value_of: (declared(op.inputs[0]) or (None,))[0],
}


_HANDS_ON = {"Identity", "IdentityN", "Switch", "Enter", "Exit", "NextIteration", "Merge", "TensorArrayGradV3"}


def declared(handle: Tensor) -> tuple[TensorShape, DType] | None:
    """Shape and dtype of the variable, or of the elements of the TensorArray, behind a handle, as far as known."""
    operation, index = handle.op, handle.value_index
    while operation.type in _HANDS_ON:
        source = operation.inputs[index if operation.type == "IdentityN" else 0]
        operation, index = source.op, source.value_index
    if operation.type == "VarHandleOp":
        return operation.attrs["shape"], operation.get_attr("dtype")
    if operation.type == "_VarHandlesOp":
        return operation.attrs["shapes"][index], operation.get_attr("dtypes")[index]
    if operation.type == "_Arg" and "_handle_shapes" in operation.attrs:
        return operation.attrs["_handle_shapes"][0], operation.attrs["_handle_dtypes"][0]
    if operation.type == "TensorArrayV3":
        shape = operation.attrs["element_shape"]
        if operation.get_attr("identical_element_shapes") or shape.is_fully_defined():
            return shape, operation.get_attr("dtype")
    return None
