"""get_variable: variables by name, made or found, as the scope where a program is says; and templates that share them.

Stands for the functions of `python/ops/variable_scope.py`, and for `python/ops/template.py`. The scopes are in
`variable_scope.py`, the variables of a graph in `variable_store.py`. Left out: eager mode, functions of TensorFlow 2,
checkpoint tracking.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.base import tf_logging
from dtflab.graph import dtypes
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import get_collection, get_collection_ref, name_scope
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization
from dtflab.ops.variables.variable_scope import VariableScope, get_variable_scope, new_scope, of_graph, variable_scope
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
    """The variable of that name in this process alone: never trained, in LOCAL_VARIABLES. See `get_variable`."""
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


# -- templates ---------------------------------------------------------------------------------------


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """`func_` with `kwargs`, in a variable scope of its own called `name_`, made unique, or `unique_name_`.

    The first call makes variables, later ones find them. The scope is the one where the first call is, or where
    this is with `create_scope_now_`.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """A function made by `make_template`: its first call makes the variables, later calls share them.

    `variable_scope` is the scope of the variables, None before the first call.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Any = None,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self.func, self.name, self._unique_name, self._custom_getter = func, name, unique_name, custom_getter
        self._where = traceback.format_stack()[:-2]
        self.variable_scope: Any = None
        self._variables_created = False
        if create_scope_now:
            self.variable_scope = new_scope(unique_name, name, custom_getter)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.variable_scope is None:
            opened = variable_scope(self._unique_name, self.name, custom_getter=self._custom_getter)
        else:
            opened = variable_scope(self.variable_scope, reuse=self._variables_created)
        with opened as scope:
            self.variable_scope = self.variable_scope or scope
            try:
                return self._again(args, kwargs) if self._variables_created else self._first(args, kwargs)
            except Exception as error:
                text = error.args[0] if error.args else ""
                error.args = (f"{text}\n\noriginally defined at:\n{''.join(self._where)}", *error.args[1:])
                raise

    def _first(self, args: Any, kwargs: Any) -> Any:
        result = self.func(*args, **kwargs)
        self._variables_created = True
        return result

    def _again(self, args: Any, kwargs: Any) -> Any:
        trainable, all_ = (get_collection_ref(key) for key in _COLLECTIONS)
        before = len(trainable), len(all_)
        result = self.func(*args, **kwargs)
        reason = "created when calling a template after the first time, perhaps you used tf.Variable when you meant "
        if len(trainable) != before[0]:
            raise ValueError(f"Trainable variable {reason}tf.get_variable: {trainable[before[0] :]}")
        if len(all_) != before[1]:
            tf_logging.info("New variables %stf.get_variable: %s", reason, all_[before[1] :])
        return result

    @property
    def var_scope(self) -> Any:
        """Same as `.variable_scope`."""
        return self.variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """The prefix of the variables' names."""
        if self.variable_scope is None:
            return None
        name: str = self.variable_scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    def _collected(self, key: str) -> list[Any]:
        return get_collection(key, self.variable_scope_name) if self._variables_created else []

    @property
    def variables(self) -> list[Any]:
        """The global and the local variables."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Any]:
        return self._collected(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        return self._collected(GraphKeys.LOCAL_VARIABLES)

    @property
    def trainable_variables(self) -> list[Any]:
        return self._collected(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        trainable = self.trainable_variables
        return [v for v in self.global_variables if not any(v is t for t in trainable)]

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables


_COLLECTIONS = GraphKeys.TRAINABLE_VARIABLES, GraphKeys.GLOBAL_VARIABLES
