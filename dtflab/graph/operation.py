"""Tensor and Operation: the handles that a program holds on the nodes of its graph.

Stands for `python/framework/ops.py` (Tensor, Operation). Left out: eager tensors, the C graph behind them.

Rule: arithmetic on tensors (`a + b`) is installed by the ops (`Tensor.override_operator`), so that this room
needs to know none of them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from dtflab.graph import attr_value, node_def, op_registry
from dtflab.graph.default_stacks import get_default_session
from dtflab.graph.dtypes import DType
from dtflab.graph.nested_values import Symbolic
from dtflab.graph.node import Node, line_text
from dtflab.graph.tensor_shape import TensorShape
from dtflab.graph.valueless import IN_A_SESSION

if TYPE_CHECKING:
    from dtflab.graph.graph import Graph

TWO_GRAPHS = (  # what to do about it
    "There are two graphs, as after tf.reset_default_graph(): build all of it again, and open a new session."
)
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NO_PROGRAM = (_PACKAGE, threading.__file__)  # the latter is below all that a thread of this package runs


def users_line() -> tuple[CodeType, int] | None:
    """The innermost frame outside this package: the line of the program that is making an op (about 1 µs), if any."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_NO_PROGRAM):
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


class Reference:
    """Stands for one object, the same one whenever it is asked; `deref` gives it back."""

    __slots__ = ("_object",)

    def __init__(self, referred: Any) -> None:
        self._object = referred

    def deref(self) -> Any:
        """The object."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._object is self._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._object!r}>"


class Tensor(Symbolic):
    """One output of an Operation: a value that will exist when a session runs it."""

    __slots__ = ("__weakref__", "_consumers", "_shape", "assign", "dtype", "op", "value_index")
    assign: Any  # there for slices of variables only
    __array_priority__ = 100  # numpy hands mixed arithmetic to us

    def __init__(self, op: Operation, value_index: int, dtype: DType) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self._shape = TensorShape(None)
        self._consumers: list[Operation] = []

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        return self._shape

    def get_shape(self) -> TensorShape:
        """The static shape; same as `.shape`."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions; ValueError if it is not known."""
        if self._shape.ndims is None:
            raise ValueError(f"Cannot take the rank of {self.name}: it has no static shape.")
        return self._shape.ndims

    def set_shape(self, shape: Any) -> None:
        """Merge what the program knows into the static shape; ValueError if they disagree."""
        if shape is not self._shape:
            self._shape = self._shape.merge_with(shape)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input; one that takes it twice is there twice."""
        return list(self._consumers)

    def ref(self) -> Reference:
        """A key of dicts and sets that stands for this very tensor."""
        return Reference(self)

    experimental_ref = ref

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Run the tensor in `session` or the default session and return its value."""
        return _session_for(session, self.graph, "evaluate tensor").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = f", shape={self._shape}" if self._shape.ndims is not None else ""
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name}{device})'

    def __bool__(self) -> bool:
        raise TypeError(
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed. "
            f"The value of {self.name!r} exists only inside a session: get it by `session.run(t)` and compare that."
        )

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). "
            "Please call `x.shape` rather than `len(x)` for shape information."
        )

    def __iter__(self) -> Iterator[Tensor]:
        raise TypeError(
            "Iterating over a symbolic `tf.Tensor` is not allowed: its value exists only inside a session. "
            "Use `tf.unstack(t)` for a known number of slices."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. {IN_A_SESSION}")

    @staticmethod
    def override_operator(operator: str, function: Callable[..., Any]) -> None:
        """Install `function` as Tensor's method `operator` (`__add__`, `__getitem__`, …)."""
        setattr(Tensor, operator, function)

    if TYPE_CHECKING:  # what `ops/operators.py` installs

        def _binary(self, other: Any) -> Tensor: ...
        def _unary(self) -> Tensor: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _binary
        __rmatmul__ = __and__ = __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = _binary
        __neg__ = __abs__ = __invert__ = _unary


def _session_for(session: Any, graph: Graph, what: str) -> Any:
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                f"Cannot {what}: No default session is registered. Use `with sess.as_default()` or pass an explicit "
                "session to `eval(session=sess)` / `run(session=sess)`"
            )
        if session.graph is not graph:
            raise ValueError(
                "Cannot use the default session to "
                f"{what}: the tensor's graph is different from the session's graph. Pass an explicit session."
            )
    elif session.graph is not graph:
        raise ValueError(f"Cannot use the given session to {what}: the tensor's graph is different from the session's.")
    return session


