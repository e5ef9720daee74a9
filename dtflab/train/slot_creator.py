"""Slots: variables that an optimizer keeps beside each variable that it trains.

Stands for `python/training/slot_creator.py`. Left out: partitioned variables.

Rule: the slot `name` of the variable `w` is called `w/name`, whatever name scope is open, is of the same kind
(reference or resource) and stands on the same device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dtflab.graph.scopes import colocate_with, get_default_graph
from dtflab.graph.tensor_shape import as_shape
from dtflab.ops import array, constant
from dtflab.ops.resource_variable import ResourceVariable
from dtflab.ops.variable import Variable


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A slot with the initial value `val`."""
    with _place(primary, colocate_with_primary):
        return _make(primary, val, name, validate_shape=val.shape.is_fully_defined())


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True
) -> Variable:
    """A slot that begins with `initializer(shape, dtype)`."""
    known = as_shape(shape).is_fully_defined()
    with _place(primary, colocate_with_primary):
        return _make(primary, lambda: initializer(shape, dtype), name, validate_shape=known)


def create_zeros_slot(primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True) -> Variable:
    """A slot of zeros, of the shape of `primary`."""
    dtype = primary.dtype.base_dtype if dtype is None else dtype
    shape = primary.shape
    if shape.is_fully_defined():
        return create_slot_with_initializer(primary, constant.zeros, shape, dtype, name, colocate_with_primary)
    sizes = array.shape(primary.initialized_value() if isinstance(primary, Variable) else primary)
    return create_slot(primary, constant.zeros(sizes, dtype), name, colocate_with_primary)


@contextlib.contextmanager
def _place(primary: Any, colocated: bool) -> Iterator[None]:
    with get_default_graph().name_scope(None):
        if colocated:
            with colocate_with(primary):
                yield
        else:
            yield


def _make(primary: Any, initial_value: Any, name: str, validate_shape: bool) -> Variable:
    slot = Variable(
        initial_value,
        trainable=False,
        name=f"{primary.op.name}/{name}",
        use_resource=isinstance(primary, ResourceVariable),
        validate_shape=validate_shape,
    )
    return slot
