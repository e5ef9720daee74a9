"""Variable: the common part of both kinds of variables, and the choice between them.

Stands for `python/ops/variables.py` and `variable_v1.py`. Left out: checkpoint tracking.

Rule: `Variable(...)` makes a reference variable (reference_variable.py) unless `use_resource=True` or
`enable_resource_variables()` asks for a resource variable (resource_variable.py). A variable used as a tensor
is its value; its operators are those of Tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.default_stacks import get_default_session
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Reference, Tensor
from dtflab.graph.scopes import get_default_graph
from dtflab.graph.tensor_shape import TensorShape
from dtflab.graph.valueless import Valueless
from dtflab.ops.control.functions import init_scope
from dtflab.ops.variables import functions, initial_values, policies, variable_slices
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization
from dtflab.ops.variables.variable_methods import Operators, ScatterMethods
from dtflab.ops.variables.variable_scope import get_variable_scope
from dtflab.ops.variables.variable_slices import SaveSliceInfo

KINDS: dict[bool, type[Variable]] = {}  # use_resource → class, entered by the two modules


class _VariableType(type):
    """`Variable(...)` asks the creators of the graph, the innermost first, and then chooses the kind."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not Variable:
            return super().__call__(*args, **kwargs)
        given = Variable.__signature__.bind(*args, **kwargs)
        given.apply_defaults()
        return policies.by_creators(_make)(**given.arguments)


def _make(**arguments: Any) -> Any:
    use_resource, variable_def = arguments.get("use_resource"), arguments.get("variable_def")
    if variable_def is not None:
        use_resource = variable_def.is_resource
    for default in (get_variable_scope().use_resource, policies.resource_variables_enabled()):
        use_resource = default if use_resource is None else use_resource
    return KINDS[bool(use_resource)](**arguments)


class Variable(Operators, ScatterMethods, Valueless, metaclass=_VariableType):
    """State that outlives the steps of a session: a tensor that operations can change.

    >>> w = tf.Variable(tf.zeros([784, 10]), name="weights")
    >>> init = tf.global_variables_initializer()

    A variable has no value until its `initializer` has run, in a session of the cluster that holds it. `constraint` is
    the projection that an optimizer applies after each update.
    """

    SaveSliceInfo = SaveSliceInfo
    __signature__: inspect.Signature
    __array_priority__ = 100  # numpy hands mixed arithmetic to us

    _NO_VALUE = "initial_value must be specified."
    initial_value: Tensor | None
    initializer: Operation
    trainable: bool
    synchronization: VariableSynchronization
    aggregation: VariableAggregation
    constraint: Callable[[Tensor], Tensor] | None = None
    _save_slice_info: Any = None
    _caching_device: Any = None

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            given = variable_def.synchronization, variable_def.aggregation, variable_def.trainable
            self.synchronization, self.aggregation, self.trainable = policies.checked_policies(*given, None)
            variable_slices.restore(self, variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError(self._NO_VALUE)
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        given = synchronization, aggregation, trainable
        self.synchronization, self.aggregation, self.trainable = policies.checked_policies(*given, name)
        self.constraint, self._caching_device = constraint, caching_device
        keys = self._collections(collections)
        dtype = dtypes.as_dtype(dtype).base_dtype if dtype is not None else None
        with init_scope():
            self._create(initial_value, validate_shape, name, dtype, shape)
            get_default_graph().add_to_collections(keys, self)

    def _collections(self, given: Sequence[str] | None) -> Sequence[str]:
        keys = [GraphKeys.GLOBAL_VARIABLES] if given is None else given
        if not isinstance(keys, list | tuple | set):
            raise ValueError(
                "collections argument to Variable constructor must be a list, tuple, or set. "
                f"Got {keys} of type {type(keys)}"
            )
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys = [*keys, GraphKeys.TRAINABLE_VARIABLES]
        return list(keys)

    # What the two kinds do differently.

    def _create(self, initial_value: Any, validate_shape: bool, name: Any, dtype: Any, shape: Any) -> None:
        raise NotImplementedError

    def _restore(self, variable_def: Any, find: Callable[[str], Any]) -> None:
        """Take from a VariableDef what this kind has of its own; `find` gives the operation or tensor of a name."""
        raise NotImplementedError

    def _in_proto(self) -> tuple[Tensor, Tensor]:
        """The tensors that a VariableDef names as the variable and as its value."""
        raise NotImplementedError

    def value(self) -> Tensor:
        """The value, as a tensor that all users share."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """The value, read by a new operation here and now."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def dtype(self) -> dtypes.DType:
        raise NotImplementedError

    @property
    def op(self) -> Operation:
        raise NotImplementedError

    @property
    def shape(self) -> TensorShape:
        raise NotImplementedError

    # Common to both kinds.

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable that a VariableDef describes; its operations must be in the default graph."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The VariableDef of this variable, or None outside `export_scope`."""
        return variable_slices.to_proto(self, *self._in_proto(), export_scope)

    def initialized_value(self) -> Tensor:
        """The value if the variable has one, else its initial value: to initialize another variable from."""
        return initial_values.initialized_value(self)

    def eval(self, session: Any = None) -> Any:
        """Run a read of the value in `session` or the default session."""
        return self._as_graph_element().eval(session=session)

    def ref(self) -> Reference:
        """A key of dicts and sets that stands for this very variable."""
        return Reference(self)

    experimental_ref = ref

    def _as_graph_element(self) -> Tensor:
        raise NotImplementedError

    def count_up_to(self, limit: int) -> Tensor:
        """The value before adding 1 to it; OutOfRangeError once `limit` is reached."""
        return functions.count_up_to(self, limit)

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value from Python, without new operations in the graph."""
        session = session or get_default_session()
        if session is None:
            raise ValueError("Either session argument should be provided or default session should be established")
        session.run(self.initializer, {self.initializer.inputs[1]: value})

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def _shared_name(self) -> str:
        return self.name.partition(":")[0]

    def get_shape(self) -> TensorShape:
        """Same as `.shape`."""
        return self.shape

    def _set_save_slice_info(self, info: Any) -> None:
        self._save_slice_info = info

    def _get_save_slice_info(self) -> Any:
        return self._save_slice_info

    def _operand(self) -> Tensor:
        return self.value()

    def __getitem__(self, key: Any) -> Tensor:
        """A slice of the value, which also takes assignments."""
        operator: Any = Tensor.__getitem__  # with `var`, as the ops install it
        return operator(self.value(), key, var=self)

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("'Variable' object is not iterable.")


_init = inspect.signature(Variable.__init__)
Variable.__signature__ = _init.replace(parameters=list(_init.parameters.values())[1:])


def is_tensor(x: Any) -> bool:
    """True for values in a graph: a Tensor, a Variable, a SparseTensor, IndexedSlices."""
    return isinstance(x, Tensor | Variable) or nest.is_composite(x)


# -- pieces of building -------------------------------------------------------------------------------


variable_slices.register(Variable)
