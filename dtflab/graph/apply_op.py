"""One call per op: Python arguments in, tensors out, types and counts inferred from the interface.

Stands for `python/framework/op_def_library.py`.

Rule: the order of work is TensorFlow's, so that names come out the same: open the op's scope, convert the inputs
inside it (a Python 2 becomes the constant `add/y`), infer the attributes from them, add the operation.
"""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from dtflab.graph import convert, dtypes, op_registry
from dtflab.graph.convert import contains_tensor, convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.function import Function
from dtflab.graph.graph import Graph
from dtflab.graph.op_registry import ArgDef, AttrDef, OpDef
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import get_default_graph, graph_of, name_scope
from dtflab.graph.tensor_shape import TensorShape


def apply_op(op_type: str, name: str | None = None, /, **arguments: Any) -> Any:
    """Add an op of `op_type` to the graph; `arguments` are its inputs and attributes by name.

    Returns the output tensor; a list of tensors for a list output; for several outputs a tuple that knows their names
    (`top_k(x).indices`), with a list for each list output; the Operation if it has no output. Raises TypeError or
    ValueError as TensorFlow does, naming the argument, the op and the types.
    """
    op_class = op_registry.get(op_type)
    op_def = op_class.op_def
    unknown = arguments.keys() - op_def.argument_names
    if unknown:
        raise TypeError(f"apply_op() got unexpected keyword arguments for op '{op_type}': {', '.join(sorted(unknown))}")
    inputs_given = [v for a in op_def.inputs if isinstance(v := arguments.get(a.name), Tensor)]
    graph = graph_of(inputs_given)
    if graph is not get_default_graph():
        with graph.as_default():
            return apply_op(op_type, name, **arguments)
    with name_scope(name or op_type) as scope:
        attrs = {a: v for a, v in arguments.items() if a in op_def.attrs and v is not None}
        attrs = {a: _checked_attr(op_def.attrs[a], v, op_def) for a, v in attrs.items()}
        inputs, references = _convert_inputs(op_def, arguments, attrs)
        with _colocated(graph, references):
            op = graph._create(op_class, scope, inputs, op_def.with_defaults(attrs))
    return outputs_of(op)


def _colocated(graph: Graph, references: Sequence[Tensor]) -> contextlib.AbstractContextManager[Any]:
    """An op that writes a variable is colocated with it."""
    stack = contextlib.ExitStack()
    for reference in references:
        stack.enter_context(graph.colocate_with(reference))
    return stack if references else _NOWHERE


_NOWHERE = contextlib.nullcontext()


def outputs_of(op: Operation) -> Any:
    """The outputs in the form that op functions return."""
    args = op.op_def.outputs
    if not args:
        return op
    if len(args) == 1:
        return list(op.outputs) or op if args[0].is_list else op.outputs[0]  # an empty list would lose the operation
    named = _tuple_class(op.op_def.name, tuple(arg.name for arg in args))
    if not any(arg.is_list for arg in args):
        return named._make(op.outputs)
    grouped: list[Any] = []
    start = 0
    for arg in args:
        count = len(arg.types(op.attrs))
        part = op.outputs[start : start + count]
        grouped.append(list(part) if arg.is_list else part[0])
        start += count
    return named._make(grouped)


@functools.cache
def _tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


def _convert_inputs(
    op_def: OpDef, arguments: dict[str, Any], attrs: dict[str, Any]
) -> tuple[list[Tensor], list[Tensor]]:
    """The inputs as tensors, and those of them that the op takes by reference."""
    inputs: list[Tensor] = []
    references: list[Tensor] = []
    inferred_from: dict[str, str] = {}
    for arg in op_def.inputs:
        if arg.name not in arguments:
            raise TypeError(f"No argument for input {arg.name} found in {sorted(arguments)} for Op '{op_def.name}'")
        value = arguments[arg.name]
        if arg.is_list:
            tensors = _convert_list(op_def, arg, value, attrs, inferred_from)
        else:
            tensors = [_convert_one(op_def, arg, value, attrs, inferred_from)]
        for tensor in tensors:
            _check_allowed(op_def, arg, tensor.dtype.base_dtype)
            if arg.is_ref and not tensor.dtype._is_ref_dtype:
                raise TypeError(
                    f"'{op_def.name}' Op requires that input '{arg.name}' be a mutable tensor (e.g.: a tf.Variable)"
                )
        inputs += tensors
        references += tensors if arg.is_ref else []
    return inputs, references


