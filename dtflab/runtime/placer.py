"""Place: which device runs each node.

Stands for `core/common_runtime/placer.cc` and `colocation_graph.cc`: the simple placer. The dynamic one of the 2015
white paper was never released.

Rules: what the program pinned is kept, field by field; nodes that share a variable or a colocation group share a device;
whatever is still open goes to the master's own task, and there to the first device. A node without inputs goes where its
only consumers are, a node that only looks at a shape goes to its input.

A pure function: a program's own may take its place (`Session(placer=my_place)`). It runs once, on the full graph, when a
session is created or extended; pruned graphs are never placed, that could move a variable between runs.
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
    graph = by_name(nodes)
    ranked = sorted(devices, key=lambda d: _preference(d, default_task))
    groups = _colocation_groups(nodes, graph)
    result = {name: device for name, device in (placed or {}).items() if name in graph}
    candidates: dict[str, list[str]] = {}  # by the root of a group
    for root, members in groups.items():
        settled = next((result[m.name] for m in members if m.name in result), None)
        candidates[root] = [settled] if settled else _candidates(members, ranked, allow_soft_placement)
    undecided = []
    for root, members in groups.items():
        if len(members) == 1 and (_is_generator(members[0]) or _is_metadata(members[0])):
            undecided.append((members[0], candidates[root]))
            continue
        for member in members:
            result.setdefault(member.name, candidates[root][0])
    _place_beside_neighbours(nodes, undecided, result)
    return result


def _preference(device: str, default_task: str) -> tuple[Any, ...]:
    """GPUs before CPUs, the default task before others, then by name."""
    name = device_spec.parse(device)
    return (name.type == "CPU", not device.startswith(default_task + "/"), name.job, name.replica, name.task, name.id)


def _colocation_groups(nodes: Sequence[Node], graph: Mapping[str, Node]) -> dict[str, list[Node]]:
    """Nodes that must share a device, by the name of one of them (union-find)."""
    parent = {node.name: node.name for node in nodes}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for node in nodes:
        for other in _companions(node, graph):
            if other not in parent:
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Node '{node.name}' asks to be colocated with unknown node '{other}' [[{{{{node {node.name}}}}}]]",
                )
            parent[root(node.name)] = root(other)
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        groups.setdefault(root(node.name), []).append(node)
    return groups


def _companions(node: Node, graph: Mapping[str, Node]) -> list[str]:
    """Nodes that `node` must share a device with: its colocation groups, and the variables that it is handed."""
    types = op_registry.get(node.op).op_def.input_types(node.attrs)
    handed = [
        source
        for (source, _), dtype in zip(node.inputs, types, strict=True)
        if dtype._is_ref_dtype or dtype == dtypes.resource
    ]
    return node.colocated_with() + handed


def _candidates(members: Sequence[Node], ranked: Sequence[str], soft: bool) -> list[str]:
    """The devices that satisfy all of a group's requests, best first."""
    request = ""
    for member in members:
        try:
            request = device_spec.merge(request, member.device, soft)
        except ValueError as error:
            raise _conflict(members, member, str(error)) from None
    found = [d for d in ranked if device_spec.matches(request, d)]
    if not found and soft:
        open_type = str(device_spec.parse(request)._replace(type=None, id=None))
        found = [d for d in ranked if device_spec.matches(open_type, d)]
    if not found:
        raise _no_device(members, request, ranked)
    return found


def _conflict(members: Sequence[Node], member: Node, why: str) -> errors.OpError:
    listing = "\n".join(f"  {m.name} ({m.op}) {m.device or '(any device)'}" for m in members)
    return errors.InvalidArgumentError(
        None,
        None,
        f"Cannot colocate nodes {{{{colocation_node {member.name}}}}} and {{{{colocation_node {members[0].name}}}}}: "
        f"{why}. These nodes share a variable or a colocation group and need one device:\n{listing}\n"
        f"\t [[{{{{node {member.name}}}}}]]",
    )


def _no_device(members: Sequence[Node], request: str, ranked: Sequence[str]) -> errors.OpError:
    pinned = next((m for m in members if m.device), members[0])
    return errors.InvalidArgumentError(
        None,
        None,
        f"Cannot assign a device for operation {pinned.name}: {{{{node {pinned.name}}}}} was explicitly assigned to "
        f"{request} but available devices are [ {', '.join(sorted(ranked))} ]. Make sure the device specification "
        "refers to a valid device, or let the session choose another one with "
        f"tf.ConfigProto(allow_soft_placement=True).\n\t [[{{{{node {pinned.name}}}}}]]",
    )


def _is_generator(node: Node) -> bool:
    return not node.inputs and len(node.output_types) == 1 and not node.output_types[0]._is_ref_dtype


def _is_metadata(node: Node) -> bool:
    return node.op in _METADATA


def _place_beside_neighbours(
    nodes: Sequence[Node], undecided: Sequence[tuple[Node, list[str]]], result: dict[str, str]
) -> None:
    """Put constants where they are used and shapes where the tensor is, if the request allows it."""
    consumers: dict[str, set[str]] = {node.name: set() for node, _ in undecided if node.name not in result}
    for node in nodes:
        for source in [s for s, _ in node.inputs] + node.controls:
            if source in consumers and node.name in result:
                consumers[source].add(result[node.name])
    for node, candidates in undecided:
        if node.name in result:
            continue
        if _is_metadata(node):
            wish = result.get(node.inputs[0][0])
        else:
            near = consumers[node.name]
            wish = next(iter(near)) if len(near) == 1 else None
        result[node.name] = wish if wish in candidates else candidates[0]
