"""The variables of a graph by name, where `get_variable` looks before it makes one.

Stands for `_VariableStore` of `python/ops/variable_scope.py`. Left out: eager variables.

Rule: one name, one variable. `reuse` False makes it, and fails if it exists; True finds it, and fails if it does
not; AUTO_REUSE does what is needed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.control.functions import init_scope
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.variables import initializers
from dtflab.ops.variables.partitioned_variables import PartitionedVariable
from dtflab.ops.variables.policies import checked_policies
from dtflab.ops.variables.resource_variable import ResourceVariable
from dtflab.ops.variables.variable import Variable
from dtflab.ops.variables.variable_methods import regularize
from dtflab.ops.variables.variable_slices import PartitionInfo, SaveSliceInfo, checked_partitions, slices

_POLICIES = "synchronization", "aggregation", "trainable"


class Wanted(NamedTuple):
    """A program's request: properties that a variable must have if it exists, or is made with."""

    shape: Any
    dtype: Any
    initializer: Any
    regularizer: Any
    reuse: Any
    policies: dict[str, Any]  # the other arguments of Variable


class VariableStore:
    """Variables and partitioned variables by their full names."""

    def __init__(self) -> None:
        self._vars: dict[str, Any] = {}
        self._partitioned_vars: dict[str, PartitionedVariable] = {}

    def get_variable(self, name: str, *, custom_getter: Any = None, constraint: Any = None, **arguments: Any) -> Any:
        """The variable `name`, found or made, by way of the custom getter if there is one."""
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        synchronization, aggregation, trainable = (arguments[key] for key in _POLICIES)
        policies = checked_policies(synchronization, aggregation, trainable, name)
        arguments |= dict(zip(_POLICIES, policies, strict=True))
        if custom_getter is None:
            return self._get(name, constraint=constraint, **arguments)
        if _takes(custom_getter, "constraint", or_any=True):
            arguments["constraint"] = constraint
        return custom_getter(getter=self._get, name=name, **arguments)

    def _get(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        partitioner: Any = None,
        **policies: Any,
    ) -> Any:
        """The getter that custom getters are given; `policies` are the other arguments of Variable."""
        wanted = Wanted(shape, dtype, initializer, regularizer, reuse, policies)
        is_scalar = isinstance(shape, Sequence) and not shape
        if partitioner is not None and not is_scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            with name_scope(None):
                return self.partitioned(name, wanted, partitioner)
        if reuse is True and partitioner is None and name in self._partitioned_vars:
            return self.partitioned(name, wanted, None)
        if f"{name}/part_0" in self._vars:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return self._single(name, wanted)

    # -- one variable

    def _single(self, name: str, wanted: Wanted, partition_info: PartitionInfo | None = None) -> Any:
        shape, dtype, initializer, regularizer, reuse, policies = wanted
        if shape is not None and initializer is not None and not callable(initializer):
            raise ValueError("If initializer is a constant, do not specify shape.")
        dtype = dtypes.as_dtype(dtype).base_dtype
        shape = None if shape is None else as_shape(shape)
        if name in self._vars:
            return self._found(name, shape, dtype, reuse)
        if reuse is True:
            raise _absent(name)
        if initializer is None:
            if shape is None:
                raise ValueError(
                    f"Variable {name} did not get an initializer, so its `shape` argument must be specified."
                )
            initializer = default_initializer(name, dtype)
        with init_scope():
            initial_value, dtype = _initial_value(initializer, shape, dtype, partition_info)
        variable = Variable(initial_value, name=name, dtype=dtype, shape=shape, **policies)
        self._vars[name] = variable
        if regularizer is not None:
            regularize(variable, name, regularizer)
        return variable

    def _found(self, name: str, shape: TensorShape | None, dtype: DType, reuse: Any) -> Any:
        variable = self._vars[name]
        if reuse is False:
            raise _there_already(name, variable)
        _check_like(f"Trying to share variable {name}", variable, shape, dtype)
        return variable

    # -- one variable in several shards

    def partitioned(self, name: str, wanted: Wanted, partitioner: Any) -> PartitionedVariable:
        """The PartitionedVariable `name`, found or made as `partitioner` says."""
        if name in self._vars:
            raise ValueError(
                "A partitioner was provided, but an unpartitioned version of the variable was found: "
                f"{name}.  Perhaps a variable of the same name was already created without partitioning?"
            )
        shape: Any = as_shape(wanted.shape)
        dtype, initializer, reuse = dtypes.as_dtype(wanted.dtype), wanted.initializer, wanted.reuse
        if isinstance(initializer, Tensor):
            shape = shape.merge_with(initializer.shape)
        partitions = None if reuse and not partitioner else checked_partitions(partitioner, shape, dtype)
        if name in self._partitioned_vars:
            return self._found_partitioned(name, shape, dtype, reuse, partitions)
        if reuse is True or partitions is None:
            raise _absent(name, "PartitionedVariable", "reuse=False or ")
        self._check_shards(name, max(partitions))
        shards = []
        for index, (offset, part) in enumerate(slices(shape.as_list(), partitions)):
            shard_name = f"{name}/part_{index}"
            with name_scope(f"{shard_name}/PartitionedInitializer"):
                initial = _of_shard(name, initializer, dtype, offset, part)
            given = not callable(initial)
            info = PartitionInfo(shape.as_list(), offset)
            with name_scope(None):
                dims, kind = (None, initial.dtype.base_dtype) if given else (part, dtype)
                part_wanted = wanted._replace(shape=dims, dtype=kind, initializer=initial)
                shard = self._single(shard_name, part_wanted, info)
            shard._set_save_slice_info(SaveSliceInfo(name, shape.as_list(), offset, part))
            shards.append(shard)
        whole = self._partitioned_vars[name] = PartitionedVariable(name, shape, dtype, shards, partitions)
        return whole

    def _found_partitioned(
        self, name: str, shape: TensorShape, dtype: DType, reuse: Any, partitions: Sequence[int] | None
    ) -> PartitionedVariable:
        if reuse is False:
            raise ValueError(
                f"Partitioned variable with name {name} already exists. Did you mean to set reuse=True or "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        existing = self._partitioned_vars[name]
        trying = f"Trying to reuse partitioned variable {name}"
        _check_like(trying, existing, shape, dtype)
        if partitions is not None and list(existing._get_partitions()) != list(partitions):
            found = existing._get_partitions()
            raise ValueError(f"{trying}, but specified partitions {partitions} and found partitions {found}.")
        return existing

    def _check_shards(self, name: str, count: int) -> None:
        """ValueError if shards of that name exist, but not exactly these."""
        if f"{name}/part_0" not in self._vars:
            return
        text = "Partitioner returned a different partitioning than what was already found.  Partitioner returned "
        text += f"{count} shards, and shard {name}/part_0 was found, but "
        if f"{name}/part_{count - 1}" not in self._vars:
            raise ValueError(f"{text}{name}/part_{count - 1} was not.")
        if f"{name}/part_{count}" in self._vars:
            raise ValueError(f"{text}so was the extra shard {name}/part_{count}.")


def _check_like(trying: str, found: Any, shape: TensorShape | None, dtype: DType) -> None:
    """ValueError, which begins with `trying`, unless the variable `found` fits what is asked for."""
    if shape is not None and not shape.is_compatible_with(found.shape):
        raise ValueError(f"{trying}, but specified shape {shape} and found shape {found.shape}.")
    if not dtype.is_compatible_with(found.dtype):
        raise ValueError(f"{trying}, but specified dtype {dtype.name} and found dtype {found.dtype.name}.")


def _absent(name: str, kind: str = "Variable", or_: str = "") -> ValueError:
    return ValueError(
        f"{kind} {name} does not exist, or was not created with tf.get_variable(). Did you mean to set "
        f"{or_}reuse=tf.AUTO_REUSE in VarScope?"
    )


def _there_already(name: str, variable: Any) -> ValueError:
    text = f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
    text += "VarScope?"
    if not isinstance(variable, ResourceVariable):
        text += " Originally defined at:\n\n" + "\n".join(variable.op.traceback)
    error = ValueError(text)
    error.add_note("If its cell ran twice, begin the cell with tf.reset_default_graph().")
    return error


# -- the value to start with --------------------------------------------------------------------------


def default_initializer(name: str, dtype: DType) -> initializers.Initializer:
    """Glorot's numbers for floats, zeros for the rest."""
    if dtype.is_floating:
        return initializers.GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string:
        return initializers.Zeros()
    raise ValueError(f"An initializer for variable {name} of {dtype.base_dtype} is required")


def _initial_value(
    initializer: Any, shape: TensorShape | None, dtype: DType, partition_info: PartitionInfo | None
) -> tuple[Any, DType | None]:
    """The argument `initial_value` of Variable, and the dtype if the value does not have one."""
    if not callable(initializer):
        return initializer, None
    if inspect.isclass(initializer):
        initializer = initializer()
    if shape is not None and shape.is_fully_defined():
        more = {"partition_info": partition_info} if _takes(initializer, "partition_info") else {}
        return functools.partial(initializer, shape.as_list(), dtype=dtype, **more), dtype
    if _needs_nothing(initializer):
        return initializer, None
    raise ValueError(
        "The initializer passed is not valid. It should be a callable with no arguments and the shape should not be "
        "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined."
    )


def _of_shard(name: str, initializer: Any, dtype: DType, offset: list[int], shape: list[int]) -> Any:
    """The initial value of one shard: the same initializer for all, or its slice of a value for the whole."""
    if initializer is None:
        return default_initializer(name, dtype)
    if callable(initializer):
        return initializer
    whole = initializer if isinstance(initializer, Tensor) else convert_to_tensor(initializer, dtype)
    return indexing.slice(whole, offset, shape)


def _takes(function: Callable[..., Any], argument: str, or_any: bool = False) -> bool:
    """Whether `function` has a parameter of this name (or takes any)."""
    parameters = inspect.signature(function).parameters
    return argument in parameters or (or_any and any(p.kind is p.VAR_KEYWORD for p in parameters.values()))


def _needs_nothing(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return all(p.default is not p.empty for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
