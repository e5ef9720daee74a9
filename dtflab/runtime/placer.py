"""Place: which device runs each node, and why.

Stands for `core/common_runtime/placer.cc`: the simple placer. The dynamic one of the 2015 white paper was never
released. `placement/colocation_graph.py` says which nodes must share a device, and which devices they can have.

Rules: a node that was placed in an earlier run stays. Else what the program pinned is kept, field by field. A node that
is still open goes to the first device with a kernel: GPUs before CPUs, the master's own task before others. Three sorts
of nodes would rather be on the same device as another, if they may: one that only looks at a shape, or passes a value
on, with its input; one without inputs, last of all, where all its consumers are.

`place` is a pure function: a program's own may take its place (`Session(placer=my_place)`). A session's master keeps a
`SimplePlacer` instead, which places the graph when the session is created, and then only what extends it. Pruned graphs
are never placed, that could move a variable between runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtflab.base.grouping import grouped
from dtflab.graph import device_spec
from dtflab.graph.node import Node
from dtflab.placement.colocation_graph import ColocationGraph
from dtflab.placement.reasons import EARLIER, Placement, Reasons

_METADATA = frozenset({"Shape", "Size", "Rank"})
_IDENTITIES = frozenset({"Identity", "RefIdentity"})


def place(
    nodes: Sequence[Node],
    devices: Sequence[str],
    default_task: str,
    allow_soft_placement: bool = False,
    placed: Mapping[str, str] | None = None,
) -> Placement:
    """The full device name of every node; `.reasons` of the result says in a sentence each why.

    `nodes` come in the order in which they were made, `devices` are full names; `default_task` is the task
    (`/job:worker/replica:0/task:0`) that open requests go to; `placed` are nodes whose device is settled. Raises
    InvalidArgumentError for a request that nothing satisfies, or two that contradict each other inside a group.
    """
    placed = placed or {}
    found = SimplePlacer(devices, default_task, allow_soft_placement, placed).extend(nodes)
    return Placement({**placed, **found}, {**dict.fromkeys(placed, EARLIER), **found.reasons})


class SimplePlacer:
    """Places a graph that grows. What an extension costs depends on its nodes, not on those before it."""

    def __init__(
        self, devices: Sequence[str], default_task: str, allow_soft_placement: bool, placed: Mapping[str, str]
    ) -> None:
        ranked = sorted(devices, key=lambda device: _preference(device, default_task))
        self._where = dict(placed)
        self._graph = ColocationGraph((), ranked, allow_soft_placement, self._where)
        self._reasons = Reasons(self._graph, default_task)

    def extend(self, nodes: Sequence[Node]) -> Placement:
        """The devices of those `nodes` that are not placed yet. After an error the placer can't be used any more."""
        graph, reasons, consumers = self._graph, self._reasons, _consumers(nodes)
        graph.extend(nodes)
        open_nodes = [node for node in nodes if node.name not in self._where]
        where: dict[str, str] = {}
        why: dict[str, str] = {}

        def choose(node: Node, neighbours: Sequence[Node]) -> None:
            candidates = graph.devices_for(node)
            near = {where.get(neighbour.name) or self._where.get(neighbour.name) for neighbour in neighbours}
            wish = near.pop() if len(near) == 1 else None
            if wish in candidates and len(candidates) > 1:
                where[node.name], why[node.name] = wish, reasons.next_to(node, neighbours)
            else:
                where[node.name], why[node.name] = candidates[0], reasons.of(node, candidates)
            graph.assign(node, where[node.name])

        for node in open_nodes:
            if not node.is_source():
                choose(node, [graph.node(node.inputs[0][0])] if _follows_input(node, graph, consumers) else ())
        for node in open_nodes:
            if node.is_source():
                choose(node, consumers.get(node.name, ()))
        for node in open_nodes:
            graph.settle(node)
        self._where |= where
        return Placement(where, why)


def _preference(device: str, default_task: str) -> tuple[bool, bool, str]:
    """GPUs before CPUs, the default task before others, then by name, letter by letter."""
    return device_spec.parse(device).type == "CPU", not device.startswith(default_task + "/"), device


def _consumers(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """The consumers of each node, once per edge."""
    return grouped((source, node) for node in nodes for source in [*(name for name, _ in node.inputs), *node.controls])


def _follows_input(node: Node, graph: ColocationGraph, consumers: Mapping[str, Sequence[Node]]) -> bool:
    """True for a node that would rather be on its input's device.

    An identity is such if it is open, its one input and its one consumer ask for the same, and nothing else waits.
    """
    if node.op in _METADATA:
        return True
    if node.op not in _IDENTITIES or node.device or node.controls:
        return False
    after = consumers.get(node.name, ())
    wanted = after[0].device if after else ""
    return len(after) <= 1 and graph.node(node.inputs[0][0]).device == wanted
