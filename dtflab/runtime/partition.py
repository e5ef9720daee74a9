"""Partition: a placed graph → one graph per place, with a `_Send`/`_Recv` pair on every edge that crosses.

Stands for `core/graph/graph_partition.cc`. Used twice, as in TensorFlow: the master cuts by task, each worker cuts its
part by device.

Rules: a pure function. One pair per (tensor, destination device), however many consumers. A control edge crosses as an
empty tensor. In a loop that spans places, each place that receives gets a small loop of its own (`_control_loops`),
driven by the loop's condition, so that its `_Recv` nodes run once per iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes, op_registry
from dtflab.graph.node import Node, by_name, make_node

Frames = tuple[bytes, ...]  # names of the loops around a node, outermost first


def partition(
    nodes: Sequence[Node], location: Callable[[Node], str], incarnations: Mapping[str, int]
) -> dict[str, list[Node]]:
    """Split placed nodes by `location(node)`; `incarnations` of devices go into the keys of the crossings."""
    locations = {node.name: location(node) for node in nodes}
    if len(set(locations.values())) == 1:
        return {next(iter(locations.values())): list(nodes)}
    return _Partitioning(nodes, location, locations, incarnations).parts


class _Partitioning:
    """The parts as they grow."""

    def __init__(
        self,
        nodes: Sequence[Node],
        location: Callable[[Node], str],
        locations: dict[str, str],
        incarnations: Mapping[str, int],
    ) -> None:
        self.location = location
        self.locations = locations
        self.incarnations = incarnations
        self.sources = by_name(nodes)
        self.parts: dict[str, list[Node]] = {place: [] for place in dict.fromkeys(locations.values())}
        self.received: dict[tuple[str, int, str, Frames], str] = {}  # (tensor, destination device) → its _Recv
        self.frames = frames_of(nodes)
        self.loops: dict[tuple[Frames, str], str] = {}  # (loop, device) → the Merge that ticks there
        self.edges = 0
        for node in nodes:
            self._add(node)

    def _add(self, node: Node) -> None:
        """Put a node into its part, with the edges that cross replaced by receives."""
        here = self.locations[node.name]
        frames = self.frames.get(node.name, ())
        inputs = []
        for source, output in node.inputs:
            crosses = self.locations[source] != here
            inputs.append((self._receive(source, output, node.device, frames), 0) if crosses else (source, output))
        controls = []
        for source in node.controls:
            crosses = self.locations[source] != here
            controls.append(self._receive(source, -1, node.device, frames) if crosses else source)
        self.parts[here].append(node.replace(inputs=inputs, controls=list(dict.fromkeys(controls))))

    def _new(self, node: Node) -> str:
        place = self.location(node)
        self.locations[node.name] = place
        self.sources[node.name] = node
        self.parts.setdefault(place, []).append(node)
        return node.name

    def _receive(self, source: str, output: int, device: str, frames: Frames) -> str:
        """The name of the `_Recv` on `device` of that tensor; output -1 is «has finished»."""
        key = (source, output, device, frames)
        if key not in self.received:
            self.received[key] = self._cross(source, output, device, frames)
        return self.received[key]

    def _cross(self, source: str, output: int, device: str, frames: Frames) -> str:
        producer = self.sources[source]
        self.edges += 1
        tensor_name = f"edge_{self.edges}_{source}"
        # The names of the two ends say where they lead; so a part that is cut again can't meet them twice.
        name = f"{source}/_{'done' if output < 0 else output}_to{device}"
        attrs: dict[str, Any] = {
            "tensor_name": tensor_name.encode(),
            "send_device": producer.device.encode(),
            "send_device_incarnation": self.incarnations[producer.device],
            "recv_device": device.encode(),
        }
        if output < 0:
            dtype, edge = dtypes.float32, (self._signal(name, producer), 0)
        else:
            dtype, edge = producer.output_types[output].base_dtype, (source, output)
        self._new(make_node(f"{name}/send", "_Send", [edge], device=producer.device, T=dtype, **attrs))
        tick = [self._loop_on(device, frames)] if frames else []
        return self._new(make_node(f"{name}/recv", "_Recv", [], tick, device, tensor_type=dtype, **attrs))

    def _signal(self, name: str, producer: Node) -> str:
        """An empty tensor that exists once `producer` has finished."""
        value = np.zeros(0, np.float32)
        return self._new(
            make_node(f"{name}/signal", "Const", [], [producer.name], producer.device, value=value, dtype=dtypes.float32)
        )

    def _loop_on(self, device: str, frames: Frames) -> str:
        """The Merge on `device` that runs once per iteration of the innermost of `frames`."""
        if (frames, device) not in self.loops:
            self._control_loop(device, frames)
        return self.loops[frames, device]

    def _control_loop(self, device: str, frames: Frames) -> None:
        """Enter → Merge → Switch → NextIteration → Merge, with the condition of the real loop."""
        condition, enter_attrs = self._loop_facts(frames)
        name = f"_loop_{len(self.loops)}_on{device}"
        outer = [self._loop_on(device, frames[:-1])] if len(frames) > 1 else []
        zero = np.zeros((), np.int32)
        const = self._new(make_node(f"{name}/const", "Const", [], outer, device, value=zero, dtype=dtypes.int32))
        enter = self._new(make_node(f"{name}/enter", "Enter", [(const, 0)], device=device, T=dtypes.int32,
                                    frame_name=frames[-1], parallel_iterations=enter_attrs["parallel_iterations"]))  # fmt: skip
        merge = f"{name}/merge"
        self.loops[frames, device] = merge
        self._new(make_node(merge, "Merge", [(enter, 0), (f"{name}/next", 0)], device=device, T=dtypes.int32, N=2))
        there = self.location(self.sources[merge])
        if self.locations[condition] == there:
            predicate = (condition, 0)
        else:
            predicate = (self._receive(condition, 0, device, frames), 0)
        switch = self._new(make_node(f"{name}/switch", "Switch", [(merge, 0), predicate], device=device, T=dtypes.int32))
        self._new(make_node(f"{name}/next", "NextIteration", [(switch, 1)], device=device, T=dtypes.int32))

    def _loop_facts(self, frames: Frames) -> tuple[str, dict[str, Any]]:
        """The LoopCond of a loop, and the attributes of one of its Enters."""
        condition = next(n for n, f in self.frames.items() if f == frames and self.sources[n].op == "LoopCond")
        enter = next(
            node
            for node in self.sources.values()
            if node.op in ("Enter", "RefEnter") and node.attrs["frame_name"] == frames[-1]
        )
        return condition, enter.attrs


def frames_of(nodes: Sequence[Node]) -> dict[str, Frames]:
    """The loops inside which each node runs; empty if the graph has no loop. An Enter runs outside its loop."""
    kinds = {node.name: op_registry.get(node.op).control_flow for node in nodes}
    if "enter" not in kinds.values():
        return {}
    consumers: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for source in {source for source, _ in node.inputs} | set(node.controls):
            consumers[source].append(node.name)
    sources = by_name(nodes)
    frames: dict[str, Frames] = {node.name: () for node in nodes if not node.inputs and not node.controls}
    stack = list(frames)
    while stack:
        name = stack.pop()
        inner = frames[name]
        if kinds[name] == "enter":
            inner = (*inner, sources[name].attrs["frame_name"])
        elif kinds[name] == "exit":
            inner = inner[:-1]
        for consumer in consumers[name]:
            # A node may also have inputs from outside of its loop by way of invariants only, so the deepest wins.
            if consumer not in frames or len(inner) > len(frames[consumer]):
                frames[consumer] = inner
                stack.append(consumer)
    return frames


