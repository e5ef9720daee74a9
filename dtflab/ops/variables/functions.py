"""Functions on variables: change them or parts of them, list, initialize and check them.

Stands for `python/ops/state_ops.py` and the functions of `python/ops/variables.py`. The classes of variables are in
`variable.py`, `reference_variable.py` and `resource_variable.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, device, get_collection, get_default_graph, name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.indexing import functions as indexing

# -- one variable -------------------------------------------------------------------------------------


def is_ref(variable: Any) -> bool:
    """True for a reference variable or a tensor that is a reference."""
    return bool(variable.dtype._is_ref_dtype)


def variable_op_v2(
    shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = ""
) -> Tensor:
    """The reference of a variable, bare: without initializer and collections."""
    return apply_op("VariableV2", name, shape=shape, dtype=dtype, container=container, shared_name=shared_name)


def variable_op(
    shape: Any, dtype: Any, name: str = "Variable", set_shape: bool = True, container: str = "", shared_name: str = ""
) -> Tensor:
    """A variable by TensorFlow's older op; its shape is unknown unless `set_shape`."""
    shape = TensorShape(shape if set_shape else None)
    ref = apply_op("Variable", name, shape=shape, dtype=dtype, container=container, shared_name=shared_name)
    if set_shape:
        ref.set_shape(shape)
    return ref


def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Give a variable a new value; the result holds that value once it is assigned."""
    if is_ref(ref):
        return apply_op("Assign", name, ref=ref, value=value, validate_shape=validate_shape, use_locking=use_locking)
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Add `value`, of the same shape, to a variable; the result holds the sum."""
    if is_ref(ref):
        return apply_op("AssignAdd", name, ref=ref, value=value, use_locking=use_locking)
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtract `value`, of the same shape, from a variable; the result holds the difference."""
    if is_ref(ref):
        return apply_op("AssignSub", name, ref=ref, value=value, use_locking=use_locking)
    return ref.assign_sub(value)


def is_variable_initialized(variable: Any, name: str | None = None) -> Tensor:
    """A bool scalar: whether the variable has a value."""
    if is_ref(variable):
        return apply_op("IsVariableInitialized", name, ref=variable)
    return variable.is_initialized(name=name)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """The variable's value before adding 1 to it; OutOfRangeError once it has reached `limit`."""
    if is_ref(ref):
        return apply_op("CountUpTo", name, ref=ref, limit=limit)
    return apply_op("ResourceCountUpTo", name, resource=ref.handle, limit=limit, T=ref.dtype)


# -- parts of a variable ------------------------------------------------------------------------------


def _scatter(kind: str, way: str) -> Callable[..., Any]:
    """The function of the op `kind + way`, and of its twin for resource variables."""
    target, what = ("ref", "slices at the positions") if kind == "ScatterNd" else ("resource", "rows")

    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = way == "Update", name: str | None = None
    ) -> Any:
        if is_ref(ref):
            return apply_op(kind + way, name, ref=ref, indices=indices, updates=updates, use_locking=use_locking)
        updates = convert_to_tensor(updates, ref.dtype)
        written = {target: ref.handle, "indices": indices, "updates": updates}
        return ref._lazy_read(apply_op(f"Resource{kind}{way}", name, **written))

    doc = f"Update ({way.lower()}) the {what} `indices` of a variable by `updates`."
    return arrays.described(function, kind + way, doc)


