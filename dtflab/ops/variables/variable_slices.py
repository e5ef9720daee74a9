"""Variables as messages, and which part of a larger variable a variable is: for meta graphs, savers, initializers.

Stands for `to_proto`, `from_proto`, their registrations and `Variable.SaveSliceInfo` of `python/ops/variables.py`, and
for `_PartitionInfo` of `variable_scope.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dtflab.graph import dtypes, proto_functions
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import get_default_graph, prepend_scope, strip_scope
from dtflab.protos.variable_pb2 import SaveSliceInfoDef, VariableDef


class SaveSliceInfo:
    """The slice of the variable `full_name`, of shape `full_shape`, that begins at `var_offset`."""

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Sequence[int] | None = None,
        var_offset: Sequence[int] | None = None,
        var_shape: Sequence[int] | None = None,
        save_slice_info_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            message = save_slice_info_def
            full_name = prepend_scope(message.full_name, import_scope)
            full_shape, var_offset, var_shape = message.full_shape, message.var_offset, message.var_shape
        self.full_name = full_name
        self.full_shape = None if full_shape is None else list(full_shape)
        self.var_offset = None if var_offset is None else list(var_offset)
        self.var_shape = None if var_shape is None else list(var_shape)

    @property
    def spec(self) -> str:
        """How a checkpoint names the slice: `4 3 0,2:0,3` is rows 0 and 1 of a 4 × 3 variable."""
        sizes = " ".join(f"{size}" for size in self.full_shape or ())
        parts = zip(self.var_offset or (), self.var_shape or (), strict=True)
        return f"{sizes} " + ":".join(f"{offset},{size}" for offset, size in parts)

    @classmethod
    def from_spec(cls, spec: str) -> SaveSliceInfo:
        """The slice that `spec` describes; ValueError if it describes none."""
        if not spec:
            return cls()
        sizes, space, parts = spec.rpartition(" ")
        if not space:
            raise ValueError("Spec string must contain space-separated full_shape info.")
        full_shape = [_number(size, "full_shape must be a sequence of integers") for size in sizes.split()]
        pairs = [part.split(",") for part in parts.split(":")]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError("Spec string must contain comma-separated pairs of offsets and shapes.")
        offsets = [_number(offset, "var_offset must be an integer") for offset, _ in pairs]
        return cls(None, full_shape, offsets, [_number(size, "var_shape must be an integer") for _, size in pairs])

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The SaveSliceInfoDef, or None outside `export_scope`."""
        name = self.full_name or ""
        if export_scope is not None and not name.startswith(export_scope):
            return None
        sizes = {"full_shape": self.full_shape, "var_offset": self.var_offset, "var_shape": self.var_shape}
        return SaveSliceInfoDef(full_name=strip_scope(name, export_scope), **sizes)


def _number(text: str, rule: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"Spec string {rule}. Found '{text}', which is not an integer.") from None


