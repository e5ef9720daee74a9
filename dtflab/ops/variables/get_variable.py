"""get_variable: variables by name, made or found, as the scope where a program is says.

Stands for the functions of `python/ops/variable_scope.py`; the scopes are in `variable_scope.py`, the variables of a
graph in `variable_store.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from dtflab.base import tf_logging
from dtflab.graph import dtypes
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import name_scope
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization
from dtflab.ops.variables.variable_scope import VariableScope, get_variable_scope, of_graph, variable_scope
from dtflab.ops.variables.variable_store import VariableStore, Wanted


def _get_default_variable_store() -> VariableStore:
    return of_graph(("__variable_store",), VariableStore)


def get_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: bool | None = None, collections: Any = None, caching_device: Any = None, partitioner: Any = None,
    validate_shape: bool = True, use_resource: bool | None = None, custom_getter: Any = None,
    constraint: Any = None, synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:  # fmt: skip
    """The variable `name` of the current scope: made, or found, as the scope's `reuse` says.

    `initializer` is a function of shape and dtype (by default Glorot's uniform numbers, zeros for integers), or a
    value, which has the shape. With a `partitioner` the result is a PartitionedVariable. The loss that `regularizer`
    makes of a new variable is added to the collection REGULARIZATION_LOSSES. A custom getter is called as
    `custom_getter(getter, name, …)` in the place of making the variable.

    Raises ValueError where the variable exists and should not, does not exist and should, or has another
    shape or dtype.
    """
    first = name, shape, dtype, initializer, regularizer, None, trainable, collections, caching_device, partitioner
    rest = validate_shape, use_resource, custom_getter, constraint, synchronization, aggregation
    return get_variable_scope().get_variable(_get_default_variable_store(), *first, *rest)


def get_local_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: bool = False, collections: Any = None, caching_device: Any = None, partitioner: Any = None,
    validate_shape: bool = True, use_resource: bool | None = None, custom_getter: Any = None,
    constraint: Any = None, synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:  # fmt: skip
    """As `get_variable`, for a variable of this process alone: never trained, in LOCAL_VARIABLES."""
    local = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    first = name, shape, dtype, initializer, regularizer, False, local, caching_device, partitioner
    return get_variable(*first, validate_shape, use_resource, custom_getter, constraint, synchronization, aggregation)


def create_partitioned_variables(
    shape: Sequence[int], slicing: Sequence[int], initializer: Any, dtype: Any = dtypes.float32,
    trainable: bool = True, collections: Any = None, name: str | None = None, reuse: Any = None,
) -> list[Any]:  # fmt: skip
    """The shards of a variable that is cut into `slicing[i]` parts along axis i."""
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    if len(shape) < 1:
        raise ValueError(f"A partitioned Variable must have rank at least 1: shape: {shape}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope, name_scope(None):
        if scope.custom_getter is not None:
            raise ValueError(
                "Private access to _get_partitioned_variable is not allowed when a custom getter is set.  Current "
                f"custom getter: {scope.custom_getter}.  Use get_variable with a partitioner instead."
            )
        policies = {key: getattr(scope, key) for key in ("caching_device", "use_resource", "constraint")}
        policies |= {"trainable": trainable, "collections": collections}
        initial = scope.initializer if initializer is None else initializer
        wanted = Wanted(shape, dtype, initial, scope.regularizer, scope.reuse, policies)
        return list(_get_default_variable_store().partitioned(scope.name, wanted, lambda **_: slicing))


def no_regularizer(_: Any) -> None:
    """A regularizer for variables that shall have none, though the scope has one."""


@contextlib.contextmanager
def variable_op_scope(
    values: Sequence[Any], name_or_scope: Any, default_name: str | None = None, initializer: Any = None,
    regularizer: Any = None, caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None,
    reuse: Any = None, dtype: Any = None, use_resource: bool | None = None, constraint: Any = None,
) -> Iterator[VariableScope]:  # fmt: skip
    """`variable_scope` with the arguments in the order of TensorFlow before 0.11."""
    tf_logging.warn(
        "tf.variable_op_scope(values, name, default_name) is deprecated, use tf.variable_scope(name, default_name, "
        "values)"
    )
    given = initializer, regularizer, caching_device, partitioner, custom_getter, reuse, dtype, use_resource, constraint
    with variable_scope(name_or_scope, default_name, values, *given) as scope:
        yield scope
