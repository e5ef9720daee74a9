"""Groups of nodes that must share a device, and the devices that each group may have.

Stands for `core/common_runtime/colocation_graph.cc`. Left out: functions, data sets, composite and XLA devices, and
ops without a CPU kernel, for here each has one.

Rules: nodes joined by a reference or a resource edge form a group, and so do those that a `_class` attribute joins: a
union-find over the nodes. A group's request is that of its members, field by field; what was placed before is stronger
than the pin of a variable (or other resource), and that is stronger than the pin of an op that is handed the variable.
A group may be on a GPU if each member has a kernel there. With soft placement, type and number of a request that
nothing satisfies are given up, and a contradiction of pins leaves them open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.graph import device_spec, dtypes, op_registry
from dtflab.graph.device_spec import DeviceName
from dtflab.graph.node import Node, by_name
from dtflab.placement import placement_errors


@dataclasses.dataclass(slots=True)
class Group:
    """The combined requests of nodes that share a device, in three device names of decreasing strength.

    `pinned` and `cpu_only` are members that account for it: the first with a request, the first without GPU kernel.
    """

    assigned: str = ""  # where a member was placed
    resource: str = ""  # where the program put the variables among them
    requested: str = ""  # never contradicts the other two
    pinned: Node | None = None
    cpu_only: Node | None = None
    rank: int = 0  # the height of its tree


class Link(NamedTuple):
    """Why a node is in a group: the other node, and the kind of link."""

    kind: str  # `reference edge`, `resource edge` or `colocation`
    other: str


class ColocationGraph:
    """The groups of a graph. `devices` are full names, best first; `placed` are nodes whose device is settled."""

    def __init__(self, nodes: Sequence[Node], devices: Sequence[str], soft: bool, placed: Mapping[str, str]) -> None:
        self.devices = devices
        self.placed = placed
        self.links: dict[str, Link] = {}
        self._soft = soft
        self._by_name: dict[str, Node] = {}
        self._on_cpus = {device for device in devices if device_spec.parse(device).type == "CPU"}
        self._of_task = grouped((device_spec.parse(device).task, device) for device in devices)  # by its number
        self.has_gpus = len(self._on_cpus) < len(devices)
        self._candidates: dict[tuple[str, bool], list[str]] = {}
        self._parent: dict[str, str] = {}  # the union-find; a node that is missing is a root
        self._groups: dict[str, Group] = {}  # of roots
        self._first: dict[str, str] = {}  # of the nodes that share a `_class`
        self.extend(nodes)

    def extend(self, nodes: Sequence[Node]) -> None:
        """Add nodes to the graph, and their groups to the groups. An error leaves some of them behind."""
        self._by_name |= by_name(nodes)
        self._groups |= {node.name: self._alone(node, self.placed.get(node.name, "")) for node in nodes}
        for node in nodes:
            self._join_by_edges(node)
        for node in nodes:
            self._join_by_class(node)

    @property
    def nodes(self) -> Collection[Node]:
        """The nodes of the graph, in its order."""
        return self._by_name.values()

    def devices_for(self, node: Node) -> list[str]:
        """The devices that a node may have, best first. Raises InvalidArgumentError if there are none."""
        group = self.group(node.name)
        found = self._matching(group.requested, group)
        if not found and self._soft:
            found = self._matching(_softened(group.requested, group.assigned or group.resource), group)
            found = found or self._matching(_softened(group.requested, group.assigned), group)
        if not found:
            raise placement_errors.no_device(self, node, group)
        return found

    def assign(self, node: Node, device: str) -> None:
        """Assign a node, and so its group, to a device."""
        group = self.group(node.name)
        group.assigned = group.resource = group.requested = device

    def settle(self, node: Node) -> None:
        """Keep the device of a node's group, and forget the pins that led to it: from now on it was placed before."""
        group = self.group(node.name)
        group.resource, group.pinned = "", None

    def node(self, name: str) -> Node:
        """A node by its name."""
        return self._by_name[name]

    def group(self, name: str) -> Group:
        """The group of a node."""
        return self._groups[self._root(name)]

    def members(self, group: Group) -> list[Node]:
        """The nodes of a group, in the graph's order."""
        return [node for node in self.nodes if self.group(node.name) is group]

    def device_types(self, node: Node) -> tuple[str, ...]:
        """The types of the graph's devices that have a kernel for a node."""
        if not self.has_gpus:  # then the table is not read
            return ("CPU",)
        from dtflab.ops import kernel_registry

        return kernel_registry.device_types(node.op, node.attrs)

    def _matching(self, request: str, group: Group) -> list[str]:
        """The devices that a request names and that all members have kernels for."""
        key = (request, group.cpu_only is None)
        if key not in self._candidates:
            name = device_spec.parse(request)
            near = self.devices if name.task is None else self._of_task.get(name.task, ())
            devices = near if group.cpu_only is None else [device for device in near if device in self._on_cpus]
            self._candidates[key] = [device for device in devices if device_spec.matches(request, device)]
        return self._candidates[key]

    # -- making groups ------------------------------------------------------------------------------------------

    def _alone(self, node: Node, placed: str) -> Group:
        """The group of one node."""
        try:
            device_spec.parse(node.device)
        except ValueError as error:
            raise placement_errors.malformed(node, str(error)) from None
        home = node.device if _makes_resource(node) and not placed else ""
        cpu_only = node if self.has_gpus and "GPU" not in self.device_types(node) else None
        return Group(placed, home, placed or node.device, node if node.device and not placed else None, cpu_only)

    def _root(self, name: str) -> str:
        parent = self._parent
        while name in parent:
            if (above := parent[name]) in parent:
                parent[name] = parent[above]  # halves the path for later look-ups
            name = above
        return name

    def _join_by_edges(self, node: Node) -> None:
        """Join a node with its inputs that are a variable or another resource, not a value."""
        for position, (source, output) in enumerate(node.inputs):
            dtype = self._by_name[source].output_types[output]
            is_resource = dtype == dtypes.resource
            if is_resource or (dtype._is_ref_dtype and _wants_reference(node, position)):
                mine, theirs = self.group(node.name), self.group(source)
                self.links.setdefault(node.name, Link("resource edge" if is_resource else "reference edge", source))
                if mine is not theirs:
                    _give_way(node, self.node(source), mine, theirs)
                    self._join(source, node.name, by_edge=True)

    def _join_by_class(self, node: Node) -> None:
        """Join a node with those that name the same group in `_class`; a node's own name is a group, too."""
        for name in (*node.colocated_with(), node.name):
            other = self._first.setdefault(name, node.name)
            if other != node.name and self._join(node.name, other):
                leader = name if name in self._by_name else other
                follower = other if leader == node.name else node.name
                self.links.setdefault(follower, Link("colocation", leader))

    def _join(self, x: str, y: str, by_edge: bool = False) -> bool:
        """Merge two groups. Returns False if requests conflict and soft placement leaves a `_class` group apart."""
        a, b = self._root(x), self._root(y)
        if a == b:
            return True
        root, other = (b, a) if self._groups[a].rank < self._groups[b].rank else (a, b)
        try:
            self._groups[root] = _merged(self._groups[root], self._groups[other], self._soft)
        except ValueError as error:
            if self._soft and not by_edge:
                return False
            raise placement_errors.conflict(self, x, y, by_edge, str(error)) from None
        del self._groups[other]
        self._parent[other] = root
        return True


