"""Place: which device runs each node.

Stands for `core/common_runtime/placer.cc` and `colocation_graph.cc`: the simple placer. The dynamic one of the 2015
white paper was never released.

Rules: what the program pinned is kept, field by field; nodes that share a variable or a colocation group share a
device, and a variable's pin is stronger than that of an op that is handed it. Whatever is still open goes to the
master's own task, and there to the first device. A node without inputs goes where its only consumers are, a node that
only looks at a shape goes to its input.

A pure function: a program's own may take its place (`Session(placer=my_place)`). It runs once, on the full graph, when
a session is created or extended; pruned graphs are never placed, that could move a variable between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtflab.graph import device_spec, dtypes, errors, op_registry
from dtflab.graph.node import Node, by_name

Placer = Callable[..., Mapping[str, str]]

_METADATA = frozenset({"Shape", "ShapeN", "Size", "Rank"})


def place(
    nodes: Sequence[Node],
    devices: Sequence[str],
    default_task: str,
    allow_soft_placement: bool = False,
    placed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The full device name of every node.

    `devices` are full names; `default_task` is the task (`/job:worker/replica:0/task:0`) that open requests go to;
    `placed` are nodes whose device is settled. Raises InvalidArgumentError for a request that nothing satisfies, or two
    that contradict each other inside a colocation group.
    """
    ranked = sorted(devices, key=lambda d: _preference(d, default_task))
    result = dict(placed or {})
    graph, consumers = by_name(nodes), _consumers(nodes)
    wishes = [(*_wish(group, graph, consumers), group) for group in _groups(nodes, allow_soft_placement)]
    for _, neighbours, group in sorted(wishes, key=lambda wish: wish[0]):
        settled = next((result[m.name] for m in group.members if m.name in result), None)
        candidates = [settled] if settled else _candidates(group, ranked, allow_soft_placement)
        near = {result.get(name) for name in neighbours}
        wish = near.pop() if len(near) == 1 else None
        for member in group.members:
            result.setdefault(member.name, wish if wish in candidates else candidates[0])
    return result


def _preference(device: str, default_task: str) -> tuple[Any, ...]:
    """GPUs before CPUs, the default task before others, then by name."""
    name = device_spec.parse(device)
    return (name.type == "CPU", not device.startswith(default_task + "/"), name.job, name.replica, name.task, name.id)


def _consumers(nodes: Sequence[Node]) -> dict[str, list[str]]:
    consumers: dict[str, list[str]] = {}
    for node in nodes:
        for source in node.sources():
            consumers.setdefault(source, []).append(node.name)
    return consumers


def _wish(group: _Group, graph: Mapping[str, Node], consumers: Mapping[str, list[str]]) -> tuple[int, Sequence[str]]:
    """When a group's turn is, and beside which nodes it would like to be.

    Most nodes come first and have no wish; then those that only look at their input's shape, or pass on what was read
    from a variable; then those without inputs, when all else has its place.
    """
    node = group.members[0]
    if len(group.members) > 1:
        return 0, ()
    if node.inputs:
        source = node.inputs[0][0]
        beside = node.op in _METADATA or (node.op == "Identity" and graph[source].op == "ReadVariableOp")
        return (1, [source]) if beside else (0, ())
    generates = len(node.output_types) == 1 and not node.output_types[0]._is_ref_dtype
    return (2, consumers.get(node.name, ())) if generates else (0, ())


# -- who must share a device --------------------------------------------------------------------------------


class _Group:
    """Nodes that must share a device, and what they ask for together."""

    def __init__(self, members: list[Node], request: str = "", home: str = "") -> None:
        self.members = members
        self.request = request
        self.home = home  # where the program put the variables among them


