"""Reference variables: TF1's default kind, made of VariableV2, Assign and one Identity that everybody reads.

Stands for `python/ops/ref_variable.py`. Left out: eager mode.

Rule: node for node TensorFlow's: `w`, `w/Assign`, `w/read`, and the initial value as `w/initial_value`.
Writers take the reference `w:0` and stand on its device; readers take `w/read:0`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, device, get_default_graph, name_scope, prepend_scope, strip_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.variables import initialized, scatter_nd, state
from dtflab.ops.variables.variable import (
    KINDS,
    Variable,
    beside,
    inside_control_flow,
)


class RefVariable(Variable):
    """A variable whose tensor is a reference."""

    _variable: Tensor
    _snapshot: Tensor

    def _create(self, initial_value: Any, validate_shape: bool, name: Any, dtype: Any, shape: Any) -> None:
        from_function = callable(initial_value)
        with name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
            if from_function:
                with beside(scope[:-1]):
                    with name_scope("Initializer"), device(None):
                        initial = convert_to_tensor(initial_value(), dtype, name="initial_value")
                    self._make(initial, validate_shape, scope, shape)
            else:
                initial = convert_to_tensor(initial_value, dtype, name="initial_value")
                if initial.op._control_flow_context is not None:
                    raise inside_control_flow(scope)
                self._make(initial, validate_shape, scope, shape)
            if validate_shape and not initial.shape.is_fully_defined():
                raise ValueError(f"initial_value must have a shape specified: {initial}")
            value = initialized.guarded(scope, initial)
            self._initializer_op = state.assign(self._variable, value, validate_shape=validate_shape).op
            self._snapshot = self._make_snapshot()

    def _make(self, initial: Tensor, validate_shape: bool, scope: str, shape: Any) -> None:
        if shape is None:
            shape = initial.shape if validate_shape else TensorShape(None)
        self._initial_value = initial
        self._variable = apply_op("VariableV2", scope, shape=shape, dtype=initial.dtype.base_dtype)

    def _make_snapshot(self) -> Tensor:
        if self._caching_device is not None:
            with device(self._caching_device):
                return apply_op("Identity", "read", input=self._variable)
        with colocate_with(self._variable.op):
            return apply_op("Identity", "read", input=self._variable)

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        def find(name: str) -> Any:
            return get_default_graph().as_graph_element(prepend_scope(name, import_scope))

        self._variable = find(variable_def.variable_name)
        self._initializer_op = find(variable_def.initializer_name)
        self._snapshot = find(variable_def.snapshot_name)
        given = variable_def.initial_value_name
        self._initial_value = find(given) if given else None

    def to_proto(self, export_scope: str | None = None) -> Any:
        from dtflab.protos.variable_pb2 import VariableDef

        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        initial = self._initial_value
        return VariableDef(
            variable_name=strip_scope(self.name, export_scope),
            initial_value_name="" if initial is None else strip_scope(initial.name, export_scope),
            initializer_name=strip_scope(self.initializer.name, export_scope),
            snapshot_name=strip_scope(self._snapshot.name, export_scope),
            trainable=self.trainable,
            synchronization=self.synchronization.value,  # type: ignore[arg-type]
            aggregation=self.aggregation.value,  # type: ignore[arg-type]
            save_slice_info_def=self._slice_proto(export_scope),
        )

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def _ref(self) -> Tensor:
        """The reference: what an op takes that writes the variable."""
        return self._variable

    def value(self) -> Tensor:
        return self._snapshot

    def read_value(self) -> Tensor:
        return apply_op("Identity", "read", input=self._variable)

    def set_shape(self, shape: Any) -> None:
        """Merge what the program knows into the static shape."""
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    @property
    def name(self) -> str:
        return self._variable.name

    @property
    def dtype(self) -> DType:
        return self._variable.dtype

    @property
    def op(self) -> Operation:
        return self._variable.op

    @property
    def shape(self) -> TensorShape:
        return self._variable.shape

    def assign(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Replace the value; the result holds the new one."""
        result = state.assign(self._variable, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def _strided_slice_assign(self, value: Any, name: str | None, where: dict[str, Any]) -> Tensor:
        return apply_op("StridedSliceAssign", name, ref=self._variable, value=value, **where)

    def assign_add(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Add to the value; the result holds the sum."""
        result = state.assign_add(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Subtract from the value; the result holds the difference."""
        result = state.assign_sub(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op


def _scatter(function: Any) -> Any:
    def method(self: RefVariable, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        indices, values = sparse_delta.indices, sparse_delta.values
        return function(self._variable, indices, values, use_locking=use_locking, name=name)

    method.__name__ = function.__name__
    method.__doc__ = f"As `tf.{function.__name__}`, for IndexedSlices."
    return method


for _function in (*state.SCATTERS, scatter_nd.batch_scatter_update):
    setattr(RefVariable, _function.__name__, _scatter(_function))


def _scatter_nd(function: Any) -> Any:
    def method(self: RefVariable, indices: Any, updates: Any, name: Any = None) -> Any:
        return function(self._variable, indices, updates, use_locking=True, name=name)

    method.__name__ = function.__name__
    method.__doc__ = f"As `tf.{function.__name__}`."
    return method


for _function in scatter_nd.SCATTERS:
    setattr(RefVariable, _function.__name__, _scatter_nd(_function))

KINDS[False] = RefVariable


def _convert(
    variable: RefVariable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if dtype is not None and not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"Incompatible type conversion requested to type '{dtype.name}' for variable of type "
            f"'{variable.dtype.name}'"
        )
    return variable._ref() if as_ref else variable.value()


register_tensor_conversion_function(RefVariable, _convert)
