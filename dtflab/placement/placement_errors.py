"""Errors of a placer that can't place a graph.

The first line of each text is TensorFlow's (`colocation_graph.cc`, `placer.cc`), and so is the account of the group
that follows it. The advice after it is dtflab's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtflab.base.errors import InvalidArgumentError, OpError
from dtflab.base.suggestions import near
from dtflab.graph import device_spec, dtypes, op_registry
from dtflab.graph.node import Node

if TYPE_CHECKING:
    from dtflab.placement.colocation_graph import ColocationGraph, Group


def malformed(node: Node, why: str) -> OpError:
    """The error for a device name that can't be parsed."""
    hint = "What to do: write it as /job:ps/task:0/device:GPU:0; every part is optional."
    return _error(node, f"{why} in node: {{{{node {node.name}}}}}\n{hint}")


def two_homes(node: Node, source: Node, strength: str, a: str, b: str) -> OpError:
    """The error for a node that takes a variable of one device by reference, but must be on another device."""
    return _error(
        node,
        "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible "
        f"{strength} devices: {_full(a)} vs {_full(b)}. The edge src node is name='{source.name}' "
        f"(op='{source.op}'), and the dst node is name='{node.name}' (op='{node.op}').\n"
        f"What to do: put both variables on one device, or pass a value to {node.name}: tf.identity(…).",
    )


def conflict(graph: ColocationGraph, x: str, y: str, by_edge: bool, why: str) -> OpError:
    """The error for nodes that must share a device and request different ones."""
    text = f"Cannot colocate nodes {{{{colocation_node {x}}}}} and {{{{colocation_node {y}}}}}: {why}"
    if by_edge:
        text = (
            "Nodes were connected by a reference or resource connection (requiring them to be on the same device), but "
            f"the two nodes were assigned two different devices: {text}"
        )
    groups = [graph.group(x), graph.group(y)]
    listing = "\n".join(f"  {_asked(n)}" for n in graph.nodes if any(graph.group(n.name) is g for g in groups))
    hint = "What to do: pin them to the same device, or pin only one of them."
    if not by_edge:
        hint += " With tf.ConfigProto(allow_soft_placement=True) they are kept together only where that is possible."
    node = graph.node(y if by_edge else x)
    return _error(node, f"{text}\nThese nodes need one device:\n{listing}\n{hint}")


def no_device(graph: ColocationGraph, node: Node, group: Group) -> OpError:
    """The error for a request that no device with the kernels satisfies."""
    return _error(node, f"Cannot assign a device for operation {node.name}: {_why_none(graph, node, group)}")


def _why_none(graph: ColocationGraph, node: Node, group: Group) -> str:
    own, wanted = device_spec.parse(node.device), device_spec.parse(group.requested)
    explicit = f"Could not satisfy explicit device specification '{node.device}'"
    if own != wanted:
        available = ", ".join(sorted(graph.devices))
        return (
            f"{explicit} because the node {{{{colocation_node {node.name}}}}} was colocated with a group of nodes that "
            f"required incompatible device '{wanted}'. All available devices [{available}]. {_account(graph, group)}"
            f"\n{_hint(graph, group)}"
        )
    if not any(device_spec.matches(node.device, device) for device in graph.devices):
        return (
            f"{{{{node {node.name}}}}} was explicitly assigned to {node.device} but available devices are "
            f"[ {', '.join(sorted(graph.devices))} ]. Make sure the device specification refers to a valid device."
            f"\n{_hint(graph, group)}"
        )
    because = f" because no supported kernel for {own.type} devices is available." if own.type else ""
    return f"{explicit}{because}{_account(graph, group)}\n{_kernels(node)}\n{_hint(graph, group)}"


# -- its parts --------------------------------------------------------------------------------------------------


_STAYS = (
    " This op stays in the graph, even if you create another one: call tf.reset_default_graph(), build the graph again "
    "and open a new session."
)


def _error(node: Node, text: str) -> OpError:
    return InvalidArgumentError.of(f"{text}\n\t [[{{{{node {node.name}}}}}]]")


def _full(name: str) -> str:
    return str(device_spec.parse(name))


def _asked(node: Node) -> str:
    return f"{node.name} ({node.op}) {node.device}".rstrip()


def _assigned(graph: ColocationGraph, node: Node) -> str:
    return f" framework assigned device={graph.placed[node.name]}" if node.name in graph.placed else ""


def _account(graph: ColocationGraph, group: Group) -> str:
    """The members of a group: the kernels of their ops, and the devices that they request."""
    members = graph.members(group)
    types = {node.op: " ".join(graph.device_types(node)) for node in members}
    kernels = "".join(f"\n{op}: {found}" for op, found in types.items())
    return (
        f"\nColocation Debug Info:\nColocation group had the following types and supported devices: {kernels}"
        "\n\nColocation members, user-requested devices, and framework assigned devices, if any:"
        + "".join(f"\n  {_asked(node)}{_assigned(graph, node)}" for node in members)
        + "\n"
    )


def _kernels(node: Node) -> str:
    """The kernels of an op, as TensorFlow lists them; every op here has one for CPUs."""
    from dtflab.ops.kernel_registry import gpu_kernels

    lines = ["device='CPU'", *map(str, gpu_kernels(node.op))]
    return f"Op: {node.op}\nRegistered kernels:\n" + "".join(f"  {line}\n" for line in lines)


def types_of(node: Node) -> str:
    """The types that a node works on, in words: ` with int32`, or nothing."""
    attrs = op_registry.get(node.op).op_def.attrs
    types = [attr.name for attr in attrs.values() if attr.type == "type" and attr.name in node.attrs]
    names = [dtypes.as_dtype(node.attrs[name]).name for name in types]
    return " with " + " and ".join(dict.fromkeys(names)) if names else ""


def _hint(graph: ColocationGraph, group: Group) -> str:
    """Advice for a request that can't be satisfied."""
    wanted = device_spec.parse(group.requested)
    if not any(device_spec.matches(str(wanted._replace(type=None, id=None)), device) for device in graph.devices):
        jobs = {device_spec.parse(device).job or "" for device in graph.devices}
        if jobs == {"localhost"}:
            return (
                "What to do: this session has no cluster. Give tf.Session a server's address, or cluster.target."
                + _STAYS
            )
        alike = [] if wanted.job in jobs else near(wanted.job or "", jobs)
        meant = f" Did you mean /job:{alike[0]}?" if alike else ""
        return f"What to do: choose a job and task of the cluster, one of the devices above.{meant}{_STAYS}"
    soft = "or let the session choose another device: tf.ConfigProto(allow_soft_placement=True)"
    culprit = group.cpu_only
    if culprit is not None and wanted.type == "GPU":
        cause = f"What to do: {culprit.op}{types_of(culprit)} has no GPU kernel. "
        tip = "Make the variable float32, pin" if "Variable" in culprit.op else "Pin"
        return f"{cause}{tip} it to /cpu:0, {soft}.{_STAYS}"
    return f"What to do: request a device that exists, {soft}.{_STAYS}"
