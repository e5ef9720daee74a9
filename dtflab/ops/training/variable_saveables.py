"""Saveables of variables: a name in the checkpoint, the tensors under it, and how they come back.

Stands for the part of `python/training/saving/saveable_object_util.py` that TF1 graphs use.
Left out: trackable objects, functional savers.

Rule: names in a checkpoint are those of variables; the parts of a partitioned variable share the name of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.base.nest import flatten
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.device_spec import DeviceSpec
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import device, get_collection, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.saveable import SaveableObject, SaveSpec
from dtflab.ops.variables import functions as variables_functions
from dtflab.ops.variables.partitioned_variables import PartitionedVariable
from dtflab.ops.variables.resource_variable import ResourceVariable
from dtflab.ops.variables.variable import Variable

_REFERENCE_OPS = ("Variable", "VariableV2", "AutoReloadVariable")
_RESOURCE_OPS = ("VarHandleOp", "ReadVariableOp")


def _shaped(tensors: Sequence[Tensor], shapes: Sequence[Any] | None) -> Tensor:
    return tensors[0] if shapes is None else arrays.reshape(tensors[0], shapes[0])


class ReferenceVariableSaveable(SaveableObject):
    """A variable whose tensor is a reference."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        super().__init__(var, [SaveSpec(var, slice_spec, name, dtype=var.dtype)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        value = _shaped(restored_tensors, restored_shapes)
        validate = restored_shapes is None and self.op.get_shape().is_fully_defined()
        return variables_functions.assign(self.op, value, validate_shape=validate)


class ResourceVariableSaveable(SaveableObject):
    """A variable behind a handle, or a read of one."""

    def __init__(self, var: Any, slice_spec: str, name: str) -> None:
        self._device, self._shape = var.device, var.shape
        if isinstance(var, Tensor):
            self.handle_op: Tensor = var.op.inputs[0]
            tensor: Any = var
        elif isinstance(var, ResourceVariable):
            self.handle_op = var.handle
            tensor = _reader(var)
        else:
            raise ValueError(f"Saveable is neither a resource variable nor a read operation. Got: {var!r}")
        super().__init__(var, [SaveSpec(tensor, slice_spec, name, dtype=var.dtype, device=var.device)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Operation:
        value = _shaped(restored_tensors, restored_shapes)
        with device(self._device):
            value = arrays.identity(value)
            if not self._shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"Received incompatible tensor with shape {value.shape} when attempting to restore variable "
                    f"with shape {self._shape} and name {self.name}."
                )
            return apply_op("AssignVariableOp", resource=self.handle_op, value=value)


def _reader(variable: ResourceVariable) -> Callable[[], Tensor]:
    def read() -> Tensor:
        with device(variable.device):
            with name_scope("Read"):
                apply_op("DisableCopyOnRead", resource=variable.handle)
                value = variable._read_variable_op()
            value = arrays.identity(value)
            with device("/device:CPU:0"):
                return arrays.identity(value)

    return read


def set_cpu0(name: str) -> str:
    """The CPU of the task that device `name` belongs to."""
    return DeviceSpec.from_string(name).replace(device_type="CPU", device_index=0).to_string()


def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """The objects that a saver saves by default: global variables, and the collection of saveable objects."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope) + get_collection(GraphKeys.SAVEABLE_OBJECTS, scope)


# -- from what a program gives to saveables -----------------------------------------------------------------


def saveables_of(var_list: Any) -> list[SaveableObject]:
    """Saveables, sorted by name, of a list or a dict (name in the checkpoint → variable).

    Raises TypeError if a value is not a variable, ValueError if a name or a variable is there twice.
    """
    by_name = var_list if isinstance(var_list, dict) else op_list_to_dict(var_list)
    saveables: list[SaveableObject] = []
    seen: set[int] = set()  # by identity: variables may not be compared
    for name, op in sorted(by_name.items(), key=lambda item: item[0]):
        for saveable in saveable_objects_for_op(op, name):
            if saveable.op is not None and id(saveable.op) in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(id(saveable.op))
            saveables.append(saveable)
    return saveables


def op_list_to_dict(op_list: Any) -> dict[str, Any]:
    """Name in the checkpoint → variable, list of parts, or saveable."""
    if not isinstance(op_list, list | tuple | set):
        raise TypeError(f"Variables to save should be passed in a dict or a list. Got {op_list}")
    found: dict[str, Any] = {}
    for var in sorted(flatten(list(op_list)), key=lambda x: x.name):
        if isinstance(var, SaveableObject):
            found[var.name] = var
        elif isinstance(var, Variable) and var._save_slice_info:
            _add_part(found, var)
        else:
            name, value = (var.name, var) if isinstance(var, PartitionedVariable) else _named(var)
            if name in found:
                raise ValueError(f"At least two variables have the same name: {name}")
            found[name] = value
    return found


def _add_part(found: dict[str, Any], part: Variable) -> None:
    name = part._save_slice_info.full_name
    parts = found.setdefault(name, [])
    if not isinstance(parts, list):
        raise ValueError(f"Mixing slices and non-slices with the same name: {name}")
    parts.append(part)


def _named(var: Any) -> tuple[str, Tensor]:
    """A variable's name in checkpoints, and the tensor that is read when it is saved."""
    tensor = _tensor_of(var)
    if tensor.op.type not in _REFERENCE_OPS + _RESOURCE_OPS:
        raise TypeError(f"Variable to save is not a Variable: {tensor}")
    owner = tensor.op.inputs[0].op if tensor.op.type == "ReadVariableOp" else tensor.op
    return owner.name, tensor


def _tensor_of(var: Any) -> Tensor:
    if isinstance(var, ResourceVariable):
        return var._graph_element
    return convert_to_tensor(var, as_ref=True)


def saveable_objects_for_op(op: Any, name: str) -> Iterator[SaveableObject]:
    """The saveables of a variable, or one for each part of a partitioned one, under `name`."""
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to trackable operations. "
            f"Name is not a string: {name}"
        )
    if isinstance(op, SaveableObject):
        yield op
    elif isinstance(op, list | tuple | PartitionedVariable):
        yield from _parts(list(op), name)
    else:
        tensor = _tensor_of(op)
        if tensor.op.type not in _REFERENCE_OPS + _RESOURCE_OPS:
            raise TypeError(
                f"names_to_saveables must be a dict mapping string names to Tensors/Variables. Not a variable: {tensor}"
            )
        yield _saveable(tensor, "", name)


def _saveable(var: Any, slice_spec: str, name: str) -> SaveableObject:
    kind = ReferenceVariableSaveable if var.op.type in _REFERENCE_OPS else ResourceVariableSaveable
    return kind(var, slice_spec, name)


def _parts(variables: list[Any], name: str) -> Iterator[SaveableObject]:
    whole = None
    for variable in variables:
        if isinstance(variable, SaveableObject):
            yield variable
            continue
        if not isinstance(variable, Variable):
            raise ValueError(f"Slices must all be Variables: {variable}")
        info = variable._save_slice_info
        if not info:
            raise ValueError(f"Slices must all be slices: {variable}")
        whole = whole or info.full_name
        if whole != info.full_name:
            raise ValueError(f"Slices must all be from the same tensor: {whole} != {info.full_name}")
        yield _saveable(variable, info.spec, name)