def _makes_resource(node: Node) -> bool:
    """True for a node that only creates a variable or another resource: its pin is the resource's."""
    types = node.output_types
    return not node.inputs and len(types) == 1 and (types[0]._is_ref_dtype or types[0] == dtypes.resource)


def _wants_reference(node: Node, position: int) -> bool:
    return op_registry.get(node.op).op_def.input_types(node.attrs)[position]._is_ref_dtype


def _give_way(node: Node, source: Node, mine: Group, theirs: Group) -> None:
    """Drop the request of the consumer's group that conflicts with the group of its resource."""
    for strength in ("assigned", "resource"):
        a, b = getattr(theirs, strength), getattr(mine, strength)
        if not _agree(a, b):
            raise placement_errors.two_homes(node, source, strength, a, b)
    if not _agree(theirs.requested, mine.requested):
        mine.requested = _over(mine.resource, _over(mine.assigned, theirs.requested))


def _merged(a: Group, b: Group, soft: bool) -> Group:
    """The requests of both together. Raises ValueError where they conflict."""
    assigned, resource = _both(a.assigned, b.assigned), _both(a.resource, b.resource)
    requested = _over(resource, _over(assigned, _both(a.requested, b.requested, soft)))
    rank = a.rank + (a.rank == b.rank)
    return Group(assigned, resource, requested, a.pinned or b.pinned, a.cpu_only or b.cpu_only, rank)


def _both(a: str, b: str, soft: bool = False) -> str:
    if not a or not b or a == b:
        return a or b
    return device_spec.merge(a, b, soft)


def _agree(a: str, b: str) -> bool:
    """True if no field of two device names conflicts."""
    pairs = zip(device_spec.parse(a), device_spec.parse(b), strict=True)
    return all(mine is None or theirs is None or mine == theirs for mine, theirs in pairs)


def _over(strong: str, weak: str) -> str:
    """The fields of `strong`, and where it leaves them open those of `weak`."""
    if not strong or strong == weak:
        return weak
    pairs = zip(device_spec.parse(strong), device_spec.parse(weak), strict=True)
    return str(DeviceName._make(theirs if mine is None else mine for mine, theirs in pairs))


def _softened(request: str, keep: str) -> str:
    """A request without the type and the number of its device, unless `keep` has them."""
    kept = device_spec.parse(keep)
    changes = {field: None for field in ("type", "id") if getattr(kept, field) is None}
    return str(device_spec.parse(request)._replace(**changes))