def _convert_one(
    op_def: OpDef, arg: ArgDef, value: Any, attrs: dict[str, Any], inferred_from: dict[str, str]
) -> Tensor:
    wanted = arg.type or attrs.get(arg.type_attr)
    attr = op_def.attrs.get(arg.type_attr)
    try:
        if wanted is None and attr is not None and attr.allowed is not None:
            tensor = _convert_to_allowed(arg, attr, value)
        else:
            default = attr.default if attr is not None else None
            tensor = convert_to_tensor(value, wanted, arg.name, preferred_dtype=default, as_ref=arg.is_ref)
    except (TypeError, ValueError) as error:
        raise _type_error(op_def, arg, value, wanted, inferred_from, error) from None
    if arg.type_attr and arg.type_attr not in attrs:
        attrs[arg.type_attr] = tensor.dtype.base_dtype
        inferred_from[arg.type_attr] = arg.name
    return tensor


def _convert_to_allowed(arg: ArgDef, attr: AttrDef, value: Any) -> Tensor:
    """The value in its own dtype if the op takes that one, else in the attribute's default."""
    try:
        tensor = convert_to_tensor(value, name=arg.name, as_ref=arg.is_ref)
        if tensor.dtype.base_dtype in (attr.allowed or ()):
            return tensor
    except TypeError:
        pass  # a list of Dimensions, say, needs a dtype
    return convert_to_tensor(value, name=arg.name, preferred_dtype=attr.default, as_ref=arg.is_ref)


def _type_error(
    op_def: OpDef, arg: ArgDef, value: Any, wanted: DType | None, inferred_from: dict[str, str], error: Exception
) -> Exception:
    """TensorFlow's error for an input that can't be converted."""
    if wanted is None:
        return type(error)(f"{error} (input '{arg.name}' of Op '{op_def.name}')")
    try:
        observed = convert_to_tensor(value).dtype.name
    except (TypeError, ValueError) as unconvertible:
        return ValueError(
            f"Tried to convert '{arg.name}' to a tensor and failed. Error: {unconvertible} (Op '{op_def.name}')"
        )
    prefix = f"Input '{arg.name}' of '{op_def.name}' Op has type {observed} that does not match"
    if arg.type is not None:
        return TypeError(f"{prefix} expected type of {arg.type.name}.")
    if arg.type_attr in inferred_from:
        differs = TypeError(f"{prefix} type {wanted.name} of argument '{inferred_from[arg.type_attr]}'.")
        if "string" not in (observed, wanted.name):
            cuts = wanted.is_integer and not dtypes.as_dtype(observed).is_integer
            which, to = (inferred_from[arg.type_attr], observed) if cuts else ("it", wanted.name)
            differs.add_note(f"To convert {which}: tf.cast(…, tf.{to}).")
        return differs
    return TypeError(
        f"Expected {wanted.name} passed to parameter '{arg.name}' of op '{op_def.name}', "
        f"got {value!r} of type '{type(value).__name__}' instead. Error: {error}"
    )


def _convert_list(
    op_def: OpDef, arg: ArgDef, values: Any, attrs: dict[str, Any], inferred_from: dict[str, str]
) -> list[Tensor]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"Expected list for '{arg.name}' argument to '{op_def.name}' Op, not {values!r}.")
    if arg.type_list_attr:
        tensors = [convert_to_tensor(v, name=f"{arg.name}_{i}", as_ref=arg.is_ref) for i, v in enumerate(values)]
        types = [t.dtype.base_dtype for t in tensors]
        _check_length(op_def, op_def.attrs[arg.type_list_attr], types)
        if attrs.setdefault(arg.type_list_attr, types) != types:
            raise TypeError(
                f"Input '{arg.name}' of '{op_def.name}' Op has types {[t.name for t in types]} that do not match "
                f"the types {[t.name for t in attrs[arg.type_list_attr]]} of attr '{arg.type_list_attr}'."
            )
        return tensors
    wanted = arg.type or attrs.get(arg.type_attr)
    if wanted is None:
        wanted = next((v.dtype.base_dtype for v in values if hasattr(v, "op") and hasattr(v, "dtype")), None)
    try:
        tensors = []
        for i, value in enumerate(values):
            tensors.append(convert_to_tensor(value, wanted, name=f"{arg.name}_{i}", as_ref=arg.is_ref))
            wanted = wanted or tensors[0].dtype.base_dtype
    except (TypeError, ValueError):
        raise _list_type_error(op_def, arg, values, wanted) from None
    count = attrs.setdefault(arg.number_attr, len(tensors))
    if count != len(tensors):
        raise ValueError(
            f"List argument '{arg.name}' to '{op_def.name}' Op with length {len(tensors)} must match length {count} "
            f"of attr '{arg.number_attr}'."
        )
    minimum = op_def.attrs[arg.number_attr].minimum
    if minimum is not None and count < minimum:
        raise ValueError(
            f"List argument '{arg.name}' to '{op_def.name}' Op with length {count} shorter than minimum length "
            f"{minimum}."
        )
    if arg.type_attr and arg.type_attr not in attrs and tensors:
        attrs[arg.type_attr] = tensors[0].dtype.base_dtype
        inferred_from[arg.type_attr] = arg.name
    return tensors


