"""Control loops: what each device must know of a loop that spans several devices.

Stands for AddControlFlow in `core/graph/graph_partition.cc`.

Rule: each device that receives something inside a loop gets a small loop, driven by the real loop's
condition. Its Merge ticks once per iteration, and a `_Recv` in the loop waits for that tick.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.graph import dtypes, op_registry
from dtflab.graph.loops import Frames, frames_of
from dtflab.graph.node import Node, by_name, make_node

TICK = "_cloop"  # TensorFlow's prefix, by which workers recognize the nodes of a control loop


def word(device: str) -> str:
    """A device as part of a node's name."""
    return re.sub("[^A-Za-z0-9]+", "_", device)


def spread_loops(nodes: Sequence[Node]) -> list[Node]:
    """The graph made ready to be cut: each device that receives a value inside a loop gets the loop's iterations.

    A Switch goes where its input is, in a branch, too: there a fed value comes in.
    """
    frames = frames_of(nodes)
    if len({node.device for node in nodes}) == 1 or not any(op_registry.get(node.op).control_flow for node in nodes):
        return list(nodes)
    devices = _control_flow_devices(nodes)
    nodes = [node.replace(device=devices[node.name]) for node in nodes]
    if not any(frames.values()):
        return nodes
    loops = _Loops(nodes, frames)
    ready = []
    for node in nodes:
        inside = frames[node.name]
        if inside and any(devices[source] != node.device for source in node.sources()):
            node = node.replace(controls=[*node.controls, loops.tick(inside, node.device)])
        ready.append(node)
    return ready + loops.added


def _control_flow_devices(nodes: Sequence[Node]) -> dict[str, str]:
    """The device of each node: Switch and Exit follow their input, Enter and NextIteration their only consumer.

    Otherwise a Merge could wait for a NextIteration of another device, which never comes in the first iteration.
    """
    sources = by_name(nodes)
    consumers = grouped((source, node) for node in nodes for source, _ in node.inputs)

    def device(node: Node) -> str:
        while op_registry.get(node.op).control_flow in ("switch", "exit"):
            node = sources[node.inputs[0][0]]
        if node.op in ("Enter", "NextIteration", "RefNextIteration") and len(consumers.get(node.name, ())) == 1:
            node = consumers[node.name][0]
        return node.device

    return {node.name: device(node) for node in nodes}


class _Loops:
    """The control loops, made when first asked for: Enter → Merge → Switch → NextIteration → Merge."""

    def __init__(self, nodes: Sequence[Node], frames: Mapping[str, Frames]) -> None:
        self.added: list[Node] = []
        self._ticks: dict[tuple[Frames, str], str] = {}
        self._conditions = {frames[node.name]: node.name for node in nodes if node.op == "LoopCond"}
        self._parallel = {
            node.attrs["frame_name"]: node.attrs["parallel_iterations"]
            for node in nodes
            if op_registry.get(node.op).control_flow == "enter"
        }

    def tick(self, frames: Frames, device: str) -> str:
        """The Merge on `device` that runs once per iteration of the innermost of `frames`."""
        if (frames, device) not in self._ticks:
            self._ticks[frames, device] = self._make(frames, device)
        return self._ticks[frames, device]

    def _make(self, frames: Frames, device: str) -> str:
        outer = self.tick(frames[:-1], device) if len(frames) > 1 else ""
        name = f"{TICK}{len(self._ticks)}{word(device)}"
        if not outer:
            outer, zero = f"{name}/const", np.zeros((), np.int32)
            self.added.append(make_node(outer, "Const", device=device, value=zero, dtype=dtypes.int32))
        kind: dict[str, Any] = {"device": device, "T": dtypes.int32}
        enter, merge, switch, after = (f"{name}/{part}" for part in ("enter", "merge", "switch", "next"))
        frame = {"frame_name": frames[-1], "parallel_iterations": self._parallel[frames[-1]]}
        self.added += [
            make_node(enter, "Enter", [(outer, 0)], **frame, **kind),
            make_node(merge, "Merge", [(enter, 0), (after, 0)], N=2, **kind),
            make_node(switch, "Switch", [(merge, 0), (self._conditions[frames], 0)], [merge], **kind),
            make_node(after, "NextIteration", [(switch, 1)], **kind),
        ]
        return f"{name}/merge"
