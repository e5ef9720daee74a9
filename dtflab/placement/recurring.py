"""The nodes of a graph that are part of its steps, as far as the graph shows it.

Stands for nothing in TensorFlow, whose placer does not know either what will be fetched.

Rules: nodes that initialize, save or restore variables run only now and then, and so do nodes that only these need. An
initial value is one that does not depend on a variable, placeholder or queue, or that depends on whether a variable has
a value yet. A node that a step needs is part of it in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtflab.base.grouping import grouped
from dtflab.graph import dtypes
from dtflab.graph.loops import topological
from dtflab.graph.node import Node

_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_RESTORES = frozenset({"Restore", "RestoreSlice", "RestoreV2"})
_FILES = _RESTORES | {"MergeV2Checkpoints", "Save", "SaveSlices", "SaveV2", "ShardedFilename"}
_ASKS = frozenset({"IsVariableInitialized", "ReportUninitializedVariables", "VarIsInitializedOp"})


def recurring(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that run in each step, variables among them, in the order of `nodes`."""
    order = topological(nodes)
    known = _known_from_the_start(order)
    once = {node.name for node in order if node.op in _FILES or _is_first_value(node, known)} | _asking(order)
    for node in order:  # nodes that only wait for these: the initializer of all variables
        sources = set(node.sources())
        if node.op in ("NoOp", "Identity") and sources & once and sources <= once | known:
            once.add(node.name)
    needed_by = grouped((source, node.name) for node in order for source in node.sources())
    for node in reversed(order):  # nodes that only these need
        readers = needed_by.get(node.name, ())
        if readers and not _is_resource(node) and all(reader in once for reader in readers):
            once.add(node.name)
    for node in reversed(order):  # nodes that a step needs
        if node.name not in once:
            once.difference_update(node.sources())
    return [node for node in nodes if node.name not in once]


def _asking(order: Sequence[Node]) -> set[str]:
    """Nodes that depend on whether a variable has a value yet."""
    found: set[str] = set()
    for node in order:
        if node.op in _ASKS or not found.isdisjoint(node.sources()):
            found.add(node.name)
    return found


def _is_first_value(node: Node, known: set[str]) -> bool:
    return node.op in _ASSIGNS and all(source in known for source, _ in node.inputs[1:])


def _is_resource(node: Node) -> bool:
    """True for a node that creates a variable or another resource, which exists all the time."""
    return not node.inputs and any(dtype._is_ref_dtype or dtype == dtypes.resource for dtype in node.output_types)


def _known_from_the_start(order: Sequence[Node]) -> set[str]:
    """Nodes that depend on constants and random numbers alone."""
    found: set[str] = set()
    for node in order:
        made = node.op == "Const" or (node.inputs and node.op not in _ASSIGNS)
        if made and all(source in found for source in node.sources()):
            found.add(node.name)
    return found
