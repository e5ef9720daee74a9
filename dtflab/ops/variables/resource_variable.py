"""Resource variables: the kind that TF2 has, made of a handle and ops that read or write what it names.

Stands for `python/ops/resource_variable_ops.py`. Left out: eager mode, composite tensors, XLA sharding,
copy-on-read.

Rule: node for node TensorFlow's. Every use as a tensor is a read of its own, in the scope and under the
control dependencies of the user; an assignment gives an _UnreadVariable, read only when somebody looks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, device, get_default_graph, graph_of, name_scope
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.variables.initial_values import guarded, inside_control_flow, on_device_of
from dtflab.ops.variables.variable import KINDS, Variable
from dtflab.ops.variables.variable_methods import RefusedOperators


class ResourceVariable(RefusedOperators, Variable):
    """A variable behind `handle`, the tensor that names it."""

    handle: Tensor
    _graph_element: Tensor
    _cached_value: Tensor | None = None
    _validate_shape = True
    _NO_VALUE = (
        "The `initial_value` arg to `tf.Variable` must be specified except when you are not providing a "
        "`variable_def`. You provided neither."
    )

    def _create(self, initial_value: Any, validate_shape: bool, name: Any, dtype: Any, shape: Any) -> None:
        from_function = callable(initial_value)
        self._validate_shape = validate_shape
        with name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
            self._handle_name = scope[:-1]
            with on_device_of(self._handle_name):
                with name_scope("Initializer"), device(None):
                    value = initial_value() if from_function else initial_value
                    initial = convert_to_tensor(value, dtype, name="initial_value")
                self._make_handle(initial, scope, shape)
            if initial.op._control_flow_context is not None:
                raise inside_control_flow(scope)
            self._make_accessors(scope, initial)

    def _make_handle(self, initial: Tensor, scope: str, shape: Any) -> None:
        if shape is not None and not initial.shape.is_compatible_with(shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({initial.shape}) is not "
                f"compatible with the explicitly supplied `shape` argument ({shape})."
            )
        self.initial_value = initial
        self._dtype = initial.dtype.base_dtype
        self._shape = initial.shape if shape is None else as_shape(shape)
        names = {"shared_name": self._handle_name, "debug_name": scope, "container": get_default_graph()._container}
        self.handle = apply_op("VarHandleOp", scope, shape=self._shape, dtype=self._dtype, **names)

    def _make_accessors(self, scope: str, initial: Tensor) -> None:
        handle = self.handle
        with name_scope("IsInitialized"):
            apply_op("VarIsInitializedOp", None, resource=handle)
        with name_scope("Assign") as assign, colocate_with(None, ignore_existing=True), device(handle.device):
            value = guarded(scope, initial)
            self.initializer = apply_op("AssignVariableOp", assign, resource=handle, value=value)
        with name_scope("Read"):
            with device(handle.device):
                self._graph_element = self._read()
            if self._caching_device is not None:
                with colocate_with(None, ignore_existing=True), device(self._caching_device):
                    self._cached_value = apply_op("Identity", None, input=self._graph_element)

    def _restore(self, variable_def: Any, find: Callable[[str], Any]) -> None:
        if not variable_def.is_resource:
            raise ValueError(
                "Trying to restore a TF 1.x Reference Variable as a TF 2.x ResourceVariable. "
                f"Got variable_def={variable_def}"
            )
        self.handle = find(variable_def.variable_name)
        self._handle_name = self.handle.op.name
        self._shape = self.handle.op.attrs["shape"]
        self._dtype = self.handle.op.get_attr("dtype")
        snapshot = find(variable_def.snapshot_name or f"{variable_def.variable_name[:-2]}/Read/ReadVariableOp:0")
        self._cached_value = None if snapshot.op.type == "ReadVariableOp" else snapshot
        while snapshot.op.type != "ReadVariableOp":
            snapshot = snapshot.op.inputs[0]
        self._graph_element = snapshot

    def _in_proto(self) -> tuple[Tensor, Tensor]:
        return self.handle, self._graph_element if self._cached_value is None else self._cached_value

    def _as_graph_element(self) -> Tensor:
        return self._graph_element

    @property
    def create(self) -> Operation:
        """Same as `.initializer`."""
        return self.initializer

    @property
    def name(self) -> str:
        return f"{self._handle_name}:0"

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def op(self) -> Operation:
        return self.handle.op

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Merge what the program knows into the static shape."""
        self._shape = self._shape.merge_with(shape)

    # -- reading

    def _read(self) -> Tensor:
        return apply_op("ReadVariableOp", None, resource=self.handle, dtype=self._dtype)

    def _read_variable_op(self) -> Tensor:
        if self._caching_device is None:
            return self._read()
        with colocate_with(None, ignore_existing=True), device(self._caching_device):
            return self._read()

    def value(self) -> Tensor:
        """The value, read by a new operation, or the one cached on the caching device."""
        if self._cached_value is not None:
            return self._cached_value
        with colocate_with(None, ignore_existing=True):
            return self._read_variable_op()

    def read_value(self) -> Tensor:
        """The value, read here and now and handed to the device of the current scope."""
        with name_scope("Read"):
            value = self._read_variable_op()
        return apply_op("Identity", None, input=value)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the value."""
        with name_scope("Gather" if name is None else name) as scope:
            return apply_op("ResourceGather", scope, resource=self.handle, indices=indices, dtype=self._dtype)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Slices of the value at positions."""
        with name_scope("GatherNd" if name is None else name) as scope:
            value = apply_op("ResourceGatherNd", scope, resource=self.handle, indices=indices, dtype=self._dtype)
        return apply_op("Identity", None, input=value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A bool scalar: whether the variable has a value."""
        return apply_op("VarIsInitializedOp", name, resource=self.handle)

    def __deepcopy__(self, memo: Any) -> ResourceVariable:
        raise NotImplementedError("__deepcopy__() is only available when eager execution is enabled.")

    # -- writing

    def _written(self) -> ResourceVariable:
        return self

    def _lazy_read(self, operation: Operation) -> _UnreadVariable:
        return _UnreadVariable(self, operation)

    def assign(self, value: Any, use_locking: bool | None = None, name: Any = None, read_value: bool = True) -> Any:
        """Replace the value; the result holds the new one."""
        with graph_of([self.handle]).as_default(), self._in_order():
            tensor = convert_to_tensor(value, self._dtype)
            if not self._shape.is_compatible_with(tensor.shape):
                raise ValueError(
                    f"Cannot assign value to variable ' {self.name}': Shape mismatch."
                    f"The variable shape {self._shape}, and the assigned value shape {tensor.shape} are "
                    "incompatible."
                )
            validate = self._validate_shape and self._shape.is_fully_defined()
            done = apply_op("AssignVariableOp", name, resource=self.handle, value=tensor, validate_shape=validate)
            return self._lazy_read(done) if read_value else done

    def _strided_slice_assign(self, value: Any, name: str | None, where: dict[str, Any]) -> Any:
        with self._in_order():
            value = convert_to_tensor(value, self._dtype)
            return self._lazy_read(apply_op("ResourceStridedSliceAssign", name, ref=self.handle, value=value, **where))

    def _update(self, op_type: str, delta: Any, name: Any, read_value: bool) -> Any:
        with graph_of([self.handle]).as_default(), self._in_order():
            tensor = convert_to_tensor(delta, self._dtype)
            done = apply_op(op_type, name, resource=self.handle, value=tensor)
        return self._lazy_read(done) if read_value else done

    def assign_add(self, delta: Any, use_locking: bool | None = None, name: Any = None, read_value: bool = True) -> Any:
        """Add to the value; the result holds the sum."""
        return self._update("AssignAddVariableOp", delta, name, read_value)

    def assign_sub(self, delta: Any, use_locking: bool | None = None, name: Any = None, read_value: bool = True) -> Any:
        """Subtract from the value; the result holds the difference."""
        return self._update("AssignSubVariableOp", delta, name, read_value)


class _UnreadVariable(ResourceVariable):
    """The result of an assignment: the variable after it, read when somebody looks."""

    def __init__(self, variable: ResourceVariable, operation: Operation) -> None:
        self.__dict__.update(variable.__dict__)
        self._cached_value = None
        self._caching_device = None
        self._parent_op = operation
        self._graph_element = self._read()

    @property
    def name(self) -> str:
        return self._parent_op.name

    @property
    def op(self) -> Operation:
        return self._parent_op

    @property
    def device(self) -> str:
        return self.handle.device

    def _read(self) -> Tensor:
        with control_dependencies([self._parent_op]):
            return super()._read()

    def value(self) -> Tensor:
        return self._read()

    def read_value(self) -> Tensor:
        return self._read()

    def _in_order(self) -> contextlib.AbstractContextManager[Any]:
        return control_dependencies([self._parent_op])


KINDS[True] = ResourceVariable


def _convert(
    variable: ResourceVariable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type {dtype.name} for `tf.Variable of type "
            f"{variable.dtype.name}. (Variable: {variable})"
        )
    if dtype is dtypes.resource:
        return variable.handle
    return variable.read_value().op.inputs[0] if as_ref else variable.value()


register_tensor_conversion_function(ResourceVariable, _convert)


def is_resource_variable(var: Any) -> bool:
    """True for variables behind a handle."""
    return isinstance(var, ResourceVariable)
