"""From the nodes of a step to a placer's problem: their units.

Stands for nothing in TensorFlow. Rules: a group of the colocation graph is a unit. A source (a constant, a placeholder)
goes with its first consumer, if it may be on all candidates of that. A loop stays together if possible, since the
transfers of its iterations are not modelled.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtflab.graph.loops import frames_of
from dtflab.graph.node import Node
from dtflab.hardware.machines import Machines
from dtflab.hardware.schedule import Fabric
from dtflab.hardware.workload import Workload
from dtflab.placement.colocation_graph import ColocationGraph
from dtflab.placement.problem import Problem


def problem_of(work: Workload, graph: ColocationGraph, machines: Machines) -> Problem:
    """The problem of placing the nodes of `work` on the devices of `graph`."""
    units = _Units(work.nodes, graph)
    where = dict.fromkeys((node.name for node in work.nodes), graph.devices[0])  # any: the problem says where
    seconds = [work.seconds(machines, device) for device in graph.devices]
    fabric = Fabric(machines, graph.devices)
    return Problem(work.tasks(where, machines), fabric, seconds, units.of, units.candidates)


class _Units:
    """The unit of each node (`of`), and the numbers of the devices that each unit may have."""

    def __init__(self, nodes: Sequence[Node], graph: ColocationGraph) -> None:
        self.graph = graph
        self._numbers = {device: d for d, device in enumerate(graph.devices)}
        self._of_key: dict[object, int] = {}  # a group, or a loop with the devices it may have
        self._of_node: dict[str, int] = {}
        self.candidates: list[list[int]] = []
        consumer = {source: node.name for node in reversed(nodes) for source in node.sources()}  # the first
        loops = frames_of(nodes)
        for node in nodes:
            if not node.is_source():
                self._of_node[node.name] = self._unit(node, loops[node.name][:1])
        for node in nodes:
            if node.is_source():
                self._of_node[node.name] = self._of_source(node, self._of_node.get(consumer.get(node.name, ""), -1))
        self.of = [self._of_node[node.name] for node in nodes]

    def _unit(self, node: Node, loop: tuple[bytes, ...] = ()) -> int:
        group = id(self.graph.group(node.name))
        if group not in self._of_key:
            found = self._devices(node)
            key = (loop, tuple(found)) if loop else group
            self._of_key[group] = self._of_key[key] = self._of_key.get(key, len(self.candidates))
            if self._of_key[group] == len(self.candidates):
                self.candidates.append(found)
        return self._of_key[group]

    def _devices(self, node: Node) -> list[int]:
        return [self._numbers[device] for device in self.graph.devices_for(node)]

    def _of_source(self, node: Node, unit: int) -> int:
        """The unit of a source: that of its consumer, or its own."""
        group = id(self.graph.group(node.name))
        if group not in self._of_key and unit >= 0 and set(self.candidates[unit]) <= set(self._devices(node)):
            self._of_key[group] = unit
        return self._unit(node)