scatter_update = _scatter("Scatter", "Update")
scatter_add = _scatter("Scatter", "Add")
scatter_sub = _scatter("Scatter", "Sub")
scatter_mul = _scatter("Scatter", "Mul")
scatter_div = _scatter("Scatter", "Div")
scatter_min = _scatter("Scatter", "Min")
scatter_max = _scatter("Scatter", "Max")
scatter_nd_update = _scatter("ScatterNd", "Update")
scatter_nd_add = _scatter("ScatterNd", "Add")
scatter_nd_sub = _scatter("ScatterNd", "Sub")
scatter_nd_max = _scatter("ScatterNd", "Max")
scatter_nd_min = _scatter("ScatterNd", "Min")


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """ref[i…, indices[i…, j]] = updates[i…, j]: the last axis of `indices` are rows, the others go together."""
    with name_scope(name):
        indices = convert_to_tensor(indices, name="indices")
        sizes = arrays.shape(indices)
        if indices.shape.ndims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        rows = arrays.expand_dims(indices, axis=-1)
        positions = []
        for axis in range(indices.shape.ndims - 1):
            shape: list[Any] = [1] * (indices.shape.ndims + 1)
            size = shape[axis] = sizes[axis]
            steps = arrays.reshape(apply_op("Range", start=0, limit=size, delta=1), shape)
            positions.append(arrays.cast(steps, rows.dtype) * arrays.ones_like(rows))
        return scatter_nd_update(ref, arrays.concat([*positions, rows], axis=-1), updates, use_locking)


# What variables have as methods, too.
SCATTERS = (
    *(scatter_update, scatter_add, scatter_sub, scatter_mul, scatter_div, scatter_min, scatter_max),
    batch_scatter_update,
)
SLICE_SCATTERS = (scatter_nd_update, scatter_nd_add, scatter_nd_sub, scatter_nd_max, scatter_nd_min)


# -- copies of tensors, with parts written ------------------------------------------------------------


def _on_tensor(way: str) -> Callable[..., Tensor]:
    def function(
        tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
    ) -> Tensor:
        given = {"indices": indices, "updates": updates, "bad_indices_policy": bad_indices_policy}
        return apply_op(f"TensorScatter{way}", name, tensor=tensor, **given)

    doc = f"A copy of `tensor`, its slices at `indices` written ({way.lower()}) with `updates`."
    return arrays.described(function, f"TensorScatter{way}", doc)


tensor_scatter_add = _on_tensor("Add")
tensor_scatter_sub = _on_tensor("Sub")
tensor_scatter_max = _on_tensor("Max")
tensor_scatter_min = _on_tensor("Min")


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor`, its slices at the positions `indices` replaced by `updates`."""
    return apply_op("TensorScatterUpdate", name, tensor=tensor, indices=indices, updates=updates)


# -- the variables of a graph -------------------------------------------------------------------------


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that all tasks share: the default kind."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process alone, which are not saved."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers change by default."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that inference needs."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """One operation that runs the initializers of `var_list`, in any order."""
    if var_list:
        return control.group(*[v.initializer for v in var_list], name=name)
    return control.no_op(name=name)


def global_variables_initializer() -> Operation:
    """One operation that initializes all global variables made so far."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """One operation that initializes all local variables made so far."""
    return variables_initializer(local_variables())


# What these were called before TensorFlow 0.12.
all_variables = global_variables
initialize_variables = variables_initializer
initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer


def _all_or_found() -> list[Any]:
    """Global and local variables; in a graph without Variable objects, the variable operations themselves."""
    found = global_variables() + local_variables()
    kinds = ("Variable", "VariableV2", "AutoReloadVariable")
    return found or [o.outputs[0] for o in get_default_graph().get_operations() if o.type in kinds]


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> Any:
    """An operation that fails if one of `var_list` (all) has no value; None if there are no variables."""
    var_list = _all_or_found() if var_list is None else var_list
    ranks = []
    for variable in var_list:
        with colocate_with(variable.op):
            ranks.append(apply_op("Rank", input=variable))
    if len(ranks) > 1:
        return apply_op("Pack", "stack", values=ranks)
    return ranks[0] if ranks else None


def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A string vector: the names of those of `var_list` (all) that have no value."""
    var_list = _all_or_found() if var_list is None else var_list
    with name_scope(name):
        states = [is_variable_initialized(v) for v in var_list]
        with device("/cpu:0"):
            if not var_list:
                return constant([], dtype=dtypes.string)
            missing = apply_op("LogicalNot", x=apply_op("Pack", "stack", values=states))
            names = constant([v.op.name for v in var_list])
            return indexing.boolean_mask(names, missing)
