"""Graph: the operations of a program, their names, and the scopes that stand around each new one.

Stands for `python/framework/ops.py` (Graph). Left out: graph-level kernel labels.

Rule: a graph only grows. An operation is finished by the scopes in force when it was made: name, control
dependencies, device, colocation, container, in this order, as TensorFlow does it.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dtflab.base.garbage import NO_COLLECTION
from dtflab.graph import attr_value, graph_def, op_registry
from dtflab.graph.default_stacks import default_graph_stack
from dtflab.graph.device_stack import DeviceStack
from dtflab.graph.function import Function, Library
from dtflab.graph.node import Node
from dtflab.graph.operation import TWO_GRAPHS, Operation, Tensor
from dtflab.graph.tensor_shape import in_a_rule

if TYPE_CHECKING:
    from dtflab.protos.graph_pb2 import GraphDef

VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class _ControlDependencies:
    """One `control_dependencies` block: its operations and everything made inside it."""

    def __init__(self, ops: list[Operation]) -> None:
        self.ops = ops
        self.made_inside: set[Operation] = set()


class _NameScope(threading.local):
    """The scope of names that a thread is in."""

    name: str = ""


class _Blocks:
    """The `with` blocks around what is made now. Name scopes are always a thread's own."""

    container: str = ""
    control_flow_context: Any = None

    def __init__(self, around: _Blocks | None = None) -> None:
        self.devices = DeviceStack()
        self.devices_at_entry: list[DeviceStack] = []  # as they are where the graph was made the default
        self.colocation_stack: list[Operation] = []
        self.control_stack: list[_ControlDependencies] = []
        self.attrs: dict[str, Any] = {}
        self._name_scope = _NameScope()
        if around is not None:
            self.__dict__.update(around.__dict__, devices=around.devices.copy(), devices_at_entry=[])

    @property
    def name_stack(self) -> str:
        return self._name_scope.name

    @name_stack.setter
    def name_stack(self, name: str) -> None:
        self._name_scope.name = name


class _ThreadsBlocks(_Blocks, threading.local):
    """Blocks that each thread has for itself; a new thread begins inside the blocks that were open at the switch."""


@contextlib.contextmanager
def _restored(holder: Any, *names: str) -> Iterator[None]:
    """Restore these attributes of `holder` afterwards."""
    saved = [(name, getattr(holder, name)) for name in names]
    try:
        yield
    finally:
        for name, value in saved:
            setattr(holder, name, value)


