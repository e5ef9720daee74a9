"""trace: a Python function becomes a Function, by calling it once inside a new graph.

Stands for FuncGraph of `python/framework/func_graph.py` and `automatic_control_dependencies.py`. Left out: variables
made inside, layouts of composite tensors, retracing.

Rules: a tensor from outside becomes one more argument, its capture. Operations with side effects run in the order in
which they were written, and run whether or not a result needs them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base import nest
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType, resource, variant
from dtflab.graph.function import Function, make_function
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.node import Node, by_name
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import get_default_graph
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape


class Traced(NamedTuple):
    """The result of `trace`."""

    function: Function
    structure: Any  # what the Python function returned, tensors of its body in it: they give dtypes and shapes
    captures: list[Tensor]  # tensors from outside: a caller gives them after the arguments


def trace(
    python_function: Callable[..., Any],
    arguments: Sequence[tuple[DType, TensorShape]],
    name: str,
    *,
    capture_by_value: bool = False,
) -> Traced:
    """Call `python_function` with one tensor per (dtype, shape) of `arguments`, and keep what it builds.

    It may return tensors in any structure that `tf.nest` knows; other values become tensors. `name` gets a number if
    the default graph has a function of that name. With `capture_by_value`, what is used from outside is copied into
    the function, which then has no captures; ValueError if that needs a placeholder or something with state.
    """
    outer = get_default_graph()
    body = FunctionGraph(outer, capture_by_value)
    with body.as_default():
        tensors = [body.argument(f"args_{i}", *spec) for i, spec in enumerate(arguments)]
        structure = nest.map_structure(convert_to_tensor, python_function(*tensors), expand_composites=True)
        results = [body.capture(tensor) for tensor in nest.flatten(structure, expand_composites=True)]
    function = body.function(outer.unique_function_name(name), results)
    return Traced(function, structure, list(body.captures))


# Collections that a body shares with the graph around it; it gets copies of the others.
_SHARED = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)


class FunctionGraph(Graph):
    """The body of a function while it is traced."""

    def __init__(self, outer: Graph, capture_by_value: bool = False) -> None:
        super().__init__()
        self.outer = outer
        self.captures: dict[Tensor, Tensor] = {}  # tensor from outside → the argument that stands for it
        self.seed = outer.seed
        self._by_value = capture_by_value
        self._copies: dict[Operation, Operation] = {}
        self._arguments: list[Operation] = []
        for key in outer.collections:
            shared = key in _SHARED
            self._collections[key] = outer.get_collection_ref(key) if shared else outer.get_collection(key)

    @property
    def building_function(self) -> bool:
        return True

    @property
    def outermost(self) -> Graph:
        return self.outer.outermost

    def argument(self, name: str, dtype: DType, shape: Any) -> Tensor:
        """One more argument of the function, whose shape is known as far as `shape` gives it."""
        with self._outside_of_blocks():
            op = self.create_op("_Arg", [], name=name, attrs={"T": dtype, "index": len(self._arguments)})
        self._arguments.append(op)
        op.outputs[0]._shape = TensorShape(shape)
        return op.outputs[0]

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor of this body that stands for `tensor`: itself, or an argument if it is from outside."""
        if tensor.graph is self:
            return tensor
        if self._by_value:
            return self._copy(tensor.op).outputs[tensor.value_index]
        if tensor not in self.captures:
            given = self.outer.capture(tensor) if isinstance(self.outer, FunctionGraph) else tensor
            if given.graph is not self.outer:
                raise ValueError(f"{tensor} is neither of the function's own graph nor of one around it.")
            name = re.sub("[^a-z0-9_]", "_", tensor.op.name.lower()).lstrip("_") or "captured"
            argument = self.captures[tensor] = self.argument(name, tensor.dtype.base_dtype, tensor.shape)
            known = declared(given) if tensor.dtype == resource else None
            if known is not None:
                argument.op.attrs.update(_handle_shapes=[known[0]], _handle_dtypes=[known[1]])
        return self.captures[tensor]

    def _copy(self, op: Operation) -> Operation:
        """An operation from outside, made again in here with all that it depends on."""
        if op not in self._copies:
            if op.type.startswith("Placeholder") or (
                op.op_class.stateful and op.outputs[0].dtype not in (resource, variant)
            ):
                raise ValueError(
                    f"'{op.name}' ({op.type}) can't be captured by value: its value is known only in a session. Give "
                    "it to the function in another way, or use what captures by reference (an initializable iterator)."
                )
            inputs = [self._copy(tensor.op).outputs[tensor.value_index] for tensor in op.inputs]
            with self._outside_of_blocks():
                self._copies[op] = self.create_op(op.type, inputs, name=op.name, attrs=dict(op.attrs))
        return self._copies[op]

    @contextlib.contextmanager
    def _outside_of_blocks(self) -> Iterator[None]:
        """Ops made inside belong to no scope, branch or loop of the body."""
        with self.name_scope(None), self.control_dependencies(None):
            yield

    # -- what programs do with tensors from outside ------------------------------------------------------------

    def _new_op(self, op_class: Any, name: str, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> Operation:
        return super()._new_op(op_class, name, [self.capture(tensor) for tensor in inputs], attrs)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        if isinstance(obj, Tensor) and allow_tensor and obj.graph is not self:
            return self.capture(obj)
        return super().as_graph_element(obj, allow_tensor, allow_operation)

    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Any:
        """Operations made inside run after `control_inputs`; those from outside have run before any call."""
        if control_inputs is not None:
            items = [getattr(item, "op", item) for item in control_inputs]
            control_inputs = [op for op in items if not isinstance(op, Operation) or op.graph is self]
        return super().control_dependencies(control_inputs)

    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Any:
        """Operations made inside share the device of `op`; what is outside has no place in here."""
        handle = getattr(op, "handle", op)
        if isinstance(handle, Tensor | Operation) and handle.graph is not self:
            return contextlib.nullcontext()
        return super().colocate_with(op, ignore_existing)

    def unique_function_name(self, name: str) -> str:
        return self.outer.unique_function_name(name)

    # -- the end -----------------------------------------------------------------------------------------------

    def function(self, name: str, results: Sequence[Tensor]) -> Function:
        """The graph built so far, as a function with these results."""
        effects = _in_order([op for op in self.get_operations() if _has_effect(op)])
        names = [f"result_{i}" for i in range(len(results))]
        with self.as_default(), self._outside_of_blocks(), self.device(None):
            for i, tensor in enumerate(results):
                attrs = {"T": tensor.dtype.base_dtype, "index": i}
                self.create_op("_Retval", [tensor], name=f"{names[i]}_RetVal", attrs=attrs)
        for op in self._arguments:
            op.attrs["_output_shapes"] = [op.outputs[0].shape]
        controls = [op.name for op in effects]
        return make_function(name, _needed(self.nodes(), controls), names, controls, {})


def _has_effect(op: Operation) -> bool:
    """True if an operation must run though no result needs it."""
    return (op.op_class.stateful or op.op_class.checks) and op.type not in ("_Arg", "_Retval") and not _is_source(op)


def _is_source(op: Operation) -> bool:
    """A handle or a reference: making one changes nothing."""
    return not op.inputs and any(t.dtype == resource or t.dtype._is_ref_dtype for t in op.outputs)


def _in_order(effects: list[Operation]) -> list[Operation]:
    """Let each operation wait for the one before it; branches and loops have their own order."""
    before: Operation | None = None
    for op in effects:
        if op._control_flow_context is None:
            if before is not None:
                op._add_control_input(before)
            before = op
    return effects


def _needed(nodes: Sequence[Node], controls: Sequence[str]) -> list[Node]:
    """The nodes that results and side effects need, and all arguments."""
    graph = by_name(nodes)
    found: set[str] = set()
    todo = [*controls, *(node.name for node in nodes if node.op in ("_Arg", "_Retval"))]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += graph[name].sources()
    return [node for node in nodes if node.name in found]
