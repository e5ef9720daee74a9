"""A placer by name, and the check of what a program's own placer returns: `Session(placer=my_place)`.

A placer may ignore the requests of `tf.device`. It must not separate a variable from the ops that take it by reference,
or nodes that the program colocates, and must not use a device without a kernel. Such a graph would fail later, with an
error that does not point to the placer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dtflab.base.errors import InvalidArgumentError
from dtflab.graph import device_spec
from dtflab.graph.node import Node
from dtflab.placement.colocation_graph import ColocationGraph

_ADVICE = "Start from the rules and change only what matters: `where = dict(dtflab.extend.place(nodes, devices, …))`."


class Placer(Protocol):
    """A function that gives each node its device, by name; `runtime/placer.py` has the one that is used by default."""

    def __call__(
        self,
        nodes: Sequence[Node],
        devices: Sequence[str],
        default_task: str,
        /,
        *,
        allow_soft_placement: bool,
        placed: Mapping[str, str],
    ) -> Mapping[str, str]: ...


def placer_named(placer: Placer | str | None) -> Placer | None:
    """The placer of `Session(placer=…)`: a function as it is, or the dynamic placer for "dynamic".

    None stands for the simple placer. Raises TypeError for anything else.
    """
    if placer is None or callable(placer):
        return placer
    if placer == "dynamic":
        from dtflab.placement.dynamic import DynamicPlacer  # loads the hardware model, which few sessions need

        return DynamicPlacer()
    raise TypeError(f"Argument `placer` must be a function or 'dynamic' (docs/placers.md), but got {placer!r}")


def check(
    placer: Placer, where: object, nodes: Sequence[Node], devices: Sequence[str], placed: Mapping[str, str]
) -> None:
    """Check that `where`, which the placer returned, gives every node a device that it can have.

    Raises TypeError if `where` is not a mapping, and InvalidArgumentError for a node without a device of the session, a
    device without a kernel for its node, or separated nodes that must share a device. `placed` are nodes that stay
    where they are. A placer that `keeps_the_rules` is not checked: it knows which of them soft placement gives up.
    """
    if getattr(placer, "keeps_the_rules", False):
        return
    name = getattr(placer, "__name__", repr(placer))
    if not isinstance(where, Mapping):
        raise TypeError(f"The placer {name} must return a dict of device names by node name, not {where!r:.80}")
    where = {**where, **placed}
    unplaced = [node.name for node in nodes if where.get(node.name) not in devices]
    if unplaced:
        raise _error(
            f"The placer {name} put {unplaced[0]} on {where.get(unplaced[0])!r}; it must name one of "
            f"[ {', '.join(devices)} ]. This holds for {len(unplaced)} of {len(nodes)} nodes. {_ADVICE}"
        )
    graph = ColocationGraph([node.replace(device="") for node in nodes], devices, False, {})
    first: dict[int, str] = {}
    for node in nodes:
        kind = device_spec.parse(where[node.name]).type
        if kind not in graph.device_types(node):
            raise _error(f"The placer {name} put {node.name} on {where[node.name]}, where {_no_kernel(node, kind)}")
        for other, why in _near(node, graph, first.setdefault(id(graph.group(node.name)), node.name)):
            if where[other] != where[node.name]:
                raise _error(
                    f"The placer {name} put {other} on {where[other]} and {node.name} on {where[node.name]}, but they "
                    f"must share a device: {why}. {_ADVICE}"
                )


def _no_kernel(node: Node, kind: str | None) -> str:
    types = ", ".join(dict.fromkeys(dtype.base_dtype.name for dtype in node.output_types))
    return f"{node.op} has no {kind} kernel{f' for {types}' if types else ''}. {_ADVICE}"


def _near(node: Node, graph: ColocationGraph, first: str) -> list[tuple[str, str]]:
    """The nodes with which `node` must share a device, with the reasons: its link, and the first of its group."""
    found = [(first, "variables and colocations join them, by way of others")]
    if link := graph.links.get(node.name):
        found.insert(0, (link.other, f"a {link.kind} joins them"))
    return found


def _error(text: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(text)