class Graph:
    """A dataflow graph: operations, the tensors between them, and collections of anything."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ops: dict[str, Operation] = {}
        self._order: list[Operation] = []
        self._names_in_use: dict[str, int] = {}
        self._blocks = _Blocks()
        self._collections: dict[Any, list[Any]] = {}
        self.seed: int | None = None
        self._seeds_given = 0
        self.finalized = False
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Any] = set()
        self._gradient_overrides: dict[str, str] = {}
        self._sent = 0  # operations that some session has taken
        self._kept: list[Any] = []
        self._function_names: set[str] = set()  # given to functions that were traced for this graph
        self.functions = Library()  # those that nodes call travel with them; here are also those of imported graphs

    def switch_to_thread_local(self) -> None:
        """From now on a `with` block counts only for what its own thread makes."""
        if not isinstance(self._blocks, _ThreadsBlocks):
            self._blocks = _ThreadsBlocks(self._blocks)

    # -- operations ---------------------------------------------------------------------------------------

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: Any = None,
        input_types: Any = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Add an operation; attrs are Python values, defaults are filled in.

        `dtypes`, `input_types`, `op_def` are accepted for TF1's signature: the registered interface decides.
        """
        op_class = op_registry.get(op_type)
        full = op_class.op_def.with_defaults(_complete(op_class.op_def, inputs, attrs or {}))
        return self._create(op_class, name or op_type, inputs, full, compute_shapes, compute_device)

    def _create(
        self,
        op_class: type[op_registry.Op],
        name: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """`create_op` for complete attrs."""
        with self._lock:
            self._check_not_finalized()
            op = self._new_op(op_class, self._op_name(name), inputs, attrs)
            if compute_shapes:
                infer_shapes(op)
            self._add(op)
            if compute_device:
                self._blocks.devices.apply(op)
            self._apply_scopes(op)
            self._enter_context(op)
        return op

    def _op_name(self, name: str | bytes) -> str:
        name = name.decode() if isinstance(name, bytes) else name
        # A name that ends in "/" is a scope that the caller opened for exactly this op.
        name = name[:-1] if name.endswith("/") else self.unique_name(name)
        if not VALID_OP_NAME.match(name):
            raise ValueError(f"'{name}' is not a valid node name")
        if name in self._ops:
            raise ValueError(f"Duplicate node name in graph: '{name}'")
        return name

    def _new_op(
        self, op_class: type[op_registry.Op], name: str, inputs: Sequence[Tensor], attrs: dict[str, Any]
    ) -> Operation:
        """An operation that is not yet in the graph, so that an error in its shapes leaves no trace."""
        for tensor in inputs:
            if tensor.graph is not self:
                raise ValueError(
                    f"Tensor {tensor} must be from the same graph as the operation '{name}' that uses it. {TWO_GRAPHS}"
                )
        op = Operation(self, name, op_class, inputs, self._control_inputs_for(inputs), attrs)
        op._id = len(self._order)
        op._control_flow_context = self._blocks.control_flow_context
        return op

    def _add(self, op: Operation) -> None:
        self._ops[op.name] = op
        self._order.append(op)
        for tensor in op.inputs:
            tensor._consumers.append(op)
        for block in self._blocks.control_stack:
            block.made_inside.add(op)

    def _import_op(
        self, op_class: type[op_registry.Op], name: str, inputs: Sequence[Tensor], attrs: dict[str, Any], device: str
    ) -> Operation:
        """Add an operation under exactly this name, its shapes and final device still to come."""
        self._check_not_finalized()
        op = self._new_op(op_class, name, inputs, attrs)
        op.device = device
        self._add(op)
        self._names_in_use.setdefault(name.lower(), 1)
        self._apply_scopes(op)
        return op

    def _apply_scopes(self, op: Operation) -> None:
        for name, value in self._blocks.attrs.items():
            if name not in op.attrs:
                op._set_attr(name, value)
        override = self._gradient_overrides.get(op.type)
        if override:
            op.attrs["_gradient_op_type"] = override.encode()
        if self._blocks.colocation_stack:
            groups: list[bytes] = []
            with_device = next((c for c in reversed(self._blocks.colocation_stack) if c.device), None)
            for other in self._blocks.colocation_stack:
                groups.extend(other.colocation_groups())
            if with_device is not None:
                op.device = with_device.device
            op.attrs["_class"] = sorted(set(groups))
        if self._blocks.container and op.op_class.stateful and op.attrs.get("container") == b"":
            op.attrs["container"] = self._blocks.container.encode()

    def _enter_context(self, op: Operation) -> None:
        """The operation obeys the branch or loop that is being built around it, and those that its inputs are in."""
        for tensor in op.inputs:
            if tensor.op._control_flow_context is not None:
                tensor.op._control_flow_context.check_use(tensor.op, op)
        if self._blocks.control_flow_context is not None:
            self._blocks.control_flow_context.AddOp(op)

    def _control_inputs_for(self, inputs: Sequence[Tensor]) -> list[Operation]:
        """The control inputs that the enclosing blocks add, less those an input already waits for."""
        if not self._blocks.control_stack:
            return []
        producers = {t.op for t in inputs}
        controls: dict[Operation, None] = {}
        for block in self._blocks.control_stack:
            if block.made_inside.isdisjoint(producers):
                controls.update(dict.fromkeys(op for op in block.ops if op not in producers))
        return list(controls)

    def _touch(self, op: Operation) -> None:
        if op._id < self._sent:
            raise RuntimeError(
                f"Operation '{op.name}' was changed after it was run by a session; the session would not see it. "
                "Change operations before the first run, or make a new session and graph."
            )

    @NO_COLLECTION
    def nodes(self, start: int = 0) -> list[Node]:
        """The operations from number `start` on, as data: what a session hands to its master."""
        with self._lock:
            self._sent = len(self._order)
            return [op.node() for op in self._order[start:]]

    @property
    def version(self) -> int:
        """Number of operations made so far."""
        return len(self._order)

    @property
    def graph_def_versions(self) -> Any:
        """The VersionDef that an exported GraphDef carries."""
        return graph_def.nodes_to_proto([]).versions

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """The graph as a GraphDef message that TensorFlow loads."""
        return graph_def.graph_to_proto(self, from_version or 0, add_shapes)

    def get_operations(self) -> list[Operation]:
        return list(self._order)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of that name; KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        op: Operation = self.as_graph_element(name, allow_tensor=False, allow_operation=True)
        return op

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor of that name, `op:index`; KeyError if there is none."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        tensor: Tensor = self.as_graph_element(name, allow_tensor=True, allow_operation=False)
        return tensor

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The Tensor or Operation that `obj` is, names, or stands for (a variable's value)."""
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str | bytes):
            return self._element_by_name(obj if isinstance(obj, str) else obj.decode(), allow_tensor, allow_operation)
        kinds = "Tensor or Operation" if allow_tensor and allow_operation else "Tensor" if allow_tensor else "Operation"
        wanted = (Tensor,) * allow_tensor + (Operation,) * allow_operation
        if not isinstance(obj, wanted):
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")
        if obj.graph is not self:
            raise ValueError(f"{type(obj).__name__} {obj} is not an element of this graph. {TWO_GRAPHS}")
        return obj

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        op_name, colon, index = name.partition(":")
        op = self._ops.get(op_name)
        if colon:
            if not allow_tensor:
                raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
            if not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. "
                    'Tensor names must be of the form "<op_name>:<output_index>".'
                )
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. "
                    f"The operation, {op_name!r}, does not exist in the graph."
                )
            if int(index) >= len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. "
                    f"The operation, {op_name!r}, exists but only has {len(op.outputs)} outputs."
                )
            return op.outputs[int(index)]
        if not allow_operation:
            hint = f' Tensor names must be of the form "<op_name>:<output_index>": {name + ":0"!r}?'
            if op is None:
                raise ValueError(f"The name {name!r} looks like an (invalid) Operation name, not a Tensor.{hint}")
            raise ValueError(f"The name {name!r} refers to an Operation, not a Tensor.{hint}")
        if op is None:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return op

    def finalize(self) -> None:
        """Make the graph read-only."""
        self.finalized = True

    def _unsafe_unfinalize(self) -> None:
        self.finalized = False

    def _check_not_finalized(self) -> None:
        if self.finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    def prevent_feeding(self, tensor: Tensor) -> None:
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Operation) -> None:
        self._unfetchable.add(op)

    def is_fetchable(self, element: Tensor | Operation) -> bool:
        return (element.op if isinstance(element, Tensor) else element) not in self._unfetchable

    # -- names --------------------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` inside the current name scope, with `_1`, `_2`, … if it is taken (case is ignored)."""
        if self._blocks.name_stack:
            name = f"{self._blocks.name_stack}/{name}"
        key = name.lower()
        count = self._names_in_use.get(key, 0)
        if mark_as_used:
            self._names_in_use[key] = count + 1
        if count:
            base = key
            while key in self._names_in_use:
                key = f"{base}_{count}"
                count += 1
            if mark_as_used:
                self._names_in_use[key] = 1
            name = f"{name}_{count - 1}"
        return name

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix names made inside with `name/`; a name that ends in `/` re-enters that scope."""
        with _restored(self._blocks, "name_stack"):
            yield self._enter_name_scope(name)

    def _enter_name_scope(self, name: str | bytes | None) -> str:
        name = name.decode() if isinstance(name, bytes) else name
        if name:
            if not isinstance(name, str):
                raise TypeError(f"name for name_scope must be a string, got {name!r}.")
            valid, kind = (_VALID_SCOPE_NAME, "") if self._blocks.name_stack else (VALID_OP_NAME, "root ")
            if not valid.match(name):
                raise ValueError(
                    f"'{name}' is not a valid {kind}scope name. "
                    f"A {kind}scope name has to match the following pattern: {valid.pattern}"
                )
        new = "" if not name else name[:-1] if name.endswith("/") else self.unique_name(name)
        self._blocks.name_stack = new
        return f"{new}/" if name else ""

    def get_name_scope(self) -> str:
        return self._blocks.name_stack

    # -- other scopes -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Devices for operations made inside: a (partial) name, a function of the operation, or None."""
        blocks = self._blocks.devices
        block = blocks.push(device_name_or_function)
        try:
            yield
        finally:
            blocks.pop(block)

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """Operations made inside run after `control_inputs`; None removes the blocks around it."""
        blocks = self._blocks
        with _restored(blocks, "control_stack", "control_flow_context"):
            if control_inputs is None:
                blocks.control_stack, blocks.control_flow_context = [], None
            else:
                ops = dict.fromkeys(self._control_op(item) for item in control_inputs)
                for op in ops:
                    # TensorFlow 2 leaves this mark, which nothing reads, so that graphs can be compared with its own.
                    op.attrs["_has_manual_control_dependencies"] = True
                blocks.control_stack = [*blocks.control_stack, _ControlDependencies(list(ops))]
            yield

    def _control_op(self, item: Any) -> Operation:
        """The operation to wait for: a variable's own for a variable, so that it need not be read."""
        if not isinstance(item, Tensor | Operation):
            item = getattr(item, "op", item)
        element = self.as_graph_element(item)
        return element.op if isinstance(element, Tensor) else element

    @property
    def _container(self) -> str:
        """The resource container of this place in the program."""
        return self._blocks.container

    @contextlib.contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Stateful operations made inside keep their state in that resource container."""
        with _restored(self._blocks, "container"):
            self._blocks.container = container_name
            yield container_name

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations made inside share the device of `op`."""
        if op is None and not ignore_existing:
            raise ValueError("Trying to reset colocation (op is None) but ignore_existing is not True")
        element = None if op is None else self.as_graph_element(getattr(op, "handle", op))
        target = element.op if isinstance(element, Tensor) else element
        blocks = self._blocks
        with _restored(blocks, "devices", "colocation_stack"):
            # A device block around us must not fight with the op that we join, so none applies inside.
            blocks.devices = DeviceStack()
            blocks.colocation_stack = [] if ignore_existing else list(blocks.colocation_stack)
            if target is not None:
                blocks.colocation_stack.append(target)
            yield

    @contextlib.contextmanager
    def _attr_scope(self, attr_map: dict[str, Any]) -> Iterator[None]:
        """Operations made inside get these attributes, AttrValues, unless they have them; None takes one away again."""
        with _restored(self._blocks, "attrs"):
            both = {**self._blocks.attrs, **attr_map}
            self._blocks.attrs = {name: value for name, value in both.items() if value is not None}
            yield

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Operations of the given types made inside use the gradient registered under another name."""
        with _restored(self, "_gradient_overrides"):
            self._gradient_overrides = {**self._gradient_overrides, **op_type_map}
            yield

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the default graph of the current thread."""
        blocks = self._blocks
        blocks.devices_at_entry.append(blocks.devices)
        try:
            with default_graph_stack.entered(self):
                yield self
        finally:
            blocks.devices_at_entry.pop()

    @contextlib.contextmanager
    def _lifted(self) -> Iterator[None]:
        """`init_scope`: the device blocks that `colocate_with` has put away are asked again, but colocation wins."""
        devices, known = self._blocks.devices, self._blocks.devices_at_entry
        found = known[-1] if known and not devices else devices
        with self.as_default(), _restored(self._blocks, "devices"):
            self._blocks.devices = found
            yield

    # -- collections and seeds ----------------------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        self._check_not_finalized()
        with self._lock:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        for name in (names,) if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The list itself; changes to it change the collection."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of the collection; with `scope`, the items whose name matches it from the start."""
        items = list(self._collections.get(name, ()))
        if scope is None:
            return items
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def get_all_collection_keys(self) -> list[Any]:
        return [k for k in self._collections if isinstance(k, str)]

    @property
    def collections(self) -> list[Any]:
        return list(self._collections)

    def clear_collection(self, name: Any) -> None:
        self._check_not_finalized()
        self._collections.pop(name, None)

    def add_function(self, function: Function) -> None:
        """Keep a function in the graph's library, also if no operation calls it."""
        self._check_not_finalized()
        self.functions.merge(function.library)

    def unique_function_name(self, name: str) -> str:
        """`name`, with a number if a function of this graph has it."""
        with self._lock:
            unique, count = name, 0
            while unique in self.functions or unique in self._function_names:
                count += 1
                unique = f"{name}_{count}"
            self._function_names.add(unique)
            return unique

    @property
    def outermost(self) -> Graph:
        """The graph of the program: itself, unless it is the body of a function."""
        return self

    def keep_alive(self, thing: Any) -> None:
        """Hold on to what operations refer to by name, as long as the graph lives."""
        self._kept.append(thing)

    @property
    def building_function(self) -> bool:
        """True if this is the body of a function that is being traced."""
        return False

    def __repr__(self) -> str:
        return f"<dtflab Graph: {len(self._order)} operations>"


