"""Layer: a function of tensors that owns variables, makes them at its first call, and finds them at later calls.

Stands for `python/layers/base.py` and the parts of `keras/engine/base_layer.py` that it needs. Left out: masks,
metrics, mixed precision, configs (`get_config`), Keras' functional models.

Rule: a layer has two names. Its variables are under the variable scope that it takes at its first call
(`dense`, `dense_1`, … or the name that was given); its nodes are under the name scope that was opened with that.
"""

from __future__ import annotations

import collections
import inspect
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol

import numpy as np

from dtflab.base import nest
from dtflab.base.naming import named
from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, get_collection_ref, get_default_graph, name_scope
from dtflab.graph.tensor_shape import as_shape
from dtflab.nets.layers.input_spec import assert_input_compatibility
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math
from dtflab.ops.variables import initializers
from dtflab.ops.variables.functions import global_variables
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.partitioned_variables import PartitionedVariable
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization
from dtflab.ops.variables.variable_scope import VariableScope, variable_scope

ZEROS = initializers.Zeros()  # the initial value of biases

# How many layers of each class a graph has: they are called `dense_1`, `dense_2`, …
_COUNTS: weakref.WeakKeyDictionary[Any, collections.Counter[str]] = weakref.WeakKeyDictionary()


class Layer:
    """A layer: subclasses make variables in `build` (with `add_weight`) and compute in `call`.

    Args:
      trainable: whether its variables are in TRAINABLE_VARIABLES.
      name: the name of its variable scope; by default a unique name from the class.
      dtype: the dtype of its variables; by default that of the first input.
      activity_regularizer: a function of the output whose value, divided by the batch size, becomes a loss.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: Any = None,
        dtype: Any = None,
        activity_regularizer: Any = None,
        _scope: Any = None,
        _reuse: bool | None = None,
    ) -> None:
        self.trainable, self.built = trainable, False
        self.activity_regularizer = activity_regularizer
        self.input_spec: Any = None
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._set_names(name)
        self._trainable_weights: list[Any] = []
        self._non_trainable_weights: list[Any] = []
        self._losses: list[Tensor] = []
        self._updates: list[Operation] = []
        self._reuse = _reuse
        self._current_scope: VariableScope | None = None
        self._call_has_scope_arg = "scope" in inspect.signature(self.call).parameters
        self._scope: Any = None
        if _scope:
            with variable_scope(_scope) as self._scope:
                pass

    def _set_names(self, name: Any) -> None:
        given = name.name if isinstance(name, VariableScope) else name
        class_name = _snake_case(type(self).__name__)
        counts = _COUNTS.setdefault(get_default_graph(), collections.Counter())
        if not given or isinstance(name, VariableScope):
            counts[class_name] += 1
            self._name = f"{class_name}_{counts[class_name]}"
        else:
            self._name = given
        self._base_name = given or class_name

    # -- for subclasses

    def build(self, input_shape: Any) -> None:
        """Make the variables; called once, with the (static) shape of the first input."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        return inputs

    def add_weight(
        self, name: str, shape: Any, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
        trainable: bool | None = None, constraint: Any = None, use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO, aggregation: Any = VariableAggregation.NONE,
        partitioner: Any = None,
    ) -> Any:  # fmt: skip
        """The variable `name` of this layer, made or (if the layer is built or reused) found.

        The result of `regularizer` for a new variable is added to the losses.
        """
        on_read = synchronization == VariableSynchronization.ON_READ
        if on_read and trainable:
            raise ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable "
                "variables. You have specified trainable=True and synchronization=VariableSynchronization.ON_READ."
            )
        trainable = self.trainable and not on_read and trainable is not False
        self._set_scope(None)
        known = {id(v) for v in global_variables()} if regularizer else set()
        reuse = self.built or self._reuse
        options: dict[str, Any] = {"trainable": trainable, "constraint": constraint, "partitioner": partitioner}
        options |= {"use_resource": use_resource, "synchronization": synchronization, "aggregation": aggregation}
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope:
            self._current_scope = scope
            with name_scope(scope.original_name_scope):
                own_dtype = dtype or self._dtype or dtypes.float32
                variable = get_variable(name, shape, own_dtype, _initializer(initializer), **options)
                shards = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
                if regularizer and not any(id(shard) in known for shard in shards):
                    self._regularize(name, shards, regularizer)
        self._own(shards, trainable)
        return variable

    add_variable = add_weight  # its older name

    def _add(self, name: str, shape: Any, initializer: Any, regularizer: Any, constraint: Any) -> Any:
        """A variable of the layer's own dtype, which is trained if the layer is."""
        return self.add_weight(name, shape, None, initializer, regularizer, constraint=constraint)

    def _regularize(self, name: str, shards: Sequence[Any], regularizer: Callable[[Any], Any]) -> None:
        for shard in shards:
            with name_scope(f"{name}/Regularizer"):
                loss = regularizer(shard)
            if loss is not None:
                self.add_loss(loss)

    def _own(self, shards: Sequence[Any], trainable: bool) -> None:
        """List the variables. A custom getter may have made one that is not trained, even if `trainable` is true."""
        collected = get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        trainable = trainable and all(any(shard is v for v in collected) for shard in shards)
        (self._trainable_weights if trainable else self._non_trainable_weights).extend(shards)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Add losses of this layer, tensors, here and to REGULARIZATION_LOSSES."""
        for loss in nest.flatten(losses):
            self._losses.append(loss)
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add operations to run with each training step; a trainable layer adds them to UPDATE_OPS."""
        self._updates.extend(getattr(update, "op", update) for update in nest.flatten(updates))

    # -- a call

    def __call__(self, inputs: Any, *args: Any, scope: Any = None, **kwargs: Any) -> Any:
        """The outputs of `call`; the first time, `build` is called before it.

        `scope` is the variable scope of the first call, instead of one with the layer's own name.
        """
        self._set_scope(scope)
        inputs = nest.map_structure(_as_tensor, inputs)
        reuse = True if self.built else self._reuse
        with variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as entered:
            self._current_scope = entered
            if self._call_has_scope_arg:
                kwargs["scope"] = entered
            assert_input_compatibility(self.input_spec, inputs, self.name)
            with name_scope(entered.original_name_scope):
                self._build_for(inputs)
                outputs = self.call(inputs, *args, **kwargs)
                self._regularize_activity(outputs)
        _collect(self.updates, GraphKeys.UPDATE_OPS)
        return outputs

    apply = __call__

    def _set_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            opened = variable_scope(self._base_name if scope is None else scope)
        else:
            opened = variable_scope(scope, default_name=self._base_name)
        with opened as self._scope:
            pass

    def _build_for(self, inputs: Any) -> None:
        if self.built:
            return
        first: Any = next(iter(nest.flatten(inputs)), None)
        if self._dtype is None and hasattr(first, "dtype"):
            self._dtype = first.dtype.base_dtype
        self.build(nest.map_structure(lambda x: as_shape(x.shape), inputs))
        self.built = True

    def _regularize_activity(self, outputs: Any) -> None:
        if self.activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = convert_to_tensor(self.activity_regularizer(output))
                self.add_loss(math.truediv(loss, arrays.cast(arrays.shape(output)[0], loss.dtype)))

    # -- properties

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> Any:
        """The dtype of its variables; None before the first call unless it was given."""
        return self._dtype

    @property
    def scope_name(self) -> str:
        """The prefix of its variables' names. Raises ValueError before the first call."""
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been used yet. The scope '
                "name  is determined the first time the layer instance is called. You must therefore call the layer "
                "before querying `scope_name`."
            )
        return str(self._scope.name)

    @property
    def trainable_weights(self) -> list[Any]:
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        frozen = [] if self.trainable else self._trainable_weights
        return [*frozen, *self._non_trainable_weights]

    @property
    def weights(self) -> list[Any]:
        """The trainable variables and then the others."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def trainable_variables(self) -> list[Any]:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:
        return self.weights

    @property
    def losses(self) -> list[Tensor]:
        return list(self._losses)

    @property
    def updates(self) -> list[Operation]:
        """Empty while the layer is not trainable."""
        return list(self._updates) if self.trainable else []

    def count_params(self) -> int:
        """The number of parameters. Raises ValueError before the layer is built."""
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on {self.name}, but the layer isn't built. You can build it "
                "manually via: `layer.build(input_shape)`."
            )
        return sum(v.shape.num_elements() for v in self.weights)


def _snake_case(name: str) -> str:
    """`Conv2DTranspose` → `conv2d_transpose`."""
    split = re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    snake = re.sub("([a-z])([A-Z])", r"\1_\2", split).lower()
    return f"private{snake}" if snake.startswith("_") else snake


def _as_tensor(x: Any) -> Any:
    return convert_to_tensor(x) if isinstance(x, np.ndarray | float | int) else x


def _initializer(given: Any) -> Any:
    """An initializer from its name in Keras (`"he_normal"`); objects as they are."""
    if not isinstance(given, str):
        return given
    title = "".join(part.title() for part in given.split("_"))
    found = getattr(initializers, title, None) or getattr(initializers, given, None)
    if found is None:
        raise ValueError(f"Unknown initializer: '{given}'. Use an object such as tf.glorot_uniform_initializer().")
    return found()


def _collect(elements: Sequence[Any], key: Any) -> None:
    collection = get_collection_ref(key)
    there = {id(element) for element in collection}
    collection.extend(element for element in elements if id(element) not in there)


# -- functions of layers: tf.layers.dense(x, 10) ------------------------------------------------------


_Own = ParamSpec("_Own")


class Function(Protocol[_Own]):
    """A layer's function, as a type checker sees it."""

    def __call__(self, inputs: Any, *args: _Own.args, **kwargs: _Own.kwargs) -> Tensor: ...


def as_function(layer_class: Callable[_Own, Layer], name: str, reusable: bool = True) -> Function[_Own]:
    """The function `name(inputs, …)`, which makes a layer with the other arguments and calls it.

    If the layer has variables (`reusable`), `name` is their scope, and `reuse` says that they exist already.
    """

    make: Callable[..., Layer] = layer_class  # from arguments that the signature below has bound

    def function(inputs: Any, *args: _Own.args, **kwargs: _Own.kwargs) -> Tensor:
        given = signature.bind(inputs, *args, **kwargs).arguments
        del given["inputs"]
        if reusable:
            given |= {"_scope": given.get("name"), "_reuse": given.pop("reuse", None)}
        return make(**given)(inputs)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = [p for p in inspect.signature(layer_class).parameters.values() if p.kind is kind]
    last = [inspect.Parameter("reuse", kind, default=None)] if reusable else []
    signature = inspect.Signature([inspect.Parameter("inputs", kind), *own, *last])
    function.__signature__ = signature  # type: ignore[attr-defined]
    doc = f"The outputs of a new `{layer_class.__name__}` for `inputs`.\n\n{inspect.getdoc(layer_class)}"
    return named(function, name, doc)