class PartitionInfo:
    """The position of the shard that an initializer is asked for; its values may depend on the whole shape."""

    def __init__(self, full_shape: Sequence[int], var_offset: Sequence[int]) -> None:
        _check_sequence("full_shape", full_shape)
        _check_sequence("var_offset", var_offset)
        if len(var_offset) != len(full_shape):
            raise ValueError(
                f"Expected equal length, but `var_offset` is of length {len(var_offset)} while full_shape is of "
                f"length {len(full_shape)}."
            )
        for offset, size in zip(var_offset, full_shape, strict=True):
            if not 0 <= offset < size:
                raise ValueError(
                    f"Expected 0 <= offset < shape but found offset={offset}, shape={size} for "
                    f"var_offset={var_offset}, full_shape={full_shape}"
                )
        self.full_shape = full_shape
        self.var_offset = var_offset

    def single_offset(self, shape: Sequence[int]) -> int:
        """Where the shard of this shape begins, along the one axis that is cut."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """The axis along which the variable is cut into shards of this shape; None if it is whole."""
        _check_sequence("shape", shape)
        full = self.full_shape
        if len(shape) != len(full):
            raise ValueError(
                f"Expected equal length, but received shape={shape} of length {len(shape)} while "
                f"self.full_shape={full} is of length {len(full)}."
            )
        for axis, (offset, size) in enumerate(zip(self.var_offset, shape, strict=True)):
            if offset + size > full[axis]:
                raise ValueError(
                    f"With self.var_offset={self.var_offset}, a partition of shape={shape} would exceed "
                    f"self.full_shape={full} in dimension {axis}."
                )
        cut = [axis for axis, size in enumerate(shape) if size != full[axis]]
        if len(cut) > 1:
            raise ValueError(
                f"Cannot use single_slice_dim() with shape={shape} and self.full_shape={full} since slice dim could "
                f"be either dimension {cut[1]} or {cut[0]}."
            )
        return cut[0] if cut else None


def _check_sequence(name: str, value: Any) -> None:
    if not isinstance(value, list | tuple):
        raise TypeError(f"`{name}` must be a sequence (like tuple or list) instead of {type(value).__name__}")


def slices(full_shape: Sequence[int], partitions: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """(offset, shape) of each shard when axis i is cut into `partitions[i]`; the first ones get the remainder."""
    axis, count = next(((axis, count) for axis, count in enumerate(partitions) if count > 1), (0, 1))
    least, remainder = divmod(full_shape[axis], count)
    offset, shape = [0] * len(full_shape), list(full_shape)
    for index in range(count):
        shape[axis] = least + (index < remainder)
        yield list(offset), list(shape)
        offset[axis] += shape[axis]


def checked_partitions(partitioner: Any, shape: Any, dtype: Any) -> Sequence[int]:
    """How many parts `partitioner` cuts each axis into; ValueError for what can't be done."""
    if not shape.is_fully_defined():
        raise ValueError(f"Shape of a new partitioned variable must be fully defined, but instead was {shape}.")
    if shape.ndims < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1, shape: {shape}")
    partitions: Sequence[int] = partitioner(shape=shape, dtype=dtype)
    if not isinstance(partitions, Sequence):
        raise ValueError(f"Partitioner must return a sequence, but saw: {partitions}")
    if len(partitions) != shape.ndims:
        raise ValueError(
            f"Partitioner returned a partition list that does not match the Variable's rank: {partitions} vs. {shape}"
        )
    if any(count < 1 for count in partitions):
        raise ValueError(f"Partitioner returned zero partitions for some axes: {partitions}")
    if sum(count > 1 for count in partitions) > 1:
        raise ValueError(f"Can only slice a variable along one dimension: shape: {shape}, partitioning: {partitions}")
    return partitions


# -- variables as messages ------------------------------------------------------------------------------


def to_proto(variable: Any, tensor: Tensor, snapshot: Tensor, export_scope: str | None) -> VariableDef | None:
    """The VariableDef of a variable, named by `tensor` and read by `snapshot`; None outside `export_scope`."""
    if export_scope is not None and not tensor.name.startswith(export_scope):
        return None
    initial, info = variable.initial_value, variable._get_save_slice_info()
    return VariableDef(
        variable_name=strip_scope(tensor.name, export_scope),
        initial_value_name="" if initial is None else strip_scope(initial.name, export_scope),
        initializer_name=strip_scope(variable.initializer.name, export_scope),
        snapshot_name=strip_scope(snapshot.name, export_scope),
        is_resource=tensor.dtype == dtypes.resource,
        trainable=variable.trainable,
        synchronization=variable.synchronization.value,
        aggregation=variable.aggregation.value,
        save_slice_info_def=None if info is None else info.to_proto(export_scope),
    )


def restore(variable: Any, variable_def: VariableDef, import_scope: str | None) -> None:
    """Make `variable` the one that a VariableDef describes; its operations must be in the default graph."""

    def find(name: str) -> Any:
        return get_default_graph().as_graph_element(prepend_scope(name, import_scope))

    variable._restore(variable_def, find)
    variable.initializer = find(variable_def.initializer_name)
    variable.initial_value = find(variable_def.initial_value_name) if variable_def.initial_value_name else None
    if variable_def.HasField("save_slice_info_def"):
        info = SaveSliceInfo(save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope)
        variable._set_save_slice_info(info)


def _exported(variable: Any, export_scope: str | None = None) -> Any:
    return variable.to_proto(export_scope)


def register(variable_class: Any) -> None:
    """Enter how the collections of variables are written and read."""
    for key in (
        "GLOBAL_VARIABLES TRAINABLE_VARIABLES MOVING_AVERAGE_VARIABLES LOCAL_VARIABLES MODEL_VARIABLES "
        "METRIC_VARIABLES GLOBAL_STEP"
    ).split():
        proto_functions.register(getattr(GraphKeys, key), VariableDef, _exported, variable_class.from_proto)
