"""Slots: variables that an optimizer keeps next to each variable that it trains.

Stands for `python/training/slot_creator.py`. Left out: XLA sharding.

Rule: the slot `name` of the variable `w` is called `w/name` inside the variable scope that is open (`_1` is put
behind it if there is one), is of the same kind (reference or resource) and stands on the same device. The slot of
a part of a partitioned variable is the part of the slot of the whole.
"""

from __future__ import annotations

import contextlib
from typing import Any

from dtflab.graph.scopes import colocate_with
from dtflab.graph.tensor_shape import as_shape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.initializers import zeros_initializer
from dtflab.ops.variables.resource_variable import ResourceVariable
from dtflab.ops.variables.variable import Variable
from dtflab.ops.variables.variable_scope import get_variable_scope, variable_scope


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A slot with the initial value `val`, a tensor."""
    return _make(primary, val, name, None, None, val.shape.is_fully_defined(), colocate_with_primary)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True
) -> Variable:
    """A slot that begins with `initializer(shape, dtype)`."""
    known = as_shape(shape).is_fully_defined()
    return _make(primary, initializer, name, shape, dtype, known, colocate_with_primary)


def create_zeros_slot(primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True) -> Variable:
    """A slot of zeros, of the shape of `primary`."""
    dtype = primary.dtype if dtype is None else dtype
    if primary.shape.is_fully_defined():
        zeros = zeros_initializer()
        return create_slot_with_initializer(primary, zeros, primary.shape, dtype, name, colocate_with_primary)
    sizes = arrays.shape(primary.initialized_value() if isinstance(primary, Variable) else primary)
    return create_slot(primary, arrays.zeros(sizes, dtype.base_dtype), name, colocate_with_primary)


def _make(
    primary: Any, initial: Any, name: str, shape: Any, dtype: Any, validate_shape: bool, colocate: bool
) -> Variable:
    of_variable = isinstance(primary, Variable)
    prefix = primary._shared_name if of_variable else primary.op.name
    use_resource = isinstance(primary, ResourceVariable) if of_variable else None
    with variable_scope(None, f"{prefix}/{name}"), colocate_with(primary) if colocate else contextlib.nullcontext():
        get_variable_scope().set_partitioner(None)  # a slot has the parts of its variable
        slot: Variable = get_variable(
            "", initializer=initial, trainable=False, use_resource=use_resource, validate_shape=validate_shape,
            shape=shape if callable(initial) else None, dtype=dtype,
        )  # fmt: skip
    _set_slice(slot, primary)
    return slot


def _set_slice(slot: Variable, primary: Any) -> None:
    """Tell the saver which part of which whole the slot is, if `primary` is a part."""
    info = getattr(primary, "_save_slice_info", None)
    rank = slot.shape.ndims
    if info is not None and rank != 0:
        own_name = slot.op.name[len(primary.op.name) + 1 :]
        slot._set_save_slice_info(
            Variable.SaveSliceInfo(
                f"{info.full_name}/{own_name}", info.full_shape[:rank], info.var_offset[:rank], info.var_shape[:rank]
            )
        )
