"""Prune: the part of the graph that one kind of step needs.

Stands for `core/graph/subgraph.cc` (RewriteGraphForExecution). Feeds and fetches become `_Arg` and `_Retval` nodes on
the client's device, as in TensorFlow's local sessions; so the rest of the step knows only ordinary nodes.

Rule: a pure function; it runs per signature of (feeds, fetches, targets), after placement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.base.garbage import NO_COLLECTION
from dtflab.graph import op_registry
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Edge, Node, make_node, parse_edge
from dtflab.runtime.rendezvous import Key


@NO_COLLECTION
def prune(
    nodes: Mapping[str, Node], feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], device: str,
    partial: bool = False, order: Mapping[str, int] | None = None,
) -> list[Node]:  # fmt: skip
    """The nodes needed to compute tensors `fetches` and run operations `targets` when tensors `feeds` are given.

    Names are `op:index` for tensors, `op` for operations; `device` is where the client's values come and go. In a
    `partial` run they come and go one by one, through the rendezvous of the step. `order` has the number of each node
    in the graph; with it, what pruning costs depends on the nodes that are kept, not on the graph.
    Raises InvalidArgumentError for an unknown feed, NotFoundError for an unknown fetch or target.
    """
    fed = {}
    for i, name in enumerate(feeds):
        edge = _edge(nodes, name, "FeedInputs")
        fed[edge] = _feed(name, nodes[edge[0]].output_types[edge[1]].base_dtype, device, i, partial)
    kept: list[Node] = []
    wanted = []
    for i, name in enumerate(fetches):
        edge = _edge(nodes, name, "FetchOutputs")
        dtype = nodes[edge[0]].output_types[edge[1]].base_dtype
        kept.append(_fetch(name, fed_or_self(fed, edge), dtype, device, i, partial))
        wanted.append(fed_or_self(fed, edge)[0])
    for name in targets:
        if name not in nodes:
            raise errors.NotFoundError.of(f"PruneForTargets: Some target nodes not found: {name}")
        wanted.append(name)
    arguments = {node.name: node for node in fed.values()}
    return _without_unread(_reachable(nodes, arguments, fed, wanted, order) + kept, set(targets))


def _without_unread(nodes: Sequence[Node], targets: set[str]) -> list[Node]:
    """Turn nodes that are waited for, but never read, into NoOps that wait for their inputs.

    TensorFlow's dependency optimizer (grappler) does it too. Gradients are full of them: what a layer would send back
    to the data costs as much as the layer, and `tf.tuple` merely waits for it. A node that reads a Switch stays: it may
    be dead, a Switch never is.
    """
    readers = {node.name: 0 for node in nodes}
    choosers = {node.name for node in nodes if op_registry.get(node.op).control_flow}
    for node in nodes:
        for source, _ in node.inputs:
            readers[source] += 1
    result = []
    for node in reversed(nodes):
        unread = not readers[node.name] and node.name not in targets and _only_computes(node)
        if unread and not any(source in choosers for source, _ in node.inputs):
            for source, _ in node.inputs:
                readers[source] -= 1
            node = make_node(node.name, "NoOp", controls=node.sources(), device=node.device)
        result.append(node)
    return result[::-1]


def _only_computes(node: Node) -> bool:
    """True if a node that nobody reads makes no difference."""
    op = op_registry.get(node.op)
    writes = any(dtype._is_ref_dtype for dtype in op.op_def.input_types(node.attrs))
    return bool(node.output_types and node.inputs) and not (op.stateful or op.control_flow or op.checks or writes)


def fed_or_self(fed: Mapping[Edge, Node], edge: Edge) -> Edge:
    """Where a consumer of `edge` gets its value: from the feed if there is one."""
    return (fed[edge].name, 0) if edge in fed else edge


def _feed(name: str, dtype: DType, device: str, i: int, partial: bool) -> Node:
    """The node that stands for a fed tensor."""
    label = name.replace(":", "_")
    if partial:
        return make_node(f"_recv_{label}", "_Recv", device=device, tensor_type=dtype, **_to_client(name, device))
    return make_node(f"_arg_{label}_{i}", "_Arg", device=device, T=dtype, index=i)


def _fetch(name: str, edge: Edge, dtype: DType, device: str, i: int, partial: bool) -> Node:
    """The node that hands a tensor to the client."""
    label = name.replace(":", "_")
    if partial:
        return make_node(f"_send_{label}", "_Send", [edge], device=device, T=dtype, **_to_client(name, device))
    return make_node(f"_retval_{label}_{i}", "_Retval", [edge], device=device, T=dtype, index=i)


def client_key(name: str, device: str) -> Key:
    """The key under which the client of a partial run feeds or fetches tensor `name`."""
    return device, 0, device, name


def _to_client(name: str, device: str) -> dict[str, Any]:
    send_device, incarnation, recv_device, tensor_name = client_key(name, device)
    return {"send_device": send_device.encode(), "send_device_incarnation": incarnation,
            "recv_device": recv_device.encode(), "tensor_name": tensor_name.encode(),
            "client_terminated": True}  # fmt: skip


def _reachable(
    nodes: Mapping[str, Node], arguments: Mapping[str, Node], fed: Mapping[Edge, Node], wanted: Sequence[str],
    order: Mapping[str, int] | None,
) -> list[Node]:  # fmt: skip
    """Everything that `wanted` depends on, with fed edges cut, in the order of the graph."""
    found: dict[str, Node] = {}
    stack = list(wanted)
    while stack:
        name = stack.pop()
        if name in found:
            continue
        node = arguments.get(name) or _cut(nodes[name], nodes, fed)
        found[name] = node
        stack += [source for source, _ in node.inputs]
        stack += node.controls
    order = order or {name: i for i, name in enumerate(nodes)}
    ordered = sorted((name for name in found if name not in arguments), key=order.__getitem__)
    return [found[n] for n in arguments if n in found] + [found[n] for n in ordered]


def _cut(node: Node, nodes: Mapping[str, Node], fed: Mapping[Edge, Node]) -> Node:
    """`node` with its fed inputs taken from the feeds; waiting for a fed placeholder means nothing."""
    if not fed:
        return node
    controls = [c for c in node.controls if not (nodes[c].op.startswith("Placeholder") and (c, 0) in fed)]
    return node.replace(inputs=[fed_or_self(fed, edge) for edge in node.inputs], controls=controls)


def _edge(nodes: Mapping[str, Node], name: str, who: str) -> Edge:
    op, index = parse_edge(name)
    if op in nodes and index < len(nodes[op].output_types):
        return op, index
    kind = errors.NotFoundError if who == "FetchOutputs" else errors.InvalidArgumentError
    raise kind.of(f"{who}: unable to find tensor {name} in the session's graph.")
