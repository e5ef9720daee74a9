"""Loops of a graph, as they can be read off its nodes: which frames each node runs in.

Stands for `BuildControlFlowInfo` in `core/graph/control_flow.cc`.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Sequence

from dtflab.base import errors
from dtflab.base.grouping import grouped
from dtflab.graph import op_registry
from dtflab.graph.node import Edge, Node, by_name

MERGES = ("Merge", "RefMerge")
_NEXT_ITERATIONS = ("NextIteration", "RefNextIteration")

Frames = tuple[bytes, ...]  # names of the loops around a node, outermost first


def frames_of(nodes: Sequence[Node]) -> dict[str, Frames]:
    """The loops inside which each node runs. An Enter runs outside its loop, an Exit inside.

    Raises InvalidArgumentError where a value comes into a loop, or out of it, by another way.
    """
    kinds = {node.name: op_registry.get(node.op).control_flow for node in nodes}
    frames: dict[str, Frames] = {node.name: () for node in nodes}
    if "enter" not in kinds.values():
        return frames
    graph = by_name(nodes)
    consumers = grouped(((source, node.name) for node in nodes for source in node.sources()), kinds)

    def after(name: str) -> Frames:
        """The loops that a node's outputs are in."""
        if kinds[name] == "enter":
            return (*frames[name], graph[name].attrs["frame_name"])
        return frames[name][:-1] if kinds[name] == "exit" else frames[name]

    stack = [name for name, kind in kinds.items() if kind == "enter"]
    while stack:
        inner = after(name := stack.pop())
        for consumer in consumers[name]:
            if len(inner) > len(frames[consumer]):
                frames[consumer] = inner
                stack.append(consumer)
    for node in nodes:
        for source in node.sources():
            if after(source) != frames[node.name]:
                raise _different_frames(node.name, frames[node.name], source, after(source))
    return frames


def _different_frames(node: str, frames: Frames, source: str, others: Frames) -> errors.OpError:
    here, there = ((loops[-1].decode() if loops else "") for loops in (frames, others))
    return errors.InvalidArgumentError.of(
        f"{{{{node {node}}}}} has inputs from different frames. It is in frame '{here}', the input "
        f"{{{{node {source}}}}} is in frame '{there}'. Values come into a loop by Enter and leave it by Exit; a "
        f"constant of the body needs a control input from the body.\n\t [[{{{{node {node}}}}}]]"
    )


def is_back_edge(node: Node, source: Node) -> bool:
    """True for the edge that closes a loop, from `source` to `node`."""
    return node.op in MERGES and source.op in _NEXT_ITERATIONS


def topological(nodes: Sequence[Node], mapped: Container[Edge] = ()) -> list[Node]:
    """The nodes, producers first, in their own order otherwise; back edges of loops do not count.

    Edges that are `mapped` come from outside, and so does what is not among the nodes. InvalidArgumentError for a cycle
    that is not a loop.
    """
    position = {node.name: i for i, node in enumerate(nodes)}
    waiting = [0] * len(nodes)
    consumers: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        sources = [edge[0] for edge in node.inputs if edge not in mapped] + node.controls
        for name in sources:
            source = position.get(name)
            if source is None or is_back_edge(node, nodes[source]):
                continue
            consumers[source].append(i)
            waiting[i] += 1
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(nodes[i])
        for j in consumers[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    if len(order) < len(nodes):
        stuck = [nodes[i].name for i, count in enumerate(waiting) if count][:5]
        text = f"{len(nodes) - len(order)} nodes in a cycle, among them {', '.join(stuck)}"
        raise errors.InvalidArgumentError.of(text)
    return order
