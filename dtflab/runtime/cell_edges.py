"""Cell edges: where a partition hands on a variable, its Cell, instead of its value.

In TensorFlow the value of a reference variable is its buffer, which updates write into: `w/read` gives the ops that run
after an update the new value, and so does a fetch of `w`.

Rule: each chain is walked once, however many nodes of it ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.node import Edge, Node, by_name
from dtflab.runtime.rendezvous import DEAD

_HAND_ON = ("Identity", "_Retval", "_Send")


def hands_on(node: Node) -> bool:
    """True for a node whose consumer gets the Cell that it got, unless that wants a reference."""
    return node.op in _HAND_ON or _is_loop_constant(node)


def _is_loop_constant(node: Node) -> bool:
    """True for an Enter that is a loop constant, even of a variable: a body that updates it reads the new value."""
    return node.op == "Enter" and bool(node.attrs["is_constant"])


class CellEdges:
    """The edges of a partition that carry a variable's Cell: a reference, or the Identity of one."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._producers = by_name(nodes)
        self._known: dict[str, bool] = {}  # of the nodes that hand on their input

    def __contains__(self, edge: Edge) -> bool:
        name, output = edge
        chain: list[str] = []
        carries = False
        while name not in self._known:
            node = self._producers[name]
            carries = node.output_types[output]._is_ref_dtype
            if carries or not (node.op == "Identity" or _is_loop_constant(node)):
                break
            chain.append(name)
            name, output = node.inputs[0]
        carries = self._known.get(name, carries)
        self._known.update(dict.fromkeys(chain, carries))
        return carries


def handing_on(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel` on the Cell itself, once that is known to have a value."""

    def on_cell(*args: Any) -> Any:
        if args[-1] is not DEAD:
            args[-1].read()
        return kernel(*args)

    return on_cell
