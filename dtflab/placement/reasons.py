"""The log of placements, and the reason for each in a sentence that can be checked against the program."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from dtflab.graph import device_spec, op_registry
from dtflab.graph.node import Node
from dtflab.placement.colocation_graph import ColocationGraph, Group
from dtflab.placement.placement_errors import types_of

EARLIER = "placed in an earlier run"

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "TemporaryVariable"})


class Placement(dict[str, str]):
    """The device of each node, by name. `reasons` says why; a device that is changed afterwards has no reason."""

    def __init__(self, where: Mapping[str, str], why: Mapping[str, str]) -> None:
        super().__init__(where)
        self._placed, self._why = where, why

    @property
    def reasons(self) -> dict[str, str]:
        """One short sentence per node."""
        return {name: why for name, why in self._why.items() if self.get(name) == self._placed[name]}


def reasons_of(where: Mapping[str, str], names: Iterable[str], placer: object) -> dict[str, str]:
    """Why nodes are where a placer put them: its own reasons, or that the program's own placer did it."""
    said = getattr(where, "reasons", {})
    own = f"placed by the program's own placer {getattr(placer, '__name__', placer)}"
    return {name: said.get(name, own) for name in names}


def log_placement(nodes: Iterable[Node], new: Container[str]) -> None:
    """Print where the nodes of a graph are, in the order of TensorFlow's placer (`log_device_placement`).

    TensorFlow places sources of data last, next to their reader, unless one with state has its device already.
    """

    def comes_last(node: Node) -> bool:
        return node.is_source() and (node.name in new or not op_registry.get(node.op).stateful)

    print(*(f"{n.name}: ({n.op}): {n.device}\n" for n in sorted(nodes, key=comes_last)), sep="", end="", flush=True)


class Reasons:
    """Finds the sentence for a node that is being placed."""

    def __init__(self, graph: ColocationGraph, default_task: str) -> None:
        self._graph = graph
        self._default_task = default_task
        self._defaults: dict[str, str] = {}

    def next_to(self, node: Node, neighbours: Sequence[Node]) -> str:
        """The reason for a node that follows its input or its consumers although it is free to be elsewhere."""
        pin = f"pinned to {short(node.device)}; there " if node.device else ""
        near = repr(neighbours[0].name)
        if not node.inputs:
            others = len({neighbour.name for neighbour in neighbours}) - 1
            return f"{pin}next to its " + (f"consumers, {near} and {others} more" if others else f"consumer {near}")
        if node.op.endswith("Identity"):
            return f"only passes on {near}, so next to it"
        return f"{pin}only reads the {node.op.lower()} of {near}, so next to it"

    def of(self, node: Node, candidates: Sequence[str]) -> str:
        """The reason for a node that got the first of its candidate devices."""
        device, group = candidates[0], self._graph.group(node.name)
        asked = device_spec.parse(node.device)
        fits = device_spec.matches(node.device, device)
        if asked.type is not None and fits:
            return f"pinned to {short(node.device)} by the program"
        if node.name in self._graph.links:
            return self._link(node) + ("" if fits else f", against its own pin to {short(node.device)}")
        if not fits:
            return self._soft(node, group)
        if node.device:
            return f"pinned to {short(node.device)}; there the first device{self._with_kernel()}"
        return self._open(node, group, device)

    def _link(self, node: Node) -> str:
        kind, other = self._graph.links[node.name]
        is_variable = self._graph.node(self._origin(other)).op in _VARIABLES
        if kind == "colocation":
            return f"colocated with {'its variable ' * is_variable}{other!r}"
        return f"next to {'its variable ' * is_variable}{self._origin(other)!r} ({kind})"

    def _origin(self, name: str) -> str:
        """The name of the node that made the variable that `name` passes on."""
        seen = set()
        while name not in seen and (link := self._graph.links.get(name)) and link.kind != "colocation":
            seen.add(name)
            name = link.other
        return name

    def _soft(self, node: Node, group: Group) -> str:
        """The reason for a node whose pin soft placement gave up."""
        request = short(node.device)
        if not any(device_spec.matches(node.device, device) for device in self._graph.devices):
            return f"there is no {request}, so the first device{self._with_kernel()} (soft placement)"
        if group.cpu_only is not None:
            return f"{self._no_kernel(node, group.cpu_only)}, so the CPU (soft placement)"
        return f"pinned to {request}, but a node that shares its device is pinned elsewhere (soft placement)"

    def _open(self, node: Node, group: Group, device: str) -> str:
        """The reason for a node that the program does not pin."""
        if group.pinned is not None:
            return f"shares its device with {group.pinned.name!r}, which is pinned to {short(group.pinned.device)}"
        if group.cpu_only is not None:
            return f"{self._no_kernel(node, group.cpu_only)}, so the CPU"
        if device not in self._defaults:
            self._defaults[device] = self._default(device)
        return self._defaults[device]

    def _default(self, device: str) -> str:
        if len(self._graph.devices) == 1:
            return "the only device"
        own = device.startswith(self._default_task + "/")
        where = " of the master's task" if own else "; the master's task has none"
        return f"default device: the first {device_spec.parse(device).type}{where}"

    def _no_kernel(self, node: Node, culprit: Node) -> str:
        if culprit is node:
            return f"no GPU kernel for {node.op}{types_of(node)}"
        return f"shares its device with {culprit.name!r}, which has no GPU kernel ({culprit.op}{types_of(culprit)})"

    def _with_kernel(self) -> str:
        return " with a kernel" if self._graph.has_gpus else ""


def short(device: str) -> str:
    """A device as people write it: `/job:ps/gpu:0`."""
    name = device_spec.plain(str(device_spec.parse(device)))
    return name.replace("/device:GPU:", "/gpu:").replace("/device:CPU:", "/cpu:")