def _groups(nodes: Sequence[Node], soft: bool) -> list[_Group]:
    """All nodes, in groups that must share a device."""
    group_of = {node.name: _Group([node], node.device, node.device if _makes_state(node) else "") for node in nodes}

    def join(node: Node, other: str, request: str, home: str = "") -> None:
        mine, theirs = group_of[node.name], group_of.setdefault(other, _Group([]))
        theirs.request, theirs.home = request, home
        if theirs is not mine:
            theirs.members += mine.members
            group_of.update((member.name, theirs) for member in mine.members)

    for node in nodes:
        for source in _handed(node):
            mine, theirs = group_of[node.name], group_of[source]
            if _merged(theirs.home, mine.home) is None:
                raise _two_homes(node, mine.home, source, theirs.home)
            # The variable's device wins over that of the op that is handed it.
            request = _merged(theirs.request, mine.request) or theirs.request
            join(node, source, request, _merged(theirs.home, mine.home) or "")
    for node in nodes:
        for other in node.colocated_with():
            mine, theirs = group_of[node.name], group_of.setdefault(other, _Group([]))
            try:
                join(node, other, device_spec.merge(theirs.request, mine.request, soft), theirs.home or mine.home)
            except ValueError as error:
                raise _conflict(node, other, theirs, str(error)) from None
    return [group for group in dict.fromkeys(group_of.values()) if group.members]


def _makes_state(node: Node) -> bool:
    return not node.inputs and any(t._is_ref_dtype or t == dtypes.resource for t in node.output_types)


def _handed(node: Node) -> list[str]:
    """The nodes that hand a variable, not its value, to `node`."""
    types = op_registry.get(node.op).op_def.input_types(node.attrs)
    edges = zip(node.inputs, types, strict=True)
    return [source for (source, _), dtype in edges if dtype._is_ref_dtype or dtype == dtypes.resource]


def _merged(a: str, b: str) -> str | None:
    """The device name that asks for both; None if they contradict."""
    try:
        return device_spec.merge(a, b)
    except ValueError:
        return None


def _candidates(group: _Group, ranked: Sequence[str], soft: bool) -> list[str]:
    """The devices that satisfy a group's request, best first."""
    found = [d for d in ranked if device_spec.matches(group.request, d)]
    if not found and soft:
        open_type = str(device_spec.parse(group.request)._replace(type=None, id=None))
        found = [d for d in ranked if device_spec.matches(open_type, d)]
    if not found:
        raise _no_device(group.members, group.request, ranked)
    return found


# -- what can't be satisfied --------------------------------------------------------------------------------


def _two_homes(node: Node, home: str, source: str, other: str) -> errors.OpError:
    return errors.InvalidArgumentError(
        None,
        None,
        "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible "
        f"resource devices: {other} vs {home}. The edge src node is '{source}', and the dst node is '{node.name}' "
        f"({node.op}), which needs both variables on its own device.\n\t [[{{{{node {node.name}}}}}]]",
    )


def _conflict(node: Node, other: str, group: _Group, why: str) -> errors.OpError:
    listing = "\n".join(f"  {m.name} ({m.op}) {m.device or '(any device)'}" for m in [*group.members, node])
    return errors.InvalidArgumentError(
        None,
        None,
        f"Cannot colocate nodes {{{{colocation_node {node.name}}}}} and {{{{colocation_node {other}}}}}: {why}. "
        f"These nodes need one device:\n{listing}\n\t [[{{{{node {node.name}}}}}]]",
    )


def _no_device(members: Sequence[Node], request: str, ranked: Sequence[str]) -> errors.OpError:
    pinned = next((m for m in members if m.device), members[0])
    task = str(device_spec.parse(request)._replace(type=None, id=None))
    soft = ", or let the session choose another one with tf.ConfigProto(allow_soft_placement=True)"
    hint = soft if any(device_spec.matches(task, d) for d in ranked) else ": the cluster has no such job or task"
    text = (
        f"Cannot assign a device for operation {pinned.name}: {{{{node {pinned.name}}}}} was explicitly assigned to "
        f"{request} but available devices are [ {', '.join(sorted(ranked))} ]. Make sure the device specification "
        f"refers to a valid device{hint}.\n\t [[{{{{node {pinned.name}}}}}]]"
    )
    return errors.InvalidArgumentError(None, None, text)
