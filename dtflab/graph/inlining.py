"""Inlining: calls of functions, conditionals and loops with functions in them become ordinary nodes.

Stands for `lower_if_op.cc`, `lower_while_op.cc`, `lower_case_op.cc`, `lower_function_call_op.cc` and
`inline_function_utils.cc` in `core/common_runtime`. Left out: functions that are not inlined (`_noinline`), the marks
`_lower_using_switch_merge`, `_XlaMustCompile` and the like, which ask for what is done here anyway.

Rules: a pure function from nodes to nodes. The nodes of a body are named after the call, `call/inner`, and what is made
here `call/_…`, which no program can name. Under the call's own name there is an Identity of its results that waits for
all side effects: so it is fetched, fed and waited for as the call was. Nothing of a body starts before all inputs of
its call are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.base.limits import beyond, limits
from dtflab.base.malformed import MALFORMED, said
from dtflab.graph import dtypes
from dtflab.graph.device_spec import DeviceSpec
from dtflab.graph.dtypes import DType
from dtflab.graph.function import Function
from dtflab.graph.function_attr import FunctionAttr
from dtflab.graph.node import Edge, Node, make_node


def inline(nodes: Sequence[Node], going: Callable[[], object] = bool) -> list[Node]:
    """`nodes` without calls; NotFoundError for a missing function, InvalidArgumentError for a recursive one.

    ResourceExhaustedError if functions that were read become more nodes than `limits.inlined_nodes`, or lie too deep in
    each other. `going` is called before each node that is made, and ends the work by an error.
    """
    if not any(node.op in _LOWERINGS for node in nodes):
        return list(nodes)
    inlined = _Inlined(going)
    for node in nodes:
        try:
            inlined.add(node, ())
        except RecursionError:
            text = f"The functions that {{{{node {node.name}}}}} calls are nested too deep."
            raise errors.ResourceExhaustedError.of(text) from None
        except MALFORMED as error:
            text = f"{said(error)}; in what {{{{node {node.name}}}}} calls"
            raise errors.InvalidArgumentError.of(text) from error
    return inlined.nodes


def is_call(op: str) -> bool:
    """True for the ops that `inline` replaces."""
    return op in _LOWERINGS


class _Inlined:
    """The nodes as they grow."""

    def __init__(self, going: Callable[[], object]) -> None:
        self.nodes: list[Node] = []
        self.limited = False  # a function that was read has been called
        self._going = going
        self._made = 0

    def add(self, node: Node, stack: tuple[str, ...]) -> None:
        """Add a node, or what a call becomes. `stack` names the functions around it."""
        if node.op in _LOWERINGS:
            _LOWERINGS[node.op](_Call(self, node, stack))
        elif stack:
            self.make(node)
        else:
            self.nodes.append(node)

    def make(self, node: Node) -> None:
        """Add a node that a call becomes."""
        self._going()
        self._made += 1
        if self.limited and self._made > limits.inlined_nodes:
            what = f"Calls of functions become {self._made} nodes, until {{{{node {node.name}}}}}"
            raise errors.ResourceExhaustedError.of(beyond("inlined_nodes", what))
        self.nodes.append(node)


class _Call:
    """A call that is being replaced."""

    def __init__(self, inlined: _Inlined, node: Node, stack: tuple[str, ...]) -> None:
        self.inlined = inlined
        self.node = node
        self.stack = stack

    def make(self, name: str, op: str, inputs: Sequence[Edge], controls: Sequence[str] = (), **attrs: Any) -> str:
        """Add a node of ours where the call is; its name."""
        node = make_node(f"{self.node.name}/_{name}", op, inputs, controls, self.node.device, **attrs)
        self.inlined.make(node)
        return node.name

    def identity(self, name: str, edge: Edge, dtype: DType, controls: Sequence[str] = ()) -> str:
        return self.make(name, "Identity", [edge], controls, T=dtype)

    def as_bool(self, edge: Edge, dtype: DType, controls: Sequence[str] = ()) -> Edge:
        """A condition: a bool, or what is true if it is not zero or empty."""
        if dtype == dtypes.bool:
            return (self.identity("condition", edge, dtype, controls), 0) if controls else edge
        return self.make("condition", "ToBool", [edge], controls, T=dtype), 0

    def gate(self, edges: Sequence[Edge], types: Sequence[DType], controls: Sequence[str], label: str) -> list[Edge]:
        """The same values, once `controls` have run."""
        return [
            (self.identity(f"{label}_{i}", edge, dtype, controls), 0)
            for i, (edge, dtype) in enumerate(zip(edges, types, strict=True))
        ]

    def body(self, attr: str | FunctionAttr, label: str, arguments: Sequence[Edge], pivot: str | None) -> _Body:
        """Add the body of a function. Nodes without input wait for `pivot`."""
        called = self.node.attrs[attr] if isinstance(attr, str) else attr
        try:
            function = called.function
        except errors.OpError as error:
            raise type(error).of(f"{error.message}\n\t [[{{{{node {self.node.name}}}}}]]") from None
        self.inlined.limited |= function.library.was_read
        if function.name in self.stack:
            raise errors.InvalidArgumentError.of(
                f"Function {function.name} calls itself ({' → '.join([*self.stack, function.name])}), "
                f"which dtflab can't do: use a loop.\n\t [[{{{{node {self.node.name}}}}}]]"
            )
        if len(arguments) != len(function.arguments):
            raise errors.InvalidArgumentError.of(
                f"Function {function.name} takes {len(function.arguments)} arguments, but node "
                f"{{{{node {self.node.name}}}}} gives {len(arguments)}."
            )
        prefix = f"{self.node.name}/{label}" if label else self.node.name
        return _Body(self, function, prefix, arguments, pivot)

    def end(self, results: Sequence[Edge], controls: Sequence[str]) -> None:
        """The node that stands where the call was."""
        types = self.node.output_types
        op = "NoOp" if not types else "Identity" if len(types) == 1 else "IdentityN"
        attrs: dict[str, Any] = {} if not types else {"T": types[0] if len(types) == 1 else types}
        attrs.update((name, value) for name, value in self.node.attrs.items() if name == "_class")
        end = make_node(self.node.name, op, results if types else [], controls, self.node.device, **attrs)
        end.line = self.node.line
        self.inlined.make(end)


class _Body:
    """One body in its place: where its results are, and which of its nodes have side effects."""

    def __init__(
        self, call: _Call, function: Function, prefix: str, arguments: Sequence[Edge], pivot: str | None
    ) -> None:
        self._prefix = prefix
        self._pivot = [pivot] if pivot else []
        self._arguments = {n.name: arguments[n.attrs["index"]] for n in function.nodes if n.op == "_Arg"}
        self._names = {node.name for node in function.nodes}
        self.effects = [f"{prefix}/{name}" for name in function.controls if name not in self._arguments]
        found: dict[int, Edge] = {}
        for node in function.nodes:
            if node.op == "_Retval":
                found[node.attrs["index"]] = self._edge(node.inputs[0])
            elif node.op != "_Arg":
                call.inlined.add(self._renamed(node, call.node.device), (*call.stack, function.name))
        self.results = [found[i] for i in range(len(found))]

    def _edge(self, edge: Edge) -> Edge:
        return self._arguments.get(edge[0]) or (f"{self._prefix}/{edge[0]}", edge[1])

    def _renamed(self, node: Node, device: str) -> Node:
        controls = [f"{self._prefix}/{name}" for name in node.controls if name not in self._arguments]
        if (not node.inputs and not controls) or len(controls) < len(node.controls):
            controls += self._pivot
        attrs = node.attrs
        if "_class" in attrs:
            groups = [name for name in node.colocated_with() if name in self._names and name not in self._arguments]
            attrs = {**attrs, "_class": [f"loc:@{self._prefix}/{name}".encode() for name in groups]}
        return node.replace(
            name=f"{self._prefix}/{node.name}",
            inputs=[self._edge(edge) for edge in node.inputs],
            controls=controls,
            device=_device(node.device, device),
            attrs=attrs,
        )


def _device(inner: str, outer: str) -> str:
    """The device of a node in a body: its own wishes, completed by those of its call."""
    if not inner or not outer:
        return inner or outer
    device = DeviceSpec.from_string(outer)
    device.merge_from(DeviceSpec.from_string(inner))
    return device.to_string()


# -- calls ------------------------------------------------------------------------------------------------------


def _call(call: _Call) -> None:
    """The arguments are handed on when they, and what the call waits for, are there."""
    node = call.node
    arguments = call.gate(node.inputs, node.attrs["Tin"], node.controls, "argument")
    waits = [name for name, _ in arguments] or node.controls
    pivot = waits[0] if len(waits) == 1 else call.make("start", "NoOp", [], waits) if waits else None
    body = call.body("f", "", arguments, pivot)
    call.end(body.results, body.effects or ([pivot] if pivot else []))


# -- conditionals -----------------------------------------------------------------------------------------------


def _if(call: _Call) -> None:
    node = call.node
    condition = call.as_bool(node.inputs[0], node.attrs["Tcond"], node.controls)
    branches = [(node.attrs["else_branch"], "else/_1"), (node.attrs["then_branch"], "then/_0")]
    _choose(call, condition, dtypes.bool, branches, "Switch", {})


def _case(call: _Call) -> None:
    node = call.node
    index = (call.identity("index", node.inputs[0], dtypes.int32, node.controls), 0)
    branches = [(branch, f"branch{i}/_{i}") for i, branch in enumerate(node.attrs["branches"])]
    _choose(call, index, dtypes.int32, branches, "_SwitchN", {"num_outs": len(branches)})


def _choose(
    call: _Call, index: Edge, dtype: DType, branches: Sequence[tuple[FunctionAttr, str]], switch: str,
    attrs: dict[str, Any],
) -> None:  # fmt: skip
    """Each branch gets the inputs through switches, whose other outputs are dead, and merges choose the results."""
    node = call.node
    chosen = call.make("switch_pivot", switch, [index, index], T=dtype, **attrs)
    switches = [
        call.make(f"switch_{i}", switch, [edge, index], T=t, **attrs)
        for i, (edge, t) in enumerate(zip(node.inputs[1:], node.attrs["Tin"], strict=True))
    ]
    bodies, ends = [], []
    for i, (branch, label) in enumerate(branches):
        pivot = call.identity(f"pivot_{i}", (chosen, i), dtype)
        bodies.append(call.body(branch, label, [(name, i) for name in switches], pivot))
        effects = bodies[-1].effects
        ends.append((call.identity(f"end_{i}", (pivot, 0), dtype, effects) if effects else pivot, 0))
    results = [
        (call.make(f"merge_{i}", "Merge", [body.results[i] for body in bodies], T=t, N=len(bodies)), 0)
        for i, t in enumerate(node.output_types)
    ]
    waits = any(body.effects for body in bodies) or not results
    call.end(results, [call.make("end", "Merge", ends, T=dtype, N=len(ends))] if waits else [])


# -- loops ------------------------------------------------------------------------------------------------------


def _while(call: _Call) -> None:
    """Variables of the loop go round through Merge, Switch and NextIteration; a resource stays the same one."""
    node, types = call.node, call.node.attrs["T"]
    frame = {"frame_name": node.name.encode(), "parallel_iterations": node.attrs["parallel_iterations"]}
    varying = [i for i, dtype in enumerate(types) if dtype != dtypes.resource]
    if not varying:
        raise errors.InvalidArgumentError.of(
            f"{{{{node {node.name}}}}} is a loop without a variable that could end it."
        )
    enters = [
        call.make(f"enter_{i}", "Enter", [edge], node.controls, T=types[i], is_constant=i not in varying, **frame)
        for i, edge in enumerate(node.inputs)
    ]
    name = f"{node.name}/_{{}}_{{}}".format
    merges = {
        i: call.make(f"merge_{i}", "Merge", [(enters[i], 0), (name("next", i), 0)], T=types[i], N=2) for i in varying
    }
    condition = call.body("cond", "cond/_0", _turn(call, merges, 0, enters, merges[varying[0]], "ask"),
                          merges[varying[0]])  # fmt: skip
    asked = call.as_bool(condition.results[0], _type_of(call, "cond"))
    goes_on = call.make("loop_cond", "LoopCond", [asked], condition.effects)
    switches = {i: call.make(f"switch_{i}", "Switch", [(merges[i], 0), (goes_on, 0)], T=types[i]) for i in varying}
    pivot = call.identity("pivot", (switches[varying[0]], 1), types[varying[0]])
    body = call.body("body", "body/_1", _turn(call, switches, 1, enters, pivot, "do"), pivot)
    for i in varying:
        call.make(f"next_{i}", "NextIteration", [body.results[i]], body.effects, T=types[i])
    exits = {i: call.make(f"exit_{i}", "Exit", [(switches[i], 0)], T=types[i]) for i in varying}
    call.end([(exits[i], 0) if i in varying else edge for i, edge in enumerate(node.inputs)], [])


def _turn(
    call: _Call, varying: dict[int, str], output: int, enters: Sequence[str], pivot: str, label: str
) -> list[Edge]:
    """The arguments of a function of the loop in one turn: a resource, too, is there only once the turn has begun."""
    constant = {
        i: call.identity(f"{label}_{i}", (enter, 0), dtypes.resource, [pivot])
        for i, enter in enumerate(enters)
        if i not in varying
    }
    return [(varying[i], output) if i in varying else (constant[i], 0) for i in range(len(enters))]


def _type_of(call: _Call, attr: str) -> DType:
    """The type of the only result of a function."""
    called: FunctionAttr = call.node.attrs[attr]
    return called.function.results[0][1]


_LOWERINGS: dict[str, Callable[[_Call], None]] = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), _call),
    **dict.fromkeys(("If", "StatelessIf"), _if),
    **dict.fromkeys(("Case", "StatelessCase"), _case),
    **dict.fromkeys(("While", "StatelessWhile"), _while),
}
