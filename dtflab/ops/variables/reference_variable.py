"""Reference variables: TF1's default kind, made of VariableV2, Assign and one Identity that everybody reads.

Stands for `python/ops/ref_variable.py`. Left out: eager mode.

Rule: node for node TensorFlow's: `w`, `w/Assign`, `w/read`, and the initial value as `w/initial_value`.
Writers take the reference `w:0` and stand on its device; readers take `w/read:0`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, device, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.variables import functions
from dtflab.ops.variables.initial_values import guarded, inside_control_flow, on_device_of
from dtflab.ops.variables.variable import KINDS, Variable
from dtflab.ops.variables.variable_methods import check_conversion


class RefVariable(Variable):
    """A variable whose tensor is a reference."""

    _variable: Tensor
    _snapshot: Tensor

    def _create(self, initial_value: Any, validate_shape: bool, name: Any, dtype: Any, shape: Any) -> None:
        from_function = callable(initial_value)
        with name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
            if from_function:
                with on_device_of(scope[:-1]):
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
            value = guarded(scope, initial)
            self.initializer = functions.assign(self._variable, value, validate_shape=validate_shape).op
            self._snapshot = self._make_snapshot()

    def _make(self, initial: Tensor, validate_shape: bool, scope: str, shape: Any) -> None:
        if shape is None:
            shape = initial.shape if validate_shape else TensorShape(None)
        self.initial_value = initial
        self._variable = apply_op("VariableV2", scope, shape=shape, dtype=initial.dtype.base_dtype)

    def _make_snapshot(self) -> Tensor:
        cached = self._caching_device is not None
        with device(self._caching_device) if cached else colocate_with(self._variable.op):
            return self.read_value()

    def _restore(self, variable_def: Any, find: Callable[[str], Any]) -> None:
        self._variable, self._snapshot = find(variable_def.variable_name), find(variable_def.snapshot_name)

    def _in_proto(self) -> tuple[Tensor, Tensor]:
        return self._variable, self._snapshot

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def _written(self) -> Tensor:
        """The reference."""
        return self._variable

    _ref = _written  # TensorFlow's name, which programs use

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

    def _change(self, how: Callable[..., Any], value: Any, use_locking: bool, name: Any, read_value: bool) -> Any:
        result = how(self._variable, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Replace the value; the result holds the new one."""
        return self._change(functions.assign, value, use_locking, name, read_value)

    def _strided_slice_assign(self, value: Any, name: str | None, where: dict[str, Any]) -> Tensor:
        return apply_op("StridedSliceAssign", name, ref=self._variable, value=value, **where)

    def assign_add(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Add to the value; the result holds the sum."""
        return self._change(functions.assign_add, delta, use_locking, name, read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> Any:
        """Subtract from the value; the result holds the difference."""
        return self._change(functions.assign_sub, delta, use_locking, name, read_value)


KINDS[False] = RefVariable


def _convert(
    variable: RefVariable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    check_conversion(variable, dtype)
    return variable._written() if as_ref else variable.value()


register_tensor_conversion_function(RefVariable, _convert)
