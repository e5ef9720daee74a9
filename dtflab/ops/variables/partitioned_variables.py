"""PartitionedVariable: one variable in several shards, and the functions that say how to cut it.

Stands for `python/ops/partitioned_variables.py` and PartitionedVariable of `python/ops/variables.py`.
Left out: cuts along several axes, as in TensorFlow. `create_partitioned_variables` is in `variable_scope.py`.

Rule: each shard is a variable of its own, `name/part_0`, …, on a device of its own, which knows its slice of the
whole. Used as a tensor, the shards are put together again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.variables.variable_methods import check_conversion

Partitioner = Callable[..., list[int]]


class PartitionedVariable:
    """The shards of a variable of shape `shape`, that of the whole, cut into `partitions[i]` parts along axis i.

    Iterating gives the shards, in order.
    """

    def __init__(
        self, name: str, shape: Any, dtype: Any, variable_list: Sequence[Any], partitions: Sequence[int]
    ) -> None:
        _check(shape, variable_list, partitions)
        self._variable_list = sorted(variable_list, key=lambda v: v._get_save_slice_info().var_offset)
        self.name, self.shape, self.dtype, self._partitions = name, shape, dtype, partitions

    def __iter__(self) -> Iterator[Any]:
        return iter(self._variable_list)

    def __len__(self) -> int:
        self._axis("Cannot get a length for {} > 1 partition axes", ValueError)
        return len(self._variable_list)

    def get_shape(self) -> TensorShape:
        """Same as `.shape`."""
        return self.shape

    def as_tensor(self) -> Tensor:
        """The whole value: the shards one after the other."""
        with control_dependencies(None):
            return self._concat()

    def _concat(self) -> Tensor:
        if len(self._variable_list) == 1:
            with name_scope(None):
                return arrays.identity(self._variable_list[0], name=self.name)
        axis = self._axis("Cannot concatenate along more than one dimension: {} partition axes")
        with name_scope(f"{self.name}/ConcatPartitions/"):
            whole = arrays.concat(self._variable_list, axis)
        with name_scope(None):
            return arrays.identity(whole, name=self.name)

    def assign(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> list[Any]:
        """Assign each shard its part of `value`: the results, one per shard."""
        return self._on_shards("assign", value, use_locking, name, read_value)

    def assign_add(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> list[Any]:
        """Add to each shard its part of `value`: the results, one per shard."""
        return self._on_shards("assign_add", value, use_locking, name, read_value)

    def assign_sub(self, value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True) -> list[Any]:
        """Subtract from each shard its part of `value`: the results, one per shard."""
        return self._on_shards("assign_sub", value, use_locking, name, read_value)

    def _on_shards(self, method: str, value: Any, use_locking: bool, name: Any, read_value: bool) -> list[Any]:
        axis = self._axis("Cannot do assign action along more than one dimension: {} partition axes")
        if isinstance(value, list | PartitionedVariable):
            parts = list(value)
        else:
            parts = arrays.split(value, [v.shape[axis].value for v in self._variable_list], axis=axis)
        how = {"use_locking": use_locking, "name": name, "read_value": read_value}
        pairs = zip(self._variable_list, parts, strict=True)
        return [getattr(shard, method)(part, **how) for shard, part in pairs]

    def _axis(self, otherwise: str, error: type[Exception] = NotImplementedError) -> int:
        """The axis along which the variable is cut, the first if it is whole."""
        axes = self._partition_axes()
        if len(axes) > 1:
            raise error(otherwise.format(len(axes)))
        return axes[0]

    def _partition_axes(self) -> list[int]:
        return [axis for axis, count in enumerate(self._partitions) if count > 1] or [0]

    def _get_variable_list(self) -> list[Any]:
        return self._variable_list

    def _get_partitions(self) -> Sequence[int]:
        return self._partitions


def _check(shape: Any, variable_list: Any, partitions: Any) -> None:
    for name, given in (("variable_list", variable_list), ("partitions", partitions)):
        if not isinstance(given, list | tuple):
            raise TypeError(f"{name} is not a list or tuple: {given}")
    if not all(count >= 1 for count in partitions):
        raise ValueError(f"partition values must be positive: {partitions}")
    if not variable_list:
        raise ValueError("variable_list may not be empty")
    infos = [v._get_save_slice_info() for v in variable_list]
    if None in infos:
        names = [v.name for v in variable_list]
        raise ValueError(f"All variables must have a save_slice_info available: {names}")
    if len(shape) != len(partitions):
        raise ValueError(f"len(shape) != len(partitions): {shape} vs. {partitions}")
    for info in infos:
        if info.full_shape != shape:
            raise ValueError(
                f"All variables' full shapes must match shape: {shape}; but full shapes were: {[info.full_shape]}"
            )


def _convert(
    variable: PartitionedVariable, dtype: DType | None = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    check_conversion(variable, dtype)
    if as_ref:
        raise NotImplementedError("PartitionedVariable doesn't support being used as a reference.")
    return variable.as_tensor()


register_tensor_conversion_function(PartitionedVariable, _convert)


# -- how to cut ---------------------------------------------------------------------------------------


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """`num_shards` shards along `axis`, or as many as it is long."""

    def partitioner(shape: TensorShape, **unused: Any) -> list[int]:
        return _cut(shape, axis, min(num_shards, shape[axis].value))

    return partitioner


def variable_axis_size_partitioner(
    max_shard_bytes: int, axis: int = 0, bytes_per_string_element: int = 16, max_shards: int | None = None
) -> Partitioner:
    """Shards of at most `max_shard_bytes` bytes along `axis`, at most `max_shards` of them."""
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError(
            "Both max_shard_bytes and bytes_per_string_element must be positive. Currently, max_shard_bytes is "
            f"{max_shard_bytes} and bytes_per_string_element is {bytes_per_string_element}"
        )
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        if not isinstance(shape, TensorShape):
            raise ValueError(f"shape is not a TensorShape: {shape}")
        if not shape.is_fully_defined():
            raise ValueError(f"shape is not fully defined: {shape}")
        size = shape[axis].value
        slice_bytes = shape.num_elements() / size * _element_size(dtype, bytes_per_string_element)
        count = math.ceil(size / max(1, math.floor(max_shard_bytes / slice_bytes)))
        return _cut(shape, axis, min(max_shards, count) if max_shards else count)

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """At most `max_partitions` shards along `axis`, of `min_slice_size` bytes or more."""

    def partitioner(shape: Any, dtype: Any) -> list[int]:
        if axis >= len(shape):
            raise ValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
        total = shape.num_elements() * _element_size(dtype, bytes_per_string_element)
        return _cut(shape, axis, max(1, min(shape[axis].value, max_partitions, math.ceil(total / min_slice_size))))

    return partitioner


def _cut(shape: Any, axis: int, count: int) -> list[int]:
    partitions = [1] * len(shape)
    partitions[axis] = count
    return partitions


def _element_size(dtype: Any, bytes_per_string_element: int) -> int:
    dtype = dtypes.as_dtype(dtype)
    return bytes_per_string_element if dtype.base_dtype == dtypes.string else dtype.size