def _complete(op_def: op_registry.OpDef, inputs: Sequence[Tensor], attrs: dict[str, Any]) -> dict[str, Any]:
    """`attrs` as a TF1 program may give them: AttrValue messages, or without the types that the inputs give."""
    attrs = {name: attr_value.plain(value, op_def.attrs.get(name)) for name, value in attrs.items()}
    if not any(arg.is_list for arg in op_def.inputs):
        for arg, tensor in zip(op_def.inputs, inputs, strict=False):
            if arg.type_attr:
                attrs.setdefault(arg.type_attr, tensor.dtype.base_dtype)
    return attrs


def infer_shapes(op: Operation) -> None:
    """Set the static shapes of the outputs by the op's rule; a disagreement is a ValueError that names the op."""
    try:
        shapes = op.op_class.infer(op)
    except ValueError as error:
        wrong = ValueError(f"{in_a_rule(error)} for {_summary(op)}.")
        wrong.__notes__ = getattr(error, "__notes__", [])
        raise wrong from None
    for tensor, shape in zip(op.outputs, shapes, strict=True):
        tensor._shape = shape


def _summary(op: Operation) -> str:
    """An operation as TensorFlow's shape errors show it: attributes, names and shapes of the inputs."""
    attrs = attr_value.summary_of_all({k: v for k, v in op.attrs.items() if not k.startswith("_")})
    inputs = ", ".join(tensor.name.removesuffix(":0") for tensor in op.inputs)
    shapes = ", ".join(attr_value.summary(tensor.shape) for tensor in op.inputs)
    return f"'{{{{node {op.name}}}}} = {op.type}[{attrs}]({inputs})' with input shapes: {shapes}"