class Operation:
    """A node of a Graph: an op type, its input tensors, its attributes, the device it asks for."""

    __slots__ = (
        *("__weakref__", "_control_flow_context", "_id", "attrs", "control_inputs", "device", "graph", "inputs"),
        *("line", "name", "op_class", "outputs", "type"),
    )

    def __init__(
        self,
        graph: Graph,
        name: str,
        op_class: type[op_registry.Op],
        inputs: Sequence[Tensor],
        control_inputs: Sequence[Operation],
        attrs: dict[str, Any],
    ) -> None:
        self.graph = graph
        self.name = name
        self.op_class = op_class
        self.type = op_class.op_def.name
        self.inputs = tuple(inputs)
        self.control_inputs = list(control_inputs)
        self.attrs = attrs
        self.device = ""
        self.line = users_line()
        self.outputs = [Tensor(self, i, t) for i, t in enumerate(op_class.op_def.output_types(attrs))]
        self._control_flow_context: Any = None
        self._id = -1

    @property
    def op_def(self) -> op_registry.OpDef:
        return self.op_class.op_def

    @property
    def node_def(self) -> Any:
        """The NodeDef message of this operation."""
        return node_def.node_to_proto(self.node())

    @property
    def traceback(self) -> list[str]:
        """Where the program made this operation: `file.py:12, in main`."""
        return [line_text(self.line)] if self.line else []

    def node(self) -> Node:
        """This operation as data, as it is now."""
        inputs = [(t.op.name, t.value_index) for t in self.inputs]
        controls, types = [c.name for c in self.control_inputs], [t.dtype for t in self.outputs]
        return Node(self.name, self.type, inputs, controls, self.device, dict(self.attrs), types, self.line)

    def values(self) -> tuple[Tensor, ...]:
        """The outputs."""
        return tuple(self.outputs)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute, shapes and tensors as messages; ValueError if no attribute has that name."""
        if name not in self.attrs:
            raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")
        return attr_value.as_message(self.attrs[name])

    def colocation_groups(self) -> list[bytes]:
        """The groups whose members share a device; an op alone is its own group."""
        groups = [c for c in self.attrs.get("_class", ()) if c.startswith(b"loc:@")]
        return groups or [b"loc:@" + self.name.encode()]

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run this operation in `session` or the default session."""
        _session_for(session, self.graph, "execute operation").run(self, feed_dict)

    def _get_control_flow_context(self) -> Any:
        """The branch or loop that the operation was made in, or None."""
        return self._control_flow_context

    def _set_device(self, device: Any) -> None:
        self.device = device if isinstance(device, str) else device.to_string()
        self.graph._touch(self)

    def _set_attr(self, name: str, value: Any) -> None:
        self.attrs[name] = attr_value.plain(value, self.op_def.attrs.get(name))
        self.graph._touch(self)

    @property
    def _control_outputs(self) -> list[Operation]:
        """The operations that wait for this one without taking its outputs."""
        return [op for op in self.graph.get_operations() if self in op.control_inputs]

    def _remove_all_control_inputs(self) -> None:
        self.control_inputs.clear()
        self.graph._touch(self)

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _add_control_inputs(self, ops: Sequence[Operation]) -> None:
        self.control_inputs.extend(op for op in ops if op not in self.control_inputs)
        self.graph._touch(self)

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Replace one input: how a loop's Merge gets its back edge after the body is built."""
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor} must be from the same graph as {self}. {TWO_GRAPHS}")
        self.inputs[index]._consumers.remove(self)
        self.inputs = (*self.inputs[:index], tensor, *self.inputs[index + 1 :])
        tensor._consumers.append(self)
        self.graph._touch(self)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)