def _list_type_error(op_def: OpDef, arg: ArgDef, values: Sequence[Any], wanted: DType | None) -> TypeError:
    types = []
    for value in values:
        try:
            types.append(convert_to_tensor(value).dtype.name)
        except (TypeError, ValueError):
            types.append("<NOT CONVERTIBLE TO TENSOR>")
    text = f"Tensors in list passed to '{arg.name}' of '{op_def.name}' Op have types [{', '.join(types)}]"
    if len(set(types)) > 1:
        return TypeError(f"{text} that don't all match.")
    return TypeError(f"{text} that don't match expected type {wanted.name if wanted else None}.")


def _check_allowed(op_def: OpDef, arg: ArgDef, dtype: DType) -> None:
    attr = op_def.attrs.get(arg.type_attr or arg.type_list_attr)
    if attr is not None and attr.allowed is not None and dtype not in attr.allowed:
        raise TypeError(_not_allowed(arg.name, dtype, attr))


def _not_allowed(parameter: str, dtype: DType, attr: AttrDef) -> str:
    allowed = ", ".join(t.name for t in attr.allowed or ())
    return f"Value passed to parameter '{parameter}' has DataType {dtype.name} not in list of allowed values: {allowed}"


def _checked_attr(attr: AttrDef, value: Any, op_def: OpDef) -> Any:
    """An attribute value in its stored form, checked against the interface."""
    if attr.type.startswith("list("):
        if not isinstance(value, list | tuple):
            raise TypeError(
                f"Expected list for attr {attr.name} of Op '{op_def.name}', obtained {type(value).__name__} instead."
            )
        _check_length(op_def, attr, value)
        one = AttrDef(attr.name, attr.type[5:-1], allowed=attr.allowed)
        return [_checked_attr(one, v, op_def) for v in value]
    value = _CONVERT_ATTR.get(attr.type, lambda v: v)(value)
    if attr.allowed is not None and value not in attr.allowed:
        if isinstance(value, DType):
            raise TypeError(_not_allowed(attr.name, value, attr))
        shown = ", ".join(f'"{a.decode()}"' for a in attr.allowed)
        raise ValueError(f"Attr '{attr.name}' of '{op_def.name}' Op passed string '{value.decode()}' not in: {shown}.")
    if attr.minimum is not None and attr.type == "int" and value < attr.minimum:
        raise ValueError(f"Attr '{attr.name}' of '{op_def.name}' Op passed {value} less than minimum {attr.minimum}.")
    return value


def _check_length(op_def: OpDef, attr: AttrDef, values: Sequence[Any]) -> None:
    if attr.minimum is not None and len(values) < attr.minimum:
        raise ValueError(
            f"Attr '{attr.name}' of '{op_def.name}' Op passed list of length {len(values)} less than minimum "
            f"{attr.minimum}."
        )


def _int(value: Any) -> int:
    if isinstance(value, float):
        raise TypeError(f"Expected int, got {value!r} of type 'float' instead.")
    return int(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"Expected a string, got {value!r} of type '{type(value).__name__}' instead.")
    return value.encode()


_CONVERT_ATTR: dict[str, Any] = {
    "int": _int,
    "float": op_registry.single,
    "bool": bool,
    "string": _bytes,
    "type": lambda v: dtypes.as_dtype(v).base_dtype,
    "shape": lambda v: v if isinstance(v, TensorShape) else TensorShape(v),
    "func": lambda v: v.as_attr() if isinstance(v, Function) else v,
}


# -- lists with tensors in them -------------------------------------------------------------------------------


def _pack(values: Sequence[Any], dtype: DType | None, name: str) -> Tensor:
    """A list with tensors among its items as one `Pack`, nested lists first."""
    inferred = next((t.dtype.base_dtype for t in _tensors_in(values)), None)
    if dtype is not None and dtype != inferred:
        values = _cast_tensors(values, dtype)
    packed: Tensor = _packed(values, dtype or inferred, name)
    return packed


def _packed(values: Sequence[Any], dtype: DType | None, name: str) -> Any:
    """The Pack of `values`; a list without tensors stays a list, though it uses up the name as in TensorFlow."""
    with name_scope(name) as scope:
        parts = [_packed(v, dtype, str(i)) if isinstance(v, list | tuple) else v for i, v in enumerate(values)]
        if not any(map(contains_tensor, parts)):
            return parts
        return apply_op("Pack", scope, values=[convert_to_tensor(p, dtype, str(i)) for i, p in enumerate(parts)])


def _cast_tensors(values: Any, dtype: DType) -> Any:
    if isinstance(values, list | tuple):
        return [_cast_tensors(v, dtype) for v in values]
    if isinstance(values, Tensor) and values.dtype.base_dtype != dtype:
        return apply_op("Cast", x=values, DstT=dtype)
    return values


def _tensors_in(values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return [t for v in values for t in _tensors_in(v)]
    return [values] if hasattr(values, "dtype") and contains_tensor(values) else []


convert.pack = _pack
